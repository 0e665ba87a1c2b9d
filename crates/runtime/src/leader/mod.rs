//! Leader election by Lease: of all processes that run for the same one, at most one leads.
//!
//! The Lease is the one that Kubernetes' own components use (`coordination.k8s.io/v1`), with the same fields, so that
//! `kubectl get lease` shows who leads and since when.
//!
//! # Guarantees
//! - A leader that cannot renew stops leading ([`Lost`]) before another one may take over, whatever the clocks of
//!   the machines say: times in the Lease are for people. A candidate takes over only after it has itself seen the Lease
//!   unchanged for as long as the leader said it holds.
//! - A leader that ends in an orderly way gives the Lease up, and the next one starts at once.
//!
//! # Assumptions
//! - The clocks of two machines run at about the same speed (a third apart is still right with the default timings).
//! - The process ends, or at least stops writing, when it is told that it has [`Lost`] the Lease.

pub mod rbac;
mod record;

use std::sync::Arc;
use std::time::Duration;

use compute_api::k8s::{Lease, Timestamp};
use compute_api::kube::api::PostParams;
use compute_api::kube::{Api, Client};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::write::{Error, Outage};
use record::Record;

/// How long a Lease holds and how often it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// How long others leave a Lease alone that does not change. Written to it in whole seconds.
    pub lease: Duration,
    /// How long a leader tries to renew before it gives up. Must be shorter than `lease`.
    pub renew_deadline: Duration,
    /// The pause between two attempts to acquire or renew.
    pub retry: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A process that runs for leader.
#[derive(Clone)]
pub struct Candidate {
    leases: Api<Lease>,
    name: String,
    identity: String,
    timings: Timings,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The Lease is held by this process. Renew it by running [`hold`](Self::hold).
#[must_use = "a lease that is not renewed is lost"]
pub struct Leadership {
    candidate: Candidate,
    /// The Lease as this process wrote it last.
    lease: Lease,
    /// When the last write that went through was begun: nobody can have seen it earlier.
    renewed: Instant,
}

/// The Lease is lost: another process may lead, so this one must not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another process holds it.
    #[error("the lease {name:?} was taken over by {holder:?}")]
    Taken {
        /// The Lease.
        name: String,
        /// Who holds it now; empty if nobody does.
        holder: String,
    },
    /// It could not be renewed in time.
    #[error("the lease {name:?} could not be renewed in time")]
    NotRenewed {
        /// The Lease.
        name: String,
        /// How the last attempt failed.
        #[source]
        last: Error,
    },
}

