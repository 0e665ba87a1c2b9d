//! The cell role: which planes it works on, and its controllers and provider on them.

use std::sync::Arc;

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_controllers::cell::{self, Quota, Setup, Source};
use compute_providers::{Locations, Subnets, simulated};
use compute_runtime::Plane;
use compute_runtime::engage::Connect;
use compute_runtime::tasks::Tasks;

use crate::config::Provider;
use crate::manager::Process;
use crate::readiness::Readiness;
use crate::sync::{Sync, become_ready};

/// What it is called.
pub(crate) const NAME: &str = "cell";

/// What the role needs.
pub(crate) struct Cell {
    pub(crate) plane: Plane,
    pub(crate) source: Source,
    /// The way to projects, to claim quota; none if every instance may run.
    pub(crate) quota: Option<Arc<Connect>>,
    pub(crate) provider: Provider,
    pub(crate) networking: bool,
    pub(crate) process: Process,
    pub(crate) readiness: Readiness,
}

impl Cell {
    /// Starts its controllers and its provider.
    pub(crate) fn start(self, tasks: &mut Tasks) {
        let Self { plane, source, quota, provider, networking, process, readiness } = self;
        let events = process.events(NAME, tasks);
        let mut syncs = vec![
            Sync::of::<WorkloadDeployment>(&plane, "the deployments of the cell"),
            Sync::of::<Instance>(&plane, "the instances of the cell"),
        ];
        if let Source::Hub { hub, .. } = &source {
            syncs.push(Sync::of::<WorkloadDeployment>(hub, "the hub"));
        }
        let quota = quota.map_or(Quota::Disabled, Quota::Projects);
        let setup = Setup { cell: plane.clone(), source, quota, networking, events: events.clone() };
        cell::spawn(tasks, setup);
        match provider {
            Provider::None => {}
            Provider::Simulated => {
                tracing::warn!("instances are simulated: they look as if they ran, and nothing does");
                let subnets = if networking { Subnets::of(&plane) } else { Subnets::none() };
                let clock = process.runtime.clock().clone();
                let engine = simulated::Simulated::on(&subnets, clock, simulated::Options::default());
                let engine = Arc::new(engine);
                compute_providers::spawn(
                    tasks,
                    compute_providers::Setup { cell: plane, engine, locations: Locations::All, events },
                );
            }
        }
        become_ready(NAME, readiness, syncs, tasks);
    }
}
