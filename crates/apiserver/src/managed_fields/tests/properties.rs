//! Properties that hold after any sequence of writes by several managers.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::shape::Shape;
use super::super::update::by_sets;
use super::super::{FieldSet, PathElement, Writer, compare, fields_of};
use super::{SCHEMA, by, entries, force, put, thing};

/// One write.
#[derive(Clone, Debug)]
enum Write {
    /// Apply a `spec`, by force or not.
    Apply(&'static str, Value, bool),
    /// Put a `spec`.
    Put(&'static str, Value),
}

const MANAGERS: [&str; 3] = ["m", "n", "o"];

fn small() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!(1)), Just(json!(2)), Just(json!("x"))]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c")]
}

fn fields(of: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(of), small(), 0..=of.len()).prop_map(|map| json!(map))
}

fn open_map<S: Strategy<Value = Value>>(value: S) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), value, 0..3).prop_map(|map| json!(map))
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}

fn ports() -> impl Strategy<Value = Value> {
    let port = (1..3, prop::option::of(prop_oneof![Just("TCP"), Just("UDP")]), prop::option::of(small()));
    prop::collection::vec(port, 0..3).prop_map(|ports| {
        let mut out: Vec<Value> = Vec::new();
        for (port, protocol, name) in ports {
            let mut item = json!({"port": port});
            set(&mut item, "protocol", protocol.map(Value::from));
            set(&mut item, "name", name);
            let id =
                |item: &Value| (item["port"].clone(), item.get("protocol").cloned().unwrap_or(json!("TCP")));
            if !out.iter().any(|other| id(other) == id(&item)) {
                out.push(item);
            }
        }
        json!(out)
    })
}

fn containers() -> impl Strategy<Value = Value> {
    let container = (prop::option::of(small()), prop::option::of(small()), prop::option::of(ports()));
    (prop::collection::btree_map(name(), container, 0..3), any::<bool>()).prop_map(|(items, backwards)| {
        let mut out: Vec<Value> = items
            .into_iter()
            .map(|(name, (image, tty, ports))| {
                let mut item = json!({"name": name});
                set(&mut item, "image", image);
                set(&mut item, "tty", tty);
                set(&mut item, "ports", ports);
                item
            })
            .collect();
        if backwards {
            out.reverse();
        }
        json!(out)
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let maybe = |value: BoxedStrategy<Value>| prop::option::weighted(0.4, value);
    let tags = prop::collection::btree_set(name(), 0..3).prop_map(|tags| json!(tags)).boxed();
    (
        maybe(small().boxed()),
        maybe(containers().boxed()),
        maybe(tags),
        maybe(prop::collection::vec(small(), 0..3).prop_map(Value::from).boxed()),
        maybe(fields(&["a", "b"]).boxed()),
        maybe(open_map(small()).boxed()),
        maybe(open_map(fields(&["x", "y"])).boxed()),
        maybe(fields(&["x", "y"]).boxed()),
        maybe(open_map(prop_oneof![small(), fields(&["x", "y"]), Just(json!([1]))]).boxed()),
    )
        .prop_map(|(replicas, containers, tags, args, config, labels, groups, template, open)| {
            let parts = [
                ("replicas", replicas),
                ("containers", containers),
                ("tags", tags),
                ("args", args),
                ("config", config),
                ("labels", labels),
                ("groups", groups),
                ("template", template),
                ("open", open),
            ];
            let present = parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(present.collect::<Map<_, _>>())
        })
}

fn write() -> impl Strategy<Value = Write> {
    let manager = || prop::sample::select(&MANAGERS[..]);
    prop_oneof![
        3 => (manager(), spec(), any::<bool>()).prop_map(|(manager, spec, force)| Write::Apply(manager, spec, force)),
        1 => (manager(), spec()).prop_map(|(manager, spec)| Write::Put(manager, spec)),
    ]
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    prop::collection::vec(write(), 1..6)
}

/// The live object after the write; a refused one leaves it as it was.
fn run(live: Option<Value>, write: &Write, at: usize) -> Option<Value> {
    let seconds = u8::try_from(at).unwrap();
    match write {
        Write::Put(manager, spec) => Some(put(live.as_ref(), spec.clone(), by(manager, seconds))),
        Write::Apply(manager, spec, true) => {
            Some(force(live.as_ref(), spec.clone(), by(manager, seconds)).object)
        }
        Write::Apply(manager, spec, false) => {
            match super::apply(live.as_ref(), spec.clone(), by(manager, seconds)) {
                Ok(applied) => Some(applied.object),
                Err(_) => live,
            }
        }
    }
}

fn run_all(writes: &[Write]) -> Option<Value> {
    writes.iter().enumerate().fold(None, |live, (at, write)| run(live, write, at))
}

/// The value at a path, found the slow way.
fn at<'a>(value: &'a Value, path: &[PathElement], shape: Shape<'_>) -> Option<&'a Value> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    match first {
        PathElement::Field(name) => at(value.get(name)?, rest, shape.field(name).0),
        PathElement::Index(index) => at(value.get(usize::try_from(*index).ok()?)?, rest, shape.items()),
        PathElement::Key(_) | PathElement::Value(_) => {
            let item = value.as_array()?.iter().find(|item| shape.identity(item).as_ref() == Ok(first))?;
            at(item, rest, shape.items())
        }
    }
}

fn find<'a>(object: &'a Value, path: &[PathElement]) -> Option<&'a Value> {
    at(object, path, Shape::root(&SCHEMA))
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        any::<String>().prop_map(PathElement::Field),
        (any::<String>(), any::<i64>()).prop_map(|(text, number)| {
            PathElement::key(&mut [("b", &json!(text)), ("a", &json!(number))])
        }),
        any::<i32>().prop_map(|number| PathElement::value(&json!(f64::from(number) / 8.0))),
        any::<String>().prop_map(|text| PathElement::value(&json!(text))),
        any::<i64>().prop_map(PathElement::Index),
    ]
}

