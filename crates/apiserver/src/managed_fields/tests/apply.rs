//! Server-side apply.

use serde_json::json;

use super::super::entry::Operation;
use super::super::{ApplyError, Conflict, Writer, conflict_message};
use super::{SCHEMA, apply, by, entries, force, owned, put, thing};

fn conflicts(result: Result<super::Applied, ApplyError>) -> Vec<Conflict> {
    match result {
        Err(ApplyError::Conflicts(conflicts)) => conflicts,
        other => panic!("expected conflicts, got {other:?}"),
    }
}

#[test]
fn apply_creates_and_owns_what_it_says() {
    let created = apply(None, json!({"replicas": 1, "labels": {"a": "1"}}), by("m", 0)).unwrap();
    assert!(created.changed);
    assert_eq!(
        owned(&created.object, "m", Operation::Apply),
        json!({"f:replicas": {}, "f:labels": {"f:a": {}}})
    );
    assert_eq!(created.object["metadata"]["name"], json!("x"));
}

#[test]
fn same_apply_changes_nothing() {
    let first = apply(None, json!({"replicas": 1}), by("m", 0)).unwrap().object;
    let second = apply(Some(&first), json!({"replicas": 1}), by("m", 5)).unwrap();
    assert!(!second.changed);
    assert_eq!(second.object, first);
}

#[test]
fn same_value_is_shared_and_another_is_a_conflict() {
    let live = apply(None, json!({"replicas": 1}), by("m", 0)).unwrap().object;
    let live = apply(Some(&live), json!({"replicas": 1}), by("n", 1)).unwrap().object;
    assert_eq!(owned(&live, "m", Operation::Apply), owned(&live, "n", Operation::Apply));

    let found = conflicts(apply(Some(&live), json!({"replicas": 2}), by("n", 2)));
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].manager.as_str(), found[0].fields.as_slice()),
        ("m", &[".spec.replicas".to_owned()][..])
    );
    assert_eq!(conflict_message(&found), "Apply failed with 1 conflict: conflict with \"m\": .spec.replicas");

    let forced = force(Some(&live), json!({"replicas": 2}), by("n", 2)).object;
    assert_eq!(forced["spec"]["replicas"], json!(2));
    assert_eq!(entries(&forced).len(), 1);
}

#[test]
fn conflicts_name_every_owner_and_field() {
    let live = put(None, json!({"containers": [{"name": "a", "image": "1"}], "replicas": 1}), by("u", 0));
    let mut live =
        apply(Some(&live), json!({"replicas": 1, "template": {"x": 1}}), by("m", 1)).unwrap().object;
    live["metadata"]["managedFields"][0]["subresource"] = json!("scale");
    let wanted = json!({"containers": [{"name": "a", "image": "2"}], "replicas": 2, "template": {"x": 2}});
    let error = apply(Some(&live), wanted, by("n", 2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 4 conflicts: conflicts with \"m\" with subresource \"scale\":\n- .spec.replicas\n- .spec.template.x\n\
         conflicts with \"u\" using example.com/v1:\n- .spec.containers[name=\"a\"].image\n- .spec.replicas"
    );
}

#[test]
fn dropped_fields_go_unless_shared() {
    let spec = json!({"replicas": 1, "tags": ["a", "b"], "labels": {"x": "1", "y": "1"}, "args": ["1"], "config": {"a": 1}});
    let live = apply(None, spec, by("m", 0)).unwrap().object;
    let live = apply(Some(&live), json!({"tags": ["b"], "labels": {"y": "1"}}), by("n", 1)).unwrap().object;
    let live = apply(Some(&live), json!({"replicas": 1}), by("m", 2)).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": 1, "tags": ["b"], "labels": {"y": "1"}}));
    // Nothing applied, nothing owned, nothing left.
    let live = apply(Some(&live), json!({}), by("n", 3)).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": 1}));
    assert_eq!(owned(&live, "n", Operation::Apply), json!({}));
    let mut bare = thing(json!({}));
    bare.as_object_mut().unwrap().remove("spec");
    let live = super::super::apply(Some(&live), &bare, &SCHEMA, by("n", 4), false).unwrap().object;
    assert!(entries(&live).iter().all(|entry| entry.manager == "m"));
}

#[test]
fn fields_set_by_updates_outlive_an_applier() {
    let live = apply(None, json!({"replicas": 1, "template": {"x": 1}}), by("m", 0)).unwrap().object;
    let live = put(Some(&live), json!({"replicas": 2, "template": {"x": 1, "y": 1}}), by("u", 1));
    let live = apply(Some(&live), json!({"args": []}), by("m", 2)).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": 2, "template": {"y": 1}, "args": []}));
}

#[test]
fn entries_go_with_their_owner() {
    let both = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]});
    let live = apply(None, both, by("m", 0)).unwrap().object;
    // Somebody who merely changed a field of an entry does not keep it.
    let changed = put(
        Some(&live),
        json!({"containers": [{"name": "a", "image": "1", "tty": true}, {"name": "b"}]}),
        by("u", 1),
    );
    let after = apply(Some(&changed), json!({"containers": [{"name": "b"}]}), by("m", 2)).unwrap().object;
    assert_eq!(after["spec"]["containers"], json!([{"name": "b"}]));
    assert!(entries(&after).iter().all(|entry| entry.manager == "m"));
    // Somebody who applied the entry too does, with their part of it.
    let shared =
        apply(Some(&live), json!({"containers": [{"name": "a", "tty": true}]}), by("n", 1)).unwrap().object;
    let after = apply(Some(&shared), json!({"containers": [{"name": "b"}]}), by("m", 2)).unwrap().object;
    assert_eq!(after["spec"]["containers"], json!([{"name": "a", "tty": true}, {"name": "b"}]));
}

