//! Ownership on create, update and patch.

use serde_json::{Value, json};

use super::super::entry::{ManagedEntry, Operation};
use super::super::{Writer, update};
use super::{SCHEMA, by, entries, owned, put, set, thing};

#[test]
fn create_owns_everything() {
    let object = put(None, json!({"replicas": 1, "labels": {"a": "1"}}), by("m", 0));
    let want = json!([{
        "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "manager": "m", "operation": "Update",
        "time": "2024-01-01T00:00:00Z",
        "fieldsV1": {"f:spec": {".": {}, "f:replicas": {}, "f:labels": {".": {}, "f:a": {}}}},
    }]);
    assert_eq!(object["metadata"]["managedFields"], want);
}

#[test]
fn changes_move_ownership() {
    let first = put(None, json!({"replicas": 1, "labels": {"a": "1", "b": "1"}}), by("m", 0));
    let second = put(Some(&first), json!({"replicas": 2, "labels": {"b": "1"}}), by("n", 1));
    assert_eq!(owned(&second, "m", Operation::Update), json!({".": {}, "f:labels": {".": {}, "f:b": {}}}));
    assert_eq!(owned(&second, "n", Operation::Update), json!({"f:replicas": {}}));
    let times: Vec<_> =
        entries(&second).into_iter().map(|entry| (entry.manager, entry.time.unwrap())).collect();
    assert_eq!(
        times,
        [
            ("m".to_owned(), "2024-01-01T00:00:00Z".to_owned()),
            ("n".to_owned(), "2024-01-01T00:00:01Z".to_owned())
        ]
    );
    // Back to the first, whose entry gets a new time and thereby another place.
    let third = put(Some(&second), json!({"replicas": 3, "labels": {"b": "1"}}), by("m", 2));
    assert_eq!(entries(&third).len(), 1);
    assert_eq!(entries(&third)[0].time.as_deref(), Some("2024-01-01T00:00:02Z"));
}

#[test]
fn nothing_changed_leaves_entries_alone() {
    let first = put(None, json!({"replicas": 1}), by("m", 0));
    assert_eq!(put(Some(&first), json!({"replicas": 1}), by("n", 5)), first);
    // A removal gives the remover nothing, and moves no time.
    let second = put(Some(&first), json!({}), by("n", 5));
    assert_eq!(entries(&second).len(), 1);
    assert_eq!(entries(&second)[0].time.as_deref(), Some("2024-01-01T00:00:00Z"));
}

#[test]
fn an_update_takes_from_an_applier_too() {
    let live = super::force(None, json!({"replicas": 1, "tags": ["a"]}), by("m", 0)).object;
    let live = put(Some(&live), json!({"replicas": 2, "tags": ["a"]}), by("m", 1));
    assert_eq!(owned(&live, "m", Operation::Apply), json!({"f:tags": {"v:\"a\"": {}}}));
    assert_eq!(owned(&live, "m", Operation::Update), json!({"f:replicas": {}}));
}

#[test]
fn sent_entries_are_used_kept_or_cleared() {
    let live = put(None, json!({"replicas": 1}), by("m", 0));
    let send = |managed: Value, subresource: &str| {
        let mut new = thing(json!({"replicas": 1}));
        new["metadata"]["managedFields"] = managed;
        update(Some(&live), &mut new, &SCHEMA, Writer { subresource, ..by("n", 1) });
        new["metadata"].get("managedFields").cloned()
    };
    let stored = live["metadata"].get("managedFields").cloned();
    let mut edited = stored.clone().unwrap();
    edited[0]["manager"] = json!("other");
    assert_eq!(send(edited.clone(), ""), Some(edited.clone()));
    assert_eq!(send(edited, "status"), stored);
    assert_eq!(send(json!([]), ""), stored);
    assert_eq!(send(json!([{"operation": "Nonsense"}]), ""), stored);
    assert_eq!(send(json!(null), ""), stored);
    assert_eq!(send(json!([{}]), ""), None);
    assert_eq!(send(json!([{}]), "status"), stored);
    // Once cleared, updates are not tracked.
    assert_eq!(
        put(Some(&thing(json!({"replicas": 1}))), json!({"replicas": 2}), by("m", 2)),
        thing(json!({"replicas": 2}))
    );
}

