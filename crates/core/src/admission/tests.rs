//! Bad Workloads, each made from a good one by a small edit, with the exact place and message of every fault.
//!
//! In tables, `$` stands for the spec of the template: `/spec/template/spec` in edits, `spec.template.spec` in paths.

mod containers;
mod environment;
mod guarding;
mod kept;
mod metadata;
mod placements;
mod properties;
mod unreadable;
mod volumes;

use compute_api::{
    k8s_openapi::ByteString,
    labels::TOPOLOGY_CITY_CODE,
    networking::{LocationBinding, LocationBindingSpec},
};
use serde_json::{Value, json};

use super::*;
use crate::{fixtures::stored, location::Offered};

/// An edit, and what is wrong then: where the edit is, the new value (null: none), the path of the fault, and its message.
pub(super) type Row = (&'static str, Value, &'static str, &'static str);

/// A Workload of containers that uses everything.
pub(super) fn good() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "template": {
                "metadata": {
                    "labels": { "app": "web", "example.com/tier": "front" },
                    "annotations": {
                        "note": "any text",
                        "compute.datumapis.com/restartedAt": "2026-05-01T12:00:00Z",
                        "compute.datumapis.com/ssh-keys": format!("root:{} ann@example.com\n", ed25519()),
                    },
                },
                "spec": {
                    "runtime": {
                        "resources": { "instanceType": "datumcloud/d1-standard-2", "requests": { "cpu": "1" } },
                        "sandbox": {
                            "containers": [
                                {
                                    "name": "app",
                                    "image": "docker.io/library/nginx:1.29",
                                    "env": [
                                        { "name": "MODE", "value": "fast" },
                                        { "name": "CONF", "valueFrom": { "configMapKeyRef": { "name": "settings", "key": "mode" } } },
                                        { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "tokens", "key": "token" } } },
                                    ],
                                    "envFrom": [
                                        { "prefix": "CFG_", "configMapRef": { "name": "settings" } },
                                        { "secretRef": { "name": "tokens", "optional": true } },
                                    ],
                                    "ports": [{ "name": "http", "port": 80 }, { "name": "https", "port": 443, "protocol": "TCP" }],
                                    "resources": { "limits": { "cpu": "500m", "memory": "512Mi" }, "requests": { "cpu": "100m" } },
                                    "volumeAttachments": [
                                        { "name": "data", "mountPath": "/data" },
                                        { "name": "files", "mountPath": "/etc/app" },
                                        { "name": "keys", "mountPath": "/etc/keys" },
                                    ],
                                },
                                { "name": "side", "image": "busybox:1" },
                            ],
                            "imagePullSecrets": [{ "name": "registry" }],
                        },
                    },
                    "networkInterfaces": [{ "network": { "name": "default" } }],
                    "volumes": [
                        { "name": "data", "disk": { "template": { "spec": {
                            "type": "pd-standard",
                            "resources": { "requests": { "storage": "10Gi" } },
                            "populator": { "filesystem": { "type": "ext4" } },
                        } } } },
                        { "name": "files", "configMap": { "name": "files", "defaultMode": 420, "items": [{ "key": "a", "path": "conf/a" }] } },
                        { "name": "keys", "secret": { "secretName": "keys" } },
                    ],
                },
            },
            "placements": [
                { "name": "america", "cityCodes": ["DFW", "iad"], "scaleSettings": {
                    "minReplicas": 1, "maxReplicas": 5, "instanceManagementPolicy": "Parallel",
                    "metrics": [{ "resource": { "name": "cpu", "target": { "averageUtilization": 80 } } }],
                } },
                { "name": "europe", "cityCodes": ["LHR"], "scaleSettings": { "minReplicas": 0 } },
            ],
        },
    })
}

/// A Workload of virtual machines.
pub(super) fn machine() -> Value {
    let mut workload = good();
    set(&mut workload, "$/runtime/sandbox", &Value::Null);
    let machine = json!({
        "volumeAttachments": [{ "name": "boot" }, { "name": "data", "mountPath": "/data" }],
        "ports": [{ "name": "ssh", "port": 22 }],
    });
    set(&mut workload, "$/runtime/virtualMachine", &machine);
    let volumes = json!([
        { "name": "boot", "disk": { "template": { "spec": { "populator": { "image": { "name": "debian-13" } } } } } },
        { "name": "data", "disk": { "template": { "spec": { "resources": { "requests": { "storage": "100Gi" } } } } } },
    ]);
    set(&mut workload, "$/volumes", &volumes);
    workload
}

/// A public key as OpenSSH writes it.
pub(super) fn ssh_key(kind: &str, parts: &[&[u8]]) -> String {
    let mut bytes = Vec::new();
    for part in std::iter::once(kind.as_bytes()).chain(parts.iter().copied()) {
        bytes.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
        bytes.extend(part);
    }
    let encoded = serde_json::to_value(ByteString(bytes)).unwrap();
    format!("{kind} {}", encoded.as_str().unwrap())
}

