//! Whatever comes: no panic, an answer, and the same one for the same write.

use proptest::prelude::*;

use super::*;

/// Values that are wrong somewhere, and some that are right.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["DFW", "default", "10Gi", "data", "/data", "app", "a:b", "cpu", ""])
            .prop_map(Value::from),
    ];
    let name =
        prop::sample::select(vec!["name", "image", "network", "containers", "disk", "spec", "value", "x"]);
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// Every place in an object.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let at = format!("{at}/{}", escape(name));
                pointers(value, &at, found);
                found.push(at);
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                let at = format!("{at}/{index}");
                pointers(value, &at, found);
                found.push(at);
            }
        }
        _ => {}
    }
}

/// A good workload with some places changed.
fn mutated() -> impl Strategy<Value = Value> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..5);
    (any::<bool>(), edits).prop_map(|(is_machine, edits)| {
        let mut object = if is_machine { machine() } else { good() };
        for (place, value) in edits {
            let mut places = Vec::new();
            pointers(&object, "", &mut places);
            if places.is_empty() {
                break;
            }
            let place = place.get(&places).clone();
            set(&mut object, &place, &value);
        }
        object
    })
}

proptest! {
    #[test]
    fn anything_gets_an_answer(object in mutated(), old in mutated()) {
        let first = faults(&object, None);
        prop_assert_eq!(&faults(&object, None), &first);
        for (path, message) in first {
            prop_assert!(!message.is_empty(), "{}", path);
        }
        faults(&object, Some(&old));
        defaults::of(&object, Some(&old));
    }

    #[test]
    fn an_update_that_leaves_the_spec_is_accepted(object in mutated(), label in "[a-z]{1,8}") {
        let mut touched = object.clone();
        if touched["metadata"].is_object() {
            touched["metadata"]["labels"] = json!({ "touched": label });
        }
        prop_assert_eq!(faults(&touched, Some(&object)), []);
        prop_assert_eq!(defaults::of(&touched, Some(&object)), []);
    }

    #[test]
    fn what_is_filled_in_is_not_refused(object in mutated()) {
        let mut filled = object.clone();
        for one in defaults::of(&object, None) {
            set(&mut filled, &one.pointer, &one.value);
        }
        prop_assert_eq!(defaults::of(&filled, None), []);
        let policy = |path: &str| path.ends_with("instanceManagementPolicy");
        let refused = faults(&filled, None).into_iter().filter(|(path, message)| policy(path) && message.contains("\"\"")).count();
        prop_assert_eq!(refused, 0);
    }

    #[test]
    fn ssh_keys_of_any_kind(keys in ".{0,200}") {
        let pointer = "/spec/template/metadata/annotations/compute.datumapis.com~1ssh-keys";
        for (_, message) in faults(&with(good(), pointer, &json!(keys)), None) {
            prop_assert!(message.starts_with("Invalid value: line "), "{}", message);
        }
    }
}
