//! Objects as the platform stores them, for tests: a workload `web` in DFW and IAD, two instances in each.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::Timestamp;
use compute_api::networking::LocationBinding;
use compute_api::quota::{AllowanceBucket, ResourceClaim};
use compute_api::{annotations, conditions as c, template_hash};
use serde_json::{Value, json};

/// The present.
pub(crate) fn now() -> Timestamp {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

/// A condition that has been so for three minutes.
pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": reason, "message": message, "observedGeneration": 2,
        "lastTransitionTime": "2026-05-01T11:57:00Z" })
}

/// The template of `web` with an image.
pub(crate) fn template(image: &str) -> Value {
    json!({ "spec": {
        "runtime": {
            "resources": { "instanceType": "datumcloud/d1-standard-2" },
            "sandbox": { "containers": [{ "name": "app", "image": image, "ports": [{ "name": "http", "port": 80 }] }] },
        },
        "networkInterfaces": [{ "network": { "name": "default" } }],
    } })
}

/// A city of `web`: what it counts, and what it says.
#[derive(Clone, Debug)]
pub(crate) struct City {
    pub(crate) code: &'static str,
    pub(crate) placement: &'static str,
    pub(crate) ready: i64,
    pub(crate) updated: i64,
    pub(crate) desired: i64,
    pub(crate) says: (&'static str, &'static str, &'static str),
    /// What is wrong with its last instance.
    pub(crate) last: Option<(&'static str, &'static str)>,
}

impl City {
    /// A city where all is well.
    pub(crate) fn well(code: &'static str) -> Self {
        Self {
            code,
            placement: "main",
            ready: 2,
            updated: 2,
            desired: 2,
            says: ("True", c::STABLE_INSTANCE_FOUND, "2 of 2 instances are ready"),
            last: None,
        }
    }

    /// A city that serves with one instance, while the other has this to say.
    pub(crate) fn half(code: &'static str, reason: &'static str, message: &'static str) -> Self {
        Self {
            ready: 1,
            updated: 1,
            says: ("True", c::STABLE_INSTANCE_FOUND, "1 of 2 instances are ready"),
            last: Some((reason, message)),
            ..Self::well(code)
        }
    }

    /// A city that does not serve.
    pub(crate) fn down(
        code: &'static str,
        sum: &'static str,
        reason: &'static str,
        message: &'static str,
    ) -> Self {
        Self {
            ready: 0,
            updated: 0,
            says: ("False", sum, message),
            last: Some((reason, message)),
            ..Self::well(code)
        }
    }
}

/// `web` with these cities.
pub(crate) fn web(cities: &[City], image: &str) -> (Workload, Vec<WorkloadDeployment>, Vec<Instance>) {
    let mut placements: Vec<Value> = Vec::new();
    for city in cities {
        match placements.iter_mut().find(|one| one["name"] == city.placement) {
            Some(one) => one["cityCodes"].as_array_mut().unwrap().push(city.code.into()),
            None => placements.push(json!({ "name": city.placement, "cityCodes": [city.code],
                "scaleSettings": { "minReplicas": city.desired, "instanceManagementPolicy": "OrderedReady" } })),
        }
    }
    let sum = |count: fn(&City) -> i64| cities.iter().map(count).sum::<i64>();
    let worst = cities.iter().find(|city| city.says.0 != "True");
    let available = match worst {
        Some(city) if sum(|city| city.ready) == 0 => {
            condition("Available", city.says.0, city.says.1, city.says.2)
        }
        _ => condition("Available", "True", c::STABLE_INSTANCE_FOUND, "instances are ready"),
    };
    let workload = serde_json::from_value(json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default", "uid": "w", "generation": 2,
            "creationTimestamp": "2026-05-01T09:00:00Z", "annotations": { annotations::CURRENT_REVISION: "2" } },
        "spec": { "template": template(image), "placements": placements },
        "status": {
            "observedGeneration": 2, "conditions": [available], "deployments": cities.len(),
            "replicas": sum(|city| city.desired), "readyReplicas": sum(|city| city.ready),
            "updatedReplicas": sum(|city| city.updated), "desiredReplicas": sum(|city| city.desired),
        },
    }))
    .unwrap();
    let deployments = cities.iter().map(|city| deployment(city, image)).collect();
    let instances =
        cities.iter().flat_map(|city| (0..city.desired).map(move |at| instance(city, at, image))).collect();
    (workload, deployments, instances)
}

