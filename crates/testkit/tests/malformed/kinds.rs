//! Every kind of others that somebody watches, where it is watched, by how many, and what one looks like that makes sense.

use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_api::milo::{Project, ServiceEntitlement};
use compute_api::networking::{
    Location, LocationBinding, Network, NetworkBinding, NetworkContext, Subnet, SubnetClaim,
};
use compute_api::quota::{AllowanceBucket, ResourceClaim, ResourceGrant, ResourceRegistration};
use compute_testkit::Place;
use kube::Resource;
use kube::core::ApiResource;
use serde_json::{Value, json};

/// A kind on a plane.
pub struct Kind {
    pub place: Place,
    pub resource: ApiResource,
    pub is_namespaced: bool,
    /// If not the one that workloads are in.
    pub namespace: Option<&'static str>,
    /// How many watch it there: workers, each of which would be a process of its own.
    pub watchers: usize,
    pub sample: Value,
}

impl Kind {
    /// What an object of the kind is called: some are copied to other planes, or have something made for them there under their name.
    pub fn name_of(&self, bad: &str) -> String {
        let plane = plane(&self.place, "project");
        format!("{bad}-{plane}-{}", self.resource.kind.to_lowercase())
    }
}

/// What the runtime calls a plane.
pub fn plane(place: &Place, project: &str) -> String {
    match place {
        Place::Core => "core".to_owned(),
        Place::Hub => "hub".to_owned(),
        Place::Cell(city) => format!("cell-{}", city.to_lowercase()),
        Place::Project(_) => project.to_owned(),
    }
}

fn kind<K: Resource<DynamicType = ()>>(place: &Place, watchers: usize, sample: Value) -> Kind {
    let scoped = std::any::type_name::<K::Scope>().contains("NamespaceResourceScope");
    Kind {
        place: place.clone(),
        resource: ApiResource::erase::<K>(&()),
        is_namespaced: scoped,
        namespace: None,
        watchers,
        sample,
    }
}

/// Of all kinds. No sample means anything to the workloads of the test.
pub fn kinds(project: &Place) -> Vec<Kind> {
    let (core, hub, cell) = (Place::Core, Place::Hub, Place::Cell("DFW".to_owned()));
    let location = json!({ "locationClassName": "datum-managed", "provider": {},
        "topology": { "topology.datum.net/city-code": "NOWHERE" } });
    let reference =
        json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "nobody" });
    let in_ledger = |kind: Kind| Kind { namespace: Some("milo-system"), ..kind };
    vec![
        // The management controllers and the platform.
        kind::<Project>(&core, 2, json!({ "ownerRef": { "kind": "Organization", "name": "local" } })),
        kind::<Location>(&core, 1, location.clone()),
        kind::<ResourceRegistration>(
            &core,
            1,
            json!({ "resourceType": "example.com/things", "type": "Entity", "baseUnit": "thing", "displayUnit": "things",
                "consumerType": { "apiGroup": "resourcemanager.miloapis.com", "kind": "Project" },
                "claimingResources": [{ "apiGroup": "example.com", "kind": "Thing" }] }),
        ),
        // The management controllers and the platform; a cell looks at no Cluster but its own.
        kind::<Cluster>(
            &hub,
            2,
            json!({ "syncMode": "Push", "taints": [{ "key": "a", "effect": "NoSchedule" }] }),
        ),
        kind::<PropagationPolicy>(
            &hub,
            2,
            json!({ "resourceSelectors": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Nothing", "name": "n" }],
                "placement": { "clusterAffinity": { "clusterNames": ["nowhere"] } } }),
        ),
        // The cell and the platform.
        kind::<Location>(&cell, 2, location),
        kind::<NetworkBinding>(
            &cell,
            2,
            json!({ "network": { "name": "nothing", "namespace": "x" }, "location": { "name": "nowhere" } }),
        ),
        kind::<NetworkContext>(
            &cell,
            2,
            json!({ "network": { "name": "nothing" }, "location": { "name": "nowhere" } }),
        ),
        kind::<SubnetClaim>(
            &cell,
            2,
            json!({ "subnetClass": "private", "networkContext": { "name": "nothing" }, "location": { "name": "nowhere" },
                "ipFamily": "IPv4", "startAddress": "10.1.2.3", "prefixLength": 20 }),
        ),
        kind::<Subnet>(
            &cell,
            2,
            json!({ "subnetClass": "private", "networkContext": { "name": "nothing" }, "location": { "name": "nowhere" },
                "ipFamily": "IPv4", "startAddress": "10.1.2.3", "prefixLength": 20 }),
        ),
        // The management controllers and the platform.
        kind::<LocationBinding>(
            project,
            2,
            json!({ "locationRef": { "name": "nowhere" }, "topology": { "topology.datum.net/city-code": "NOWHERE" } }),
        ),
        kind::<Network>(project, 1, json!({ "ipam": { "mode": "Auto" }, "ipFamilies": ["IPv4"] })),
        // The platform.
        kind::<ServiceEntitlement>(project, 1, json!({ "serviceRef": { "name": "other" } })),
        kind::<ResourceClaim>(
            project,
            1,
            json!({ "consumerRef": reference, "resourceRef": reference,
                "requests": [{ "resourceType": "example.com/things", "amount": 1 }] }),
        ),
        in_ledger(kind::<ResourceGrant>(
            project,
            1,
            json!({ "consumerRef": reference,
                "allowances": [{ "resourceType": "example.com/things", "buckets": [{ "amount": 1 }] }] }),
        )),
        in_ledger(kind::<AllowanceBucket>(
            project,
            1,
            json!({ "consumerRef": reference, "resourceType": "example.com/things" }),
        )),
    ]
}
