//! What the demo reads from the project's plane.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::labels;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::show::{City, Show, Trouble};

/// How often the plane is looked at: as often as an eye can follow.
const EVERY: Duration = Duration::from_millis(50);
/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A project, and the workload that is watched in it.
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) client: Client,
    pub(super) workload: &'static str,
}

/// All that is to be seen of the workload.
pub(super) struct Seen {
    pub(super) workload: Option<Workload>,
    pub(super) cities: BTreeMap<String, City>,
    pub(super) instances: usize,
}

impl Watch {
    /// Objects of a kind in the project.
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Looks once.
    pub(super) async fn look(&self) -> Result<Seen> {
        let workload =
            self.api::<Workload>().get_opt(self.workload).await.context("cannot read the workload")?;
        let deployments = self.api::<WorkloadDeployment>().list(&ListParams::default()).await?;
        let mine = format!("{}={}", labels::WORKLOAD_NAME, self.workload);
        let instances = self.api::<Instance>().list(&ListParams::default().labels(&mine)).await?.items;
        let cities = deployments
            .items
            .iter()
            .filter(|deployment| deployment.spec.workload_ref.name == self.workload)
            .map(|deployment| (deployment.spec.city_code.clone(), city(deployment, &instances)))
            .collect();
        Ok(Seen { workload, cities, instances: instances.len() })
    }

    /// Shows the cities as they change, until what is seen is what is waited for.
    pub(super) async fn until(&self, show: &mut Show, reached: impl Fn(&Seen) -> bool) -> Result<Duration> {
        let began = Instant::now();
        loop {
            let seen = self.look().await?;
            show.cities(&seen.cities, began.elapsed());
            if reached(&seen) {
                return Ok(began.elapsed());
            }
            if began.elapsed() > PATIENCE {
                bail!("not within {} s; the last that was seen is above", PATIENCE.as_secs());
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}

impl Seen {
    /// Whether each of so many cities says that something is in the way.
    pub(super) fn is_stuck(&self, cities: usize) -> bool {
        self.cities.len() == cities && self.cities.values().all(|city| city.trouble.is_some())
    }

    /// Whether everything that is wanted is there, ready and up to date.
    pub(super) fn is_done(&self) -> bool {
        let Some(workload) = &self.workload else { return false };
        let Some(status) = &workload.status else { return false };
        let desired = status.desired_replicas;
        status.observed_generation == workload.metadata.generation
            && [status.replicas, status.ready_replicas, status.updated_replicas] == [desired; 3]
            && self.cities.values().all(|city| city.ready == city.desired && city.trouble.is_none())
    }
}

/// How a city is doing.
fn city(deployment: &WorkloadDeployment, instances: &[Instance]) -> City {
    let status = deployment.status.clone().unwrap_or_default();
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    // What an instance says of itself is more to the point than what its deployment makes of all of them.
    let said = instances
        .iter()
        .filter(|instance| {
            let labels = instance.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(labels::WORKLOAD_DEPLOYMENT_NAME)).map(String::as_str)
                == Some(name)
        })
        .filter_map(|instance| c::find(&instance.status.as_ref()?.conditions, c::READY))
        .find(|said| said.status != "True" && compute_core::reasons::is_problem(&said.reason));
    let current = status.observed_generation == deployment.metadata.generation;
    City {
        ready: status.ready_replicas.unwrap_or(0),
        updated: status.updated_replicas.filter(|_| current).unwrap_or(0),
        desired: i64::from(compute_core::scale::desired_replicas(&deployment.spec)),
        trouble: said.map(|said| Trouble { reason: said.reason.clone(), message: said.message.clone() }),
    }
}
