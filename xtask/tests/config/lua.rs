//! The scripts that tell Karmada how to treat a WorkloadDeployment, run as Karmada runs them, against what `compute_core` decides for the
//! same objects.
//!
//! Karmada's Lua is 5.1 with the libraries package, base, table, string, math and os; what can reach around the rules of the language is
//! taken away. Objects come in with nulls left out. On the way back an empty table in a table is dropped, since it may have been a list or
//! a map; an empty status as a whole is `{}`.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::compute::WorkloadDeployment;
use compute_core::propagation::{self, member};
use compute_core::rollup;
use mlua::{Lua, LuaOptions, LuaSerdeExt as _, SerializeOptions, StdLib};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::object;

const FILE: &str = "config/base/federation/resource_interpreter.yaml";
/// What Karmada takes away.
const FORBIDDEN: [&str; 14] = [
    "collectgarbage",
    "dofile",
    "getfenv",
    "getmetatable",
    "load",
    "loadfile",
    "loadstring",
    "rawequal",
    "rawget",
    "rawset",
    "setfenv",
    "setmetatable",
    "module",
    "newproxy",
];

/// The scripts by operation.
fn scripts() -> BTreeMap<String, String> {
    let customizations = object(FILE)["spec"]["customizations"].take();
    let customizations = customizations.as_object().unwrap().clone();
    let script = |value: &Value| value["luaScript"].as_str().unwrap().to_owned();
    customizations.iter().map(|(name, value)| (name.clone(), script(value))).collect()
}

/// One interpreter, as Karmada pools them: all scripts have been run in it.
struct Interpreter(Lua);

impl Interpreter {
    fn new() -> Self {
        let libraries = StdLib::PACKAGE | StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default()).unwrap();
        for name in FORBIDDEN {
            lua.load(format!("function {name}() error('{name} is not supported') end")).exec().unwrap();
        }
        for script in scripts().values() {
            lua.load(script).exec().unwrap();
        }
        Self(lua)
    }

    fn call(&self, function: &str, arguments: &[&Value]) -> Value {
        let options = SerializeOptions::new()
            .set_array_metatable(false)
            .serialize_none_to_null(false)
            .serialize_unit_to_null(false);
        let function: mlua::Function = self.0.globals().get(function).unwrap();
        let arguments: mlua::Variadic<mlua::Value> =
            arguments.iter().map(|value| self.0.to_value_with(value, options).unwrap()).collect();
        let result: mlua::Value = function.call(arguments).unwrap();
        let result: Value = self.0.from_value(result).unwrap();
        whole(&result)
    }

    fn reflect(&self, observed: &Value) -> Value {
        without_empty(&self.call("ReflectStatus", &[observed]))
    }

    fn aggregate(&self, desired: &Value, items: &Value) -> Value {
        without_empty(&self.call("AggregateStatus", &[desired, items]))
    }
}

/// Numbers without a fraction as integers.
fn whole(value: &Value) -> Value {
    match value {
        #[expect(clippy::cast_possible_truncation, reason = "the numbers of these tests are small")]
        Value::Number(number) => json!(number.as_f64().unwrap() as i64),
        Value::Array(entries) => entries.iter().map(whole).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), whole(value))).collect(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Without empty tables in tables.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Array(entries) => entries.iter().map(without_empty).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .filter(|(_, value)| !is_empty(value))
            .collect(),
        other => other.clone(),
    }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": "web", "namespace": "ns-1", "uid": "hub", "generation": 3 },
        "spec": { "cityCode": "DFW", "template": { "spec": {} } },
    })
}

/// The copy of [`deployment`] in a cell.
fn in_cell(status: Option<Value>) -> Value {
    let mut object = deployment();
    object["metadata"]["uid"] = json!("cell");
    object["metadata"]["annotations"] = json!({ member::ORIGIN_UID: "hub" });
    object["metadata"]["labels"] = json!({ member::MANAGED_LABEL: "true" });
    if let Some(status) = status {
        object["status"] = status;
    }
    object
}

fn being_deleted(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object
}