#[test]
fn subresources_are_entries_of_their_own() {
    let live = put(None, json!({"replicas": 1}), by("m", 0));
    let mut new = live.clone();
    new["status"] = json!({"phase": "Up"});
    update(Some(&live), &mut new, &SCHEMA, Writer { subresource: "status", ..by("m", 1) });
    let status = entries(&new).into_iter().find(|entry| entry.subresource == "status").unwrap();
    assert_eq!(status.fields, set(&json!({"f:status": {".": {}, "f:phase": {}}})));
    assert_eq!(entries(&new).len(), 2);
}

#[test]
fn old_updaters_become_one() {
    let mut live = put(None, json!({"labels": {}}), by("first", 0));
    for at in 0..14 {
        let mut spec = live["spec"].clone();
        spec["labels"][format!("l{at:02}")] = json!("x");
        live = put(Some(&live), spec, by(&format!("m{at:02}"), at.min(9)));
    }
    let names: Vec<_> = entries(&live).into_iter().map(|entry| entry.manager).collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names[0], "ancient-changes");
    assert_eq!(names[9], "m13");
    let ancient = owned(&live, "ancient-changes", Operation::Update);
    assert_eq!(ancient["f:labels"].as_object().unwrap().len(), 6, "{ancient}");
}

#[test]
fn entries_have_one_order_and_merge() {
    let entry = |manager: &str, operation: &str, time: &str, field: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
               "fieldsType": "FieldsV1", "fieldsV1": {field: {}}})
    };
    let raw = json!([
        entry("b", "Update", "2024-01-01T00:00:01Z", "f:a"),
        entry("a", "Update", "2024-01-01T01:00:01+01:00", "f:b"),
        entry("z", "Apply", "2024-01-01T00:00:09Z", "f:c"),
        entry("c", "Update", "2024-01-01T00:00:00.5Z", "f:d"),
        entry("b", "Update", "2024-01-01T00:00:02Z", "f:e"),
    ]);
    let entries = ManagedEntry::read_all(&raw).unwrap();
    let written = ManagedEntry::write_all(entries).unwrap();
    let names: Vec<_> =
        written.as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
    assert_eq!(names, ["z", "c", "a", "b"]);
    assert_eq!(written[3]["fieldsV1"], json!({"f:a": {}, "f:e": {}}));
    assert_eq!(written[1]["time"], json!("2024-01-01T00:00:00Z"));
    assert_eq!(ManagedEntry::write_all(Vec::new()), None);
    for (field, value) in [("operation", "Patch"), ("apiVersion", ""), ("fieldsType", "V2"), ("time", "noon")]
    {
        let mut bad = entry("b", "Update", "2024-01-01T00:00:01Z", "f:a");
        bad[field] = json!(value);
        assert!(ManagedEntry::read_all(&json!([bad])).is_err(), "{field}");
    }
}

#[test]
fn entries_of_another_schema_are_tolerated() {
    let mut live = thing(json!({"replicas": 1, "args": ["a"], "config": {"a": 1}, "labels": {"a": "1"}}));
    live["metadata"]["managedFields"] = json!([{
        "apiVersion": "example.com/v0", "fieldsType": "FieldsV1", "manager": "old", "operation": "Update",
        "fieldsV1": {"f:spec": {
            "f:args": {"v:\"a\"": {}}, "f:config": {"f:a": {}}, "f:labels": {}, "f:gone": {"k:{\"a\":1}": {}},
        }},
    }]);
    let new = put(
        Some(&live),
        json!({"replicas": 2, "args": ["a"], "config": {"a": 1}, "labels": {"a": "2"}}),
        by("m", 1),
    );
    let old = owned(&new, "old", Operation::Update);
    assert_eq!(old, json!({"f:args": {}, "f:config": {}, "f:labels": {}, "f:gone": {"k:{\"a\":1}": {}}}));
}
