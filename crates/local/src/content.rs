//! What the platform has in it before anybody uses it: a location per city, and what every new project starts with.

use std::collections::BTreeMap;

use compute_api::karmada::{Cluster, ClusterSpec};
use compute_api::milo::{
    self, COMPUTE_ENTITLEMENT, Project, ProjectOwner, ProjectSpec, ServiceEntitlement,
    ServiceEntitlementSpec, ServiceReference,
};
use compute_api::networking::{Location, LocationProvider, LocationSpec, Network, NetworkIpam, NetworkSpec};
use compute_api::{conditions, labels};
use compute_platform::projects::Content;
use compute_platform::quota;
use kube::api::ObjectMeta;

use crate::planes;

/// The class of the locations that the platform itself runs.
const LOCATION_CLASS: &str = "datum-managed";
/// Whose the projects of a machine are.
const ORGANIZATION: &str = "local";

/// What the location of a city is called.
pub fn location_name(city: &str) -> String {
    city.to_lowercase()
}

/// The location of a city.
pub fn location(city: &str) -> Location {
    Location {
        metadata: named(&location_name(city)),
        spec: LocationSpec {
            location_class_name: LOCATION_CLASS.to_owned(),
            topology: BTreeMap::from([(labels::TOPOLOGY_CITY_CODE.to_owned(), city.to_owned())]),
            provider: LocationProvider::default(),
            coordinates: None,
        },
        status: None,
    }
}

/// Whether nothing keeps a location from being offered, as far as it says itself. One that nobody has judged yet may well be.
pub fn can_be_offered(location: &Location) -> bool {
    let conditions = location.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let judged = conditions::find(conditions, milo::CONDITION_READY);
    location.metadata.deletion_timestamp.is_none()
        && location.spec.location_class_name == LOCATION_CLASS
        && judged.is_none_or(|ready| ready.status != "False")
}

/// A cell, as the hub knows it.
pub fn cluster(city: &str) -> Cluster {
    let labels = BTreeMap::from([(labels::TOPOLOGY_CITY_CODE.to_owned(), city.to_owned())]);
    Cluster {
        metadata: ObjectMeta { labels: Some(labels), ..named(&planes::cluster_name(city)) },
        spec: ClusterSpec { sync_mode: "Push".to_owned(), ..ClusterSpec::default() },
        status: None,
    }
}

/// A project.
pub fn project(name: &str) -> Project {
    let owner_ref = ProjectOwner { kind: "Organization".to_owned(), name: ORGANIZATION.to_owned() };
    Project { metadata: named(name), spec: ProjectSpec { owner_ref }, status: None }
}

/// What a new project has: access to the service, a budget, and a network.
pub fn of_a_project(name: &str) -> Vec<Content> {
    let entitlement = ServiceEntitlement {
        metadata: named(COMPUTE_ENTITLEMENT),
        spec: ServiceEntitlementSpec {
            service_ref: ServiceReference { name: COMPUTE_ENTITLEMENT.to_owned() },
        },
        status: None,
    };
    let network = Network {
        metadata: ObjectMeta { namespace: Some("default".to_owned()), ..named("default") },
        spec: NetworkSpec {
            ipam: NetworkIpam { mode: "Auto".to_owned(), ..NetworkIpam::default() },
            ip_families: vec!["IPv4".to_owned()],
            mtu: None,
        },
        status: None,
    };
    let (namespace, grant) = quota::defaults(name);
    [Content::of(&entitlement), Content::of(&network), Content::of(&namespace), Content::of(&grant)]
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("our own kinds can be written as JSON")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