impl Candidate {
    /// Runs for the Lease `name` in `namespace`. `identity` must differ between processes; `now` is the wall clock, and is
    /// only shown.
    pub fn new(
        client: Client,
        namespace: &str,
        name: impl Into<String>,
        identity: impl Into<String>,
        timings: Timings,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, name: name.into(), identity: identity.into(), timings, now: Arc::new(now) }
    }

    /// Waits until this process leads. None if `stop` is cancelled before.
    pub async fn acquire(self, stop: &CancellationToken) -> Option<Leadership> {
        tokio::select! {
            biased;
            () = stop.cancelled() => None,
            leadership = self.try_forever() => Some(leadership),
        }
    }

    async fn try_forever(self) -> Leadership {
        // What the Lease said, and when this process saw that for the first time.
        let mut seen: Option<(Record, Instant)> = None;
        let mut complained = String::new();
        loop {
            let begun = Instant::now();
            let attempt = tokio::time::timeout(self.timings.renew_deadline, self.attempt(&mut seen)).await;
            match attempt.unwrap_or(Err(Error::Unavailable(Outage::Timeout))) {
                Ok(Some(lease)) => {
                    tracing::info!(lease = self.name, identity = self.identity, "leading");
                    return Leadership { candidate: self, lease, renewed: begun };
                }
                Ok(None) => complained.clear(),
                Err(error) => {
                    let text = error.to_string();
                    if text != complained {
                        tracing::warn!(lease = self.name, %error, "cannot run for the lease");
                        complained = text;
                    }
                }
            }
            tokio::time::sleep(self.timings.retry).await;
        }
    }

    /// Takes the Lease if it is free. None if it is not, or if another process was faster.
    async fn attempt(&self, seen: &mut Option<(Record, Instant)>) -> Result<Option<Lease>, Error> {
        let Some(lease) = self.leases.get_opt(&self.name).await? else {
            *seen = None;
            return self.create().await;
        };
        let record = Record::of(&lease);
        if !seen.as_ref().is_some_and(|(known, _)| *known == record) {
            *seen = Some((record.clone(), Instant::now()));
        }
        let since = seen.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        let is_over = since.elapsed() >= record.duration.unwrap_or(self.timings.lease);
        if !record.holder.is_empty() && record.holder != self.identity && !is_over {
            return Ok(None);
        }
        let taken = record::taken(&lease, &self.identity, self.timings.lease, (self.now)());
        self.replace(&taken).await
    }

    async fn create(&self) -> Result<Option<Lease>, Error> {
        let lease = record::fresh(&self.name, &self.identity, self.timings.lease, (self.now)());
        match self.leases.create(&PostParams::default(), &lease).await.map_err(Error::from) {
            Ok(lease) => Ok(Some(lease)),
            Err(Error::AlreadyExists(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes onto the Lease as it was read. None if it is not the same any more.
    async fn replace(&self, lease: &Lease) -> Result<Option<Lease>, Error> {
        match self.leases.replace(&self.name, &PostParams::default(), lease).await.map_err(Error::from) {
            Ok(lease) => Ok(Some(lease)),
            Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Leadership {
    /// Renews the Lease until `stop` is cancelled, then gives it up, so that another process can lead at once. Cancel
    /// it only after everything that needs the Lease has ended.
    ///
    /// # Errors
    /// The Lease is lost; the process has to end.
    pub async fn hold(mut self, stop: CancellationToken) -> Result<(), Lost> {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(self.candidate.timings.retry) => {}
            }
            tokio::select! {
                biased;
                // A renewal that is on its way may or may not arrive; giving up finds out.
                () = stop.cancelled() => break,
                result = self.renew() => result?,
            }
        }
        self.give_up().await;
        Ok(())
    }

    /// Renews once, with as many attempts as there is time for.
    async fn renew(&mut self) -> Result<(), Lost> {
        let deadline = self.renewed + self.candidate.timings.renew_deadline;
        let mut last = Error::Unavailable(Outage::Timeout);
        loop {
            let begun = Instant::now();
            match tokio::time::timeout_at(deadline, self.write_renewal()).await {
                Ok(Ok(())) => {
                    self.renewed = begun;
                    return Ok(());
                }
                Ok(Err(Renewal::Taken(holder))) => {
                    return Err(Lost::Taken { name: self.candidate.name.clone(), holder });
                }
                Ok(Err(Renewal::Failed(error))) => {
                    tracing::warn!(lease = self.candidate.name, %error, "lease not renewed; trying again");
                    last = error;
                }
                Err(_) => return Err(self.not_renewed(last)),
            }
            let next = Instant::now() + self.candidate.timings.retry;
            tokio::time::sleep_until(next.min(deadline)).await;
            if Instant::now() >= deadline {
                return Err(self.not_renewed(last));
            }
        }
    }

    fn not_renewed(&self, last: Error) -> Lost {
        Lost::NotRenewed { name: self.candidate.name.clone(), last }
    }

    async fn write_renewal(&mut self) -> Result<(), Renewal> {
        let candidate = &self.candidate;
        let renewed = record::renewed(&self.lease, candidate.timings.lease, (candidate.now)());
        if let Some(lease) = candidate.replace(&renewed).await? {
            self.lease = lease;
            return Ok(());
        }
        // Somebody else wrote it: a person, this process in an attempt that seemed to fail, or another leader.
        match candidate.leases.get_opt(&candidate.name).await.map_err(Error::from)? {
            Some(lease) => {
                let holder = Record::of(&lease).holder;
                if holder != candidate.identity {
                    return Err(Renewal::Taken(holder));
                }
                let renewed = record::renewed(&lease, candidate.timings.lease, (candidate.now)());
                self.lease = candidate.replace(&renewed).await?.ok_or(Renewal::raced())?;
            }
            None => self.lease = candidate.create().await?.ok_or(Renewal::raced())?,
        }
        Ok(())
    }

    /// Clears the holder, if it is still this process. Whatever goes wrong, the Lease ends by itself.
    async fn give_up(self) {
        let candidate = &self.candidate;
        let deadline = self.renewed + candidate.timings.renew_deadline;
        let release = async {
            let released = record::released(&self.lease, (candidate.now)());
            if candidate.replace(&released).await?.is_some() {
                return Ok(());
            }
            let Some(lease) = candidate.leases.get_opt(&candidate.name).await? else { return Ok(()) };
            if Record::of(&lease).holder == candidate.identity {
                candidate.replace(&record::released(&lease, (candidate.now)())).await?;
            }
            Ok::<_, Error>(())
        };
        match tokio::time::timeout_at(deadline, release).await {
            Ok(Ok(())) => tracing::info!(lease = candidate.name, "lease given up"),
            Ok(Err(error)) => {
                tracing::warn!(lease = candidate.name, %error, "lease not given up; it ends by itself")
            }
            Err(_) => tracing::warn!(lease = candidate.name, "lease not given up in time; it ends by itself"),
        }
    }
}

/// Why one renewal did not work.
enum Renewal {
    Taken(String),
    Failed(Error),
}

impl Renewal {
    /// Two writers at the same moment: the next attempt shows who won.
    fn raced() -> Self {
        Self::Failed(Error::Unavailable(Outage::Timeout))
    }
}

impl From<Error> for Renewal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl std::fmt::Debug for Leadership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Leadership({} as {})", self.candidate.name, self.candidate.identity)
    }
}
