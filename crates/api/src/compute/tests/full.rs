//! One object of each kind that uses every field of its schema.

use serde_json::{Value, json};

fn conditions() -> Value {
    json!([{
        "type": "Available",
        "status": "True",
        "reason": "StableInstanceFound",
        "message": "2 of 2 instances are ready",
        "observedGeneration": 7,
        "lastTransitionTime": "2026-05-01T12:00:00Z",
    }])
}

fn metadata() -> Value {
    json!({
        "name": "n",
        "namespace": "ns",
        "labels": {"app": "web"},
        "annotations": {"compute.datumapis.com/restartedAt": "2026-05-01T12:00:00Z"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1"}],
    })
}

fn scale_settings() -> Value {
    json!({
        "minReplicas": 2,
        "maxReplicas": 5,
        "instanceManagementPolicy": "Parallel",
        "metrics": [
            {"resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
            {"resource": {"name": "memory", "target": {"averageValue": "1Gi", "value": 4}}},
        ],
    })
}

fn container() -> Value {
    json!({
        "name": "app",
        "image": "registry.example.com/app:1",
        "command": ["/app"],
        "args": ["--verbose"],
        "env": [
            {"name": "PLAIN", "value": ""},
            {"name": "CONFIG", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode", "optional": true}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "", "key": "token", "optional": false}}},
            {"name": "FIELD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "AMOUNT", "valueFrom": {"resourceFieldRef": {
                "containerName": "app", "resource": "limits.cpu", "divisor": "1m",
            }}},
        ],
        "envFrom": [
            {"prefix": "CFG_", "configMapRef": {"name": "settings", "optional": true}},
            {"secretRef": {"name": "tokens", "optional": false}},
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": 1}},
        "volumeAttachments": [{"name": "data", "mountPath": "/data"}, {"name": "raw"}],
    })
}

fn instance_spec() -> Value {
    json!({
        "controller": {"templateHash": "v1-abc", "schedulingGates": [{"name": "Network"}, {"name": "Quota"}]},
        "location": {"name": "dfw-1", "namespace": "locations"},
        "networkInterfaces": [
            {"network": {"name": "default", "namespace": "ns"}, "networkPolicy": {"ingress": [
                {
                    "ports": [{"protocol": "TCP", "port": 80, "endPort": 90}, {"port": "http"}],
                    "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                },
                {},
            ]}},
            {"network": {"name": "second"}},
        ],
        "runtime": {
            "resources": {"instanceType": "datumcloud/d1-standard-2", "requests": {"cpu": "1", "memory": 2_147_483_648_i64}},
            "sandbox": {"containers": [container()], "imagePullSecrets": [{"name": "registry"}]},
            "virtualMachine": {
                "volumeAttachments": [{"name": "boot"}, {"name": "data", "mountPath": "/data"}],
                "ports": [{"name": "ssh", "port": 22, "protocol": "TCP"}],
            },
        },
        "volumes": [
            {"name": "boot", "disk": {"deviceName": "sda", "template": {
                "metadata": metadata(),
                "spec": {
                    "type": "pd-standard",
                    "resources": {"requests": {"storage": "10Gi"}},
                    "populator": {"image": {"name": "ubuntu"}, "filesystem": {"type": "ext4"}},
                },
            }}},
            {"name": "data", "configMap": {
                "name": "settings", "defaultMode": 420, "optional": true,
                "items": [{"key": "a", "path": "a.txt", "mode": 256}],
            }},
            {"name": "raw", "secret": {
                "secretName": "tokens", "defaultMode": 256, "optional": false,
                "items": [{"key": "b", "path": "b.txt", "mode": 256}],
            }},
        ],
    })
}

fn template() -> Value {
    json!({"metadata": metadata(), "spec": instance_spec()})
}

/// Counts of a status, and what they are current for.
fn with_counts(mut status: Value) -> Value {
    let counts = [
        "replicas",
        "currentReplicas",
        "updatedReplicas",
        "desiredReplicas",
        "readyReplicas",
        "observedGeneration",
    ];
    for (value, name) in counts.into_iter().enumerate() {
        status[name] = json!(value);
    }
    status
}

pub(super) fn instance() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Instance",
        "metadata": {"name": "web-us-dfw-0", "namespace": "ns", "labels": {"a": "b"}},
        "spec": instance_spec(),
        "status": {
            "conditions": conditions(),
            "controller": {"observedTemplateHash": "v1-abc"},
            "networkInterfaces": [{"assignments": {"networkIP": "10.0.0.2", "externalIP": "203.0.113.7"}}, {}],
        },
    })
}

pub(super) fn deployment() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "WorkloadDeployment",
        "metadata": {"name": "web-us-dfw", "namespace": "ns", "generation": 7},
        "spec": {
            "workloadRef": {"name": "web", "uid": "2f1c"},
            "placementName": "us",
            "cityCode": "DFW",
            "scaleSettings": scale_settings(),
            "template": template(),
            "replicas": 3,
            "paused": true,
        },
        "status": with_counts(json!({
            "conditions": conditions(),
            "location": {"name": "dfw-1", "namespace": "locations"},
            "selector": "compute.datumapis.com/workload-deployment-name=web-us-dfw",
        })),
    })
}

pub(super) fn workload() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {
            "template": template(),
            "placements": [{"name": "us", "cityCodes": ["DFW", "IAD"], "scaleSettings": scale_settings()}],
            "paused": false,
        },
        "status": with_counts(json!({
            "conditions": conditions(),
            "deployments": 2,
            "placements": [with_counts(json!({"name": "us", "conditions": conditions()}))],
            "gateway": {
                "addresses": [{"type": "IPAddress", "value": "203.0.113.1"}, {"value": "203.0.113.2"}],
                "conditions": conditions(),
                "listeners": [{
                    "name": "http",
                    "attachedRoutes": 1,
                    "conditions": conditions(),
                    "supportedKinds": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}, {"kind": "GRPCRoute"}],
                }],
            },
        })),
    })
}
