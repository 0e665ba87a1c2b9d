//! Asking the ledger for one instance.

use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::{Instance, gates};
use compute_api::conditions::{self as c, Status};
use compute_api::names;
use compute_api::quota::ResourceClaim;
use compute_core::quota::claim::{self, Claimant, Found};
use compute_core::quota::size::{self, Size};
use compute_core::quota::{self, Outcome, pace};
use compute_core::{federation::Upstream, meta};
use compute_runtime::Key;
use tokio::time::Instant;

use super::Ledger;
use super::namespaces::Stands;
use super::project::{Project, Seen};

/// How long a granted claim is believed to be there if nobody of its project waits, and so nobody would see it go. One that has disappeared
/// is made again within this time and a little more; looking costs a project one list.
const UNSEEN: Duration = Duration::from_secs(3600);

/// How long until it is tried again to look.
const LOOK_AGAIN: Duration = Duration::from_secs(300);

/// How asking ended.
pub(in crate::cell) struct Answer {
    /// What the condition says.
    pub(in crate::cell) outcome: Outcome,
    /// When to ask again, if nothing happens before.
    pub(in crate::cell) again: Option<Duration>,
    /// What to fail with, once the condition is written.
    pub(in crate::cell) error: Option<anyhow::Error>,
}

impl Answer {
    pub(super) fn disabled() -> Self {
        Self { outcome: Outcome::Disabled, again: None, error: None }
    }

    fn new(outcome: Outcome) -> Self {
        Self { outcome, again: None, error: None }
    }

    fn after(self, wait: Duration) -> Self {
        let again = self.again.map_or(wait, |again| again.min(wait));
        Self { again: Some(again), ..self }
    }
}

/// One instance that asks, and whom.
struct Ask<'a> {
    key: &'a Key,
    instance: &'a Instance,
    upstream: &'a Upstream,
    project: &'a Arc<Project>,
}

impl Ledger {
    pub(super) async fn evaluate(&self, key: &Key, instance: &Instance) -> Answer {
        if is_settled(instance) && !self.projects.has_lost(key) {
            self.projects.settled(key);
            return Answer::new(Outcome::Granted).after(self.look_for_claim(key).await);
        }
        let mut answer = self.ask(key, instance).await;
        if answer.outcome == Outcome::Granted {
            self.projects.granted(key);
            if is_settled(instance) {
                self.projects.settled(key);
            }
        }
        if quota::is_failure(&answer.outcome) {
            let reason = quota::condition(&answer.outcome, None).reason;
            self.metrics.failed(&reason);
        }
        if answer.again.is_none() && !matches!(answer.outcome, Outcome::Granted) {
            answer = answer.after(self.recheck(instance));
        }
        tracing::debug!(%key, outcome = ?answer.outcome, again = ?answer.again, "quota was asked for");
        answer
    }

    /// Looks now and then whether the claims of a project are still there. When to come again.
    async fn look_for_claim(&self, key: &Key) -> Duration {
        let unseen = self.projects.unseen_for(key);
        if let Some(left) = UNSEEN.checked_sub(unseen).filter(|left| !left.is_zero()) {
            // One of a project comes first, and has looked for the others when they come.
            return left + UNSEEN.mul_f64(self.chance() / 10.0);
        }
        if let Ok(Stands::For(upstream)) = self.namespaces.upstream(&key.namespace).await
            && let Ok(project) = self.projects.join(&upstream, key)
        {
            project.audit(key);
        }
        LOOK_AGAIN
    }

