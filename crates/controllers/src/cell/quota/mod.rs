//! Quota of a cell's instances: claims in the planes of their projects.
//!
//! [`evaluate`] asks the ledger for one instance and says how that ended; [`release`] gives back what an instance took. [`namespaces`]
//! knows which project a namespace of the cell stands for, [`projects`] which instance is of which; [`project`] holds what is known of one
//! (its client, its claims while somebody waits, and [`line`], the denied who wait for another turn), [`claims`] makes the requests,
//! [`metrics`] counts.
//!
//! # Guarantees
//!
//! - No request about an instance whose claim is granted and whose gate is gone, but for one look an hour at all claims of its project.
//! - A ledger that hangs costs one pass of its own namespace at a time, each request at most [`claims::TIMEOUT`], and only one request now
//!   and then: the others are answered without it.
//! - A granted claim that disappears is made again: at once while somebody of the project waits, else within about an hour. The
//!   instance's condition stays.
//! - An answer that the watch loses is found by asking: once a minute old, an instance that waits does not rely on the watch alone.
//! - A project's client lives from the first instance that needs it to the last; its claims are watched only while one waits.
//! - Nothing is deleted but claims of this cell, each by its uid.

mod claims;
mod evaluate;
mod line;
mod metrics;
mod namespaces;
mod project;
mod projects;
mod release;

use std::sync::Arc;

use compute_api::compute::Instance;
use compute_core::federation::Upstream;
use compute_core::quota::claim::Claimant;
use compute_runtime::engage::Connect;
use compute_runtime::{Key, Plane, Queue};

use claims::Claims;
pub(super) use evaluate::Answer;
use metrics::Metrics;
use namespaces::Namespaces;
use projects::Projects;
pub(super) use release::Released;

/// Where claims come from and go to.
pub(super) struct Origin {
    /// How to reach a project.
    pub(super) connect: Arc<Connect>,
    /// What the cell calls itself on claims.
    pub(super) source_cluster: String,
    /// The one project that the cell is part of, in direct mode.
    pub(super) project: Option<String>,
}

/// The quota of a cell's instances.
pub(super) enum Quota {
    /// There is none.
    Disabled,
    /// Projects have ledgers.
    Enforced(Box<Ledger>),
}

/// The ledgers of projects, as one cell uses them.
pub(super) struct Ledger {
    cell: Plane,
    source_cluster: String,
    namespaces: Namespaces,
    projects: Projects,
    claims: Claims,
    metrics: Metrics,
}

impl Quota {
    /// Quota in the planes that `origin` leads to, or none. Instances that have to be looked at go into `queue`.
    pub(super) fn new(cell: &Plane, origin: Option<Origin>, queue: &Queue) -> Self {
        let metrics = Metrics::of(cell.runtime().metrics());
        metrics.set_enforced(origin.is_some());
        let Some(Origin { connect, source_cluster, project }) = origin else {
            tracing::error!(cell = %cell.id(), "quota is not configured: every instance may run");
            return Self::Disabled;
        };
        Self::Enforced(Box::new(Ledger {
            cell: cell.clone(),
            namespaces: Namespaces::new(cell, project),
            projects: Projects::new(cell.runtime(), connect, &source_cluster, queue),
            source_cluster,
            claims: Claims::new(),
            metrics,
        }))
    }

    /// Asks for an instance, and says how that ended.
    pub(super) async fn evaluate(&self, key: &Key, instance: &Instance) -> Answer {
        match self {
            Self::Disabled => Answer::disabled(),
            Self::Enforced(ledger) => ledger.evaluate(key, instance).await,
        }
    }

    /// Gives back what an instance took.
    ///
    /// # Errors
    ///
    /// If it is not known to be given back: the instance's object must wait.
    pub(super) async fn release(&self, key: &Key, instance: &Instance) -> Result<Released, anyhow::Error> {
        match self {
            Self::Disabled => Ok(Released::Done),
            Self::Enforced(ledger) => ledger.release(key, instance).await,
        }
    }

    /// Nothing is asked for the instance for now: it is leaving, or cannot be read. Others of its project do not wait for it.
    pub(super) fn pause(&self, key: &Key) {
        if let Self::Enforced(ledger) = self {
            ledger.projects.pause(key);
        }
    }

    /// The instance is gone. `last` says that its namespace has no other.
    pub(super) fn forget(&self, key: &Key, last: bool) {
        if let Self::Enforced(ledger) = self {
            ledger.projects.leave(key);
            if last {
                ledger.namespaces.forget(&key.namespace);
            }
        }
    }
}

impl Ledger {
    fn claimant<'a>(&'a self, instance: &'a Instance, upstream: &'a Upstream) -> Claimant<'a> {
        Claimant { instance: &instance.metadata, upstream, source_cluster: &self.source_cluster }
    }
}
