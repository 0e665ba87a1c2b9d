//! Tests of constraints and formats.

use serde_json::{Value, json};

use super::*;
use crate::schema::compile::compile;
use crate::schema::validate::validate;

/// The errors of the field `x` with this schema and value, as text.
fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let schema =
        compile(&json!({"type": "object", "properties": {"x": schema}}), "").expect("a sound schema");
    validate(&schema, &json!({"x": value}), None).iter().map(ToString::to_string).collect()
}

#[test]
fn bounds() {
    for (schema, good, bad, message) in [
        (
            json!({"minimum": 1}),
            json!(1),
            json!(0),
            "x: Invalid value: 0: x in body should be greater than or equal to 1",
        ),
        (
            json!({"minimum": 1, "exclusiveMinimum": true}),
            json!(2),
            json!(1),
            "x: Invalid value: 1: x in body should be greater than 1",
        ),
        (
            json!({"maximum": 65535}),
            json!(65535),
            json!(65536),
            "x: Invalid value: 65536: x in body should be less than or equal to 65535",
        ),
        (
            json!({"maximum": 3.0, "exclusiveMaximum": true}),
            json!(2),
            json!(3),
            "x: Invalid value: 3: x in body should be less than 3",
        ),
        (
            json!({"multipleOf": 5}),
            json!(10),
            json!(7),
            "x: Invalid value: 7: x in body should be a multiple of 5",
        ),
        (
            json!({"format": "int32"}),
            json!(2147483647),
            json!(2147483648_u32),
            "x: Invalid value: 2147483648: Checked value must be of type integer with format int32 in x",
        ),
        (
            json!({"enum": [1, 2]}),
            json!(2),
            json!(3),
            "x: Unsupported value: 3: supported values: \"1\", \"2\"",
        ),
    ] {
        let mut schema = schema;
        schema["type"] = json!("integer");
        assert_eq!(errors(&schema, &good), Vec::<String>::new(), "{schema}");
        assert_eq!(errors(&schema, &bad), [message], "{schema}");
    }
    let number = json!({"type": "number", "minimum": 0.5, "maximum": 1000000.0});
    assert_eq!(errors(&number, &json!(0.75)), Vec::<String>::new());
    assert_eq!(
        errors(&number, &json!(0.25)),
        ["x: Invalid value: 0.25: x in body should be greater than or equal to 0.5"]
    );
    assert_eq!(
        errors(&number, &json!(1e7)),
        ["x: Invalid value: 10000000.0: x in body should be less than or equal to 1e+06"]
    );
    // Exact beyond what a double can hold.
    let large = json!({"type": "integer", "maximum": 9007199254740992_i64});
    assert_eq!(errors(&large, &json!(9007199254740993_i64)).len(), 1);
}

#[test]
fn texts() {
    for (schema, good, bad, message) in [
        (
            json!({"minLength": 2}),
            json!("éé"),
            json!("é"),
            "x: Invalid value: \"é\": x in body should be at least 2 chars long",
        ),
        (json!({"maxLength": 2}), json!("éé"), json!("ééé"), "x: Too long: may not be more than 2 bytes"),
        (
            json!({"pattern": "^a+$"}),
            json!("aa"),
            json!("b"),
            "x: Invalid value: \"b\": x in body should match '^a+$'",
        ),
        (
            json!({"enum": ["b", "c"]}),
            json!("b"),
            json!("a"),
            "x: Unsupported value: \"a\": supported values: \"b\", \"c\"",
        ),
        (
            json!({"format": "date-time"}),
            json!("2024-01-01T00:00:00Z"),
            json!("yesterday"),
            "x: Invalid value: \"yesterday\": x in body must be of type date-time: \"yesterday\"",
        ),
    ] {
        let mut schema = schema;
        schema["type"] = json!("string");
        assert_eq!(errors(&schema, &good), Vec::<String>::new(), "{schema}");
        assert_eq!(errors(&schema, &bad), [message], "{schema}");
    }
}

#[test]
fn sizes() {
    let list = json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2});
    assert_eq!(errors(&list, &json!([1])), Vec::<String>::new());
    assert_eq!(
        errors(&list, &json!([])),
        ["x: Invalid value: \"array\": x in body should have at least 1 items"]
    );
    assert_eq!(errors(&list, &json!([1, 2, 3])), ["x: Too many: 3: must have at most 2 items"]);
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 1});
    assert_eq!(
        errors(&map, &json!({})),
        ["x: Invalid value: \"object\": x in body should have at least 1 properties"]
    );
    assert_eq!(errors(&map, &json!({"a": 1, "b": 2})), ["x: Too many: 2: must have at most 1 items"]);
}