pub(super) fn ed25519() -> String {
    ssh_key("ssh-ed25519", &[&[7; 32]])
}

/// Sets a value, or takes it away if it is null. What is on the way there is made.
pub(super) fn set(object: &mut Value, pointer: &str, value: &Value) {
    let pointer = pointer.replacen('$', "/spec/template/spec", 1);
    let steps: Vec<String> =
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let (last, way) = steps.split_last().unwrap();
    let mut at = object;
    for step in way {
        at = match at {
            Value::Array(list) => &mut list[step.parse::<usize>().unwrap()],
            other => {
                let fields = other.as_object_mut().unwrap();
                fields.entry(step.clone()).or_insert_with(|| json!({}))
            }
        };
    }
    match at {
        Value::Array(list) if last == "-" => list.push(value.clone()),
        Value::Array(list) if value.is_null() => {
            list.remove(last.parse().unwrap());
        }
        Value::Array(list) => list[last.parse::<usize>().unwrap()] = value.clone(),
        other if value.is_null() => {
            other.as_object_mut().unwrap().remove(last);
        }
        other => {
            other.as_object_mut().unwrap().insert(last.clone(), value.clone());
        }
    }
}

/// The object with an edit.
pub(super) fn with(mut object: Value, pointer: &str, value: &Value) -> Value {
    set(&mut object, pointer, value);
    object
}

pub(super) fn offered(cities: &[&str]) -> Offered {
    let bindings: Vec<LocationBinding> = cities
        .iter()
        .map(|city| {
            let spec = LocationBindingSpec {
                topology: [(TOPOLOGY_CITY_CODE.to_owned(), (*city).to_owned())].into(),
                ..LocationBindingSpec::default()
            };
            let status = json!({ "conditions": [crate::fixtures::condition("Available", compute_api::conditions::Status::True, "Offered", "")] });
            LocationBinding {
                metadata: stored("", &city.to_lowercase(), city),
                spec,
                status: Some(serde_json::from_value(status).unwrap()),
            }
        })
        .collect();
    Offered::of(&bindings)
}

/// What a project knows: network `missing` does not exist, `closed` may not be used, nothing called `hidden` may be read, and it is offered
/// three cities.
pub(super) fn facts(needs: &Needs) -> Facts {
    let network = |name: &String| match name.as_str() {
        "missing" => NetworkFact::Missing,
        "closed" => NetworkFact::NotAllowed,
        _ => NetworkFact::Usable,
    };
    Facts {
        networks: needs.networks.iter().map(|name| (name.clone(), network(name))).collect(),
        sources: needs.sources.iter().map(|source| (source.clone(), source.name() != "hidden")).collect(),
        offered: needs.cities.then(|| offered(&["DFW", "IAD", "LHR"])),
    }
}

/// What is wrong with a write, as path and message.
pub(super) fn faults(object: &Value, old: Option<&Value>) -> Vec<(String, String)> {
    let errors = match open(object, old, "default") {
        Opened::Accepted => Vec::new(),
        Opened::Refused(errors) => errors,
        Opened::Case(case) => case.judge(&facts(&case.needs())),
    };
    errors.into_iter().map(|error| (error.path.clone(), error.message())).collect()
}

/// Each edit of a good object gives exactly one fault.
pub(super) fn each(good: &Value, rows: &[Row]) {
    assert_eq!(faults(good, None), []);
    for (pointer, value, path, message) in rows {
        let bad = with(good.clone(), pointer, value);
        let path = path.replacen('$', "spec.template.spec", 1);
        let expected = [(path, (*message).to_owned())];
        assert_eq!(faults(&bad, None), expected, "{pointer} = {value}");
        // An update is judged by the same rules.
        assert_eq!(faults(&bad, Some(good)), expected, "update of {pointer} to {value}");
    }
}

