//! Tests of compiling CRD schemas.

use serde_json::{Value, json};

use super::*;

const BASE: &str = "spec.versions[0].schema.openAPIV3Schema";

fn errors(json: &Value) -> Vec<String> {
    let errors = compile(json, BASE).err().unwrap_or_default();
    errors
        .iter()
        .map(|error| {
            let text = error.to_string();
            text.strip_prefix(BASE).map(|text| text.trim_start_matches('.').to_owned()).unwrap_or(text)
        })
        .collect()
}

/// The errors of a field `x` with this schema.
fn field_errors(json: &Value) -> Vec<String> {
    let errors = errors(&json!({"type": "object", "properties": {"x": json}}));
    errors.into_iter().map(|text| text.replacen("properties[x]", "x", 1)).collect()
}

#[test]
fn the_root() {
    assert_eq!(errors(&json!({"type": "object"})), Vec::<String>::new());
    assert_eq!(errors(&json!({})), ["type: Required value: must not be empty at the root"]);
    assert_eq!(
        errors(&json!({"type": "array", "items": {"type": "string"}})),
        ["type: Invalid value: \"array\": must be object at the root",]
    );
    assert_eq!(
        errors(&json!({"type": "object", "additionalProperties": {"type": "string"}})),
        ["additionalProperties: Forbidden: must not be used at the root",]
    );
    assert_eq!(errors(&json!(3)), [": Invalid value: 3: must be a schema object"]);
    let names = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"},
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
    }});
    assert_eq!(errors(&names), Vec::<String>::new());
    let schema = compile(&names, BASE).expect("sound");
    let long = json!({"metadata": {"name": "too-long", "labels": {"a": "b"}}});
    assert_eq!(
        validate(&schema, &long, None)[0].to_string(),
        "metadata.name: Too long: may not be more than 5 bytes"
    );
    let more = json!({"type": "object", "properties": {
        "kind": {"type": "integer"},
        "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
    }});
    assert_eq!(
        errors(&more),
        [
            "properties[kind].type: Invalid value: \"integer\": must be string",
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ]
    );
}

#[test]
fn what_is_not_structural_is_refused() {
    for (schema, expected) in [
        (json!({}), vec!["x.type: Required value: must not be empty for specified object fields"]),
        (
            json!({"type": "array", "items": {}}),
            vec!["x.items.type: Required value: must not be empty for specified array items"],
        ),
        (json!({"type": "array"}), vec!["x.items: Required value: must be specified"]),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            vec!["x.items: Forbidden: items must be a schema object and not an array"],
        ),
        (
            json!({"type": "null"}),
            vec!["x.type: Forbidden: type cannot be set to null, use nullable as an alternative"],
        ),
        (
            json!({"type": "strin"}),
            vec![
                "x.type: Unsupported value: \"strin\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ],
        ),
        (json!({"type": "string", "$ref": "#/x"}), vec!["x.$ref: Forbidden: $ref is not supported"]),
        (
            json!({"type": "object", "definitions": {}}),
            vec!["x.definitions: Forbidden: definitions is not supported"],
        ),
        (
            json!({"type": "object", "patternProperties": {}}),
            vec!["x.patternProperties: Forbidden: patternProperties is not supported"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            vec![
                "x.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ],
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            vec!["x.additionalProperties: Forbidden: additionalProperties cannot be set to false"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            vec![
                "x.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            vec!["x.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"],
        ),
        (
            json!({"type": "string", "pattern": "("}),
            vec![
                "x.pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: unclosed group",
            ],
        ),
        (
            json!({"type": "string", "minLength": -1}),
            vec!["x.minLength: Invalid value: -1: must be a non-negative integer"],
        ),
        (
            json!({"type": "integer", "multipleOf": 0}),
            vec!["x.multipleOf: Invalid value: 0: must be a positive number"],
        ),
        (
            json!({"type": "integer", "minimum": "1"}),
            vec!["x.minimum: Invalid value: \"1\": must be a number"],
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            vec!["x.anyOf[0].type: Forbidden: must be empty to be structural"],
        ),
        (
            json!({"type": "string", "not": {"default": "x", "nullable": true}}),
            vec![
                "x.not.default: Forbidden: must be undefined to be structural",
                "x.not.nullable: Forbidden: must be false to be structural",
            ],
        ),
        (
            json!({"type": "object", "oneOf": [{"properties": {"a": {"pattern": "x"}}}]}),
            vec!["x.properties[a]: Required value: because it is defined in a nested value validation"],
        ),
        (
            json!({"type": "object", "allOf": [{"properties": {"metadata": {}}}], "properties": {"metadata": {"type": "object"}}}),
            vec!["x.allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context"],
        ),
        (
            json!({"type": "integer", "x-kubernetes-int-or-string": true}),
            vec!["x.type: Invalid value: \"integer\": must be empty if x-kubernetes-int-or-string is true"],
        ),
        (
            json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
            vec![
                "x.type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is true",
            ],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            vec![
                "x.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            ],
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
            vec!["x.type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified"],
        ),
    ] {
        assert_eq!(field_errors(&schema), expected, "{schema}");
    }
}

#[test]
fn what_is_structural_is_taken() {
    for schema in [
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "x"}),
        json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "x"}]}),
        json!({"type": "object", "additionalProperties": true, "properties": {"a": {"type": "string"}}}),
        json!({"type": "string", "format": "unheard-of", "unknownKeyword": 1, "example": {}, "externalDocs": {"url": "x"}}),
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
    ] {
        assert_eq!(field_errors(&schema), Vec::<String>::new(), "{schema}");
    }
}

