//! Server-side apply by several managers, between updates by others: ownership fits the object, the same apply again
//! changes nothing, a conflict writes nothing, and what only one manager had goes when it lets go.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::check;

const MANAGERS: [&str; 3] = ["ann", "bob", "carl"];

/// What a manager wants of a widget.
#[derive(Clone, Debug)]
struct Wanted {
    replicas: u8,
    color: Option<u8>,
    parts: Option<BTreeMap<u8, Option<u8>>>,
    labels: Option<BTreeMap<u8, u8>>,
    finalizers: Option<BTreeSet<u8>>,
    /// A field that widgets do not have.
    unknown: bool,
}

impl Wanted {
    fn config(&self) -> Value {
        let mut spec = json!({ "replicas": self.replicas });
        if let Some(color) = self.color {
            spec["color"] = json!(format!("color-{color}"));
        }
        if let Some(parts) = &self.parts {
            let part = |(name, weight): (&u8, &Option<u8>)| match weight {
                Some(weight) => json!({ "name": format!("part-{name}"), "weight": weight }),
                None => json!({ "name": format!("part-{name}") }),
            };
            spec["parts"] = parts.iter().map(part).collect();
        }
        if self.unknown {
            spec["unknown"] = json!({ "a": 1 });
        }
        let mut metadata = Map::from_iter([("name".to_owned(), json!("w"))]);
        if let Some(labels) = &self.labels {
            let labels = labels.iter().map(|(key, value)| (format!("l{key}"), json!(format!("v{value}"))));
            metadata.insert("labels".to_owned(), Value::Object(labels.collect()));
        }
        if let Some(finalizers) = &self.finalizers {
            let finalizers = finalizers.iter().map(|finalizer| json!(format!("e.io/f{finalizer}")));
            metadata.insert("finalizers".to_owned(), finalizers.collect());
        }
        json!({ "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": metadata, "spec": spec })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Apply { manager: usize, wanted: Wanted, force: bool },
    ApplyStatus { manager: usize, phase: Option<u8>, replicas: Option<u8> },
    Merge { manager: usize, wanted: Wanted },
    Replace { wanted: Wanted },
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let option = || proptest::option::of(0..3u8);
    let parts = proptest::option::of(proptest::collection::btree_map(0..4u8, option(), 0..4));
    let labels = proptest::option::of(proptest::collection::btree_map(0..3u8, 0..2u8, 0..3));
    let finalizers = proptest::option::of(proptest::collection::btree_set(0..3u8, 0..3));
    let unknown = proptest::bool::weighted(0.1);
    (0..2u8, option(), parts, labels, finalizers, unknown).prop_map(
        |(replicas, color, parts, labels, finalizers, unknown)| Wanted {
            replicas,
            color,
            parts,
            labels,
            finalizers,
            unknown,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let manager = || 0..MANAGERS.len();
    let option = || proptest::option::of(0..3u8);
    prop_oneof![
        6 => (manager(), wanted(), any::<bool>())
            .prop_map(|(manager, wanted, force)| Step::Apply { manager, wanted, force }),
        2 => (manager(), option(), option())
            .prop_map(|(manager, phase, replicas)| Step::ApplyStatus { manager, phase, replicas }),
        2 => (manager(), wanted()).prop_map(|(manager, wanted)| Step::Merge { manager, wanted }),
        1 => wanted().prop_map(|wanted| Step::Replace { wanted }),
    ]
}

type Path = Vec<String>;

/// What an element of an ownership path leads to.
fn step_into<'a>(object: &'a Value, element: &str) -> Option<&'a Value> {
    let (kind, rest) = element.split_at(2);
    match kind {
        "f:" => object.get(rest),
        "v:" => {
            let value: Value = serde_json::from_str(rest).unwrap();
            object.as_array()?.iter().find(|item| **item == value)
        }
        "k:" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).unwrap();
            object
                .as_array()?
                .iter()
                .find(|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)))
        }
        _ => panic!("unknown element {element}"),
    }
}

fn present(object: &Value, path: &[String]) -> bool {
    path.iter().try_fold(object, |value, element| step_into(value, element)).is_some()
}

/// Every owned path of an entry, as text; fails where the object does not have it.
fn owned(fields: &Value, object: &Value, at: &Path, into: &mut BTreeSet<Path>) {
    for (element, below) in fields.as_object().unwrap() {
        let mut path = at.clone();
        if element == "." {
            into.insert(path);
            continue;
        }
        path.push(element.clone());
        let found = step_into(object, element).unwrap_or_else(|| panic!("{path:?} is owned but absent"));
        if below.as_object().unwrap().is_empty() {
            into.insert(path);
        } else {
            owned(below, found, &path, into);
        }
    }
}

type Owners = BTreeMap<(String, String, String), BTreeSet<Path>>;