#[test]
fn good_ones_are_accepted() {
    for object in [good(), machine()] {
        assert_eq!(faults(&object, None), []);
        assert_eq!(faults(&object, Some(&with(object.clone(), "/spec/paused", &json!(true)))), []);
    }
    for (pointer, value) in [
        ("/spec/paused", json!(true)),
        ("/spec/placements/1/cityCodes", json!(["lhr"])),
        ("/spec/placements/0/scaleSettings/minReplicas", json!(0)),
        ("/spec/placements/1/scaleSettings/maxReplicas", json!(1000)),
        ("/spec/placements/1/scaleSettings/minReplicas", json!(1000)),
        ("/spec/placements/1/name", json!("0")),
        ("/metadata/name", json!("w".repeat(63))),
        ("/metadata/name", Value::Null),
        ("$/networkInterfaces/0/network/namespace", json!("default")),
        ("$/networkInterfaces/0/network/namespace", json!("")),
        ("$/volumes/0/disk/template/spec/resources/requests/storage", json!("100Gi")),
        ("$/volumes/0/disk/template/spec/resources/requests/storage", json!(11_811_160_064_i64)),
        ("$/runtime/sandbox/containers/0/volumeAttachments/0/mountPath", Value::Null),
        ("$/runtime/sandbox/containers/0/env/0/value", json!("")),
        ("/spec/template/metadata", Value::Null),
        ("/spec/template/metadata/name", json!("")),
        ("/spec/template/metadata/annotations/compute.datumapis.com~1ssh-keys", json!("\n\n")),
    ] {
        assert_eq!(faults(&with(good(), pointer, &value), None), [], "{pointer} = {value}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let mut bad = good();
    for (pointer, value) in [
        ("/metadata/name", json!("w".repeat(64))),
        ("/spec/template/metadata/name", json!("n")),
        ("$/runtime/resources/instanceType", json!("huge")),
        ("$/runtime/sandbox/containers/0/image", json!("")),
        ("$/runtime/sandbox/containers/1/name", json!("app")),
        ("$/runtime/sandbox/containers/0/ports/0/port", json!(0)),
        ("$/networkInterfaces/0/network/name", json!("missing")),
        ("$/volumes/0/disk/template/spec/resources/requests/storage", json!("1Gi")),
        ("/spec/placements/0/cityCodes/1", json!("XYZ")),
        ("/spec/placements/1/scaleSettings/minReplicas", json!(-1)),
    ] {
        set(&mut bad, pointer, &value);
    }
    let paths: Vec<String> = faults(&bad, None).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "metadata.name",
            "spec.template.metadata.name",
            "spec.template.spec.runtime.resources.instanceType",
            "spec.template.spec.runtime.sandbox.containers[0].image",
            "spec.template.spec.runtime.sandbox.containers[0].ports[0].port",
            "spec.template.spec.runtime.sandbox.containers[1].name",
            "spec.template.spec.volumes[0].disk.template.spec.resources.requests[storage]",
            "spec.placements[1].scaleSettings.minReplicas",
            "spec.template.spec.networkInterfaces[0].network.name",
            "spec.placements[0].cityCodes[1]",
        ]
    );
}

#[test]
fn a_refusal_has_the_form_that_clients_know() {
    let mut bad = good();
    set(&mut bad, "$/runtime/sandbox/containers/1/name", &json!("app"));
    let Opened::Case(case) = open(&bad, None, "default") else { panic!("not a case") };
    let errors = case.judge(&facts(&case.needs()));
    let one = invalid(case.name(), &errors);
    assert_eq!((one.code, one.reason), (422, "Invalid"));
    let fault = "spec.template.spec.runtime.sandbox.containers[1].name: Duplicate value: \"app\": each container needs a name of its own";
    assert_eq!(one.message, format!("Workload.compute.datumapis.com \"web\" is invalid: {fault}"));
    assert_eq!(
        one.details,
        json!({
            "name": "web", "group": "compute.datumapis.com", "kind": "Workload",
            "causes": [{
                "reason": "FieldValueDuplicate",
                "message": "Duplicate value: \"app\": each container needs a name of its own",
                "field": "spec.template.spec.runtime.sandbox.containers[1].name",
            }],
        })
    );
    let many: Vec<_> = std::iter::repeat_n(errors[0].clone(), 502).collect();
    let many = invalid("web", &many);
    assert_eq!(many.details["causes"].as_array().unwrap().len(), 500);
    assert!(many.message.ends_with(", and 2 more]"), "{}", many.message);
    assert!(many.message.starts_with("Workload.compute.datumapis.com \"web\" is invalid: [spec."));
}

#[test]
fn what_could_not_be_looked_up_is_refused() {
    let Opened::Case(case) = open(&good(), None, "default") else { panic!("not a case") };
    let errors = case.judge(&Facts::default());
    let of = |start: &str| errors.iter().filter(|error| error.path.starts_with(start)).count();
    assert_eq!((of("spec.placements"), of("spec.template.spec.networkInterfaces")), (3, 1));
    assert!(
        errors.iter().all(|error| error.reason == Reason::Forbidden && error.detail.contains("not known"))
    );
    assert_eq!(errors.len(), 3 + 1 + 7);
}

#[test]
fn defaults_are_filled_in_once() {
    let mut object = good();
    let missing = "/spec/placements/1/scaleSettings/instanceManagementPolicy";
    let filled = defaults::of(&object, None);
    assert_eq!(filled, [defaults::Filled { pointer: missing.to_owned(), value: json!("OrderedReady") }]);
    assert_eq!(filled[0].to_operation(), json!({ "op": "add", "path": missing, "value": "OrderedReady" }));
    for one in filled {
        set(&mut object, &one.pointer, &one.value);
    }
    assert_eq!(defaults::of(&object, None), []);
    set(&mut object, missing, &json!(""));
    assert_eq!(defaults::of(&object, None).len(), 1);
    for odd in [json!({}), json!({ "spec": 7 }), json!({ "spec": { "placements": [7, {}] } }), Value::Null] {
        assert_eq!(defaults::of(&odd, None), []);
    }
    // What does not touch the spec leaves it as it is.
    assert_eq!(defaults::of(&good(), Some(&good())), []);
}
