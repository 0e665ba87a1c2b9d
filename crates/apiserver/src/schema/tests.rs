//! Properties that hold for any schema and any object: what defaulting and pruning promise each other
//! and validation.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Schema;
use super::compile::compile;
use super::{defaults, prune, validate};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A JSON schema of a field, of bounded size, with defaults that hold.
fn field_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "x", "maxLength": 3})),
        Just(json!({"type": "string", "nullable": true, "default": "n"})),
        Just(json!({"type": "integer", "minimum": 1})),
        Just(json!({"type": "integer", "default": 2, "enum": [1, 2, 3]})),
        Just(json!({"type": "boolean", "nullable": true})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let properties = prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner.clone(), 0..4);
        let object = (properties, any::<bool>(), any::<bool>(), any::<bool>());
        prop_oneof![
            object.prop_map(|(properties, open, nullable, empty_default)| {
                let properties: BTreeMap<_, _> = properties.into_iter().collect();
                let mut schema = json!({"type": "object", "properties": properties});
                if open {
                    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
                if nullable {
                    schema["nullable"] = json!(true);
                }
                if empty_default {
                    schema["default"] = json!({});
                }
                schema
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

fn root_schema() -> impl Strategy<Value = Schema> {
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), field_schema(), 1..4).prop_map(
        |properties| {
            let properties: BTreeMap<_, _> = properties.into_iter().collect();
            compile(&json!({"type": "object", "properties": properties}), "")
                .expect("generated schemas are sound")
        },
    )
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(vec!["", "x", "long text"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(prop::sample::select(&NAMES[..]), inner, 0..4).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(&NAMES[..]), value(), 0..4).prop_map(|fields| {
        Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())
    })
}

/// A value that mostly fits the schema, so that valid objects are tried as well.
fn fitting(schema: &Schema, seed: &Value) -> Value {
    use super::Type;
    match (schema.type_, seed) {
        (Some(Type::Object), Value::Object(fields)) => Value::Object(
            fields
                .iter()
                .map(|(name, field)| {
                    let fitted =
                        schema.child(name).map_or_else(|| field.clone(), |child| fitting(child, field));
                    (name.clone(), fitted)
                })
                .collect(),
        ),
        (Some(Type::Object), _) => json!({}),
        (Some(Type::Array), Value::Array(entries)) => {
            let items = schema.items.as_ref().expect("lists have items");
            entries.iter().map(|entry| fitting(items, entry)).collect()
        }
        (Some(Type::Array), _) => json!([]),
        (Some(Type::String), _) => json!("x"),
        (Some(Type::Integer), _) => json!(1),
        (Some(Type::Number), _) => json!(1.5),
        (Some(Type::Boolean), _) => json!(true),
        (None, _) if schema.int_or_string => json!(1),
        (None, seed) => seed.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn pruning_is_idempotent_and_reports_what_it_drops(schema in root_schema(), value in object()) {
        let mut pruned = value.clone();
        let reported = prune::unknown_fields(&schema, &value);
        let dropped = prune::prune(&schema, &mut pruned);
        prop_assert_eq!(&reported, &dropped);
        prop_assert_eq!(dropped.is_empty(), pruned == value);
        let again = pruned.clone();
        prop_assert!(prune::prune(&schema, &mut pruned).is_empty());
        prop_assert_eq!(pruned, again);
    }

    #[test]
    fn defaulting_is_idempotent_and_needs_no_pruning(schema in root_schema(), value in object()) {
        let mut value = value;
        prune::prune(&schema, &mut value);
        let pruned = value.clone();
        let changed = defaults::apply(&schema, &mut value);
        prop_assert_eq!(changed, value != pruned);
        let once = value.clone();
        prop_assert!(!defaults::apply(&schema, &mut value));
        prop_assert_eq!(&value, &once);
        prop_assert!(prune::unknown_fields(&schema, &value).is_empty());
    }

    #[test]
    fn a_valid_object_stays_valid(schema in root_schema(), seed in object()) {
        let value = fitting(&schema, &seed);
        prop_assume!(validate::validate(&schema, &value, None).is_empty());
        let mut made = value;
        prune::prune(&schema, &mut made);
        defaults::apply(&schema, &mut made);
        prop_assert_eq!(validate::validate(&schema, &made, None), vec![]);
    }

    #[test]
    fn nothing_is_held_against_an_unchanged_object(schema in root_schema(), value in object()) {
        prop_assert_eq!(validate::validate(&schema, &value, Some(&value)), vec![]);
    }

    #[test]
    fn expressions_never_panic(source in "[a-z0-9.()\\[\\]'\"+*/%<>=!&|?:, {}-]{0,40}", value in value()) {
        if let Ok(program) = super::expr::Program::compile(&source, &["self", "a"]) {
            let _ = program.eval_bool(&[("self", &value), ("a", &value)]);
        }
    }
}