    async fn ask(&self, key: &Key, instance: &Instance) -> Answer {
        let upstream = match self.namespaces.upstream(&key.namespace).await {
            Ok(Stands::For(upstream)) => upstream,
            Ok(Stands::ForNothing(message)) => {
                return Answer::new(Outcome::ProjectUnresolvable { message });
            }
            Err(error) => {
                let error = anyhow::Error::new(error).context("reading the namespace");
                return Answer { error: Some(error), ..Answer::new(Outcome::NotClaimed) };
            }
        };
        let project = match self.projects.join(&upstream, key) {
            Ok(project) => project,
            Err(error) => {
                tracing::warn!(
                    project = upstream.project,
                    error = format!("{error:#}"),
                    "no client for a project"
                );
                return Answer::new(Outcome::Unreachable {
                    message: "The quota service cannot be connected to".to_owned(),
                });
            }
        };
        project.wait(key);
        let stored =
            instance.status.as_ref().and_then(|status| c::find(&status.conditions, c::QUOTA_GRANTED));
        if stored
            .is_some_and(|stored| matches!(stored.reason.as_str(), c::QUOTA_EXCEEDED | c::QUOTA_NO_BUDGET))
        {
            project.line().was_denied(key, meta::created(&instance.metadata), Instant::now());
        }
        let ask = Ask { key, instance, upstream: &upstream, project: &project };
        let answer = self.find_claim(&ask).await;
        match answer.outcome {
            // It waits in line.
            Outcome::NotClaimed => {}
            Outcome::NotEvaluated => project.line().claims(key),
            // After a denial its own pause counts.
            _ => project.answered(key, answer.again.unwrap_or_else(|| self.recheck(instance))),
        }
        answer
    }

    /// How long until an instance is looked at again, by its age.
    fn recheck(&self, instance: &Instance) -> Duration {
        let age = meta::created(&instance.metadata).duration_until(self.cell.runtime().clock().now());
        pace::recheck(Duration::try_from(age).unwrap_or_default())
    }

    /// Finds the instance's claim, or makes it.
    async fn find_claim(&self, ask: &Ask<'_>) -> Answer {
        let Ask { key, instance, upstream, project } = ask;
        let name = names::claim_name(meta::name(&instance.metadata));
        let uid = meta::uid(&instance.metadata);
        // People watch new ones closely, and so does the watch; with older ones it is worth a request to be sure.
        let (closely, pause) = (pace::recheck(Duration::ZERO), self.recheck(instance));
        let patience = (pause > closely).then_some(pause);
        match project.seen(key, (&upstream.namespace, &name), uid, patience) {
            Seen::Claim(claim) => return self.judge(ask, &claim).await,
            Seen::Made => match self.claims.get(project, &upstream.namespace, &name).await {
                Ok(Some(claim)) => return self.judge_found(ask, claim).await,
                Ok(None) => project.unmade(key),
                Err(failure) => return Answer::new(claim::failed(&failure)),
            },
            // To make one that is there already fails, and tells so: that is one request, as a read would be.
            Seen::Absent | Seen::Unknown => {}
        }
        if let Err(wait) = project.line().take_turn(key, Instant::now()) {
            return Answer::new(Outcome::NotClaimed).after(wait);
        }
        self.make_claim(ask, &name).await
    }

    async fn make_claim(&self, ask: &Ask<'_>, name: &str) -> Answer {
        let Ask { key, instance, upstream, project } = ask;
        let size = match size_of(instance) {
            Ok(size) => size,
            Err(refused) => return Answer::new(refused),
        };
        let wanted = claim::build(self.claimant(instance, upstream), size);
        match self.claims.create(project, &wanted).await {
            Ok(Some(made)) => {
                if is_granted(instance) {
                    tracing::warn!(%key, claim = name, "a granted claim had disappeared and was made again");
                }
                let made = Arc::new(made);
                project.made(key, made.clone());
                self.judge(ask, &made).await
            }
            Ok(None) => match self.claims.get(project, &upstream.namespace, name).await {
                Ok(Some(claim)) => self.judge_found(ask, claim).await,
                Ok(None) => Answer::new(Outcome::NotClaimed),
                Err(failure) => Answer::new(claim::failed(&failure)),
            },
            Err(failure) => Answer::new(claim::failed(&failure)),
        }
    }

    /// What a claim means that was asked for.
    async fn judge_found(&self, ask: &Ask<'_>, found: ResourceClaim) -> Answer {
        let found = Arc::new(found);
        ask.project.made(ask.key, found.clone());
        self.judge(ask, &found).await
    }

