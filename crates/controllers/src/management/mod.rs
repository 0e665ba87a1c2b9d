//! The controllers that serve projects: what a person asks for goes out to the cells, and what became of it comes back.
//!
//! | controller | keys | what it keeps |
//! | --- | --- | --- |
//! | `workload` | a project's Workloads | one deployment per placement and city; the Workload's status |
//! | `federator` | a project's deployments; hub namespace and city; hub namespaces | hub namespaces, copies and policies; the status of deployments |
//! | `projector` | instances, of the hub and of projects | the projections of hub instances in their projects |
//!
//! What they see of all planes is in `view`. In direct mode there is no hub: the first of them runs alone.

mod federator;
mod projector;
pub mod rbac;
mod requests;
mod view;
mod workload;

use std::convert::Infallible;
use std::sync::Arc;

use compute_runtime::events::Events;
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, Planes, Queue, Reconciler, controller};

use view::{Hub, View, Watcher};

/// The Lease that whoever runs these controllers holds, where several could.
pub const LEASE: &str = "compute-manager-management";

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
///
/// # Panics
///
/// Outside of a tokio runtime, as does everything that starts a task.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let Setup { projects, core, hub, events } = setup;
    let runtime = projects.runtime().clone();
    let queue = |name| Queue::new(&runtime, name, Limits::default().urgent());
    let watches = queue(view::NAME);
    let workloads = queue(workload::NAME);
    let mut watchers: Vec<Box<dyn Watcher>> =
        vec![Box::new(view::Watches::new(&watches)), Box::new(workload::Keys::new(&workloads))];

    let Some(hub) = hub else {
        let view = View::new(&projects, None, watchers);
        run(tasks, &watches, view::WatchesReconciler::new(&view));
        run(
            tasks,
            &workloads,
            workload::WorkloadReconciler::new(&view, &events, runtime.clock(), workloads.clone()),
        );
        return;
    };
    let hub = Arc::new(Hub::new(hub));
    let deployments = queue(federator::deployments::NAME);
    let policies = queue(federator::policies::NAME);
    let namespaces = queue(federator::namespaces::NAME);
    // What is on its way to cells goes first; what comes back is about what runs already.
    let instances = Queue::new(&runtime, projector::NAME, Limits::default());
    let quarantine = projector::Quarantine::new(&hub, &events);
    watchers.push(Box::new(federator::deployments::Keys::new(&deployments)));
    watchers.push(Box::new(federator::policies::Keys::new(&policies)));
    watchers.push(Box::new(federator::namespaces::Keys::new(&namespaces)));
    watchers.push(Box::new(projector::Keys::new(&instances, &quarantine)));

    let view = View::new(&projects, Some(&hub), watchers);
    run(tasks, &watches, view::WatchesReconciler::new(&view));
    run(
        tasks,
        &workloads,
        workload::WorkloadReconciler::new(&view, &events, runtime.clock(), workloads.clone()),
    );
    run(
        tasks,
        &deployments,
        federator::deployments::DeploymentFederator::new(&view, &hub, runtime.clock(), deployments.clone()),
    );
    run(tasks, &policies, federator::policies::PolicyFederator::new(&hub));
    run(tasks, &namespaces, federator::namespaces::NamespaceFederator::new(&view, &hub, core));
    run(
        tasks,
        &instances,
        projector::InstanceProjector::new(&view, &hub, &events, &quarantine, instances.clone()),
    );
}

fn run<R: Reconciler>(tasks: &mut Tasks, queue: &Queue, reconciler: R) {
    let queue = queue.clone();
    tasks.spawn(reconciler.name(), move |stop| async move {
        controller::run(Arc::new(reconciler), queue, stop.cancelled_owned()).await;
        Ok::<(), Infallible>(())
    });
}
