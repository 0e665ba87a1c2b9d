//! Create.

use serde_json::{Value, json};

use super::{Lost, Served, Target, WriteOptions, Written, namespaces};
use crate::admission;
use crate::admission::hooks::Asking;
use crate::error::{ApiError, Cause, Result};
use crate::hooks::Operation;
use crate::registry::{APIEXTENSIONS, strategy};
use crate::store::{Expect, GroupResource, Guard, ObjectKey};

/// How often a generated name is drawn again when it is taken.
const NAME_ATTEMPTS: usize = 8;

/// Creates an object in `namespace` (none for cluster-scoped kinds).
pub(crate) async fn create(
    target: &Target,
    namespace: Option<&str>,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Written> {
    let mut warnings = admission::decode_shape(target, namespace, &mut object)?;
    let generate = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .is_empty()
        .then(|| object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned());
    admission::prepare_create(target, &mut object, options, &mut warnings)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let key = ObjectKey::new(namespace.unwrap_or_default(), name);
    let mut asking = Asking::of_write(target, Operation::Create, &key, options);
    if let Some(asking) = &mut asking {
        check_home(target, namespace, name)?;
        let prepared = object.clone();
        let settle = |object: &mut Value| admission::settle_create(target, &prepared, object);
        object = asking.mutate(target, None, object, &settle).await?;
    }
    let guards = guards(target, namespace);
    for _ in 0..NAME_ATTEMPTS {
        if let Some(prefix) = generate.as_deref().filter(|prefix| !prefix.is_empty()) {
            object["metadata"]["name"] = json!(generated_name(target, prefix));
            if target.resource.is_namespace() {
                strategy::label_with_name(&mut object);
            }
        }
        admission::validate_create(target, &object)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        check_home(target, namespace, name)?;
        let key = ObjectKey::new(namespace.unwrap_or_default(), name);
        let taken = target.plane.store.get(&target.resource.table, &key).is_some();
        if taken && generate.is_some() {
            continue;
        }
        if let Some(asking) = &mut asking {
            asking.validate(target, None, &object).await?;
        }
        if taken {
            return Err(ApiError::AlreadyExists(target.subject(name)));
        }
        if options.dry_run {
            return Ok(Written { object: Served::Value(object), created: true, warnings });
        }
        let committed = if generate.is_some() { object.clone() } else { std::mem::take(&mut object) };
        match target.try_commit(committed, Expect::Absent, false, guards.clone()).await? {
            Ok(event) => {
                let object = target.in_version(&event.object);
                return Ok(Written { object, created: true, warnings });
            }
            Err(Lost::Guard) => return Err(homeless(target, namespace, &key.name)),
            Err(Lost::Object) if generate.is_none() => {
                return Err(ApiError::AlreadyExists(target.subject(&key.name)));
            }
            Err(Lost::Object) => {}
        }
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(ApiError::AlreadyExists(target.subject(name)))
}

/// The prefix, cut so that the whole fits into 63 characters, and five random ones.
fn generated_name(target: &Target, prefix: &str) -> String {
    const KEEP: usize = 63 - 5;
    let cut = (0..=KEEP.min(prefix.len())).rev().find(|&at| prefix.is_char_boundary(at)).unwrap_or(0);
    format!("{}{}", &prefix[..cut], target.shared.options.random.suffix())
}

/// What must still hold when the object is committed.
fn guards(target: &Target, namespace: Option<&str>) -> Vec<Guard> {
    let namespace = namespace.map(|name| Guard::Living(namespaces(), ObjectKey::new("", name)));
    let definition = definition(target).map(|key| Guard::Living(definitions(), key));
    namespace.into_iter().chain(definition).collect()
}

/// Why a write was refused for its namespace or its CRD.
fn homeless(target: &Target, namespace: Option<&str>, name: &str) -> ApiError {
    if let Err(error) = check_home(target, namespace, name) {
        return error;
    }
    // What is served follows the CRD a moment later.
    let Some(key) = definition(target) else { return target.conflict(name) };
    match target.plane.store.get(&definitions(), &key) {
        None => ApiError::NoSuchPath,
        Some(definition) if definition.meta.deleting => definition_is_terminating(),
        Some(_) => target.conflict(name),
    }
}

/// The CRD of a kind that has one.
fn definition(target: &Target) -> Option<ObjectKey> {
    let GroupResource { group, resource } = &target.resource.table;
    (!target.resource.def.built_in).then(|| ObjectKey::new("", &format!("{resource}.{group}")))
}

fn definitions() -> GroupResource {
    GroupResource::new(APIEXTENSIONS, "customresourcedefinitions")
}

fn definition_is_terminating() -> ApiError {
    let message = "create not allowed while custom resource definition is terminating";
    ApiError::MethodNotAllowed(message.to_owned())
}

/// Says in words why nothing can be made here: the namespace is absent or going, or the CRD is.
fn check_home(target: &Target, namespace: Option<&str>, name: &str) -> Result<()> {
    // As it is now, not as it was when the request came in.
    let registry = target.plane.registry();
    if registry.find_table(&target.resource.table).is_none() {
        return Err(ApiError::NoSuchPath);
    }
    if registry.is_terminating(&target.resource.table) {
        return Err(definition_is_terminating());
    }
    let Some(namespace) = namespace else { return Ok(()) };
    let subject = |name: &str| crate::error::Subject {
        group: String::new(),
        resource: "namespaces".to_owned(),
        name: name.to_owned(),
    };
    let found = target.plane.store.get(&namespaces(), &ObjectKey::new("", namespace));
    let found = found.ok_or_else(|| ApiError::NotFound(subject(namespace)))?;
    if found.meta.deleting {
        let subject = target.subject(name);
        return Err(ApiError::Forbidden {
            message: format!(
                "{} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
                subject.qualified()
            ),
            subject,
            causes: vec![Cause {
                reason: "NamespaceTerminating".to_owned(),
                message: format!("namespace {namespace} is being terminated"),
                field: "metadata.namespace".to_owned(),
            }],
        });
    }
    Ok(())
}