#[test]
fn compositions() {
    let fields = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let schema = |name: &str, what: Value| {
        let mut schema = json!({"type": "object", "properties": fields.clone()});
        schema[name] = what;
        schema
    };
    let required = json!([{"required": ["a"]}, {"required": ["b"]}]);
    let one_of = schema("oneOf", required.clone());
    assert_eq!(errors(&one_of, &json!({"a": ""})), Vec::<String>::new());
    assert_eq!(
        errors(&one_of, &json!({})),
        [
            "x.a: Required value",
            "x: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found none valid",
        ]
    );
    assert_eq!(
        errors(&one_of, &json!({"a": "", "b": ""})),
        [
            "x: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ]
    );
    let any_of = schema("anyOf", required.clone());
    assert_eq!(errors(&any_of, &json!({"a": "", "b": ""})), Vec::<String>::new());
    assert_eq!(
        errors(&any_of, &json!({}))[1],
        "x: Invalid value: \"\": \"x\" must validate at least one schema (anyOf)"
    );
    assert_eq!(errors(&schema("allOf", required), &json!({"a": ""})), ["x.b: Required value"]);
    let not = schema("not", json!({"properties": {"a": {"enum": ["bad"]}}, "required": ["a"]}));
    assert_eq!(errors(&not, &json!({"a": "good"})), Vec::<String>::new());
    assert_eq!(
        errors(&not, &json!({"a": "bad"})),
        ["x: Invalid value: \"\": \"x\" must not validate the schema (not)"]
    );
    let deep = json!({
        "type": "array", "items": {"type": "object", "properties": {"p": {"type": "integer"}}},
        "allOf": [{"items": {"properties": {"p": {"minimum": 3}}}}],
    });
    assert_eq!(
        errors(&deep, &json!([{"p": 3}, {"p": 2}])),
        ["x[1].p: Invalid value: 2: x[1].p in body should be greater than or equal to 3",]
    );
}

#[test]
fn formats() {
    for (name, good, bad) in [
        (
            "date-time",
            vec!["2024-02-29T23:59:59.5+01:00", "2024-01-01t00:00:00z"],
            vec!["2024-02-30T00:00:00Z", "2024-01-01", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00"],
        ),
        ("date", vec!["2024-02-29"], vec!["2023-02-29", "2024-1-1", "20240101"]),
        (
            "duration",
            vec!["1h30m", "1.5s", "-5ms", "2 days", "3w", "0", "1m0.5s"],
            vec!["", "1", "h", "1x", "five seconds", "1.2.3s"],
        ),
        ("byte", vec!["YWJj", "", "YW\nJj"], vec!["YWJ", "Y W"]),
        ("ipv4", vec!["1.2.3.4"], vec!["1.2.3", "::1", "256.1.1.1"]),
        ("ipv6", vec!["::1", "fe80::1"], vec!["1.2.3.4", ":::"]),
        ("cidr", vec!["10.0.0.0/8", "::/0"], vec!["10.0.0.0", "10.0.0.0/33"]),
        (
            "mac",
            vec!["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-AB"],
            vec!["01:23", "0123456789ab", "01:23:45:67:89:zz"],
        ),
        ("uri", vec!["http://a.b/c", "/x"], vec!["a b", ""]),
        ("email", vec!["a@b.c", "Joe <joe@b.c>"], vec!["a", "@b", "a@", "a@b..c", "a b@c"]),
        ("hostname", vec!["a", "a.b-c.d", "1a"], vec!["", "-a", "a-", "a..b", "a_b"]),
        (
            "uuid",
            vec!["0123abcd-0123-4567-89ab-0123456789ab", "0123ABCD0123456789ab0123456789ab"],
            vec!["0123", "0123abcd-0123-4567-89ab-0123456789ag", "0123abcd-0123-4567-89ab0-123456789ab"],
        ),
        (
            "uuid4",
            vec!["0123abcd-0123-4567-89ab-0123456789ab"],
            vec!["0123abcd-0123-5567-89ab-0123456789ab", "0123abcd-0123-4567-79ab-0123456789ab"],
        ),
        ("bsonobjectid", vec!["507f1f77bcf86cd799439011"], vec!["507f"]),
        ("hexcolor", vec!["#fff", "a1b2c3"], vec!["#ffff", "red"]),
        ("rgbcolor", vec!["rgb(1, 2,3)"], vec!["rgb(1,2)", "rgb(1,2,256)", "rgb(1,2,3,4)"]),
        ("isbn", vec!["0-306-40615-2", "978-0-306-40615-7"], vec!["0-306-40615-3", "979"]),
        ("creditcard", vec!["4111 1111 1111 1111"], vec!["4111 1111 1111 1112", "1"]),
        ("ssn", vec!["123-45-6789", "123456789"], vec!["123-456-789", "12345678"]),
        ("k8s-short-name", vec!["a-1"], vec!["A", "-a", "a.b", ""]),
        ("k8s-long-name", vec!["a.b-1"], vec!["a..b", "A.b", ""]),
    ] {
        let format = Format::named(name).expect(name);
        for text in good {
            assert!(format.matches(text), "{name}: {text}");
        }
        for text in bad {
            assert!(!format.matches(text), "{name}: {text}");
        }
    }
    assert_eq!(Format::named("quantity"), None);
    assert_eq!(Format::named("password"), None);
    assert!(!Format::Int64.fits(&serde_json::Number::from(u64::MAX)));
    assert!(Format::Int32.fits(&serde_json::Number::from_f64(5.0).expect("finite")));
}

#[test]
fn floats_are_printed_as_go_prints_them() {
    for (value, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (100000.0, "100000"),
        (1e6, "1e+06"),
        (1.5e-5, "1.5e-05"),
        (-2.0, "-2"),
    ] {
        assert_eq!(go_float(value), text);
    }
}
