//! Which planes the platform has, what they serve, and where they are reached.

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

/// Makes core, the hub, a cell per city and project `demo`, with a token for each, and says how to get in.
pub(crate) async fn make(
    server: &ApiServer,
    random: &Random,
    address: &str,
    cities: &[String],
) -> Result<Vec<Context>> {
    let template = template(server).await?;
    let cells = cities.iter().map(|city| format!("cell-{}", city.to_lowercase()));
    let names =
        ["core".to_owned(), "hub".to_owned()].into_iter().chain(cells).chain(["project-demo".to_owned()]);
    let mut contexts = Vec::new();
    for name in names {
        let plane = PlaneName::new(&name)?;
        server.create_plane(plane.clone(), &template)?;
        let token = random.secret();
        let identity = Identity { user: format!("{name}-admin"), groups: vec!["system:masters".to_owned()] };
        server.tokens().add(&token, identity, Access::Planes([plane.clone()].into()));
        contexts.push(Context { name, url: url(address, &plane), token });
    }
    Ok(contexts)
}

/// Every plane serves our kinds and those of the platform around us.
async fn template(server: &ApiServer) -> Result<PlaneTemplate> {
    let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
    let crds = crds
        .map(serde_json::to_value)
        .collect::<Result<Vec<Value>, _>>()
        .context("cannot encode the CRDs")?;
    server.template(&crds).await.context("cannot install the CRDs")
}