fn status() -> Value {
    json!({
        "replicas": 2, "readyReplicas": 1, "observedGeneration": 3, "selector": "a=b", "location": { "name": "dfw" },
        "conditions": [{
            "type": "Available", "status": "True", "reason": "StableInstanceFound", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    })
}

#[test]
fn karmada_is_told_what_it_needs_and_no_more() {
    let scripts = scripts();
    let names: Vec<_> = scripts.keys().map(String::as_str).collect();
    // With replicaResource Karmada would divide replicas among cells.
    let wanted = [
        "dependencyInterpretation",
        "healthInterpretation",
        "retention",
        "statusAggregation",
        "statusReflection",
    ];
    assert_eq!(names, wanted);
    let target = object(FILE)["spec"]["target"].take();
    assert_eq!(
        target,
        json!({ "apiVersion": compute_api::compute::API_VERSION, "kind": "WorkloadDeployment" })
    );
    for (name, script) in scripts {
        assert!(!script.contains("require"), "{name} needs nothing");
        assert_eq!(
            script.matches("\nfunction ").count() + usize::from(script.starts_with("function ")),
            1,
            "{name}"
        );
    }
}

#[test]
fn what_a_cell_reports_is_reflected_as_core_has_it() {
    let lua = Interpreter::new();
    let mut hub = deployment();
    hub["status"] = json!({ "replicas": 9 });
    for (case, object) in [
        ("normal", in_cell(Some(status()))),
        ("with something new", in_cell(Some(json!({ "future": [{ "a": true }] })))),
        ("being deleted", being_deleted(in_cell(Some(status())))),
        ("being deleted, never reported", being_deleted(in_cell(None))),
        ("nothing said", in_cell(Some(json!({})))),
    ] {
        assert_eq!(Some(lua.reflect(&object)), member::reflected(&hub, &object), "{case}");
    }
    // Karmada takes a table and nothing else; a cell that has not reported yet gives an empty one.
    assert_eq!(lua.reflect(&in_cell(None)), json!({}));
    let mut empty_parts = status();
    empty_parts["conditions"] = json!([]);
    let mut wanted = status();
    wanted.as_object_mut().unwrap().remove("conditions");
    assert_eq!(lua.reflect(&in_cell(Some(empty_parts))), wanted);
}

#[test]
fn the_status_of_one_cell_is_copied() {
    let lua = Interpreter::new();
    let mut hub = deployment();
    hub["status"] = json!({ "replicas": 9 });
    let with = |status: Value| {
        let mut object = deployment();
        object["status"] = status;
        without_empty(&object)
    };
    let item = |status: Value| json!([{ "clusterName": "cell-dfw", "applied": true, "status": status }]);
    for (case, items, wanted) in [
        ("normal", item(status()), with(status())),
        ("no items", json!([]), with(json!({ "replicas": 9 }))),
        ("no items at all", Value::Null, with(json!({ "replicas": 9 }))),
        ("not reported", json!([{ "clusterName": "cell-dfw" }]), with(json!({ "replicas": 9 }))),
        ("null", item(Value::Null), with(json!({ "replicas": 9 }))),
        ("being deleted in the cell", item(json!({})), with(json!({}))),
    ] {
        assert_eq!(lua.aggregate(&hub, &items), wanted, "{case}");
    }
    let gone = being_deleted(hub);
    let mut wanted = without_empty(&gone);
    wanted.as_object_mut().unwrap().remove("status");
    assert_eq!(lua.aggregate(&gone, &item(status())), wanted, "being deleted on the hub");
    assert_eq!(lua.aggregate(&deployment(), &json!([])), without_empty(&deployment()), "never reported");
}

#[test]
fn health_is_availability_of_what_is_wanted_now() {
    let lua = Interpreter::new();
    let healthy = in_cell(Some(status()));
    let with = |pointer: &str, value: Value| {
        let mut object = healthy.clone();
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let upstream = |generation: &str| {
        let mut object = healthy.clone();
        object["metadata"]["annotations"]["compute.datumapis.com/upstream-generation"] = json!(generation);
        object
    };
    for (case, object, wanted) in [
        ("normal", healthy.clone(), true),
        ("not available", with("/status/conditions/0/status", json!("False")), false),
        ("unknown", with("/status/conditions/0/status", json!("Unknown")), false),
        ("of an earlier spec", with("/metadata/generation", json!(4)), false),
        ("says nothing", with("/status/conditions", json!([])), false),
        ("another condition", with("/status/conditions/0/type", json!("NetworkReady")), false),
        ("no status", in_cell(None), false),
        ("the project's generation", upstream("3"), true),
        ("an earlier one of the project", upstream("7"), false),
        ("a generation that is none", upstream("x"), true),
    ] {
        assert_eq!(lua.call("InterpretHealth", &[&object]), json!(wanted), "{case}");
        // The same generation that cells report by.
        let typed: WorkloadDeployment = serde_json::from_value(object.clone()).unwrap();
        let reported = typed.status.as_ref().and_then(|status| status.observed_generation);
        let is_current = reported.is_some() && reported == rollup::deployment::observed_generation(&typed);
        assert!(is_current || !wanted, "{case}");
    }
}

#[test]
fn replicas_are_retained_as_core_has_it() {
    let lua = Interpreter::new();
    for on_hub in [None, Some(0), Some(2)] {
        for in_the_cell in [None, Some(0), Some(5)] {
            let mut hub = deployment();
            let mut cell = in_cell(Some(status()));
            // Something to update, so that core says what it would write.
            cell["spec"]["cityCode"] = json!("OLD");
            if let Some(replicas) = on_hub {
                hub["spec"]["replicas"] = json!(replicas);
            }
            if let Some(replicas) = in_the_cell {
                cell["spec"]["replicas"] = json!(replicas);
            }
            let member::Step::Update(wanted) = member::decide(Some(&hub), Some(&cell)) else {
                panic!("no update")
            };
            let retained = lua.call("Retain", &[&hub, &cell]);
            assert_eq!(
                retained["spec"].get("replicas"),
                wanted["spec"].get("replicas"),
                "{on_hub:?} {in_the_cell:?}"
            );
            assert_eq!(retained["spec"]["cityCode"], "DFW", "all else is the hub's");
        }
    }
    let bare = json!({ "metadata": { "name": "web" } });
    assert_eq!(lua.call("Retain", &[&bare, &bare]), bare);
}

/// What Karmada carries along: kind, namespace, name.
fn dependencies(lua: &Interpreter, object: &Value) -> Vec<(String, String, String)> {
    let found = lua.call("GetDependencies", &[object]);
    let Value::Array(found) = found else {
        assert_eq!(found, json!({}), "a list, or nothing");
        return Vec::new();
    };
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    found
        .iter()
        .map(|entry| {
            assert_eq!(entry["apiVersion"], "v1");
            (text(entry, "kind"), text(entry, "namespace"), text(entry, "name"))
        })
        .collect()
}

/// What core would carry along.
fn wanted(object: &Value) -> BTreeSet<(String, String, String)> {
    let typed: WorkloadDeployment = serde_json::from_value(object.clone()).unwrap();
    let sources = propagation::dependencies(&typed);
    sources
        .iter()
        .map(|source| (source.kind().to_owned(), "ns-1".to_owned(), source.companion_name()))
        .collect()
}

#[test]
fn nothing_follows_what_names_nothing() {
    let lua = Interpreter::new();
    let mut bare = deployment();
    bare.as_object_mut().unwrap().remove("spec");
    let vm = json!({ "runtime": { "virtualMachine": {} }, "volumes": [{ "name": "disk", "disk": {} }] });
    let mut machine = deployment();
    machine["spec"]["template"]["spec"] = vm;
    for object in [bare, deployment(), being_deleted(deployment()), machine] {
        assert_eq!(dependencies(&lua, &object), []);
    }
}

fn source() -> impl Strategy<Value = Value> {
    let optional = prop_oneof![Just(Value::Null), Just(json!(true)), Just(json!(false))];
    ("[ab]{0,2}", optional).prop_map(|(name, optional)| {
        let mut source = json!({ "name": name });
        if !optional.is_null() {
            source["optional"] = optional;
        }
        source
    })
}

fn container() -> impl Strategy<Value = Value> {
    let variable = prop_oneof![
        Just(json!({ "name": "A", "value": "plain" })),
        source().prop_map(|source| json!({ "name": "A", "valueFrom": { "configMapKeyRef": source } })),
        source().prop_map(|source| json!({ "name": "A", "valueFrom": { "secretKeyRef": source } })),
    ];
    let from = prop_oneof![
        source().prop_map(|source| json!({ "configMapRef": source })),
        source().prop_map(|source| json!({ "secretRef": source })),
    ];
    (prop::collection::vec(variable, 0..3), prop::collection::vec(from, 0..3))
        .prop_map(|(env, env_from)| json!({ "name": "app", "image": "i", "env": env, "envFrom": env_from }))
}

fn volume() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "name": "v", "disk": {} })),
        source().prop_map(|source| json!({ "name": "v", "configMap": source })),
        source().prop_map(|mut source| {
            source["secretName"] = source["name"].take();
            source.as_object_mut().unwrap().remove("name");
            json!({ "name": "v", "secret": source })
        }),
    ]
}

proptest! {
    #[test]
    fn what_follows_is_what_core_says(
        containers in prop::collection::vec(container(), 0..3),
        pulls in prop::collection::vec("[ab]{0,2}", 0..3),
        volumes in prop::collection::vec(volume(), 0..4),
    ) {
        let pulls: Vec<_> = pulls.iter().map(|name| json!({ "name": name })).collect();
        let mut object = deployment();
        object["spec"]["template"]["spec"] = json!({
            "runtime": { "sandbox": { "containers": containers, "imagePullSecrets": pulls } }, "volumes": volumes,
        });
        let found = dependencies(&Interpreter::new(), &object);
        let unique: BTreeSet<_> = found.iter().cloned().collect();
        prop_assert_eq!(found.len(), unique.len(), "nothing is named twice");
        let mut sorted = found.clone();
        sorted.sort();
        prop_assert_eq!(&sorted, &found, "the order is always the same");
        prop_assert_eq!(unique, wanted(&object));
    }
}