#[test]
fn what_nobody_owns_goes_with_its_container_only() {
    let mut live = apply(None, json!({"template": {"x": 1}, "replicas": 1}), by("m", 0)).unwrap().object;
    live["spec"]["template"]["y"] = json!("default");
    live["spec"]["open"] = json!("default");
    let after = apply(Some(&live), json!({"replicas": 1}), by("m", 1)).unwrap().object;
    assert_eq!(after["spec"], json!({"replicas": 1, "open": "default"}));
    assert_eq!(after["metadata"]["name"], json!("x"));
}

#[test]
fn metadata_stays_whatever_is_dropped() {
    let mut config = thing(json!({}));
    config["metadata"]["labels"] = json!({"a": "1"});
    config["metadata"]["finalizers"] = json!(["f"]);
    config["metadata"]["creationTimestamp"] = json!(null);
    let run = |live: Option<&serde_json::Value>, config| {
        super::super::apply(live, config, &SCHEMA, by("m", 0), false).unwrap().object
    };
    let mut live = run(None, &config);
    assert_eq!(live["metadata"].get("creationTimestamp"), None);
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["creationTimestamp"] = json!("2024-01-01T00:00:00Z");
    assert_eq!(run(Some(&live), &config), live);
    let bare = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}});
    let after = run(Some(&live), &bare);
    assert_eq!(
        after["metadata"],
        json!({"name": "x", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"})
    );
    assert_eq!(after.get("spec"), None);
}

#[test]
fn managed_fields_cannot_be_applied() {
    let mut config = thing(json!({}));
    config["metadata"]["managedFields"] = json!([]);
    let error = super::super::apply(None, &config, &SCHEMA, by("m", 0), true).unwrap_err();
    assert_eq!(error, ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    config["metadata"]["managedFields"] = json!(null);
    assert!(super::super::apply(None, &config, &SCHEMA, by("m", 0), true).is_ok());
    assert!(super::super::apply(None, &json!([]), &SCHEMA, by("m", 0), true).is_err());
}

#[test]
fn what_was_there_before_tracking_has_an_owner() {
    let live = thing(json!({"replicas": 1}));
    let found = conflicts(apply(Some(&live), json!({"replicas": 2}), by("m", 1)));
    assert_eq!(found[0].manager, "before-first-apply");
    let live = apply(Some(&live), json!({"replicas": 1}), by("m", 1)).unwrap().object;
    assert_eq!(owned(&live, "before-first-apply", Operation::Update), json!({".": {}, "f:replicas": {}}));
}

#[test]
fn nulls_are_set_and_ask_nothing_of_merged_containers() {
    let live = apply(None, json!({"replicas": null, "labels": {"a": "1"}}), by("m", 0)).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": null, "labels": {"a": "1"}}));
    let live = apply(Some(&live), json!({"labels": null}), by("n", 1)).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": null, "labels": {"a": "1"}}));
}

#[test]
fn status_is_another_entry() {
    let live = apply(None, json!({"replicas": 1}), by("m", 0)).unwrap().object;
    let status = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "status": {"phase": "Up"}});
    let writer = Writer { subresource: "status", ..by("m", 1) };
    let live = super::super::apply(Some(&live), &status, &SCHEMA, writer, false).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": 1}));
    assert_eq!(live["status"], json!({"phase": "Up"}));
    assert_eq!(entries(&live).len(), 2);
    let again = apply(Some(&live), json!({"replicas": 1}), by("m", 2)).unwrap();
    assert!(!again.changed);
}

#[test]
fn another_version_of_an_applier_is_the_same_applier() {
    let live = apply(None, json!({"replicas": 1, "tags": ["a"]}), by("m", 0)).unwrap().object;
    let writer = Writer { api_version: "example.com/v2", ..by("m", 1) };
    let live = apply(Some(&live), json!({"replicas": 1}), writer).unwrap().object;
    assert_eq!(live["spec"], json!({"replicas": 1}));
    assert_eq!(entries(&live).len(), 1);
    assert_eq!(entries(&live)[0].api_version, "example.com/v2");
}

#[test]
fn kubectl_goes_from_client_side_to_server_side() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut live = thing(json!({"replicas": 1, "template": {"x": 1}}));
    live["metadata"]["annotations"] = json!({ANNOTATION: thing(json!({"replicas": 1})).to_string()});
    super::super::update(None, &mut live, &SCHEMA, by("kubectl-client-side-apply", 0));
    let changed = json!({"replicas": 2});
    conflicts(apply(Some(&live), changed.clone(), by("other", 1)));
    let after = apply(Some(&live), changed.clone(), by("kubectl", 1)).unwrap().object;
    assert_eq!(after["spec"]["replicas"], json!(2));
    let text = after["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
    assert_eq!(text, format!("{}\n", thing(changed.clone())));
    assert!(!apply(Some(&after), changed, by("kubectl", 2)).unwrap().changed);
    conflicts(apply(Some(&live), json!({"template": {"x": 2}}), by("kubectl", 1)));
}
