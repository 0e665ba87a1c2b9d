//! Where the planes of projects are: in the embedded server, but for the one that is on the real server.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use compute_apiserver::PlaneError;
use compute_local::census::{self, Census};
use compute_local::planes;
use compute_platform::projects::Host;
use compute_runtime::engage::Connect;
use futures::future::BoxFuture;
use kube::api::{DeleteParams, DynamicObject, PropagationPolicy};
use kube::discovery::{Discovery, Scope};
use kube::{Api, Client};

use super::milo::Milo;

/// Makes and drops planes of projects, and reaches them over the wires.
pub struct ProjectHost {
    /// Where they are.
    pub milo: Arc<Milo>,
    /// How they are reached.
    pub connect: Arc<Connect>,
    /// The real server, as one who may do everything there.
    pub real: Client,
    /// What was on the real server before any project.
    pub bare: Census,
}

impl Host for ProjectHost {
    fn ensure<'a>(&'a self, project: &'a str) -> BoxFuture<'a, anyhow::Result<Client>> {
        Box::pin(async move {
            if !self.milo.is_on_real(project) {
                match self.milo.server.create_plane(planes::project(project)?, &self.milo.template).await {
                    Ok(_) | Err(PlaneError::Exists(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            (self.connect)(project)
        })
    }

    fn remove<'a>(&'a self, project: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            if self.milo.is_on_real(project) {
                self.empty().await?;
                *self.milo.on_real.lock() = None;
            } else {
                self.milo.server.drop_plane(&planes::project(project)?).await?;
            }
            Ok(())
        })
    }
}

impl ProjectHost {
    /// Deletes what a project has left on the real server. What is asked to go, and has not gone, is an error: it is tried again.
    async fn empty(&self) -> anyhow::Result<()> {
        let found = take(&self.real).await?;
        let left = found.beyond(&self.bare);
        if left.is_empty() {
            return Ok(());
        }
        delete(&self.real, &left).await?;
        bail!("left of the project: {left}")
    }
}

/// Every object of a server, but for what servers keep by themselves.
///
/// Leases are renewed and replaced all the time, a Work is how Karmada carries an object, a ComponentStatus is no object at all.
///
/// # Errors
///
/// If the server does not answer one of the questions.
pub async fn take(client: &Client) -> anyhow::Result<Census> {
    let mut census = census::take(client).await?;
    for kind in IGNORED {
        census.0.remove(kind);
    }
    Ok(census)
}

/// Kinds that servers keep by themselves.
const IGNORED: [&str; 3] = ["ComponentStatus", "Lease.coordination.k8s.io", "Work.work.karmada.io"];

async fn delete(client: &Client, left: &Census) -> anyhow::Result<()> {
    let discovery =
        Discovery::new(client.clone()).run().await.context("cannot find out what the server has")?;
    let params =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            for name in left.0.get(&census::kind(&resource)).into_iter().flatten() {
                let api: Api<DynamicObject> = match (&capabilities.scope, name.split_once('/')) {
                    (Scope::Namespaced, Some((namespace, _))) => {
                        Api::namespaced_with(client.clone(), namespace, &resource)
                    }
                    _ => Api::all_with(client.clone(), &resource),
                };
                let name = name.rsplit('/').next().unwrap_or_default();
                match api.delete(name, &params).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if [404, 405, 409].contains(&status.code) => {}
                    Err(error) => {
                        return Err(error).context(format!("cannot delete {} {name}", resource.kind));
                    }
                }
            }
        }
    }
    Ok(())
}