/// Who owns what, by manager, operation and subresource.
fn owners(object: &Value) -> Owners {
    let mut all = Owners::new();
    for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let mut paths = BTreeSet::new();
        owned(&entry["fieldsV1"], object, &Path::new(), &mut paths);
        assert!(!paths.is_empty(), "an entry without fields: {entry}");
        let doubled = all.insert((text("manager"), text("operation"), text("subresource")), paths);
        assert!(doubled.is_none(), "two entries of one writer: {entry}");
    }
    all
}

/// Everything of the configuration is in the object, but for what the kind does not have.
fn contains(object: &Value, config: &Value, path: &str) {
    match config {
        Value::Object(fields) => {
            let known = fields.iter().filter(|(key, _)| key.as_str() != "unknown");
            known.for_each(|(key, value)| contains(&object[key], value, &format!("{path}.{key}")));
        }
        Value::Array(items) => {
            for item in items {
                let same = |found: &&Value| {
                    if item.is_object() { found["name"] == item["name"] } else { *found == item }
                };
                let found = object.as_array().and_then(|items| items.iter().find(same));
                contains(found.unwrap_or(&Value::Null), item, &format!("{path}[{item}]"));
            }
        }
        value => assert_eq!(object, value, "{path}"),
    }
}

async fn get(api: &Api<DynamicObject>) -> Value {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.first().map_or(Value::Null, |object| serde_json::to_value(object).unwrap())
}

async fn apply(api: &Api<DynamicObject>, manager: usize, config: &Value, force: bool, status: bool) {
    let before = get(api).await;
    let params = PatchParams { force, ..PatchParams::apply(MANAGERS[manager]) };
    let send = async || {
        let patch = Patch::Apply(config);
        let sent = if status {
            api.patch_status("w", &params, &patch).await
        } else {
            api.patch("w", &params, &patch).await
        };
        sent.map(|object| serde_json::to_value(object).unwrap())
    };
    let after = match send().await {
        Err(kube::Error::Api(error)) => {
            let absent = status && before.is_null() && error.code == 404;
            assert!(absent || (error.code == 409 && !force), "{error:?}");
            assert_eq!(get(api).await, before, "a refused apply writes nothing");
            return;
        }
        sent => sent.unwrap(),
    };
    assert_eq!(get(api).await, after);
    contains(&after, config, "");
    assert_eq!(send().await.unwrap(), after, "the same apply again changes nothing");

    let subresource = if status { "status" } else { "" };
    let own = (MANAGERS[manager].to_owned(), "Apply".to_owned(), subresource.to_owned());
    let (held, holds) = (owners(&before), owners(&after));
    let others = held.iter().filter(|(who, _)| **who != own).map(|(_, paths)| paths);
    let kept: BTreeSet<&Path> = holds.values().chain(others).flatten().collect();
    // An empty map is owned itself; one with entries through them.
    let is_kept = |path: &Path| kept.iter().any(|kept| kept.starts_with(path));
    for path in held.get(&own).into_iter().flatten().filter(|path| !is_kept(path)) {
        assert!(!present(&after, path), "{path:?} was {}'s alone and is still there", own.0);
    }
}

async fn run(client: Client, steps: Vec<Step>) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("test.example.com", "v1", "Widget"));
    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    for step in steps {
        match step {
            Step::Apply { manager, wanted, force } => {
                apply(&api, manager, &wanted.config(), force, false).await
            }
            Step::ApplyStatus { manager, phase, replicas } => {
                let mut status = Map::new();
                status.extend(phase.map(|phase| ("phase".to_owned(), json!(format!("p{phase}")))));
                status.extend(replicas.map(|replicas| ("replicas".to_owned(), json!(replicas))));
                let config =
                    json!({ "apiVersion": "test.example.com/v1", "kind": "Widget", "status": status });
                apply(&api, manager, &config, true, true).await;
            }
            Step::Merge { manager, wanted } => {
                let params = PatchParams {
                    field_manager: Some(MANAGERS[manager].to_owned()),
                    ..PatchParams::default()
                };
                let patched = api.patch("w", &params, &Patch::Merge(&wanted.config())).await;
                assert!(patched.is_ok() || get(&api).await.is_null());
            }
            Step::Replace { wanted } => {
                let mut next = get(&api).await;
                if next.is_null() {
                    continue;
                }
                next["spec"] = wanted.config()["spec"].clone();
                let next: DynamicObject = serde_json::from_value(next).unwrap();
                api.replace("w", &PostParams::default(), &next).await.unwrap();
            }
        }
        let object = get(&api).await;
        if !object.is_null() {
            owners(&object);
        }
    }
}

#[test]
fn ownership_fits_the_object_and_apply_is_idempotent() {
    check(200, proptest::collection::vec(step(), 1..14), run);
}