fn deployment(city: &City, image: &str) -> WorkloadDeployment {
    let name = format!("web-{}-{}", city.placement, city.code.to_lowercase());
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "default", "uid": name, "generation": 1,
            "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "name": "web", "uid": "w", "controller": true }] },
        "spec": { "workloadRef": { "name": "web", "uid": "w" }, "placementName": city.placement, "cityCode": city.code,
            "template": template(image), "scaleSettings": { "minReplicas": city.desired, "instanceManagementPolicy": "OrderedReady" } },
        "status": { "observedGeneration": 1, "replicas": city.desired, "readyReplicas": city.ready, "updatedReplicas": city.updated,
            "desiredReplicas": city.desired, "conditions": [condition("Available", city.says.0, city.says.1, city.says.2),
                condition("NetworkReady", "True", "Ready", "The networks are set up")] },
    }))
    .unwrap()
}

fn instance(city: &City, at: i64, image: &str) -> Instance {
    let deployment = format!("web-{}-{}", city.placement, city.code.to_lowercase());
    let hash = template_hash::of_value(&template(image));
    let trouble = city.last.filter(|_| at >= city.ready);
    let is_ready = trouble.is_none() && at < city.ready;
    let is_quota = trouble.is_some_and(|(reason, _)| reason.starts_with("Quota"));
    let ready = match trouble {
        Some((reason, message)) => condition("Ready", "False", reason, message),
        None if is_ready => condition("Ready", "True", "Available", "The instance is available"),
        None => condition("Ready", "False", "ProgrammingInProgress", "The instance is being set up"),
    };
    let engine = |type_: &str| match trouble {
        Some((reason, message)) if !is_quota => condition(type_, "False", reason, message),
        _ if is_ready => {
            condition(type_, "True", if type_ == "Programmed" { "Programmed" } else { "Available" }, "")
        }
        _ => condition(type_, "Unknown", "Pending", "Waiting for controller"),
    };
    let quota = match trouble.filter(|_| is_quota) {
        Some((reason, message)) => condition("QuotaGranted", "False", reason, message),
        None => condition("QuotaGranted", "True", "QuotaAvailable", "Quota is granted"),
    };
    let mut spec = template(image)["spec"].clone();
    spec["controller"] = json!({ "templateHash": hash, "schedulingGates": if is_quota { json!([{ "name": "Quota" }]) } else { json!([]) } });
    let addresses = match is_ready {
        true => {
            json!([{ "assignments": { "networkIP": format!("10.0.{at}.4"), "externalIP": format!("203.0.113.{at}") } }])
        }
        false => json!([]),
    };
    serde_json::from_value(json!({
        "metadata": { "name": format!("{deployment}-{at}"), "namespace": "default", "creationTimestamp": "2026-05-01T11:55:00Z",
            "labels": { "compute.datumapis.com/workload-name": "web", "compute.datumapis.com/workload-uid": "w",
                "compute.datumapis.com/workload-deployment-name": deployment, "compute.datumapis.com/placement-name": city.placement,
                "compute.datumapis.com/city-code": city.code, "compute.datumapis.com/instance-index": at.to_string() } },
        "spec": spec,
        "status": { "conditions": [engine("Programmed"), engine("Available"), ready, quota], "networkInterfaces": addresses,
            "controller": { "observedTemplateHash": hash } },
    }))
    .unwrap()
}

/// What offers a city.
pub(crate) fn binding(city: &str, available: bool) -> LocationBinding {
    let says = match available {
        true => condition("Available", "True", "Available", ""),
        false => {
            condition("Available", "False", "LocationNotReady", "The location is not ready: power is out")
        }
    };
    serde_json::from_value(json!({
        "metadata": { "name": city.to_lowercase() },
        "spec": { "locationRef": { "name": city.to_lowercase() }, "topology": { "topology.datum.net/city-code": city } },
        "status": { "conditions": [says] },
    }))
    .unwrap()
}

/// What there is of a resource.
pub(crate) fn bucket(resource: &str, limit: i64, allocated: i64) -> AllowanceBucket {
    serde_json::from_value(json!({
        "metadata": { "name": resource, "namespace": "milo-system" },
        "spec": { "resourceType": format!("compute.datumapis.com/{resource}") },
        "status": { "limit": limit, "allocated": allocated, "available": limit - allocated },
    }))
    .unwrap()
}

/// What an instance holds.
pub(crate) fn claim(instance: &str, cell: &str) -> ResourceClaim {
    let requests = json!([
        { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
        { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
        { "resourceType": "compute.datumapis.com/memory", "amount": 2048 },
    ]);
    serde_json::from_value(json!({
        "metadata": { "name": format!("instance-{instance}"), "labels": { "compute.datumapis.com/source-cluster": cell } },
        "spec": { "requests": requests },
        "status": { "conditions": [condition("Granted", "True", "QuotaAvailable", "")] },
    }))
    .unwrap()
}
