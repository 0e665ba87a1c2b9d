//! Puts writes to the hooks of their plane: what hooks are shown of a write, and what becomes of their answers.
//!
//! Guarantees: nothing is prepared for hooks that do not want to see a write; no lock is held while one is asked;
//! what one of them says beside yes and no reaches the client whatever becomes of the request.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Uri;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::hooks::{
    self, AdmissionRequest, Chain, Context, Equivalent, GroupVersionKind, GroupVersionResource, Notes,
    Operation, Resolver, Unresolved,
};
use crate::planes::Plane;
use crate::store::{GroupResource, ObjectKey};
use crate::verbs::{DeleteOptions, FieldValidation, Part, Propagation, Target, WriteOptions, namespaces};

/// What hooks have said during a request, beside yes and no. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<Notes>>);

impl Said {
    fn add(&self, notes: Notes) {
        self.0.lock().merge(notes);
    }

    /// Everything so far.
    pub(crate) fn take(&self) -> Notes {
        std::mem::take(&mut self.0.lock())
    }
}

/// A write that hooks want to see.
pub(crate) struct Asking {
    chain: Arc<Chain>,
    request: AdmissionRequest,
    equivalents: Vec<Equivalent>,
}

/// Makes an object that a hook has changed ready again.
type Settle<'a> = dyn Fn(&mut Value) + Send + Sync + 'a;

impl Asking {
    /// A write with options, if anybody wants to see it. A name that is going to be generated is empty.
    pub(crate) fn of_write(
        target: &Target,
        operation: Operation,
        key: &ObjectKey,
        options: &WriteOptions,
    ) -> Option<Self> {
        let mut asking = Self::new(target, operation, key, options.part, options.dry_run)?;
        let mut shown = json!({
            "kind": if operation == Operation::Create { "CreateOptions" } else { "UpdateOptions" },
            "apiVersion": "meta.k8s.io/v1",
        });
        if !options.named_manager.is_empty() {
            shown["fieldManager"] = json!(options.named_manager);
        }
        match options.validation {
            FieldValidation::Warn => {}
            FieldValidation::Ignore => shown["fieldValidation"] = json!("Ignore"),
            FieldValidation::Strict => shown["fieldValidation"] = json!("Strict"),
        }
        asking.show_options(shown);
        Some(asking)
    }

