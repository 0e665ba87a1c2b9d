//! Whatever the schema describes survives a round trip, and whatever it accepts decodes.

use serde_json::{Value, json};

use super::*;
use crate::schema;

mod full;

/// Decodes and encodes again.
fn round_trip<K: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) -> Value {
    let typed: K = serde_json::from_value(value.clone()).expect("it decodes");
    serde_json::to_value(typed).expect("it encodes")
}

/// Paths of properties that the schema describes and none of the values has.
fn unused(path: &str, schema: &Value, values: &[&Value], out: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let below: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
            let path = format!("{path}.{name}");
            if below.is_empty() {
                out.push(path);
            } else {
                unused(&path, property, &below, out);
            }
        }
    }
    if let Some(items) = schema.get("items") {
        let below: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        unused(&format!("{path}[]"), items, &below, out);
    }
}

fn assert_full<K, Spec, Status>(object: &Value)
where
    K: serde::de::DeserializeOwned + serde::Serialize,
    Spec: schemars::JsonSchema,
    Status: schemars::JsonSchema,
{
    let mut missing = Vec::new();
    unused("spec", &schema::of::<Spec>(), &[&object["spec"]], &mut missing);
    unused("status", &schema::of::<Status>(), &[&object["status"]], &mut missing);
    assert!(missing.is_empty(), "the sample lacks {missing:?}");
    assert_eq!(&round_trip::<K>(object), object);
}

#[test]
fn an_object_with_every_field_survives() {
    assert_full::<Workload, WorkloadSpec, WorkloadStatus>(&full::workload());
    assert_full::<WorkloadDeployment, WorkloadDeploymentSpec, WorkloadDeploymentStatus>(&full::deployment());
    assert_full::<Instance, InstanceSpec, InstanceStatus>(&full::instance());
}

#[test]
fn an_object_without_spec_decodes() {
    let bare = json!({"apiVersion": API_VERSION, "kind": "Instance", "metadata": {"name": "a"}});
    let instance: Instance = serde_json::from_value(bare).unwrap();
    assert_eq!(instance.spec, InstanceSpec::default());
    assert_eq!(instance.status, None);
    let bare = json!({"apiVersion": API_VERSION, "kind": "WorkloadDeployment", "metadata": {"name": "a"}, "spec": null});
    let deployment: WorkloadDeployment = serde_json::from_value(bare).unwrap();
    assert_eq!(deployment.spec.scale_settings.instance_management_policy, POLICY_ORDERED_READY);
}

#[test]
fn missing_fields_and_unknown_words_decode() {
    let workload: Workload = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "later": true,
            "template": {"spec": {"runtime": {"sandbox": {"containers": [{}]}}, "volumes": [{"disk": {}}]}},
            "placements": [{"scaleSettings": {"instanceManagementPolicy": "Sideways", "minReplicas": 99_999_999_999_i64}}],
        },
        "status": {"conditions": []},
    }))
    .unwrap();
    let placement = &workload.spec.placements[0];
    assert_eq!(placement.scale_settings.instance_management_policy, "Sideways");
    assert_eq!(placement.scale_settings.min_replicas, 99_999_999_999);
    assert_eq!(workload.spec.template.spec.runtime.sandbox.unwrap().containers.len(), 1);
}

#[test]
fn a_partial_status_names_only_its_own_fields() {
    let status = WorkloadDeploymentStatus { observed_generation: Some(3), ..Default::default() };
    assert_eq!(serde_json::to_value(status).unwrap(), json!({"observedGeneration": 3}));
    assert_eq!(serde_json::to_value(InstanceStatus::default()).unwrap(), json!({}));
    assert_eq!(serde_json::to_value(WorkloadStatus::default()).unwrap(), json!({}));
}

#[test]
fn amounts_stay_as_they_came() {
    let spec =
        json!({"runtime": {"resources": {"instanceType": "t", "requests": {"cpu": 2, "memory": "2Gi"}}}});
    let typed: InstanceSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap()["runtime"], spec["runtime"]);
    assert_eq!(typed.runtime.resources.requests["cpu"].amount().unwrap().millis_ceil(), Some(2000));
}

#[test]
fn gates_and_hashes_are_found() {
    let mut spec = InstanceSpec::default();
    assert!(spec.gates().is_empty() && !spec.has_gate(gates::QUOTA));
    assert_eq!(spec.template_hash(), None);
    spec.controller = Some(InstanceControl {
        template_hash: "v1-x".to_owned(),
        scheduling_gates: vec![SchedulingGate { name: gates::QUOTA.to_owned() }],
    });
    assert!(spec.has_gate(gates::QUOTA) && !spec.has_gate(gates::NETWORK));
    assert_eq!(spec.template_hash(), Some("v1-x"));
}

#[test]
fn template_annotations_are_set_and_read() {
    let mut template = InstanceTemplate::default();
    assert_eq!(template.annotation("a"), None);
    template.set_annotation("a", "b");
    assert_eq!(template.annotation("a"), Some("b"));
}
