//! What the server fills into a CRD: defaults in its spec, and the status that says it is served.

use serde_json::{Map, Value, json};

use super::{list, storage_version, text};

/// Fills in what an author may leave out: `names.singular`, `names.listKind` and `conversion`.
pub fn defaulted(crd: &mut Value) {
    let Some(Value::Object(spec)) = crd.get_mut("spec") else { return };
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let kind = names.get("kind").map(text).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            set_if_empty(names, "singular", kind.to_lowercase());
            set_if_empty(names, "listKind", format!("{kind}List"));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

fn set_if_empty(names: &mut Map<String, Value>, field: &str, value: String) {
    if names.get(field).map(text).unwrap_or_default().is_empty() {
        names.insert(field.to_owned(), value.into());
    }
}

/// The status of a CRD whose names are accepted and whose kind is served, as of `now` (RFC 3339).
///
/// Conditions that hold already keep their time, other conditions stay, and versions that objects may be
/// stored in are remembered.
pub fn accepted_names_status(crd: &Value, now: &str) -> Value {
    let old = &crd["status"];
    let conditions = [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    .map(|(type_, reason, message)| {
        let known = list(&old["conditions"]).iter().find(|condition| condition["type"] == type_);
        let unchanged = known.filter(|condition| condition["status"] == "True");
        let since = unchanged.map_or(now, |condition| match text(&condition["lastTransitionTime"]) {
            "" => now,
            since => since,
        });
        json!({
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        })
    });
    let ours = |condition: &&Value| matches!(text(&condition["type"]), "NamesAccepted" | "Established");
    let others = list(&old["conditions"]).iter().filter(|condition| !ours(condition)).cloned();

    let mut stored: Vec<Value> = list(&old["storedVersions"]).to_vec();
    let storage = storage_version(crd);
    if !storage.is_empty() && !stored.iter().any(|version| version == storage) {
        stored.push(storage.into());
    }

    let mut status = old.as_object().cloned().unwrap_or_default();
    status.insert("acceptedNames".to_owned(), crd["spec"]["names"].clone());
    status.insert("conditions".to_owned(), conditions.into_iter().chain(others).collect());
    status.insert("storedVersions".to_owned(), Value::Array(stored));
    Value::Object(status)
}
