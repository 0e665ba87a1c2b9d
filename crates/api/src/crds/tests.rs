//! The definitions are what an API server takes, and say what the contract says.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

fn all() -> Vec<CustomResourceDefinition> {
    ours().into_iter().chain(foreign()).collect()
}

fn definition(kind: &str) -> Value {
    let found = all()
        .into_iter()
        .find(|definition| definition.spec.names.kind == kind)
        .expect("there is such a kind");
    serde_json::to_value(found).unwrap()
}

/// The schema at a path of property names; `[]` steps into a list.
fn at(kind: &str, path: &str) -> Value {
    let mut schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    for step in path.split('.') {
        schema = match step {
            "[]" => schema["items"].take(),
            name => schema["properties"][name].take(),
        };
        assert!(!schema.is_null(), "{kind} has no {path}");
    }
    schema
}

/// Calls `look` with every schema and its path.
fn walk(path: &str, schema: &Value, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, look);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(below) {
            walk(&format!("{path}.[]"), inner, look);
        }
    }
}

#[test]
fn schemas_are_structural() {
    for definition in all() {
        let kind = definition.spec.names.kind.clone();
        let root =
            serde_json::to_value(&definition.spec.versions[0].schema).unwrap()["openAPIV3Schema"].take();
        walk(&kind, &root, &mut |path, schema| {
            for banned in ["$ref", "nullable", "title", "x-default", "oneOf", "allOf", "not"] {
                assert!(schema.get(banned).is_none(), "{path} has {banned}");
            }
            let int_or_string = schema["x-kubernetes-int-or-string"] == true;
            assert!(int_or_string != schema["type"].is_string(), "{path}: {schema}");
            assert!(int_or_string || schema.get("anyOf").is_none(), "{path}");
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(schema["properties"].get(required.as_str().unwrap()).is_some(), "{path}: {required}");
            }
            if schema["type"] == "array" {
                assert!(schema["items"].is_object(), "{path}");
            }
            for key in schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
                let required = schema["items"]["required"].as_array().expect("map keys are required");
                assert!(required.contains(key), "{path}");
            }
        });
    }
}

#[test]
fn nothing_that_the_types_say_is_lost_on_the_way() {
    let said = schema::of::<compute::WorkloadSpec>();
    let mut kept = at("Workload", "spec");
    // Limits are held as floats.
    whole_numbers(&mut kept);
    assert_eq!(kept, said);
}

fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => *value = json!(number.as_f64().unwrap() as i64),
        Value::Array(elements) => elements.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

#[test]
fn a_template_gets_no_new_defaults() {
    let allowed: BTreeSet<&str> = [
        ".spec.runtime.sandbox.containers.[].env.[].valueFrom.configMapKeyRef.name",
        ".spec.runtime.sandbox.containers.[].env.[].valueFrom.secretKeyRef.name",
        ".spec.volumes.[].configMap.name",
        ".spec.volumes.[].disk.template.spec.type",
    ]
    .into();
    for kind in ["Workload", "WorkloadDeployment"] {
        let mut found = BTreeSet::new();
        walk("", &at(kind, "spec.template"), &mut |path, schema| {
            if schema.get("default").is_some() {
                found.insert(path.to_owned());
            }
        });
        assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), allowed, "{kind}");
    }
}

#[test]
fn our_conditions_are_maps_by_type() {
    for (kind, path) in [
        ("Workload", "status.conditions"),
        ("Workload", "status.placements.[].conditions"),
        ("WorkloadDeployment", "status.conditions"),
        ("Instance", "status.conditions"),
    ] {
        let schema = at(kind, path);
        assert_eq!(schema["x-kubernetes-list-type"], "map", "{kind} {path}");
        assert_eq!(schema["x-kubernetes-list-map-keys"], json!(["type"]), "{kind} {path}");
    }
}

#[test]
fn unseen_objects_say_that_they_wait() {
    let defaults = |kind: &str| -> Vec<(String, String, String)> {
        let status = at(kind, "status");
        let conditions = status["default"]["conditions"].as_array().cloned().unwrap();
        let text = |condition: &Value, key: &str| condition[key].as_str().unwrap().to_owned();
        conditions
            .iter()
            .map(|condition| {
                assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:00Z");
                assert_eq!(condition["message"], "Waiting for controller");
                (text(condition, "type"), text(condition, "status"), text(condition, "reason"))
            })
            .collect()
    };
    let expected = |pairs: &[(&str, &str)]| -> Vec<_> {
        pairs
            .iter()
            .map(|(type_, reason)| (type_.to_string(), "Unknown".to_owned(), reason.to_string()))
            .collect()
    };
    assert_eq!(defaults("Workload"), expected(&[("Available", "Pending")]));
    assert_eq!(defaults("WorkloadDeployment"), expected(&[("Available", "Pending")]));
    assert_eq!(
        defaults("Instance"),
        expected(&[
            ("Programmed", "Pending"),
            ("Available", "Pending"),
            ("Ready", "Pending"),
            ("QuotaGranted", "PendingEvaluation"),
        ])
    );
}

#[test]
fn counts_are_optional_and_start_at_zero() {
    for (kind, path) in
        [("Workload", "status"), ("Workload", "status.placements.[]"), ("WorkloadDeployment", "status")]
    {
        for count in ["replicas", "currentReplicas", "updatedReplicas", "desiredReplicas", "readyReplicas"] {
            assert_eq!(at(kind, &format!("{path}.{count}"))["default"], 0, "{kind} {path} {count}");
        }
        assert_ne!(at(kind, &format!("{path}.observedGeneration"))["default"], 0);
    }
    assert_eq!(at("WorkloadDeployment", "status").get("required"), None);
    assert_eq!(at("Workload", "status.placements.[]")["required"], json!(["name"]));
}

#[test]
fn subresources_columns_and_contexts() {
    let version = |kind: &str| definition(kind)["spec"]["versions"][0].take();
    assert_eq!(
        version("WorkloadDeployment")["subresources"],
        json!({
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        })
    );
    for kind in ["Workload", "Instance"] {
        assert_eq!(version(kind)["subresources"], json!({"status": {}}));
    }
    let column = |kind: &str, name: &str| {
        let columns = version(kind)["additionalPrinterColumns"].take();
        columns.as_array().unwrap().iter().find(|column| column["name"] == name).cloned().unwrap()
    };
    for kind in ["Workload", "WorkloadDeployment"] {
        assert_eq!(column(kind, "Up-to-date")["jsonPath"], ".status.updatedReplicas");
    }
    assert_eq!(column("Instance", "Quota")["priority"], 1);
    for definition in ours() {
        let annotations = definition.metadata.annotations.unwrap();
        assert_eq!(annotations["discovery.miloapis.com/parent-contexts"], "Project");
    }
}

#[test]
fn files_read_as_the_definitions_they_are_made_from() {
    let files = files();
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "compute.datumapis.com_instances.yaml",
            "compute.datumapis.com_workloaddeployments.yaml",
            "compute.datumapis.com_workloads.yaml",
            "kustomization.yaml",
        ]
    );
    for (definition, (name, text)) in ours().iter().zip(&files) {
        let read: CustomResourceDefinition = serde_saphyr::from_str(text).unwrap();
        assert_eq!(&read, definition, "{name}");
    }
    assert_eq!(files, super::files());
}
