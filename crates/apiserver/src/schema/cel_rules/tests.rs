//! Tests of rules in schemas.

use serde_json::{Value, json};

use crate::schema::Schema;
use crate::schema::compile::compile;
use crate::schema::validate::validate;

fn schema(json: &Value) -> Schema {
    compile(json, "").unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn check(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<String> {
    validate(schema, value, old).iter().map(ToString::to_string).collect()
}

/// A schema of one field `x` with these rules.
fn with_rules(mut field: Value, rules: Value) -> Value {
    field["x-kubernetes-validations"] = rules;
    json!({"type": "object", "properties": {"x": field}})
}

const NONE: [&str; 0] = [];

#[test]
fn rules_that_people_write() {
    let condition = json!({"type": "array", "items": {"type": "object", "properties": {
        "type": {"type": "string"}, "reason": {"type": "string"},
    }}});
    let address =
        json!({"type": "object", "properties": {"type": {"type": "string"}, "value": {"type": "string"}}});
    let scale = json!({"type": "object", "properties": {"minReplicas": {"type": "integer"}, "replicas": {"type": "integer"}}});
    let items = json!({"type": "object", "properties": {
        "primary": {"type": "string"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }});
    for (field, rule, good, bad) in [
        (
            condition,
            "self.all(c, c.type == 'Granted' ? c.reason in ['A','B'] : true)",
            json!([{"type": "Granted", "reason": "A"}, {"type": "Other"}]),
            json!([{"type": "Granted", "reason": "C"}]),
        ),
        (json!({"type": "number"}), "double(self) >= -90.0 && double(self) <= 90.0", json!(45), json!(91)),
        (
            address,
            r#"self.type == 'Hostname' ? self.value.matches(r"""^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"""): true"#,
            json!({"type": "Hostname", "value": "*.example.com"}),
            json!({"type": "Hostname", "value": "-bad"}),
        ),
        (
            scale,
            "self.minReplicas <= self.replicas",
            json!({"minReplicas": 1, "replicas": 1}),
            json!({"minReplicas": 2, "replicas": 1}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "!has(self.a) || self.a.size() > 0",
            json!({}),
            json!({"a": ""}),
        ),
        (
            items,
            "self.items.exists(i, i.name == self.primary)",
            json!({"primary": "a", "items": [{"name": "a"}]}),
            json!({"primary": "b", "items": [{"name": "a"}]}),
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            "self.getFullYear() > 2000",
            json!("2024-01-01T00:00:00Z"),
            json!("1999-01-01T00:00:00Z"),
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            "type(self) == int ? self > 0 : self.endsWith('%')",
            json!("5%"),
            json!(0),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "self.all(k, self[k].startsWith(k))",
            json!({"a": "ab"}),
            json!({"a": "b"}),
        ),
    ] {
        let schema = schema(&with_rules(field, json!([{"rule": rule, "message": "no good"}])));
        assert_eq!(check(&schema, &json!({"x": good}), None), NONE, "{rule}");
        let errors = check(&schema, &json!({"x": bad}), None);
        assert_eq!(errors.len(), 1, "{rule}: {errors:?}");
        assert!(
            errors[0].starts_with("x: Invalid value: ") && errors[0].ends_with(": no good"),
            "{errors:?}"
        );
    }
}

#[test]
fn transition_rules_need_an_old_value() {
    let immutable = schema(&with_rules(
        json!({"type": "string"}),
        json!([{"rule": "self == oldSelf", "message": "immutable"}]),
    ));
    let (a, b) = (json!({"x": "a"}), json!({"x": "b"}));
    assert_eq!(check(&immutable, &a, None), NONE);
    assert_eq!(check(&immutable, &a, Some(&json!({}))), NONE);
    assert_eq!(check(&immutable, &a, Some(&a)), NONE);
    assert_eq!(check(&immutable, &b, Some(&a)), ["x: Invalid value: \"b\": immutable"]);

    let rule = "oldSelf.hasValue() ? self >= oldSelf.value() : self == 1";
    let optional =
        schema(&with_rules(json!({"type": "integer"}), json!([{"rule": rule, "optionalOldSelf": true}])));
    assert_eq!(check(&optional, &json!({"x": 1}), None), NONE);
    assert_eq!(
        check(&optional, &json!({"x": 2}), None),
        [format!("x: Invalid value: 2: failed rule: {rule}")]
    );
    assert_eq!(check(&optional, &json!({"x": 5}), Some(&json!({"x": 4}))), NONE);
    assert_eq!(check(&optional, &json!({"x": 3}), Some(&json!({"x": 4}))).len(), 1);
}

#[test]
fn entries_of_keyed_lists_correlate() {
    let entries = schema(&json!({"type": "object", "properties": {"l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "fieldPath": ".v", "messageExpression": "'was %d'.format([oldSelf.v])"}],
        },
    }}}));
    let old = json!({"l": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]});
    let new = json!({"l": [{"k": "b", "v": 4}, {"k": "a", "v": 2}, {"k": "c", "v": 0}]});
    assert_eq!(check(&entries, &new, Some(&old)), ["l[0].v: Invalid value: \"object\": was 5"]);

    let atomic = compile(
        &json!({"type": "object", "properties": {"l": {"type": "array", "items": {
            "type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
        }}}}),
        "",
    );
    let errors = atomic.expect_err("entries cannot be found again");
    assert!(
        errors[0].to_string().contains("oldSelf cannot be used on the uncorrelatable portion"),
        "{errors:?}"
    );
}

#[test]
fn messages_and_reasons() {
    for (rule, expected) in [
        (json!({"rule": "self.a == 1"}), "x: Invalid value: \"object\": failed rule: self.a == 1"),
        (
            json!({"rule": "self.a == 1", "message": "must be one"}),
            "x: Invalid value: \"object\": must be one",
        ),
        (
            json!({"rule": "self.a == 1", "messageExpression": "'not ' + string(self.a)"}),
            "x: Invalid value: \"object\": not 2",
        ),
        (
            json!({"rule": "self.a == 1", "message": "m", "messageExpression": "self.b"}),
            "x: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.a == 1", "message": "m", "messageExpression": "''"}),
            "x: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.a == 1", "message": "m", "fieldPath": ".a"}),
            "x.a: Invalid value: \"object\": m",
        ),
        (
            json!({"rule": "self.a == 1", "message": "m", "reason": "FieldValueRequired", "fieldPath": ".a"}),
            "x.a: Required value: m",
        ),
        (json!({"rule": "self.a == 1", "message": "m", "reason": "FieldValueForbidden"}), "x: Forbidden: m"),
        (
            json!({"rule": "self.a == 1", "message": "m", "reason": "FieldValueDuplicate"}),
            "x: Duplicate value: \"object\": m",
        ),
        (
            json!({"rule": "self.b == 'x'"}),
            "x: Invalid value: \"object\": no such key: b evaluating rule: failed rule: self.b == 'x'",
        ),
        (
            json!({"rule": "self.a / 0 == 1"}),
            "x: Invalid value: \"object\": division by zero evaluating rule: failed rule: self.a / 0 == 1",
        ),
    ] {
        let field =
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}});
        let schema = schema(&with_rules(field, json!([rule])));
        assert_eq!(check(&schema, &json!({"x": {"a": 2}}), None), [expected]);
    }
}