#[test]
fn list_types() {
    let map = |extra: Value| {
        let mut schema = json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
        });
        for (name, value) in extra.as_object().expect("an object") {
            schema[name] = value.clone();
        }
        field_errors(&schema)
    };
    assert_eq!(map(json!({})), Vec::<String>::new());
    assert_eq!(
        map(json!({"x-kubernetes-list-map-keys": []})),
        ["x.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"]
    );
    assert_eq!(
        map(json!({"x-kubernetes-list-map-keys": ["k", "z", "k"]})),
        [
            "x.x-kubernetes-list-map-keys: Invalid value: \"z\": entries must all be names of item properties",
            "x.x-kubernetes-list-map-keys: Invalid value: \"k\": must not contain duplicate entries",
        ]
    );
    assert_eq!(
        map(json!({"x-kubernetes-list-type": "set"}))[0],
        "x.x-kubernetes-list-type: Invalid value: \"set\": must be map if x-kubernetes-list-map-keys is non-empty"
    );
    assert_eq!(
        map(json!({"x-kubernetes-list-type": "bag"})).last().map(String::as_str),
        Some(
            "x.x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\""
        )
    );
    assert_eq!(
        map(json!({"items": {"type": "string"}})),
        [
            "x.items.type: Invalid value: \"string\": must be object if parent array's x-kubernetes-list-type is map"
        ]
    );
    assert_eq!(
        map(json!({"items": {"type": "object", "properties": {"k": {"type": "object", "nullable": true}}}})),
        [
            "x.items.properties[k].type: Invalid value: \"object\": must be a scalar type if parent array's x-kubernetes-list-type is map",
            "x.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            "x.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
        ]
    );
    assert_eq!(
        map(json!({"items": {"type": "object", "properties": {"k": {"type": "string", "default": "x"}}}})),
        Vec::<String>::new()
    );
    let set = |items: Value| {
        field_errors(&json!({"type": "array", "x-kubernetes-list-type": "set", "items": items}))
    };
    assert_eq!(set(json!({"type": "string"})), Vec::<String>::new());
    assert_eq!(
        set(json!({"type": "object"})),
        [
            "x.items.x-kubernetes-map-type: Required value: must be atomic as item of a list with x-kubernetes-list-type=set"
        ]
    );
    assert_eq!(
        set(json!({"type": "string", "nullable": true})),
        ["x.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"]
    );
    assert_eq!(
        field_errors(&json!({"type": "string", "x-kubernetes-list-type": "set"})),
        ["x.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"]
    );
}

#[test]
fn defaults_must_hold() {
    let object = |default: Value| {
        field_errors(&json!({
            "type": "object", "default": default, "required": ["a"],
            "properties": {"a": {"type": "string", "maxLength": 2}, "b": {"type": "integer", "default": 1}},
        }))
    };
    assert_eq!(object(json!({"a": "x"})), Vec::<String>::new());
    assert_eq!(object(json!({})), ["x.default.a: Required value"]);
    assert_eq!(object(json!({"a": "xyz"})), ["x.default.a: Too long: may not be more than 2 bytes"]);
    assert_eq!(
        object(json!({"a": "x", "c": 1})),
        ["x.default: Invalid value: \"object\": must not have unspecified fields: unknown field \"c\""]
    );
    assert_eq!(
        object(json!("x")),
        ["x.default: Invalid value: \"string\":  in body must be of type object: \"string\""]
    );
    assert_eq!(field_errors(&json!({"type": "string", "default": null})), Vec::<String>::new());
}

#[test]
fn the_tree_says_what_the_schema_says() {
    let schema = compile(
        &json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-map-type": "atomic", "required": ["a"], "nullable": true,
            "properties": {
                "a": {"type": "string", "default": "x"},
                "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
                "r": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]},
            },
        }}}),
        BASE,
    )
    .unwrap_or_else(|errors| panic!("{errors:?}"));
    let spec = &schema.properties["spec"];
    assert!(spec.map_atomic && spec.nullable && spec.rules_below && schema.rules_below);
    assert_eq!(spec.required, ["a"]);
    assert_eq!(spec.properties["a"].default, Some(json!("x")));
    assert_eq!(spec.properties["l"].list_type, ListType::Map(vec!["k".to_owned()]));
    assert!(spec.properties["l"].unique_entries && !spec.properties["l"].rules_below);
    assert_eq!(spec.properties["r"].rules.len(), 1);
    assert!(schema.properties.contains_key("apiVersion") && schema.properties.contains_key("kind"));
    assert!(schema.properties["metadata"].properties.contains_key("ownerReferences"));
}

#[test]
fn nesting_and_errors_are_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..80 {
        deep = json!({"type": "object", "properties": {"x": deep}});
    }
    assert!(compile(&deep, BASE).expect_err("too deep")[0].to_string().contains("must not nest deeper"));
    let mut deep = json!({"pattern": "x"});
    for _ in 0..80 {
        deep = json!({"not": deep});
    }
    let error = compile(&json!({"type": "object", "not": deep}), BASE).expect_err("too deep");
    assert!(error[0].to_string().contains("must not nest deeper"));
    let many: serde_json::Map<String, Value> = (0..500).map(|n| (n.to_string(), json!({}))).collect();
    let errors = compile(&json!({"type": "object", "properties": many}), BASE).expect_err("untyped");
    assert_eq!(errors.len(), MAX_ERRORS);
}
