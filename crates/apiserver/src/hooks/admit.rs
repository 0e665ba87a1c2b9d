//! A request on its way through the chain.

use std::collections::BTreeMap;

use futures::future::join_all;
use serde_json::Value;
use tokio::time::Instant;

use super::chain::{Chain, Step};
use super::client::Resolver;
use super::hook::{FailurePolicy, Reinvocation, SideEffects};
use super::outcome::{Change, Denial, Notes, Outcome, Rejection, cut_bytes};
use super::request::{AdmissionRequest, GroupVersionKind, GroupVersionResource, set_api_version};
use super::transport::Transport;
use crate::patch;

/// The longest explanation of a patch that does not apply, in bytes.
const MAX_EXPLANATION: usize = 512;

/// Another version by which the same objects are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// The kind in that version.
    pub kind: GroupVersionKind,
    /// The resource in that version.
    pub resource: GroupVersionResource,
}

/// What hooks need beside the request.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The labels of a namespace; none if there is no such namespace.
    pub namespace_labels: &'a (dyn Fn(&str) -> Option<BTreeMap<String, String>> + Send + Sync),
    /// Fills in the defaults of an object after a hook has changed it.
    pub default: &'a (dyn Fn(&mut Value) + Send + Sync),
    /// A fresh uid for each call of a webhook.
    pub uid: &'a (dyn Fn() -> String + Send + Sync),
    /// The other versions of the request's resource, for webhooks that match any of them.
    pub equivalents: &'a [Equivalent],
    /// How services are found.
    pub resolver: &'a dyn Resolver,
    /// How webhooks are reached.
    pub transport: &'a Transport,
    /// When everything must be over.
    pub deadline: Instant,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// A request that may go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The object as hooks left it; none for a delete.
    pub object: Option<Value>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Audit annotations: `webhook name/key`.
    pub annotations: BTreeMap<String, String>,
}

/// Which half of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

/// Takes a request through the whole chain.
///
/// # Errors
/// A hook refuses it, or one that must answer cannot.
pub async fn admit(
    chain: &Chain,
    mut request: AdmissionRequest,
    ctx: &Context<'_>,
) -> Result<Admitted, Rejection> {
    let mut notes = mutate(chain, &mut request, ctx).await?;
    match validate(chain, &request, ctx).await {
        Ok(more) => notes.merge(more),
        Err(mut rejection) => {
            notes.merge(*rejection.notes);
            rejection.notes = Box::new(notes);
            return Err(rejection);
        }
    }
    Ok(Admitted { object: request.object, warnings: notes.warnings, annotations: notes.annotations })
}

/// Takes a request through the mutating hooks, one after another. They may change its object.
///
/// A hook that asks for it runs once more if a later one has changed the object.
///
/// # Errors
/// A hook refuses it, or one that must answer cannot.
pub async fn mutate(
    chain: &Chain,
    request: &mut AdmissionRequest,
    ctx: &Context<'_>,
) -> Result<Notes, Rejection> {
    let steps = chain.steps(Phase::Mutating);
    let mut notes = Notes::default();
    // Those that have run and would like to know of changes, and those that are going to learn of one.
    let mut have_run: Vec<usize> = Vec::new();
    let mut run_again: Vec<usize> = Vec::new();
    for second_round in [false, true] {
        for (at, step) in steps.iter().enumerate() {
            if second_round && !run_again.contains(&at) {
                continue;
            }
            let said = consult(step, request, Phase::Mutating, ctx, &mut notes).await;
            let said = said.map_err(|denial| Rejection { denial, notes: Box::new(notes.clone()) })?;
            let (invoked, object) = match said {
                Said::NotAsked => (false, None),
                Said::Allowed(object) => (true, object),
            };
            if let Some(object) = object
                && replace(request, object, ctx)
            {
                run_again.append(&mut have_run);
            }
            if invoked && step.policy().reinvocation == Reinvocation::IfNeeded {
                have_run.push(at);
            }
        }
        if run_again.is_empty() {
            break;
        }
    }
    Ok(notes)
}

