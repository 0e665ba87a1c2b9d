//! Hooks that run in this process.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use super::outcome::{MutationOutcome, Outcome};
use super::request::AdmissionRequest;
use super::rules::Rules;

/// What happens to a request when a hook cannot answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    #[default]
    Fail,
    /// It goes on as if the hook were not there.
    Ignore,
}

/// Whether a mutating hook runs once more when a later one has changed the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reinvocation {
    /// It runs once.
    #[default]
    Never,
    /// It may run once more.
    IfNeeded,
}

/// What a hook does beside answering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SideEffects {
    /// Nothing.
    #[default]
    None,
    /// Something, but nothing in a dry run.
    NoneOnDryRun,
    /// Something, always; a dry run that would reach it is refused.
    Some,
}

/// How a hook is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What happens when it cannot answer.
    pub failure: FailurePolicy,
    /// How long one call may take.
    pub timeout: Duration,
    /// Whether it may run twice.
    pub reinvocation: Reinvocation,
    /// What it does beside answering.
    pub side_effects: SideEffects,
}

impl Policy {
    /// The timeout of a hook that names none.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            failure: FailurePolicy::default(),
            timeout: Self::TIMEOUT,
            reinvocation: Reinvocation::default(),
            side_effects: SideEffects::default(),
        }
    }
}

/// Why a hook could not answer. Its text goes to the client, so it must not show objects.
pub type HookError = Box<dyn std::error::Error + Send + Sync>;

/// An admission hook that runs in this process, with the same meaning as a webhook.
///
/// # Assumptions
/// The same request may be put to a hook more than once (a lost race, a reinvocation), and its answer must not depend
/// on how often. Dropping the future is how a timeout ends a call.
pub trait Hook: Send + Sync {
    /// The name in errors, warnings and annotations: like a webhook's, `validation.example.com`.
    fn name(&self) -> &str;

    /// Which requests it wants to see.
    fn rules(&self) -> &Rules;

    /// Whether it has a say in a plane; in all, unless it says otherwise.
    fn in_plane(&self, plane: &str) -> bool {
        let _ = plane;
        true
    }

    /// How it is treated.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// Looks at a request, and may change its object.
    ///
    /// # Errors
    /// The hook cannot answer; its failure policy decides.
    fn mutate<'a>(
        &'a self,
        request: &'a AdmissionRequest,
    ) -> BoxFuture<'a, Result<MutationOutcome, HookError>> {
        let _ = request;
        ready(Ok(MutationOutcome::default())).boxed()
    }

    /// Looks at a request as it is going to be written.
    ///
    /// # Errors
    /// The hook cannot answer; its failure policy decides.
    fn validate<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, Result<Outcome, HookError>> {
        let _ = request;
        ready(Ok(Outcome::allow())).boxed()
    }
}
