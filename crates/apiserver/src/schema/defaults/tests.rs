//! Tests of defaulting.

use serde_json::json;

use super::*;
use crate::schema::compile::compile;

#[test]
fn defaults_fill_in() {
    let schema = compile(
        &json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "A"},
            "n": {"type": "string", "nullable": true, "default": "N"},
            "plain": {"type": "string"},
            "kept": {"type": "string", "nullable": true},
            "deep": {"type": "object", "default": {}, "properties": {
                "x": {"type": "integer", "default": 1},
                "y": {"type": "object", "default": {"given": true}, "properties": {
                    "given": {"type": "boolean"}, "z": {"type": "integer", "default": 2},
                }},
            }},
            "none": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}},
            "filled": {"type": "array", "items": {"type": "integer", "default": 7}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "integer", "default": 3}}}},
            "numbers": {"type": "object", "additionalProperties": {"type": "integer", "default": 9}},
        }}),
        "",
    )
    .unwrap_or_else(|errors| panic!("{errors:?}"));
    for (before, after) in [
        (json!({}), json!({"a": "A", "n": "N", "deep": {"x": 1, "y": {"given": true, "z": 2}}})),
        (
            json!({
                "a": null, "n": null, "plain": null, "kept": null, "deep": {"x": 5, "y": {}}, "none": {},
                "list": [{}, {"p": "UDP"}], "filled": [null, 1], "map": {"k": {}, "gone": null}, "numbers": {"n": null},
                "metadata": {"creationTimestamp": null, "labels": {"a": "b", "c": null}},
            }),
            json!({
                "a": "A", "n": null, "kept": null, "deep": {"x": 5, "y": {"z": 2}}, "none": {"x": 1},
                "list": [{"p": "TCP"}, {"p": "UDP"}], "filled": [7, 1], "map": {"k": {"v": 3}}, "numbers": {"n": 9},
                "metadata": {"labels": {"a": "b"}},
            }),
        ),
    ] {
        let mut value = before;
        apply(&schema, &mut value);
        assert_eq!(value, after);
        apply(&schema, &mut value);
        assert_eq!(value, after, "defaulting twice");
    }
}