/// Shows a request to the validating hooks, all at once.
///
/// # Errors
/// A hook refuses it, or one that must answer cannot; the first in the order of the chain, if several do.
pub async fn validate(
    chain: &Chain,
    request: &AdmissionRequest,
    ctx: &Context<'_>,
) -> Result<Notes, Rejection> {
    let calls = chain.steps(Phase::Validating).iter().map(|step| async {
        let mut notes = Notes::default();
        let said = consult(step, request, Phase::Validating, ctx, &mut notes).await;
        (said, notes)
    });
    let mut all = Notes::default();
    let mut first = None;
    for (said, notes) in join_all(calls).await {
        all.merge(notes);
        first = first.or(said.err());
    }
    match first {
        None => Ok(all),
        Some(denial) => Err(Rejection { denial, notes: Box::new(all) }),
    }
}

/// What came of one hook, if it does not refuse.
enum Said {
    /// It does not want to see the request.
    NotAsked,
    /// It agrees, or its failure is ignored; with the object as it would have it.
    Allowed(Option<Value>),
}

/// Asks one hook, if it wants to be asked.
async fn consult(
    step: &Step,
    request: &AdmissionRequest,
    phase: Phase,
    ctx: &Context<'_>,
    notes: &mut Notes,
) -> Result<Said, Denial> {
    let Some(seen) = step.wants(request, ctx)? else { return Ok(Said::NotAsked) };
    let (name, policy) = (step.name(), step.policy());
    if seen.dry_run && policy.side_effects == SideEffects::Some {
        let message = format!("admission webhook {name:?} does not support dry run");
        return Err(Denial::new(400, "BadRequest", message));
    }
    let left = ctx.deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Denial::timeout());
    }
    match step.ask(&seen, phase, ctx, policy.timeout.min(left)).await {
        Ok(mut answer) => {
            notes.add(name, &mut answer.outcome);
            let Outcome { denied, .. } = answer.outcome;
            match (denied, answer.change) {
                (Some(denial), _) => Err(denial.by(name)),
                (None, None) => Ok(Said::Allowed(None)),
                (None, Some(change)) => apply(name, &seen, change).map(Said::Allowed),
            }
        }
        Err(error) if policy.failure == FailurePolicy::Ignore => {
            tracing::warn!(webhook = name, %error, "failed calling webhook, failing open");
            if Instant::now() >= ctx.deadline {
                return Err(Denial::timeout());
            }
            Ok(Said::Allowed(None))
        }
        Err(error) => {
            tracing::warn!(webhook = name, %error, "failed calling webhook, failing closed");
            Err(Denial::internal(&format!("failed calling webhook {name:?}: {error}")))
        }
    }
}

/// The object as the hook `name` would have it. A change that does not fit is a fault whatever the failure policy:
/// the hook did answer.
fn apply(name: &str, request: &AdmissionRequest, change: Change) -> Result<Option<Value>, Denial> {
    let failed = |why: &str| Denial::internal(&format!("admission webhook {name:?} {why}"));
    let nothing = matches!(&change, Change::Patch(patch) if patch.trim_ascii() == b"[]");
    if nothing {
        return Ok(None);
    }
    let Some(before) = &request.object else {
        return Err(failed("attempted to modify the object, which is not supported for this operation"));
    };
    let object = match change {
        Change::Object(object) => object,
        Change::Patch(patch) => patch::json_patch(before.clone(), &patch).map_err(|error| match error {
            // What cannot be parsed is not shown.
            patch::Error::Malformed(_) => failed("returned a patch that is no JSON patch"),
            error => {
                let why = error.to_string();
                failed(&format!("returned a patch that does not apply: {}", cut_bytes(&why, MAX_EXPLANATION)))
            }
        })?,
    };
    let kept = |field: &str| object.get(field) == before.get(field);
    if !object.is_object() || !kept("apiVersion") || !kept("kind") {
        return Err(failed("attempted to change the kind of the object"));
    }
    if before["metadata"].is_object() && !object["metadata"].is_object() {
        return Err(failed("attempted to remove the metadata of the object"));
    }
    Ok(Some(object))
}

/// Puts a hook's object in the place of the request's, and says whether that changed it.
fn replace(request: &mut AdmissionRequest, mut object: Value, ctx: &Context<'_>) -> bool {
    // The hook may have seen another version.
    set_api_version(&mut object, &request.kind);
    let changed = request.object.as_ref() != Some(&object);
    if changed {
        (ctx.default)(&mut object);
        request.object = Some(object);
    }
    changed
}