    /// What a claim of the instance's name means.
    async fn judge(&self, ask: &Ask<'_>, held: &ResourceClaim) -> Answer {
        let Ask { key, instance, upstream, project } = ask;
        let (claimant, now) = (self.claimant(instance, upstream), self.cell.runtime().clock().now());
        let size = match size_of(instance) {
            Ok(size) => size,
            Err(refused) => return Answer::new(refused),
        };
        match claim::read(held, claimant, Some(size), [], now) {
            Found::Own(_) if claim::is_denied(held) => self.denied(ask, claimant, held).await,
            // The ledger does not look at it again.
            Found::Own(outcome) if claim::is_given_up(held, now) => self.displace(ask, held, outcome).await,
            Found::Own(outcome) => {
                if outcome == Outcome::Granted {
                    project.leave_line(key);
                }
                let answer = Answer::new(outcome);
                let patience = claim::undecided_for(held, now);
                match (&answer.outcome, patience) {
                    (Outcome::NotEvaluated, Some(left)) => answer.after(self.recheck(instance)).after(left),
                    _ => answer,
                }
            }
            Found::Leftover { leaving: true, .. } => Answer::new(Outcome::PredecessorLeaving),
            Found::Leftover { .. } => self.displace(ask, held, Outcome::PredecessorLeaving).await,
            Found::Wrong => {
                let message = "A quota claim of the instance's name asks for something else, and is replaced";
                self.displace(ask, held, Outcome::Refused { message: message.to_owned() }).await
            }
            Found::Foreign { source_cluster } => Answer::new(Outcome::HeldByOtherCell { source_cluster }),
        }
    }

    /// Deletes a claim that stands where the instance's own should. If what we know of the instance is old, the claim may be its successor's:
    /// so the server is asked first.
    async fn displace(&self, ask: &Ask<'_>, held: &ResourceClaim, outcome: Outcome) -> Answer {
        let Ask { key, instance, project, .. } = ask;
        let answer = Answer::new(outcome);
        match self.is_still_there(instance).await {
            Ok(true) => {}
            // What became of it is about to be shown.
            Ok(false) => return answer,
            Err(error) => {
                let error = anyhow::Error::new(error).context("looking whether the instance is still there");
                return Answer { error: Some(error), ..answer };
            }
        }
        project.unmade(key);
        match self.claims.delete(project, held).await {
            Ok(()) => answer,
            Err(failure) => Answer::new(claim::failed(&failure)),
        }
    }

    /// A denial is final, and its granted parts still count: the claim goes at once, and another follows later.
    async fn denied(&self, ask: &Ask<'_>, claimant: Claimant<'_>, held: &ResourceClaim) -> Answer {
        let Ask { key, instance, project, .. } = ask;
        let buckets = self.claims.buckets(project).await;
        let now = self.cell.runtime().clock().now();
        let Found::Own(outcome) = claim::read(held, claimant, None, &buckets, now) else {
            return Answer::new(Outcome::NotClaimed);
        };
        let (now, chance) = (Instant::now(), self.chance());
        let wait = {
            let mut line = project.line();
            let created = meta::created(&instance.metadata);
            line.denied(key, created, held.metadata.uid.as_deref(), now, |denials| {
                pace::after_denial(denials, chance)
            });
            line.wait(key, now)
        };
        project.unmade(key);
        let deleted = self.claims.delete(project, held).await;
        let answer = wait.into_iter().fold(Answer::new(outcome), Answer::after);
        match deleted {
            Ok(()) => answer,
            Err(failure) => {
                let error = anyhow::anyhow!("deleting a denied claim: {}", failure.message);
                Answer { error: Some(error), ..answer }
            }
        }
    }

    /// A number from 0 to 1.
    fn chance(&self) -> f64 {
        const BITS: u32 = 53;
        let bits = self.cell.runtime().random().next_u64() >> (u64::BITS - BITS);
        bits as f64 / (1_u64 << BITS) as f64
    }
}

/// What an instance takes, or what to say if that cannot be told.
fn size_of(instance: &Instance) -> Result<Size, Outcome> {
    size::of(&instance.spec).map_err(|error| Outcome::Refused {
        message: format!("The size of the instance cannot be told: {error}"),
    })
}

/// Whether an instance has its grant behind it: nothing is asked for it any more.
fn is_settled(instance: &Instance) -> bool {
    is_granted(instance) && !instance.spec.has_gate(gates::QUOTA)
}

/// Whether the condition says that quota is granted.
fn is_granted(instance: &Instance) -> bool {
    let stored = instance.status.as_ref().and_then(|status| c::find(&status.conditions, c::QUOTA_GRANTED));
    stored.is_some_and(|stored| Status::of(stored) == Status::True && stored.reason == c::QUOTA_AVAILABLE)
}
