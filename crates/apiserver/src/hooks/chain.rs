//! All hooks of a plane in the order in which they are asked.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;

use super::admit::{Context, Equivalent, Phase};
use super::call::{self, CallError};
use super::configuration::{Configuration, ConfigurationKind};
use super::hook::{Hook, Policy};
use super::outcome::{Denial, MutationOutcome};
use super::request::AdmissionRequest;
use super::webhook::Webhook;
use crate::field_error::FieldError;

/// A stored configuration that does not compile. Configurations are compiled when they are written, so this means that the
/// rules for them have changed since.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("webhook configuration {name:?} is invalid: {}", .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
pub struct BadConfiguration {
    /// Its kind.
    pub kind: ConfigurationKind,
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub errors: Vec<FieldError>,
}

/// All hooks of a plane, in order: those in this process, then the webhooks by the names of their configurations.
#[derive(Clone, Default)]
pub struct Chain {
    hooks: Vec<Arc<dyn Hook>>,
    configurations: Vec<Arc<Configuration>>,
    mutating: Vec<Step>,
    validating: Vec<Step>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |steps: &[Step]| steps.iter().map(|step| step.name().to_owned()).collect::<Vec<_>>();
        f.debug_struct("Chain")
            .field("mutating", &names(&self.mutating))
            .field("validating", &names(&self.validating))
            .finish_non_exhaustive()
    }
}

impl Chain {
    /// Compiles a chain from configuration objects and in-process hooks.
    ///
    /// # Errors
    /// A configuration is invalid.
    pub fn compile(
        mutating: &[Value],
        validating: &[Value],
        hooks: &[Arc<dyn Hook>],
    ) -> Result<Self, BadConfiguration> {
        Self { hooks: hooks.to_vec(), ..Self::default() }.recompile(mutating, validating)
    }

    /// The chain with the same in-process hooks and these configuration objects. Those that have not changed since they
    /// were stored are not compiled again.
    ///
    /// # Errors
    /// A configuration is invalid.
    pub fn recompile(&self, mutating: &[Value], validating: &[Value]) -> Result<Self, BadConfiguration> {
        let objects = mutating.iter().map(|object| (ConfigurationKind::Mutating, object));
        let objects = objects.chain(validating.iter().map(|object| (ConfigurationKind::Validating, object)));
        let mut configurations = Vec::with_capacity(mutating.len() + validating.len());
        for (kind, object) in objects {
            let kept = self.configurations.iter().find(|kept| kept.is_from(kind, object));
            configurations.push(match kept {
                Some(kept) => kept.clone(),
                None => Arc::new(Configuration::compile(kind, object).map_err(|errors| {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    BadConfiguration { kind, name, errors }
                })?),
            });
        }
        configurations.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(Self::of(self.hooks.clone(), configurations))
    }

    /// The chain with one more in-process hook, which is asked after the others.
    #[must_use]
    pub fn with_hook(&self, hook: Arc<dyn Hook>) -> Self {
        let hooks = self.hooks.iter().cloned().chain([hook]).collect();
        Self::of(hooks, self.configurations.clone())
    }

    /// The chain with these in-process hooks and the configurations of `other`.
    #[must_use]
    pub fn configured_as(&self, other: &Self) -> Self {
        Self::of(self.hooks.clone(), other.configurations.clone())
    }

    /// Puts everything in order; `configurations` are.
    fn of(hooks: Vec<Arc<dyn Hook>>, configurations: Vec<Arc<Configuration>>) -> Self {
        let steps = |kind: ConfigurationKind| {
            let hooks = hooks.iter().cloned().map(Step::Hook);
            let configurations = configurations.iter().filter(|found| found.kind() == kind);
            let webhooks = configurations.flat_map(|found| found.webhooks().iter().cloned());
            hooks.chain(webhooks.map(Step::Webhook)).collect()
        };
        let (mutating, validating) =
            (steps(ConfigurationKind::Mutating), steps(ConfigurationKind::Validating));
        Self { hooks, configurations, mutating, validating }
    }

    /// Whether a hook may want to see a request, as far as its resource and operation tell. Objects need not be there yet.
    pub fn concerns(&self, request: &AdmissionRequest, equivalents: &[Equivalent]) -> bool {
        let steps = self.mutating.iter().chain(&self.validating);
        steps.into_iter().any(|step| step.concerns(request, equivalents))
    }

    /// Whether there is nobody to ask, so that nothing need be prepared for it.
    pub fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }

    pub(super) fn steps(&self, phase: Phase) -> &[Step] {
        match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        }
    }
}

/// One place in the chain.
#[derive(Clone)]
pub(super) enum Step {
    Hook(Arc<dyn Hook>),
    Webhook(Arc<Webhook>),
}

impl Step {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Hook(hook) => hook.name(),
            Self::Webhook(webhook) => webhook.name(),
        }
    }

    pub(super) fn policy(&self) -> Policy {
        match self {
            Self::Hook(hook) => hook.policy(),
            Self::Webhook(webhook) => webhook.policy(),
        }
    }

    fn concerns(&self, request: &AdmissionRequest, equivalents: &[Equivalent]) -> bool {
        match self {
            Self::Hook(hook) => hook.in_plane(&request.plane) && hook.rules().matches(request),
            Self::Webhook(webhook) => webhook.seen_as(request, equivalents).is_some(),
        }
    }

    /// The request as the hook sees it, or none if it is not asked.
    pub(super) fn wants<'r>(
        &self,
        request: &'r AdmissionRequest,
        ctx: &Context<'_>,
    ) -> Result<Option<Cow<'r, AdmissionRequest>>, Denial> {
        match self {
            Self::Hook(_) => Ok(self.concerns(request, &[]).then_some(Cow::Borrowed(request))),
            Self::Webhook(webhook) => webhook.wants(request, ctx),
        }
    }

    /// Asks the hook, for at most `timeout`.
    pub(super) async fn ask(
        &self,
        request: &AdmissionRequest,
        phase: Phase,
        ctx: &Context<'_>,
        timeout: Duration,
    ) -> Result<MutationOutcome, CallError> {
        let hook = match self {
            Self::Webhook(webhook) => return call::call(webhook, request, phase, ctx, timeout).await,
            Self::Hook(hook) => hook,
        };
        let asked = async {
            match phase {
                Phase::Mutating => hook.mutate(request).await,
                Phase::Validating => hook.validate(request).await.map(MutationOutcome::from),
            }
        };
        // A hook that panics has failed; it must not take down the connection, which others may share.
        match tokio::time::timeout(timeout, AssertUnwindSafe(asked).catch_unwind()).await {
            Ok(Ok(answer)) => answer.map_err(|error| CallError::Hook(error.to_string())),
            Ok(Err(_)) => Err(CallError::Hook("the hook panicked".to_owned())),
            Err(_) => Err(CallError::Hook("context deadline exceeded".to_owned())),
        }
    }
}
