//! The order of merged lists, and lists that cannot be merged.

use serde_json::{Value, json};

use super::super::ApplyError;
use super::{apply, by, force, put};

fn names(object: &Value) -> String {
    let items = object["spec"]["containers"].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

fn containers(names: &str) -> Value {
    json!({"containers": names.chars().map(|name| json!({"name": name.to_string()})).collect::<Vec<_>>()})
}

#[test]
fn applied_order_wins_and_others_keep_their_place() {
    // Live, applied, merged.
    let cases = [
        ("abc", "abc", "abc"),
        ("abc", "cba", "cba"),
        ("abc", "b", "abc"),
        ("abc", "d", "abcd"),
        ("abc", "da", "dabc"),
        ("abc", "ad", "abcd"),
        ("abc", "adb", "adbc"),
        ("ba", "ab", "ab"),
        ("bax", "ab", "axb"),
        ("baxc", "abc", "axbc"),
        ("xaybz", "ab", "xaybz"),
        ("xaybz", "ba", "xybza"),
        ("", "ba", "ba"),
    ];
    for (live, applied, want) in cases {
        let live = put(None, containers(live), by("u", 0));
        let merged = apply(Some(&live), containers(applied), by("m", 1)).unwrap().object;
        assert_eq!(names(&merged), want, "{applied} into {}", names(&live));
    }
}

#[test]
fn absent_keys_have_their_defaults() {
    let spec = |ports: Value| json!({"containers": [{"name": "a", "ports": ports}]});
    let live = put(
        None,
        spec(json!([{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}])),
        by("u", 0),
    );
    let merged = apply(Some(&live), spec(json!([{"port": 80, "name": "web"}])), by("m", 1)).unwrap().object;
    let want = json!([{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}]);
    assert_eq!(merged["spec"]["containers"][0]["ports"], want);
}

#[test]
fn bad_lists_are_refused_with_their_paths() {
    let cases = [
        (
            json!({"containers": [{"name": "a"}, {"name": "a"}]}),
            "spec.containers[1]: Duplicate value: {\"name\":\"a\"}",
        ),
        (json!({"tags": ["x", "y", "x"]}), "spec.tags[2]: Duplicate value: \"x\""),
        (
            json!({"containers": [{"name": "a", "ports": [{"name": "web"}]}]}),
            "spec.containers[0].ports[0].port: Required value: an entry of this list is told apart by this field, which has no default",
        ),
        (
            json!({"containers": [null]}),
            "spec.containers[0]: Invalid value: null: an entry of a list that is merged by key must be an object",
        ),
        (
            json!({"tags": [{}]}),
            "spec.tags[0]: Invalid value: \"object\": an entry of a set must be a scalar",
        ),
    ];
    for (spec, want) in cases {
        match apply(None, spec, by("m", 0)) {
            Err(ApplyError::Invalid(errors)) => assert_eq!(errors[0].to_string(), want),
            other => panic!("{other:?}"),
        }
    }
    let many = json!({"tags": vec!["x"; 1000]});
    assert!(matches!(apply(None, many, by("m", 0)), Err(ApplyError::Invalid(errors)) if errors.len() == 64));
}

#[test]
fn live_duplicates_are_kept_until_applied_to() {
    let live = put(
        None,
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "a"}]}),
        by("u", 0),
    );
    let other = apply(Some(&live), containers("c"), by("m", 1)).unwrap().object;
    assert_eq!(names(&other), "abac");
    let merged = force(Some(&live), json!({"containers": [{"name": "a", "tty": true}]}), by("m", 1)).object;
    assert_eq!(merged["spec"]["containers"], json!([{"name": "a", "tty": true}, {"name": "b"}]));
}

#[test]
fn lists_that_cannot_be_told_apart_are_one_value() {
    let live = put(None, json!({"containers": [{"image": "1"}]}), by("u", 0));
    let merged = force(Some(&live), containers("a"), by("m", 1)).object;
    assert_eq!(names(&merged), "a");
}
