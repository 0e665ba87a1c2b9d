//! What can be done with a resource: get, list, watch, create, update, patch, apply, delete, deletecollection.
//!
//! Each verb is a function of a [`Target`] (which plane, which resource, who asks) and its own arguments, and knows nothing of HTTP.
//! Writes follow one pattern: read the object, decide the new one (`admission`), commit on
//! condition that the object is still the one that was read. When the client set no precondition, a lost race is decided anew.

mod create;
mod delete;
mod list;
mod patch;
mod scale;
mod update;
pub(crate) mod watch;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::{Duration, Instant};

use crate::admission::hooks::Said;
use crate::auth::Identity;
use crate::authz::{Attributes, ResourceAttributes};
use crate::error::{ApiError, Result, Subject};
use crate::limits::bounds;
use crate::planes::Plane;
use crate::registry::{Registry, Resource};
use crate::server::Shared;
use crate::store::{CommitError, Draft, Event, Expect, GroupResource, Guard, Object, ObjectKey, Write};

pub(crate) use create::create;
pub(crate) use delete::{DeleteOptions, Deleted, Propagation, YIELD_EVERY, delete, delete_collection};
pub(crate) use list::{ListOptions, Listed, VersionMatch, list};
pub(crate) use patch::{Patch, patch};
pub(crate) use scale::{get_scale, patch_scale, update_scale};
pub(crate) use update::update;

/// How often a write without a precondition is decided anew after a lost race before it is given up as a conflict. Each
/// loss means that another write got through, so this bounds unfairness, not progress.
const MAX_ATTEMPTS: usize = 100;

/// How long a request may wait for hooks in all, as long as Kubernetes gives it.
const REQUEST_TIME: Duration = Duration::from_secs(60);

/// What a verb acts on, and for whom.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) shared: Arc<Shared>,
    pub(crate) plane: Arc<Plane>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) resource: Arc<Resource>,
    /// Who asks.
    pub(crate) identity: Arc<Identity>,
    /// Whether hooks are asked.
    pub(crate) asks: bool,
    /// When hooks must have answered.
    pub(crate) deadline: Instant,
    /// What hooks say beside yes and no.
    pub(crate) said: Said,
}

impl Target {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        plane: &Arc<Plane>,
        resource: &Arc<Resource>,
        identity: Arc<Identity>,
    ) -> Self {
        let (shared, plane, resource) = (shared.clone(), plane.clone(), resource.clone());
        Self {
            registry: plane.registry(),
            shared,
            plane,
            resource,
            identity,
            asks: true,
            deadline: Instant::now() + REQUEST_TIME,
            said: Said::default(),
        }
    }

    /// The same without asking hooks: for what the server does to keep its own books.
    #[must_use]
    pub(crate) fn unasked(self) -> Self {
        Self { asks: false, ..self }
    }

    /// The same as if it began now: for one of many writes that nobody waits for.
    #[must_use]
    pub(crate) fn anew(&self) -> Self {
        Self { deadline: Instant::now() + REQUEST_TIME, said: Said::default(), ..self.clone() }
    }

    /// The object that an error speaks of, by resource.
    pub(crate) fn subject(&self, name: &str) -> Subject {
        let def = &self.resource.def;
        Subject { group: def.gv.group.clone(), resource: def.names.plural.clone(), name: name.to_owned() }
    }

    /// The object that a validation error speaks of, by kind.
    pub(crate) fn kind_subject(&self, name: &str) -> Subject {
        let def = &self.resource.def;
        Subject { group: def.gv.group.clone(), resource: def.names.kind.clone(), name: name.to_owned() }
    }

    /// Refuses what the caller may not do beside what the request was allowed for.
    pub(crate) fn require(&self, verb: &str, namespace: &str, name: &str) -> Result<()> {
        let gv = &self.resource.def.gv;
        let resource = ResourceAttributes {
            group: &gv.group,
            version: &gv.version,
            resource: &self.resource.def.names.plural,
            subresource: "",
            namespace,
            name,
        };
        let attributes = Attributes::resource(self.identity.as_caller(), verb, resource);
        let policy = self.plane.policy();
        let decision = policy.allows(&attributes);
        if decision.allowed { Ok(()) } else { Err(ApiError::refused(&attributes, &decision)) }
    }

    /// The stored object, or the right error.
    pub(crate) fn live(&self, key: &ObjectKey) -> Result<Arc<Object>> {
        let found = self.plane.store.get(&self.resource.table, key);
        found.ok_or_else(|| ApiError::NotFound(self.subject(&key.name)))
    }

    /// The stored object as a value in the version of this target.
    fn live_value(&self, object: &Object) -> Value {
        let mut value = object.value();
        self.resource.serve(&mut value);
        value
    }

    /// Commits `value`; `Ok(None)` means that the race was lost and the caller must look again.
    async fn commit(
        &self,
        value: Value,
        expect: Expect,
        delete: bool,
        guards: Vec<Guard>,
    ) -> Result<Option<Arc<Event>>> {
        self.try_commit(value, expect, delete, guards).await.map(std::result::Result::ok)
    }

    /// Commits `value`, or says how the race was lost.
    async fn try_commit(
        &self,
        mut value: Value,
        expect: Expect,
        delete: bool,
        guards: Vec<Guard>,
    ) -> Result<std::result::Result<Arc<Event>, Lost>> {
        if !self.resource.is_storage_version() {
            self.resource.keep(&mut value);
        }
        let draft = Draft::new(&value, &self.resource.stored_fields);
        // Freed while it is in the processor's caches: after the disk it would not be.
        drop(value);
        if draft.size() > bounds::OBJECT && !delete {
            return Err(ApiError::TooLarge(bounds::OBJECT));
        }
        let write = Write { resource: self.resource.table.clone(), expect, draft, delete, guards };
        match self.shared.commit(&self.plane, write).await {
            Ok(event) => Ok(Ok(event)),
            Err(CommitError::Stale) => Ok(Err(Lost::Object)),
            Err(CommitError::Guarded) => Ok(Err(Lost::Guard)),
            Err(CommitError::PlaneGone) => Err(ApiError::NoSuchPath),
            Err(error @ CommitError::NotDurable) => Err(ApiError::Internal(error.to_string())),
        }
    }

    /// A stored object as an answer in the version of this target.
    pub(crate) fn in_version(&self, object: &Arc<Object>) -> Served {
        if self.resource.is_storage_version() {
            Served::Stored(object.clone())
        } else {
            Served::Value(self.live_value(object))
        }
    }

    /// What a conflict says when the object has moved on.
    fn conflict(&self, name: &str) -> ApiError {
        ApiError::Conflict {
            subject: self.subject(name),
            message:
                "the object has been modified; please apply your changes to the latest version and try again"
                    .to_owned(),
        }
    }
}