#[test]
fn bad_rules_are_refused_with_the_schema() {
    for (rule, path, words) in [
        (json!({"rule": "self."}), "rule", "compilation failed: ERROR: <input>:1:6"),
        (json!({"rule": "self.nope == 1"}), "rule", "undefined field 'nope'"),
        (json!({"rule": "other == 1"}), "rule", "undeclared reference to 'other'"),
        (json!({"rule": "self.a"}), "rule", "must evaluate to bool"),
        (json!({"rule": " "}), "rule", "rule is not specified"),
        (json!({"rule": "true", "messageExpression": "1"}), "messageExpression", "must evaluate to string"),
        (json!({"rule": "true", "messageExpression": "foo"}), "messageExpression", "undeclared reference"),
        (json!({"rule": "true", "message": " "}), "message", "message must be non-empty if specified"),
        (json!({"rule": "true", "message": "a\nb"}), "message", "must not contain line breaks"),
        (json!({"rule": "true ||\nfalse"}), "message", "must be specified if rule contains line breaks"),
        (json!({"rule": "true", "reason": "Whatever"}), "reason", "supported values"),
        (json!({"rule": "true", "fieldPath": ".nope"}), "fieldPath", "must be a valid path"),
        (json!({"rule": "true", "fieldPath": "a"}), "fieldPath", "must be a valid path"),
    ] {
        let field = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let errors =
            compile(&with_rules(field, json!([{"rule": "true"}, rule])), "base").expect_err("a bad rule");
        let expected = format!("base.properties[x].x-kubernetes-validations[1].{path}");
        assert_eq!(errors[0].path, expected, "{rule}");
        assert!(errors[0].to_string().contains(words), "{rule}: {}", errors[0]);
    }
}

#[test]
fn rules_wait_for_a_sound_object_and_excuse_what_did_not_change() {
    let field = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    let schema = schema(&with_rules(field, json!([{"rule": "self.a > 0", "message": "m"}])));
    let errors = check(&schema, &json!({"x": {}}), None);
    assert_eq!(errors[0], "x.a: Required value");
    assert!(errors[1].contains("some validation rules were not checked"), "{errors:?}");
    let old = json!({"x": {"a": 0}});
    let mut other = old.clone();
    other["y"] = json!(1);
    assert_eq!(check(&schema, &other, Some(&old)), NONE);
    assert_eq!(
        check(&schema, &json!({"x": {"a": 0, "b": 1}}), Some(&old)),
        ["x: Invalid value: \"object\": m"]
    );
}

#[test]
fn a_hungry_rule_ends_validation() {
    let rule = json!([{"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"}]);
    let schema = schema(&with_rules(json!({"type": "array", "items": {"type": "integer"}}), rule));
    let value = json!({"x": (0..2_000).collect::<Vec<_>>()});
    assert_eq!(
        check(&schema, &value, None),
        [
            "x: Invalid value: \"array\": validation failed due to running out of cost budget, no further validation rules will be run",
        ]
    );
}

#[test]
fn rules_see_the_name_of_the_object() {
    let schema = schema(&json!({
        "type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "string"}}}},
        "x-kubernetes-validations": [{"rule": "self.metadata.name == self.spec.n", "fieldPath": ".spec.n"}],
    }));
    assert_eq!(check(&schema, &json!({"metadata": {"name": "a"}, "spec": {"n": "a"}}), None), NONE);
    assert_eq!(
        check(&schema, &json!({"metadata": {"name": "a"}, "spec": {"n": "b"}}), None),
        ["spec.n: Invalid value: \"object\": failed rule: self.metadata.name == self.spec.n",]
    );
}
