//! The hash sees every change that counts and no other.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn the_value_is_fixed_for_all_time() {
    let template = json!({
        "metadata": {"annotations": {"compute.datumapis.com/restartedAt": "2026-05-01T00:00:00Z"}},
        "spec": {
            "networkInterfaces": [{"network": {"name": "default"}}],
            "runtime": {
                "resources": {"instanceType": "datumcloud/d1-standard-2"},
                "sandbox": {"containers": [{"name": "app", "image": "nginx:1.27"}]}
            }
        }
    });
    assert_eq!(of_value(&template), "v1-49729e9ae9fccf8e3f18a8b50ace011654dd154923ff4f0c4b378298776c461c");
    let typed: InstanceTemplate = serde_json::from_value(template.clone()).unwrap();
    assert_eq!(of(&typed), of_value(&template));
}

#[test]
fn only_our_form_is_ours() {
    assert!(is_ours(&of_value(&json!({}))));
    for other in ["", "v1-", "v1-zz", "68b7d9f7c5", &"a".repeat(64), &format!("v1-{}", "A".repeat(64))] {
        assert!(!is_ours(other), "{other}");
    }
}

#[test]
fn elements_of_a_list_are_never_left_out() {
    let hash = |value: Value| of_value(&json!({ "ingress": value }));
    assert_ne!(hash(json!([{}])), hash(json!([])));
    assert_ne!(hash(json!([{}, {}])), hash(json!([{}])));
    assert_ne!(hash(json!([[], 1])), hash(json!([1])));
    assert_eq!(hash(json!([{"from": []}])), hash(json!([{}])));
    assert_eq!(hash(json!([])), of_value(&json!({})));
}

#[test]
fn what_looks_alike_differs() {
    let hash = |value: Value| of_value(&json!({ "a": value }));
    let values = [
        json!(""),
        json!(0),
        json!(false),
        json!("0"),
        json!("false"),
        json!([""]),
        json!({"b": ""}),
        json!(["", ""]),
    ];
    for (i, a) in values.iter().enumerate() {
        for b in &values[i + 1..] {
            assert_ne!(hash(a.clone()), hash(b.clone()), "{a} {b}");
        }
    }
    assert!(same_content(&json!({"a": {"b": null}}), &json!({})));
    assert!(!same_content(&json!({"a": 1}), &json!({})));
}

/// Any JSON, about as deep as a template.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z\"\\\\é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-e]{1,2}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value with the keys of every object put in the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<_> =
                members.iter().map(|(key, member)| (key.clone(), reversed(member))).collect();
            keys.reverse();
            Value::Object(keys.into_iter().collect())
        }
        Value::Array(elements) => elements.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

/// The same value with something empty added to every object.
fn padded(value: &Value, with: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Map<_, _> =
                members.iter().map(|(key, member)| (key.clone(), padded(member, with))).collect();
            members.insert("zz-empty".to_owned(), with.clone());
            Value::Object(members)
        }
        Value::Array(elements) => elements.iter().map(|element| padded(element, with)).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn key_order_does_not_count(value in any_json()) {
        prop_assert_eq!(of_value(&value), of_value(&reversed(&value)));
    }

    #[test]
    fn empty_is_absent_at_every_level(value in any_json(), which in 0..5_usize) {
        let empty = [json!(null), json!({}), json!([]), json!({"a": {"b": []}}), json!({"a": null})][which].clone();
        prop_assert_eq!(of_value(&value), of_value(&padded(&value, &empty)));
    }

    #[test]
    fn any_other_change_shows(a in any_json(), b in any_json()) {
        let (a, b) = (json!({ "spec": a }), json!({ "spec": b }));
        prop_assert_eq!(normalise(&a) == normalise(&b), of_value(&a) == of_value(&b));
    }

    #[test]
    fn a_changed_leaf_shows(value in any_json(), tag in "[x-z]{1,4}") {
        let with_tag = json!({ "spec": value, "metadata": {"labels": {"tag": tag}} });
        prop_assert_ne!(of_value(&with_tag), of_value(&json!({ "spec": value })));
    }
}
