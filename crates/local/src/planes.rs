//! Which planes the platform has, what they serve, and where they are reached.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::{Context as _, Result};
use compute_apiserver::{Access, ApiServer, Identity, PlaneName, PlaneRoute, PlaneTemplate, Random};
use serde_json::Value;

use crate::kubeconfig::Context;

/// Where projects' control planes are found under a server.
const PROJECTS: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/";
const CONTROL_PLANE: &str = "/control-plane";
const PROJECT_PREFIX: &str = "project-";

/// The path of a project's control plane, as a route of the server.
pub(crate) fn project_route() -> PlaneRoute {
    PlaneRoute {
        before: PROJECTS.to_owned(),
        after: CONTROL_PLANE.to_owned(),
        plane_prefix: PROJECT_PREFIX.to_owned(),
    }
}

/// Where a plane is reached.
fn url(server: &str, plane: &PlaneName) -> String {
    match (plane.as_str(), plane.as_str().strip_prefix(PROJECT_PREFIX)) {
        ("core", _) => server.to_owned(),
        (_, Some(project)) => format!("{server}{PROJECTS}{project}{CONTROL_PLANE}"),
        (name, None) => format!("{server}/planes/{name}"),
    }
}

/// What a plane is for; it decides which kinds the plane serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Core,
    Hub,
    Cell,
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

/// Makes core, the hub, a cell per city, project `demo` and the projects that are on disk, with a token for each, and
/// says how to get in.
pub(crate) async fn make(
    server: &ApiServer,
    random: &Random,
    address: &str,
    cities: &[String],
) -> Result<Vec<Context>> {
    let cells = cities.iter().map(|city| (format!("cell-{}", city.to_lowercase()), Role::Cell));
    let demo = format!("{PROJECT_PREFIX}demo");
    let found = server.found_planes().into_iter().map(|name| name.as_str().to_owned());
    let found = found.filter(|name| name.starts_with(PROJECT_PREFIX) && *name != demo);
    let planes = [("core".to_owned(), Role::Core), ("hub".to_owned(), Role::Hub)]
        .into_iter()
        .chain(cells)
        .chain([(demo.clone(), Role::Project)])
        .chain(found.map(|name| (name, Role::Project)));
    let mut templates = BTreeMap::new();
    let mut contexts = Vec::new();
    for (name, role) in planes {
        let plane = PlaneName::new(&name)?;
        let template = match templates.entry(role) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(slot) => slot.insert(template(server, role).await?),
        };
        server.create_plane(plane.clone(), template).await?;
        let token = random.secret();
        let identity = Identity::superuser(format!("{name}-admin"));
        server.tokens().add(&token, identity, Access::Planes([plane.clone()].into()));
        contexts.push(Context { name, url: url(address, &plane), token });
    }
    Ok(contexts)
}

/// What planes of a role start with.
async fn template(server: &ApiServer, role: Role) -> Result<PlaneTemplate> {
    let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
    let wanted = crds.filter(|crd| role.groups().contains(&crd.spec.group.as_str()));
    let crds = wanted
        .map(serde_json::to_value)
        .collect::<Result<Vec<Value>, _>>()
        .context("cannot encode the CRDs")?;
    server.template(&crds).await.context("cannot install the CRDs")
}
