//! The management role: which planes it works on, and its controllers on them.

use std::convert::Infallible;
use std::sync::Arc;

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::milo::{Project, ProjectControlPlane};
use compute_controllers::management::{self, Setup};
use compute_runtime::engage::{Connect, Discovered, milo};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, Planes, Runtime};

use crate::manager::Process;
use crate::readiness::Readiness;
use crate::sync::{Sync, become_ready};

/// What it is called.
pub(crate) const NAME: &str = "management";

/// The projects that it serves.
#[derive(Clone)]
pub(crate) enum Projects {
    /// There is one.
    Single(Plane),
    /// They are found in a core plane.
    Milo {
        core: Plane,
        connect: Arc<Connect>,
        /// Found by their control planes, which have addresses of their own.
        internal: bool,
    },
}

/// What the role needs.
pub(crate) struct Management {
    pub(crate) projects: Projects,
    pub(crate) hub: Option<Plane>,
    pub(crate) process: Process,
    pub(crate) readiness: Readiness,
}

impl Management {
    /// Starts its controllers.
    pub(crate) fn start(self, tasks: &mut Tasks) {
        let Self { projects, hub, process, readiness } = self;
        let events = process.events(NAME, tasks);
        let mut syncs: Vec<Sync> = Vec::new();
        let (projects, core) = match projects {
            Projects::Single(plane) => {
                syncs.push(Sync::of::<Workload>(&plane, "the project"));
                (Planes::single(&plane), None)
            }
            Projects::Milo { core, connect, internal: false } => {
                syncs.push(Sync::of::<Project>(&core, "the core plane"));
                (discover::<Project>(&process.runtime, &core, connect, tasks), Some(core))
            }
            Projects::Milo { core, connect, internal: true } => {
                syncs.push(Sync::of::<ProjectControlPlane>(&core, "the core plane"));
                (discover::<ProjectControlPlane>(&process.runtime, &core, connect, tasks), Some(core))
            }
        };
        syncs.extend(hub.as_ref().map(|hub| Sync::of::<WorkloadDeployment>(hub, "the hub")));
        management::spawn(tasks, Setup { projects, core, hub, events });
        become_ready(NAME, readiness, syncs, tasks);
    }
}

/// The planes of projects as they come and go.
fn discover<P: Discovered>(
    runtime: &Runtime,
    core: &Plane,
    connect: Arc<Connect>,
    tasks: &mut Tasks,
) -> Planes {
    let planes = Planes::new(runtime);
    let (core, found) = (core.clone(), planes.clone());
    tasks.spawn("discovery of projects", |stop| async move {
        milo::<P>(&core, &found, connect, stop.cancelled()).await;
        Ok::<(), Infallible>(())
    });
    planes
}
