//! Tests of pruning.

use serde_json::{Value, json};

use super::*;
use crate::schema::compile::compile;

#[track_caller]
fn case(schema: &Value, before: &Value, after: &Value, dropped: &[&str]) {
    let schema = compile(schema, "").unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(unknown_fields(&schema, before), dropped);
    let mut value = before.clone();
    assert_eq!(prune(&schema, &mut value), dropped);
    assert_eq!(value, *after);
    assert_eq!(prune(&schema, &mut value), Vec::<String>::new(), "pruning twice");
}

#[test]
fn unspecified_fields_go() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "integer"}}}},
        "any": {"type": "object", "additionalProperties": true},
        "scalar": {"type": "string"},
    }}}});
    case(
        &schema,
        &json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "bad": 1, "labels": {"x": "y"}}, "extra": 1,
            "spec": {
                "a": "x", "foo": {"bar": 1},
                "list": [{"n": "1"}, {"n": "2", "foo": 2}],
                "map": {"k": {"v": 1, "w": 2}},
                "any": {"x": {"y": 1}, "z": 1},
                "scalar": {"not": "a scalar"},
            },
        }),
        &json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {"x": "y"}},
            "spec": {
                "a": "x", "list": [{"n": "1"}, {"n": "2"}], "map": {"k": {"v": 1}}, "any": {"x": {}, "z": 1},
                "scalar": {},
            },
        }),
        &[
            "extra",
            "metadata.bad",
            "spec.any.x.y",
            "spec.foo",
            "spec.list[1].foo",
            "spec.map.k.w",
            "spec.scalar.not",
        ],
    );
}

#[test]
fn open_parts_stay_and_specified_parts_in_them_are_pruned() {
    let schema = json!({"type": "object", "properties": {
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "closed": {"type": "object", "properties": {"a": {"type": "string"}}},
        }},
        "list": {"type": "array", "x-kubernetes-preserve-unknown-fields": true,
            "items": {"type": "object", "properties": {"c": {"type": "object"}}}},
        "untyped": {"x-kubernetes-preserve-unknown-fields": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "closedTemplate": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object"}}},
    }});
    case(
        &schema,
        &json!({
            "open": {"x": {"y": 1}, "closed": {"a": "1", "b": 2}},
            "list": [{"free": {"x": 1}, "c": {"gone": 1}}],
            "untyped": [{"x": [1]}],
            "template": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "x", "foo": 1}, "spec": {"q": 1}},
            "closedTemplate": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "x"}, "spec": {"q": 1}, "z": 1},
        }),
        &json!({
            "open": {"x": {"y": 1}, "closed": {"a": "1"}},
            "list": [{"free": {"x": 1}, "c": {}}],
            "untyped": [{"x": [1]}],
            "template": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "x"}, "spec": {"q": 1}},
            "closedTemplate": {"apiVersion": "v1", "kind": "P", "metadata": {"name": "x"}, "spec": {}},
        }),
        &[
            "closedTemplate.spec.q",
            "closedTemplate.z",
            "list[0].c.gone",
            "open.closed.b",
            "template.metadata.foo",
        ],
    );
}

#[test]
fn reports_are_bounded() {
    let schema = compile(&json!({"type": "object"}), "").expect("sound");
    let fields = (0..1_000).map(|n| (format!("f{n}"), json!(1))).collect();
    let mut value = Value::Object(fields);
    assert_eq!(prune(&schema, &mut value).len(), MAX_REPORTED);
    assert_eq!(value, json!({}));
}
