//! Results that are not for people: JSON, YAML and names.

use compute_api::k8s::Resource;
use serde::Serialize;
use serde_json::Value;

use crate::args::Output;
use crate::failure::{Failure, Result};
use crate::fetch::Found;
use crate::session::Session;

/// Prints a value as JSON or YAML.
pub(crate) fn value(session: &Session, value: &impl Serialize) -> Result<()> {
    let broken = |_| {
        Failure::new("cannot print the result", "it cannot be written in that form").advice("use -o json")
    };
    let text = match session.output {
        Output::Yaml => serde_saphyr::to_string(value).map_err(|_| broken(()))?,
        _ => serde_json::to_string_pretty(value).map_err(|_| broken(()))?,
    };
    session.io.print(&text);
    Ok(())
}

/// Prints names, one a line.
pub(crate) fn names<'a>(session: &Session, names: impl IntoIterator<Item = &'a str>) {
    let text: String = names.into_iter().map(|name| format!("{name}\n")).collect();
    session.io.print(&text);
}

/// An object as it is stored, without what only servers read.
pub(crate) fn object<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = Value::from(K::api_version(&()).as_ref());
    value["kind"] = Value::from(K::kind(&()).as_ref());
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    value
}

/// A workload as it is stored, to the last field, without what only servers read.
pub(crate) fn stored(found: &Found) -> Value {
    let mut value = serde_json::to_value(&found.object).unwrap_or_default();
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    value
}

/// Prints a list of objects.
pub(crate) fn list(session: &Session, items: &[Value]) -> Result<()> {
    value(session, &serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items }))
}

/// Prints objects as they are stored, in a list.
pub(crate) fn objects<K: Resource<DynamicType = ()> + Serialize>(
    session: &Session,
    objects: &[K],
) -> Result<()> {
    let items: Vec<Value> = objects.iter().map(object).collect();
    list(session, &items)
}
