//! Tests of validation and ratcheting.

use serde_json::{Value, json};

use super::*;
use crate::schema::compile::compile;

fn schema(json: &Value) -> Schema {
    compile(json, "").unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn sample() -> Schema {
    schema(&json!({"type": "object", "required": ["spec"], "properties": {"spec": {
        "type": "object", "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 1},
            "ratio": {"type": "number"},
            "on": {"type": "boolean"},
            "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[a-z]+$"},
            "maybe": {"type": "string", "nullable": true},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "protocol"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "protocol": {"type": "string", "default": "TCP"}, "v": {"type": "integer", "maximum": 5},
                }}},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
            "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "open": {"x-kubernetes-preserve-unknown-fields": true},
        },
    }}}))
}

#[test]
fn types_and_required_fields() {
    let schema = sample();
    for (spec, expected) in [
        (
            json!({"name": "x", "replicas": 1, "ratio": 1, "on": true, "port": 80, "maybe": null, "open": [{"a": null}]}),
            vec![],
        ),
        (json!({"name": "x", "replicas": 2.0, "port": "http"}), vec![]),
        (json!({}), vec!["spec.name: Required value"]),
        (
            json!({"name": "x", "replicas": "3"}),
            vec![
                "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({"name": "x", "replicas": 1.5}),
            vec![
                "spec.replicas: Invalid value: \"number\": spec.replicas in body must be of type integer: \"number\"",
            ],
        ),
        (
            json!({"name": null}),
            vec!["spec.name: Invalid value: \"null\": spec.name in body must be of type string: \"null\""],
        ),
        (
            json!({"name": 1, "on": "yes"}),
            vec![
                "spec.name: Invalid value: \"integer\": spec.name in body must be of type string: \"integer\"",
                "spec.on: Invalid value: \"string\": spec.on in body must be of type boolean: \"string\"",
            ],
        ),
        (
            json!({"name": "x", "port": true}),
            vec![
                "spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
            ],
        ),
        (
            json!({"name": "x", "port": "80"}),
            vec!["spec.port: Invalid value: \"80\": spec.port in body should match '^[a-z]+$'"],
        ),
        (
            json!({"name": "x", "tags": ["a", "b", "a", "b"]}),
            vec!["spec.tags[2]: Duplicate value: \"a\"", "spec.tags[3]: Duplicate value: \"b\""],
        ),
        (
            json!({"name": "x", "list": [{"name": "a"}, {"name": "a", "protocol": "UDP"}, {"name": "a", "protocol": "TCP"}]}),
            vec!["spec.list[2]: Duplicate value: {\"name\":\"a\",\"protocol\":\"TCP\"}"],
        ),
        (
            json!({"name": "x", "list": [{"v": 6}]}),
            vec![
                "spec.list[0].name: Required value",
                "spec.list[0].v: Invalid value: 6: spec.list[0].v in body should be less than or equal to 5",
            ],
        ),
        (
            json!({"name": "x", "labels": {"k": "long"}}),
            vec!["spec.labels.k: Too long: may not be more than 3 bytes"],
        ),
        (
            json!({"name": "x", "template": {"kind": "Pod", "metadata": {"labels": {"a": 1}}}}),
            vec![
                "spec.template.apiVersion: Required value: must not be empty",
                "spec.template.metadata.labels.a: Invalid value: \"integer\": spec.template.metadata.labels.a in body must be of type string: \"integer\"",
            ],
        ),
    ] {
        assert_eq!(texts(&validate(&schema, &json!({"spec": spec}), None)), expected, "{spec}");
    }
    assert_eq!(
        texts(&validate(&schema, &json!([]), None)),
        ["<nil>: Invalid value: \"array\":  in body must be of type object: \"array\"",]
    );
    let bad_meta =
        json!({"metadata": {"labels": "x", "ownerReferences": [{"uid": "u"}]}, "spec": {"name": "x"}});
    assert_eq!(
        texts(&validate(&schema, &bad_meta, None)),
        [
            "metadata.labels: Invalid value: \"string\": metadata.labels in body must be of type object: \"string\"",
            "metadata.ownerReferences[0].apiVersion: Required value",
            "metadata.ownerReferences[0].kind: Required value",
            "metadata.ownerReferences[0].name: Required value",
        ]
    );
}

#[test]
fn long_lists_are_checked_for_duplicates_too() {
    let schema = sample();
    let mut tags: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    tags.push("7".to_owned());
    let list: Vec<Value> = (0..50).map(|n| json!({"name": (n % 49).to_string()})).collect();
    let value = json!({"spec": {"name": "x", "tags": tags, "list": list}});
    assert_eq!(
        texts(&validate(&schema, &value, None)),
        ["spec.list[49]: Duplicate value: {\"name\":\"0\"}", "spec.tags[50]: Duplicate value: \"7\"",]
    );
}

#[test]
fn errors_are_bounded() {
    let labels: serde_json::Map<String, Value> = (0..500).map(|n| (n.to_string(), json!("long"))).collect();
    let value = json!({"spec": {"name": "x", "labels": labels}});
    assert_eq!(validate(&sample(), &value, None).len(), MAX_ERRORS);
}

#[test]
fn what_did_not_change_is_excused() {
    let schema = sample();
    let old = json!({"spec": {
        "name": 1, "replicas": 0, "tags": ["a", "a"],
        "list": [{"name": "a", "v": 9}, {"name": "b", "v": 9}], "labels": {"k": "long", "l": "long"},
    }});
    assert_eq!(texts(&validate(&schema, &old, Some(&old))), Vec::<String>::new());
    let mut new = old.clone();
    new["spec"]["ratio"] = json!(2);
    new["spec"]["list"] =
        json!([{"name": "c", "v": 9}, {"name": "b", "protocol": "TCP", "v": 9}, {"name": "a", "v": 9}]);
    new["spec"]["labels"] = json!({"k": "long", "l": "longer"});
    new["spec"]["tags"] = json!(["a", "a", "b"]);
    assert_eq!(
        texts(&validate(&schema, &new, Some(&old))),
        [
            "spec.labels.l: Too long: may not be more than 3 bytes",
            "spec.list[0].v: Invalid value: 9: spec.list[0].v in body should be less than or equal to 5",
        ]
    );
    // Without an old object nothing is excused.
    assert_eq!(validate(&schema, &new, None).len(), 7 + 1);
}

#[test]
fn a_pattern_and_a_text_made_for_each_other_do_not_hang_the_server() {
    let field = json!({"type": "string", "pattern": "(a|b)*a(a|b){3000}c"});
    let schema = schema(&json!({"type": "object", "properties": {"x": field}}));
    let text: String = (0..200_000_u32)
        .map(|n| if n.wrapping_mul(2_654_435_761) >> 30 & 1 == 0 { 'a' } else { 'b' })
        .collect();
    let started = std::time::Instant::now();
    let errors = texts(&validate(&schema, &json!({"x": text}), None));
    assert!(
        errors[0].ends_with("x in body has too much text to match against '(a|b)*a(a|b){3000}c'"),
        "{errors:?}"
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
    assert_eq!(texts(&validate(&schema, &json!({"x": "aab"}), None)).len(), 1);
}

#[test]
fn validation_is_fast() {
    let schema = sample();
    let list: Vec<Value> =
        (0..30).map(|n| json!({"name": n.to_string(), "v": 3, "protocol": "UDP"})).collect();
    let value = json!({"spec": {"name": "x", "replicas": 3, "list": list, "labels": {"a": "b"}}});
    let started = std::time::Instant::now();
    const ROUNDS: u32 = 200;
    for _ in 0..ROUNDS {
        assert!(validate(&schema, &value, Some(&value)).is_empty());
    }
    // A few microseconds when optimised; the bound only catches what is wrong by orders of magnitude.
    assert!(
        started.elapsed() / ROUNDS < std::time::Duration::from_millis(2),
        "{:?}",
        started.elapsed() / ROUNDS
    );
}