    /// A delete, if anybody wants to see it.
    pub(crate) fn of_delete(target: &Target, key: &ObjectKey, options: &DeleteOptions) -> Option<Self> {
        let mut asking = Self::new(target, Operation::Delete, key, Part::Main, options.dry_run)?;
        let mut shown = json!({ "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" });
        if let Some(propagation) = options.propagation {
            shown["propagationPolicy"] = json!(match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            });
        }
        for (field, value) in [("uid", &options.uid), ("resourceVersion", &options.resource_version)] {
            if let Some(value) = value {
                shown["preconditions"][field] = json!(value);
            }
        }
        asking.show_options(shown);
        Some(asking)
    }

    fn new(
        target: &Target,
        operation: Operation,
        key: &ObjectKey,
        part: Part,
        dry_run: bool,
    ) -> Option<Self> {
        if !target.asks {
            return None;
        }
        let chain = target.plane.chain(&target.shared.hooks);
        if chain.is_empty() {
            return None;
        }
        let def = &target.resource.def;
        let kind = match part {
            Part::Scale => GroupVersionKind::new("autoscaling", "v1", "Scale"),
            _ => GroupVersionKind::new(&def.gv.group, &def.gv.version, &def.names.kind),
        };
        let resource = GroupVersionResource::new(&def.gv.group, &def.gv.version, &def.names.plural);
        let mut request = AdmissionRequest::new(operation, kind, resource);
        request.plane = target.plane.name().as_str().to_owned();
        request.subresource = part.subresource().to_owned();
        request.name = key.name.to_string();
        let namespace = if target.resource.is_namespace() { &key.name } else { &key.namespace };
        request.namespace = namespace.to_string();
        request.dry_run = dry_run;
        let equivalents = equivalents(target, &request, part);
        if !chain.concerns(&request, &equivalents) {
            return None;
        }
        request.uid = target.shared.options.random.uuid();
        request.user = target.identity.clone();
        Some(Self { chain, request, equivalents })
    }

    fn show_options(&mut self, mut options: Value) {
        if self.request.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        self.request.options = options;
    }

    /// Shows the write to the mutating hooks, and gives the object as they would have it. `settle` makes it ready again
    /// after each change.
    pub(crate) async fn mutate(
        &mut self,
        target: &Target,
        before: Option<&Value>,
        object: Value,
        settle: &Settle<'_>,
    ) -> Result<Value> {
        self.request.old_object = before.cloned();
        self.request.object = Some(object);
        Box::pin(self.ask(target, Some(settle))).await?;
        Ok(self.request.object.take().expect("a hook that is shown an object cannot take it away"))
    }

    /// Shows the write as it is going to be made to the validating hooks.
    pub(crate) async fn validate(
        &mut self,
        target: &Target,
        before: Option<&Value>,
        object: &Value,
    ) -> Result<()> {
        self.request.old_object = before.cloned();
        self.request.object = Some(object.clone());
        Box::pin(self.ask(target, None)).await
    }

    /// Shows the end of an object to all hooks.
    pub(crate) async fn delete(&mut self, target: &Target, before: &Value) -> Result<()> {
        self.request.old_object = Some(before.clone());
        Box::pin(self.ask(target, Some(&|_| {}))).await?;
        Box::pin(self.ask(target, None)).await
    }

    /// Asks the mutating hooks, if there is a way to settle what they change, and else the validating ones.
    async fn ask(&mut self, target: &Target, settle: Option<&Settle<'_>>) -> Result<()> {
        let ctx = Context {
            namespace_labels: &|name| labels_of(&target.plane, name),
            default: settle.unwrap_or(&|_| {}),
            uid: &|| target.shared.options.random.uuid(),
            equivalents: &self.equivalents,
            resolver: &Services(&target.plane),
            transport: &target.shared.hooks.transport,
            deadline: target.deadline,
        };
        let answer = match settle {
            Some(_) => hooks::mutate(&self.chain, &mut self.request, &ctx).await,
            None => hooks::validate(&self.chain, &self.request, &ctx).await,
        };
        match answer {
            Ok(notes) => {
                target.said.add(notes);
                Ok(())
            }
            Err(rejection) => {
                target.said.add(*rejection.notes);
                Err(ApiError::Denied(Box::new(rejection.denial)))
            }
        }
    }
}

/// The other versions in which the same objects are served. Those of a CRD differ by name only; events of the two groups
/// differ in their fields, and count as two kinds.
fn equivalents(target: &Target, request: &AdmissionRequest, part: Part) -> Vec<Equivalent> {
    let def = &target.resource.def;
    if def.built_in {
        return Vec::new();
    }
    let versions = target.registry.versions().filter(|(gv, _)| gv.group == def.gv.group && **gv != def.gv);
    let others = versions.filter_map(|(_, resources)| resources.get(&def.names.plural));
    let others = others.filter(|other| other.table == target.resource.table);
    let equivalent = |other: &Arc<crate::registry::Resource>| {
        let gv = &other.def.gv;
        let kind = match part {
            Part::Scale => request.kind.clone(),
            _ => GroupVersionKind::new(&gv.group, &gv.version, &other.def.names.kind),
        };
        Equivalent { kind, resource: GroupVersionResource::new(&gv.group, &gv.version, &def.names.plural) }
    };
    others.map(equivalent).collect()
}

fn labels_of(plane: &Plane, namespace: &str) -> Option<BTreeMap<String, String>> {
    let found = plane.store.get(&namespaces(), &ObjectKey::new("", namespace))?;
    Some(found.meta.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
}

/// The services of a plane. There is no network behind them, so only those lead anywhere that name a host.
struct Services<'a>(&'a Plane);

impl Resolver for Services<'_> {
    fn resolve(&self, namespace: &str, name: &str, port: u16, path: &str) -> Result<Uri, Unresolved> {
        let table = GroupResource::new("", "services");
        let found = self.0.store.get(&table, &ObjectKey::new(namespace, name));
        let service = found.ok_or(Unresolved::NotFound)?.value();
        let host =
            service["spec"]["externalName"].as_str().filter(|_| service["spec"]["type"] == "ExternalName");
        let url = host.map(|host| format!("https://{host}:{port}{path}"));
        url.and_then(|url| url.parse().ok()).ok_or(Unresolved::NoWay)
    }
}
