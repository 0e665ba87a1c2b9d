//! What the platform has in it before anybody uses it: a location per city, and what every new project starts with.

use std::collections::BTreeMap;

use compute_api::labels;
use compute_api::milo::{Project, ProjectOwner, ProjectSpec};
use compute_api::networking::{Location, LocationProvider, LocationSpec};
use kube::api::ObjectMeta;

/// The class of the locations that the platform itself runs.
const LOCATION_CLASS: &str = "datum-managed";
/// Whose the projects of a machine are.
const ORGANIZATION: &str = "local";

/// The location of a city.
pub(crate) fn location(city: &str) -> Location {
    Location {
        metadata: named(&city.to_lowercase()),
        spec: LocationSpec {
            location_class_name: LOCATION_CLASS.to_owned(),
            topology: BTreeMap::from([(labels::TOPOLOGY_CITY_CODE.to_owned(), city.to_owned())]),
            provider: LocationProvider::default(),
            coordinates: None,
        },
        status: None,
    }
}

/// A project.
pub(crate) fn project(name: &str) -> Project {
    let owner_ref = ProjectOwner { kind: "Organization".to_owned(), name: ORGANIZATION.to_owned() };
    Project { metadata: named(name), spec: ProjectSpec { owner_ref }, status: None }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
