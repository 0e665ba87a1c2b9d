//! Objects that do not even decode: every place is named.

use super::{containers::leak, *};

#[test]
fn wrong_types() {
    let rows: Vec<Row> = vec![
        (
            "/spec/placements",
            json!("everywhere"),
            "spec.placements",
            "Invalid value: \"everywhere\": must be a list",
        ),
        (
            "/spec/placements/1",
            json!("europe"),
            "spec.placements[1]",
            "Invalid value: \"europe\": must be an object",
        ),
        (
            "/spec/placements/1/name",
            json!(7),
            "spec.placements[1].name",
            "Invalid value: 7: must be a string",
        ),
        (
            "/spec/placements/1/cityCodes/0",
            json!(7),
            "spec.placements[1].cityCodes[0]",
            "Invalid value: 7: must be a string",
        ),
        (
            "/spec/placements/1/scaleSettings/minReplicas",
            json!("two"),
            "spec.placements[1].scaleSettings.minReplicas",
            "Invalid value: \"two\": must be a whole number",
        ),
        (
            "/spec/placements/1/scaleSettings/minReplicas",
            json!(1.5),
            "spec.placements[1].scaleSettings.minReplicas",
            "Invalid value: 1.5: must be a whole number",
        ),
        ("/spec/paused", json!("yes"), "spec.paused", "Invalid value: \"yes\": must be true or false"),
        (
            "/spec/placements/1",
            json!([]),
            "spec.placements[1]",
            "Invalid value: \"array\": must be an object",
        ),
        ("/spec/template", json!([]), "spec.template", "Invalid value: \"array\": must be an object"),
        (
            "$/runtime/resources",
            json!(["datumcloud/d1-standard-2"]),
            "$.runtime.resources",
            "Invalid value: \"array\": must be an object",
        ),
        ("/spec/template", json!(7), "spec.template", "Invalid value: 7: must be an object"),
        (
            "/spec/template/metadata/labels",
            json!([]),
            "spec.template.metadata.labels",
            "Invalid value: \"array\": must be an object",
        ),
        (
            "/spec/template/metadata/labels/app",
            json!(1),
            "spec.template.metadata.labels[app]",
            "Invalid value: 1: must be a string",
        ),
        (
            "$/runtime/sandbox/containers/1/image",
            json!({}),
            "$.runtime.sandbox.containers[1].image",
            "Invalid value: \"object\": must be a string",
        ),
        (
            "$/runtime/sandbox/containers/0/ports/0/port",
            json!("80"),
            "$.runtime.sandbox.containers[0].ports[0].port",
            "Invalid value: \"80\": must be a whole number",
        ),
    ];
    each(&good(), &rows);
    let bad = with(good(), "/spec", &json!([]));
    assert_eq!(faults(&bad, None).iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["spec"]);
    for odd in [json!(7), json!([]), json!("x"), Value::Null] {
        assert!(!faults(&odd, None).is_empty(), "{odd}");
    }
}

#[test]
fn all_at_once() {
    let mut bad = good();
    set(&mut bad, "/spec/paused", &json!(1));
    set(&mut bad, "/spec/placements/0/name", &json!([]));
    set(&mut bad, "$/runtime/sandbox/containers/0/env/0/value", &json!(true));
    set(&mut bad, "$/runtime/sandbox/containers/0/resources/limits/cpu", &json!(true));
    let found = faults(&bad, None);
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "spec.paused",
            "spec.placements[0].name",
            "spec.template.spec.runtime.sandbox.containers[0].env[0].value",
            "spec.template.spec.runtime.sandbox.containers[0].resources.limits[cpu]",
        ],
        "{}",
        leak(format!("{found:?}"))
    );
}

#[test]
fn what_cannot_be_read_may_be_mended_and_let_go() {
    let broken = with(good(), "/spec/placements", &json!("everywhere"));
    assert_eq!(faults(&good(), Some(&broken)), []);
    // Nothing of it is kept, so all is judged.
    let missing = with(good(), "$/networkInterfaces/0/network/name", &json!("missing"));
    assert_eq!(faults(&missing, Some(&broken)).len(), 1);
    let released = with(broken.clone(), "/metadata/finalizers", &json!([]));
    assert_eq!(faults(&released, Some(&broken)), []);
}

#[test]
fn a_status_is_not_judged() {
    let broken = with(good(), "/status", &json!({ "placements": "everywhere", "replicas": "many" }));
    assert_eq!(faults(&broken, None), []);
    let changed = with(broken.clone(), "/spec/paused", &json!(true));
    assert_eq!(faults(&changed, Some(&broken)), []);
}