fn field_set() -> impl Strategy<Value = FieldSet> {
    let few = prop_oneof![name().prop_map(PathElement::field), element()];
    let path = prop::collection::vec(few, 1..5);
    prop::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = FieldSet::new();
        paths.into_iter().for_each(|path| set.insert(path));
        set
    })
}

/// The entries after a put, by way of sets whatever it is.
fn entries_by_sets(live: Option<&Value>, new: &Value, writer: Writer<'_>) -> Option<Value> {
    let stored = live.map(entries).unwrap_or_default();
    let (written, removed) = compare(live.unwrap_or(&Value::Null), new, &SCHEMA).written();
    by_sets(stored, written, &removed, &SCHEMA, &writer)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_quick_way_comes_to_the_same(spec in spec(), writes in writes(), other in spec(), replicas in small()) {
        let created = put(None, spec.clone(), by("m", 0));
        let expected = entries_by_sets(None, &thing(spec), by("m", 0));
        prop_assert_eq!(created["metadata"].get("managedFields"), expected.as_ref());
        let live = writes.iter().enumerate().fold(created, |live, (at, write)| run(Some(live), write, at + 1).unwrap());
        // Only a write that changes something goes either way; one field, which has often an owner already, and many.
        let mut one = live["spec"].clone();
        one["replicas"] = replicas;
        for spec in [one, other] {
            let by = by("m", 9);
            let new = put(Some(&live), spec.clone(), by);
            if compare(&live, &thing(spec.clone()), &SCHEMA).is_empty() || live["metadata"].get("managedFields").is_none() {
                continue;
            }
            let expected = entries_by_sets(Some(&live), &thing(spec), by);
            prop_assert_eq!(new["metadata"].get("managedFields"), expected.as_ref());
        }
    }

    #[test]
    fn fields_v1_round_trips(set in field_set()) {
        let text = set.to_fields_v1().to_string();
        let back = FieldSet::from_fields_v1(&serde_json::from_str(&text).unwrap()).unwrap();
        prop_assert_eq!(back, set);
    }

    #[test]
    fn sets_obey_algebra(a in field_set(), b in field_set()) {
        let mut union = a.clone();
        union.union(b.clone());
        let mut rest = union.clone();
        rest.difference(&b);
        prop_assert!(rest.intersection(&b).is_empty());
        prop_assert!(a.is_superset(&rest));
        rest.union(b.clone());
        prop_assert_eq!(&rest, &union);
        let mut without = a.clone();
        without.subtract(&b);
        let mut shallow = a;
        shallow.difference(&b);
        prop_assert!(shallow.is_superset(&without));
    }

    #[test]
    fn malformed_fields_v1_never_panics(text in "[fkvi.x]:?[a-z0-9{}\\[\\]\":,]{0,12}") {
        let _ = FieldSet::from_fields_v1(&json!({text: {}}));
    }

    #[test]
    fn owned_paths_exist(writes in writes()) {
        let mut live = None;
        for (at, write) in writes.iter().enumerate() {
            live = run(live, write, at);
            let Some(object) = &live else { continue };
            for entry in entries(object) {
                prop_assert!(!entry.fields.is_empty());
                for path in entry.fields.paths() {
                    prop_assert!(
                        find(object, &path).is_some(),
                        "{} owns {} of {}", entry.manager, super::super::path_text(&path), object["spec"]
                    );
                }
            }
        }
    }

    #[test]
    fn second_apply_changes_nothing(writes in writes(), spec in spec()) {
        let live = run_all(&writes);
        let first = force(live.as_ref(), spec.clone(), by("m", 7)).object;
        let second = super::apply(Some(&first), spec, by("m", 9)).unwrap();
        prop_assert!(!second.changed);
        prop_assert_eq!(second.object, first);
    }

    #[test]
    fn second_put_changes_nothing(writes in writes(), spec in spec()) {
        let live = run_all(&writes);
        let first = put(live.as_ref(), spec.clone(), by("m", 7));
        prop_assert_eq!(put(Some(&first), spec, by("n", 9)), first);
    }

    #[test]
    fn forced_apply_is_in_the_object_and_owned(writes in writes(), spec in spec()) {
        let config = thing(spec.clone());
        let object = force(run_all(&writes).as_ref(), spec, by("m", 7)).object;
        let claimed = fields_of(&config, &SCHEMA);
        for path in claimed.paths() {
            let is_leaf = claimed.below(&path).unwrap().children.is_empty();
            let (wanted, got) = (find(&config, &path).unwrap(), find(&object, &path));
            let is_empty = wanted.as_object().is_some_and(Map::is_empty) || wanted.as_array().is_some_and(Vec::is_empty);
            prop_assert!(got.is_some());
            prop_assert!(!is_leaf || is_empty || got == Some(wanted));
        }
        let own = entries(&object).into_iter().find(|entry| entry.is_of(&by("m", 0), super::Operation::Apply));
        prop_assert_eq!(own.map(|entry| entry.fields).unwrap_or_default(), claimed);
    }

    #[test]
    fn an_applied_field_has_no_owner_with_another_value(writes in writes(), spec in spec()) {
        let live = run_all(&writes);
        let before = live.clone().unwrap_or(json!(null));
        let object = force(live.as_ref(), spec, by("m", 7)).object;
        let changes = compare(&before, &object, &SCHEMA);
        for entry in entries(&object) {
            if !entry.is_of(&by("m", 0), super::Operation::Apply) {
                prop_assert!(entry.fields.intersection(&changes.modified).is_empty());
                prop_assert!(entry.fields.intersection(&changes.added).is_empty());
            }
        }
    }

    #[test]
    fn disjoint_configurations_commute(values in prop::collection::vec((small(), small(), small()), 3)) {
        let configs: Vec<_> = values.into_iter().zip(MANAGERS).map(|((a, b, c), who)| {
            let spec = json!({
                "labels": {who: a}, "tags": [who], "groups": {who: {"x": b}}, "open": {who: {"y": c}},
                "containers": [{"name": who, "image": b}],
            });
            (who, spec)
        }).collect();
        let run = |order: [usize; 3]| order.into_iter().fold(None, |live: Option<Value>, at| {
            let (who, spec) = configs[at].clone();
            Some(super::apply(live.as_ref(), spec, by(who, 0)).unwrap().object)
        }).unwrap();
        let first = run([0, 1, 2]);
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let other = run(order);
            prop_assert!(compare(&first, &other, &SCHEMA).is_empty());
            prop_assert_eq!(&first["metadata"], &other["metadata"]);
        }
    }

    #[test]
    fn a_dropped_field_goes_iff_nobody_else_owns_it(writes in writes(), mut spec in spec(), which in 0..5_usize) {
        let (parent, name) = [("", "replicas"), ("labels", "a"), ("template", "x"), ("groups", "a"), ("", "config")][which];
        let (holder, mut path) = if parent.is_empty() {
            (&mut spec, vec![PathElement::field("spec")])
        } else {
            if spec.get(parent).is_none() {
                spec[parent] = json!({});
            }
            (&mut spec[parent], vec![PathElement::field("spec"), PathElement::field(parent)])
        };
        path.push(PathElement::field(name));
        if holder.get(name).is_none() {
            holder[name] = if name == "replicas" || name == "x" { json!(1) } else { json!({}) };
        }
        let live = force(run_all(&writes).as_ref(), spec.clone(), by("m", 7)).object;
        let others = entries(&live).into_iter().filter(|entry| !entry.is_of(&by("m", 0), super::Operation::Apply));
        let is_shared = others.into_iter().any(|entry| entry.fields.contains(&path));

        let holder = if parent.is_empty() { &mut spec } else { &mut spec[parent] };
        holder.as_object_mut().unwrap().remove(name);
        let after = force(Some(&live), spec, by("m", 8)).object;
        prop_assert_eq!(find(&after, &path).is_some(), is_shared);
    }
}
