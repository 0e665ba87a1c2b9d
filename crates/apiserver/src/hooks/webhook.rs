//! A compiled webhook, and which requests it is called for.

use std::borrow::Cow;

use serde_json::json;

use super::admit::{Context, Equivalent};
use super::client::Client;
use super::conditions::Conditions;
use super::configuration::GROUP;
use super::hook::{FailurePolicy, Policy};
use super::outcome::Denial;
use super::request::{AdmissionRequest, GroupVersionKind, Operation};
use super::rules::Rules;
use super::selector::Selector;

/// One webhook of a configuration, compiled.
#[derive(Debug)]
pub struct Webhook {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) rules: Rules,
    pub(super) policy: Policy,
    /// Whether a request by another version of the resource counts.
    pub(super) equivalent: bool,
    pub(super) namespaces: Selector,
    pub(super) objects: Selector,
    pub(super) conditions: Conditions,
}

impl Webhook {
    /// Its name, unique within its configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is treated.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The request as this webhook sees it, or none if it is not called.
    ///
    /// # Errors
    /// It cannot be decided whether the webhook is to be called.
    pub(super) fn wants<'r>(
        &self,
        request: &'r AdmissionRequest,
        ctx: &Context<'_>,
    ) -> Result<Option<Cow<'r, AdmissionRequest>>, Denial> {
        let seen = match self.seen_as(request, ctx.equivalents) {
            None => return Ok(None),
            Some(None) => Cow::Borrowed(request),
            Some(Some(other)) => Cow::Owned(request.in_version(&other.kind, &other.resource)),
        };
        let picked = self.objects.is_empty()
            || [&seen.object, &seen.old_object].into_iter().flatten().any(|o| self.objects.matches_object(o));
        if !picked || !self.in_namespace(&seen, ctx)? {
            return Ok(None);
        }
        match self.conditions.hold(&seen) {
            Ok(true) => Ok(Some(seen)),
            Ok(false) => Ok(None),
            Err(_) if self.policy.failure == FailurePolicy::Ignore => Ok(None),
            Err(undecided) => Err(forbidden(request, &undecided.to_string())),
        }
    }

    /// Whether the rules name the request's resource, and if not in its own version, in which.
    pub(super) fn seen_as<'e>(
        &self,
        request: &AdmissionRequest,
        equivalents: &'e [Equivalent],
    ) -> Option<Option<&'e Equivalent>> {
        if is_exempt(&request.kind) {
            return None;
        }
        if self.rules.matches(request) {
            return Some(None);
        }
        let others = if self.equivalent { equivalents } else { &[] };
        others.iter().find(|other| self.rules.matches_as(request, &other.resource)).map(Some)
    }

    fn in_namespace(&self, request: &AdmissionRequest, ctx: &Context<'_>) -> Result<bool, Denial> {
        let is_namespace = request.resource.is_namespaces();
        if self.namespaces.is_empty() || (request.namespace.is_empty() && !is_namespace) {
            return Ok(true);
        }
        // What is stored does not know yet what a write to the namespace itself is about to change.
        if is_namespace
            && request.subresource.is_empty()
            && matches!(request.operation, Operation::Create | Operation::Update)
        {
            return Ok(request.object.as_ref().is_some_and(|object| self.namespaces.matches_object(object)));
        }
        let namespace = if request.namespace.is_empty() { &request.name } else { &request.namespace };
        let labels = (ctx.namespace_labels)(namespace).ok_or_else(|| Denial {
            details: Some(Box::new(json!({ "name": namespace, "kind": "namespaces" }))),
            ..Denial::new(404, "NotFound", format!("namespaces {namespace:?} not found"))
        })?;
        Ok(self.namespaces.matches(|key| labels.get(key).map(String::as_str)))
    }
}

/// Kinds that decide over webhooks: were they sent to webhooks, a broken one could not be removed.
fn is_exempt(kind: &GroupVersionKind) -> bool {
    kind.group == GROUP
        && matches!(
            kind.kind.as_str(),
            "MutatingWebhookConfiguration"
                | "ValidatingWebhookConfiguration"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
        )
}

fn forbidden(request: &AdmissionRequest, why: &str) -> Denial {
    let resource = request.resource.qualified();
    let message = match request.name.as_str() {
        "" => format!("{resource} is forbidden: {why}"),
        name => format!("{resource} {name:?} is forbidden: {why}"),
    };
    let mut details = json!({ "kind": request.resource.resource });
    for (field, value) in [("name", &request.name), ("group", &request.resource.group)] {
        if !value.is_empty() {
            details[field] = json!(value);
        }
    }
    Denial { details: Some(Box::new(details)), ..Denial::new(403, "Forbidden", message) }
}
