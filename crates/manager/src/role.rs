//! The life of a role: wait for the turn to lead, work, and let go.
//!
//! # Guarantees
//!
//! - Controllers run only while the Lease is held. They end before it is given up; and if it is lost, they are cut off at once, and the process
//!   ends with the reason, so that another one takes over.
//! - A stop is bounded, whatever planes do: what is in hand gets [`IN_HAND`], giving up the Lease gets [`GIVE_UP`].

use std::time::Duration;

use compute_runtime::leader::{Candidate, Lost};
use compute_runtime::tasks::{Ended, Tasks};
use tokio_util::sync::CancellationToken;

use crate::process::Leading;
use crate::readiness::{Readiness, State};

/// How long what is in hand may take at a stop.
const IN_HAND: Duration = Duration::from_secs(6);
/// How long giving up the Lease may take after that.
const GIVE_UP: Duration = Duration::from_millis(1500);

/// A role that waits for its turn.
pub(crate) struct Role {
    /// What it is called.
    pub(crate) name: &'static str,
    /// How it gets its turn; without one, it is always its turn.
    pub(crate) candidate: Option<Candidate>,
    /// Starts its controllers.
    pub(crate) start: Box<dyn FnOnce(&mut Tasks) + Send>,
    /// Who is told how far it has come.
    pub(crate) readiness: Readiness,
    /// Who is told whether it leads.
    pub(crate) leading: Leading,
}

/// Why a role cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl Role {
    /// Runs until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), Failed> {
        let Self { name, candidate, start, readiness, leading } = self;
        leading.set(name, false);
        let leadership = match candidate {
            None => None,
            Some(candidate) => {
                readiness.set(name, State::Standby);
                match candidate.acquire(&stop).await {
                    Some(leadership) => Some(leadership),
                    None => return Ok(()),
                }
            }
        };
        readiness.set(name, State::WaitingFor("its planes".to_owned()));
        leading.set(name, true);
        tracing::info!(role = name, "working");
        let mut tasks = Tasks::new();
        start(&mut tasks);
        let mut work = std::pin::pin!(tasks.run(stop.cancelled_owned(), IN_HAND));
        let Some(leadership) = leadership else { return Ok(settled(name, work.await)?) };
        let release = CancellationToken::new();
        let mut holding = std::pin::pin!(leadership.hold(release.clone()));
        let ended = tokio::select! {
            biased;
            // The work is dropped with this, and cut off by that.
            lost = &mut holding => return Ok(lost?),
            ended = &mut work => settled(name, ended),
        };
        leading.set(name, false);
        release.cancel();
        match tokio::time::timeout(GIVE_UP, holding).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(role = name, %error, "the lease was lost at the end"),
            Err(_) => tracing::warn!(role = name, "the lease is not given up in time; it ends by itself"),
        }
        Ok(ended?)
    }
}

/// What did not stop in time is cut off, which is no reason to fail: a plane that hangs must not keep a process from ending well.
fn settled(role: &str, ended: Result<(), Ended>) -> Result<(), Ended> {
    match ended {
        Err(Ended::Stuck { tasks }) => {
            tracing::warn!(role, tasks = tasks.join(", "), "cut off what did not end in time");
            Ok(())
        }
        other => other,
    }
}
