//! The controllers that serve one cell.
//!
//! `deployment` turns deployments into instances and reports on them; `instance` claims quota, waits for data, opens gates and says
//! how an instance is; `writeback` keeps the hub's copies of instances. What they share is small: `latest` knows our own writes
//! before caches do, `told` keeps events from being repeated, `indexes` finds objects, `keys` names work.

mod deployment;
mod indexes;
mod instance;
mod keys;
mod latest;
mod quota;
pub mod rbac;
mod told;
mod write;
mod writeback;

use std::sync::Arc;

use compute_runtime::Plane;
use compute_runtime::engage::Connect;
use compute_runtime::events::{Events, Recorder};
use compute_runtime::tasks::Tasks;

/// The Lease that whoever runs these controllers holds, where several could.
pub const LEASE: &str = "compute-manager-cell";

/// What the cell controllers need.
pub struct Setup {
    /// The cell's own plane.
    pub cell: Plane,
    /// Where the cell's deployments come from.
    pub source: Source,
    /// Where instances claim quota.
    pub quota: Quota,
    /// Whether networks are set up and locations read: the feature gate `NetworkingIntegration`.
    pub networking: bool,
    /// Where events go.
    pub events: Events,
}

/// Where a cell's deployments come from.
pub enum Source {
    /// From projects, through a hub.
    Hub {
        /// The hub.
        hub: Plane,
        /// What the cell is called there.
        cluster_name: String,
    },
    /// From the one project whose plane is also the cell: direct mode.
    Project {
        /// The project's name.
        name: String,
    },
}

/// Where instances claim quota.
pub enum Quota {
    /// Nowhere: every instance may run.
    Disabled,
    /// In the planes of projects, which this connects to.
    Projects(Arc<Connect>),
}

/// The cell, as all its controllers see it. Cheap to clone.
#[derive(Clone)]
struct Cell {
    plane: Plane,
    recorder: Recorder,
}

/// Starts the controllers. They run until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let Setup { cell, source, quota, networking, events } = setup;
    let name = cell.id().clone();
    let recorder = events.recorder(name.as_str(), cell.client().clone());
    let cell = Cell { plane: cell, recorder };

    let deployments = cell.clone();
    tasks.spawn(format!("deployments of {name}"), move |stop| deployment::run(deployments, networking, stop));
    let ledger = match (quota, &source) {
        (Quota::Disabled, _) => None,
        (Quota::Projects(connect), Source::Hub { cluster_name, .. }) => {
            Some(quota::Origin { connect, source_cluster: cluster_name.clone(), project: None })
        }
        // There is no hub that knows the cell by a name; the project is the whole of it.
        (Quota::Projects(connect), Source::Project { name }) => {
            Some(quota::Origin { connect, source_cluster: name.clone(), project: Some(name.clone()) })
        }
    };
    let instances = cell.clone();
    tasks.spawn(format!("instances of {name}"), move |stop| instance::run(instances, ledger, stop));
    if let Source::Hub { hub, cluster_name } = source {
        tasks.spawn(format!("write-back of {name}"), move |stop| {
            writeback::run(cell, hub, cluster_name, stop)
        });
    }
}
