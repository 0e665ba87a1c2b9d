//! Which planes the platform has, what each serves, and where it is reached.

use anyhow::{Context as _, Result};
use compute_api::milo::project_control_plane_path;
use compute_apiserver::{ApiServer, PlaneName, PlaneRoute, PlaneTemplate};
use serde_json::Value;

use crate::workers;

const PROJECT_PREFIX: &str = "project-";

/// The core plane.
pub fn core() -> PlaneName {
    known("core")
}

/// The hub.
pub fn hub() -> PlaneName {
    known("hub")
}

fn known(name: &str) -> PlaneName {
    PlaneName::new(name).expect("a short lower-case word names a plane")
}

/// The cell of a city.
///
/// # Errors
///
/// If the city's code is not one.
pub fn cell(city: &str) -> Result<PlaneName> {
    Ok(PlaneName::new(&cluster_name(city))?)
}

/// What the cell of a city is called, as a plane and on the hub.
pub fn cluster_name(city: &str) -> String {
    format!("cell-{}", city.to_lowercase())
}

/// The plane of a project.
///
/// # Errors
///
/// If the project's name cannot be part of a plane's.
pub fn project(name: &str) -> Result<PlaneName> {
    Ok(PlaneName::new(&format!("{PROJECT_PREFIX}{name}"))?)
}

/// Whether a plane is that of a project.
pub fn is_project(plane: &PlaneName) -> bool {
    is_project_name(plane.as_str())
}

/// Whether a plane of this name is that of a project.
pub(crate) fn is_project_name(plane: &str) -> bool {
    plane.starts_with(PROJECT_PREFIX)
}

/// The path of a project's control plane, as a route of the server.
pub fn project_route() -> PlaneRoute {
    let path = project_control_plane_path("\n");
    let (before, after) = path.split_once('\n').expect("a project's path has its name in it");
    PlaneRoute { before: before.to_owned(), after: after.to_owned(), plane_prefix: PROJECT_PREFIX.to_owned() }
}

/// Where a plane is reached under the address of a server.
pub fn url(server: &str, plane: &PlaneName) -> String {
    match (plane.as_str(), plane.as_str().strip_prefix(PROJECT_PREFIX)) {
        ("core", _) => server.to_owned(),
        (_, Some(project)) => format!("{server}{}", project_control_plane_path(project)),
        (name, None) => format!("{server}/planes/{name}"),
    }
}

/// What a plane is for; it decides which kinds the plane serves, and who may do what in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The core plane.
    Core,
    /// The hub.
    Hub,
    /// A cell.
    Cell,
    /// A project.
    Project,
}

impl Role {
    /// API groups whose kinds live in such a plane.
    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Core => &[
                "resourcemanager.miloapis.com",
                "infrastructure.miloapis.com",
                "services.miloapis.com",
                "quota.miloapis.com",
                "networking.datumapis.com",
            ],
            Self::Hub => {
                &["compute.datumapis.com", "cluster.karmada.io", "policy.karmada.io", "config.karmada.io"]
            }
            Self::Cell => &["compute.datumapis.com", "networking.datumapis.com"],
            Self::Project => &[
                "compute.datumapis.com",
                "networking.datumapis.com",
                "quota.miloapis.com",
                "services.miloapis.com",
            ],
        }
    }
}

/// What planes of a role start with: its kinds, and the roles of those who work there.
///
/// # Errors
///
/// If they cannot be written as JSON.
pub fn objects(role: Role) -> Result<Vec<Value>> {
    let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
    let wanted = crds.filter(|crd| role.groups().contains(&crd.spec.group.as_str()));
    let mut objects = wanted
        .map(serde_json::to_value)
        .collect::<Result<Vec<Value>, _>>()
        .context("cannot encode the CRDs")?;
    objects.extend(workers::roles(role).context("cannot encode the roles")?);
    Ok(objects)
}

/// What planes of a role are made from.
pub(crate) async fn template(server: &ApiServer, role: Role) -> Result<PlaneTemplate> {
    server.template(&objects(role)?).await.context("cannot install the CRDs and roles")
}
