//! Discovery mode `milo`: one plane per project, found by watching the objects that stand for projects in the core plane.
//!
//! A project is engaged from the first time it is seen ready until its object is gone: neither a Ready that comes and goes nor a deletion
//! timestamp disengages it, for what is in it has to be cleaned up to the end. For the same reason one that is being deleted when it is first
//! seen is engaged whether it is ready or not. An object that cannot be decoded changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use compute_api::milo::{CONDITION_CONTROL_PLANE_READY, CONDITION_READY, Project, ProjectControlPlane};
use compute_api::names;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;

use super::Planes;
use crate::cache::{Cache, Object};
use crate::controller::{self, Error, Next, Reconciler};
use crate::plane::{Plane, PlaneId};
use crate::queue::{Key, Limits, Queue};

/// An object that stands for a project.
pub trait Discovered: Object {
    /// Whether the project's plane can be reached.
    fn is_ready(&self) -> bool;
}

impl Discovered for Project {
    fn is_ready(&self) -> bool {
        self.status.as_ref().is_some_and(|status| is_true(&status.conditions, CONDITION_READY))
    }
}

impl Discovered for ProjectControlPlane {
    fn is_ready(&self) -> bool {
        self.status.as_ref().is_some_and(|status| is_true(&status.conditions, CONDITION_CONTROL_PLANE_READY))
    }
}

fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

/// Makes the client of a project's plane. Must not wait for it.
pub type Connect = dyn Fn(&str) -> Result<Client, Error> + Send + Sync;

/// Engages and disengages the planes of projects until `shutdown`.
pub async fn milo<P: Discovered>(
    core: &Plane,
    planes: &Planes,
    connect: Arc<Connect>,
    shutdown: impl Future<Output = ()>,
) {
    let discovery = Discovery::<P> {
        core: core.cache(),
        planes: planes.clone(),
        connect,
        known: Mutex::new(BTreeMap::new()),
    };
    // No pass waits for anything, so one at a time is as fast as many.
    let queue = Queue::new(core.runtime(), NAME, Limits::with_concurrency(1));
    let _subscription = queue.watch_own(&discovery.core);
    controller::run(Arc::new(discovery), queue, shutdown).await;
}

const NAME: &str = "discovery";

struct Discovery<P: Discovered> {
    core: Cache<P>,
    planes: Planes,
    connect: Arc<Connect>,
    /// What became of each project that was ready.
    known: Mutex<BTreeMap<Arc<str>, Known>>,
}

enum Known {
    /// Engaged, for the object with this uid.
    Engaged(Option<String>),
    /// It cannot be served, and that has been said.
    Refused,
}

impl<P: Discovered> Reconciler for Discovery<P> {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let mut known = self.known.lock();
        let id = PlaneId::new(key.name.clone());
        let Some(project) = self.core.get("", &key.name) else {
            if !self.core.is_unreadable("", &key.name)
                && let Some(Known::Engaged(_)) = known.remove(&key.name)
            {
                self.planes.disengage(&id);
            }
            return Ok(Next::Done);
        };
        match known.get(&key.name) {
            Some(Known::Engaged(uid)) if *uid == project.uid() => return Ok(Next::Done),
            Some(Known::Engaged(_)) => {
                // Deleted and made again in between: another project.
                known.remove(&key.name);
                self.planes.disengage(&id);
            }
            Some(Known::Refused) => return Ok(Next::Done),
            None => {}
        }
        if !project.is_ready() && project.meta().deletion_timestamp.is_none() {
            return Ok(Next::Done);
        }
        if let Err(error) = names::upstream_cluster_name(&key.name) {
            self.planes.runtime().metrics().plane_refused();
            tracing::error!(project = %key.name, %error, "refused a project");
            known.insert(key.name.clone(), Known::Refused);
            return Ok(Next::Done);
        }
        let client = (self.connect)(&key.name).context("making the project's client")?;
        self.planes.engage(&Plane::new(self.planes.runtime(), id, client));
        known.insert(key.name.clone(), Known::Engaged(project.uid()));
        Ok(Next::Done)
    }
}
