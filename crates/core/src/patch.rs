//! Merge patches: what turns one value into another, and no more.
//!
//! # Guarantees
//!
//! Applied to `from` as RFC 7386 has it, the patch of two values gives `to`; the patch of two equal values is `{}`. A list that differs is
//! replaced as a whole, so that nothing which somebody else has put into it stays.

use serde_json::{Map, Value};

/// What turns `from` into `to`. `{}` if nothing does.
pub fn between(from: &Value, to: &Value) -> Value {
    merge(from, to).unwrap_or_else(|| Value::Object(Map::new()))
}

/// Whether a patch changes nothing.
pub fn is_empty(patch: &Value) -> bool {
    patch.as_object().is_some_and(Map::is_empty)
}

fn merge(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return Some(to.clone()) };
    let gone = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = to.iter().filter_map(|(key, value)| {
        // What is new is merged into nothing: a null within it would not be stored anyway.
        let patch = from.get(key).map_or_else(|| Some(value.clone()), |held| merge(held, value));
        Some((key.clone(), patch?))
    });
    Some(gone.chain(changed).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// RFC 7386.
    fn apply(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = if let Value::Object(target) = target { target } else { Map::new() };
        for (key, value) in patch {
            match value {
                Value::Null => {
                    target.remove(key);
                }
                value => {
                    let held = target.remove(key).unwrap_or(Value::Null);
                    target.insert(key.clone(), apply(held, value));
                }
            }
        }
        Value::Object(target)
    }

    #[test]
    fn only_what_differs_is_named() {
        let from = json!({ "a": 1, "b": { "c": [1, 2], "d": "x" }, "e": {} });
        let to = json!({ "a": 1, "b": { "c": [2], "f": true } });
        assert_eq!(between(&from, &to), json!({ "b": { "c": [2], "d": null, "f": true }, "e": null }));
        assert!(is_empty(&between(&to, &to)));
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..4).prop_map(Value::from)];
        let value = leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
            ]
        });
        prop::collection::btree_map("[a-c]", value, 0..4).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn a_patch_leads_where_it_should(from in object(), to in object()) {
            let patch = between(&from, &to);
            prop_assert_eq!(&apply(from, &patch), &to);
            prop_assert!(is_empty(&between(&to, &to)));
        }
    }
}
