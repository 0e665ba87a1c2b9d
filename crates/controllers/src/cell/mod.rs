//! The controllers that serve one cell.

pub mod rbac;

use std::sync::Arc;

use compute_runtime::Plane;
use compute_runtime::engage::Connect;
use compute_runtime::events::Events;
use compute_runtime::tasks::Tasks;

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

/// Starts the controllers. They run until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let _ = (tasks, setup);
}