/// What was not as a write expected it, at the instant of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// The object.
    Object,
    /// What the object depends on.
    Guard,
}

/// One object as an answer.
#[derive(Clone, Debug)]
pub(crate) enum Served {
    /// As it is stored.
    Stored(Arc<Object>),
    /// Made for this answer: a dry run, another version, a subresource.
    Value(Value),
}

impl Served {
    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Stored(object) => &object.meta.key.name,
            Self::Value(value) => value["metadata"]["name"].as_str().unwrap_or_default(),
        }
    }

    /// JSON text.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Stored(object) => object.bytes.clone(),
            Self::Value(value) => {
                serde_json::to_vec(value).expect("a value always serialises into memory").into()
            }
        }
    }

    /// As a value.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Stored(object) => object.value(),
            Self::Value(value) => value.clone(),
        }
    }
}

/// The answer to a write.
#[derive(Debug)]
pub(crate) struct Written {
    /// The object after the write.
    pub(crate) object: Served,
    /// Whether it is new.
    pub(crate) created: bool,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

/// What happens to fields that the schema does not know and to fields that stand twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped without a word.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// Which part of an object a write may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, if the kind keeps that apart.
    #[default]
    Main,
    /// The status alone.
    Status,
    /// The wanted count alone, through `scale`.
    Scale,
    /// A namespace's own finalizers.
    Finalize,
}

impl Part {
    /// The name in a managed-fields entry.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Finalize => "finalize",
        }
    }
}

/// Options common to all writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    /// Who owns the fields that are written.
    pub(crate) manager: String,
    /// The manager that the client named; empty if it named none.
    pub(crate) named_manager: String,
    /// Decide and answer, but write nothing.
    pub(crate) dry_run: bool,
    /// What happens to unknown fields.
    pub(crate) validation: FieldValidation,
    /// Which part is written.
    pub(crate) part: Part,
    /// Fields of the body that stood twice.
    pub(crate) duplicates: Vec<String>,
}

impl WriteOptions {
    /// Plain options for a manager.
    pub(crate) fn by(manager: &str) -> Self {
        Self { manager: manager.to_owned(), ..Self::default() }
    }
}

/// One object.
pub(crate) fn get(target: &Target, key: &ObjectKey, minimum: Option<u64>) -> Result<Served> {
    check_not_future(target, minimum)?;
    Ok(target.in_version(&target.live(key)?))
}

/// Refuses a revision that the server has not reached.
fn check_not_future(target: &Target, asked: Option<u64>) -> Result<()> {
    let current = target.plane.store.revision();
    match asked {
        Some(asked) if asked > current => Err(ApiError::ResourceVersionTooLarge { asked, current }),
        _ => Ok(()),
    }
}

/// The table of namespaces.
pub(crate) fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}
