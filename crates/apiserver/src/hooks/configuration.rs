//! `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration`: what users write, compiled once.
//!
//! A configuration that compiles is valid; what is wrong with one is told by field, as Kubernetes tells it.

mod rule;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{self, Client};
use super::conditions::{self, Conditions};
use super::hook::{FailurePolicy, Policy, Reinvocation, SideEffects};
use super::rules::Rules;
use super::selector::{self, Selector};
use super::webhook::Webhook;
use crate::field_error::{FieldError, FieldErrorType};
use crate::meta::NameRule;
use crate::store::GroupResource;

/// The API group of both kinds.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Which of the two kinds a configuration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigurationKind {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

impl ConfigurationKind {
    /// The kind whose objects are in a table, if it is one of the two.
    pub(crate) fn of(table: &GroupResource) -> Option<Self> {
        match (table.group.as_str(), table.resource.as_str()) {
            (GROUP, "mutatingwebhookconfigurations") => Some(Self::Mutating),
            (GROUP, "validatingwebhookconfigurations") => Some(Self::Validating),
            _ => None,
        }
    }

    /// The table that has its objects.
    pub(crate) fn table(self) -> GroupResource {
        let resource = match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        };
        GroupResource::new(GROUP, resource)
    }
}

/// A compiled configuration.
#[derive(Debug)]
pub struct Configuration {
    kind: ConfigurationKind,
    name: String,
    /// What tells one state of a stored configuration from another: uid and resource version.
    state: Option<(String, String)>,
    webhooks: Vec<Arc<Webhook>>,
}

/// A webhook as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    name: Option<String>,
    client_config: Option<client::Spec>,
    rules: Option<Vec<rule::Spec>>,
    failure_policy: Option<String>,
    match_policy: Option<String>,
    namespace_selector: Option<selector::Spec>,
    object_selector: Option<selector::Spec>,
    side_effects: Option<String>,
    timeout_seconds: Option<i64>,
    admission_review_versions: Option<Vec<String>>,
    match_conditions: Option<Vec<conditions::Spec>>,
    reinvocation_policy: Option<String>,
}

impl Configuration {
    /// Compiles a configuration object.
    ///
    /// # Errors
    /// Everything that is wrong with its webhooks.
    pub fn compile(kind: ConfigurationKind, object: &Value) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        let mut webhooks = Vec::new();
        let listed = match &object["webhooks"] {
            Value::Array(listed) => listed.as_slice(),
            Value::Null => &[],
            other => {
                let detail = "must be a list of webhooks";
                errors.push(FieldError::with_value("webhooks", FieldErrorType::TypeInvalid, other, detail));
                &[]
            }
        };
        for (i, webhook) in listed.iter().enumerate() {
            let path = format!("webhooks[{i}]");
            let spec = match Spec::deserialize(webhook) {
                Ok(spec) => spec,
                Err(error) => {
                    let class = FieldErrorType::TypeInvalid;
                    errors.push(FieldError::with_value(path, class, webhook, error.to_string()));
                    continue;
                }
            };
            if let Some(name) = spec.name.clone().filter(|name| !name.is_empty())
                && !names.insert(name.clone())
            {
                let at = format!("{path}.name");
                errors.push(FieldError::with_value(at, FieldErrorType::Duplicate, &json!(name), ""));
            }
            webhooks.extend(compile_webhook(kind, spec, &path, &mut errors).map(Arc::new));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (uid, version) = (text("uid"), text("resourceVersion"));
        let state = (!uid.is_empty() && !version.is_empty()).then_some((uid, version));
        Ok(Self { kind, name: text("name"), state, webhooks })
    }

    /// Its kind.
    pub fn kind(&self) -> ConfigurationKind {
        self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its webhooks, in order.
    pub fn webhooks(&self) -> &[Arc<Webhook>] {
        &self.webhooks
    }

    /// Whether `object` is the stored object that this was compiled from.
    pub(super) fn is_from(&self, kind: ConfigurationKind, object: &Value) -> bool {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let same =
            |(uid, version): &(String, String)| uid == text("uid") && version == text("resourceVersion");
        self.kind == kind && self.state.as_ref().is_some_and(same)
    }
}

/// Compiles one webhook. It is of use only if no errors were added.
fn compile_webhook(
    kind: ConfigurationKind,
    spec: Spec,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> Option<Webhook> {
    let name = spec.name.unwrap_or_default();
    check_name(&name, &format!("{path}.name"), errors);
    let rules = spec.rules.unwrap_or_default().into_iter().enumerate();
    let rules = rules.map(|(i, rule)| rule.compile(&format!("{path}.rules[{i}]"), errors)).collect();
    let failures = [("Fail", FailurePolicy::Fail), ("Ignore", FailurePolicy::Ignore)];
    let failure = choose(spec.failure_policy, &format!("{path}.failurePolicy"), &failures, errors);
    let matches = [("Equivalent", true), ("Exact", false)];
    let equivalent = choose(spec.match_policy, &format!("{path}.matchPolicy"), &matches, errors);
    let side_effects = compile_side_effects(spec.side_effects, &format!("{path}.sideEffects"), errors);
    let timeout = compile_timeout(spec.timeout_seconds, &format!("{path}.timeoutSeconds"), errors);
    let namespaces = Selector::compile(spec.namespace_selector, &format!("{path}.namespaceSelector"), errors);
    let objects = Selector::compile(spec.object_selector, &format!("{path}.objectSelector"), errors);
    let reinvocations = [("Never", Reinvocation::Never), ("IfNeeded", Reinvocation::IfNeeded)];
    let reinvocation = spec.reinvocation_policy.filter(|_| kind == ConfigurationKind::Mutating);
    let reinvocation = choose(reinvocation, &format!("{path}.reinvocationPolicy"), &reinvocations, errors);
    let client_config = spec.client_config.unwrap_or_default();
    let client = Client::compile(client_config, &format!("{path}.clientConfig"), errors);
    let conditions = Conditions::compile(spec.match_conditions, &format!("{path}.matchConditions"), errors);
    let versions = spec.admission_review_versions.unwrap_or_default();
    check_versions(&versions, &format!("{path}.admissionReviewVersions"), errors);
    Some(Webhook {
        name,
        client: client?,
        rules: Rules(rules),
        policy: Policy {
            failure: failure.unwrap_or(FailurePolicy::Fail),
            timeout,
            reinvocation: reinvocation.unwrap_or(Reinvocation::Never),
            side_effects: side_effects?,
        },
        equivalent: equivalent.unwrap_or(true),
        namespaces,
        objects,
        conditions,
    })
}

/// A domain of at least three parts, so that names of different authors do not meet.
fn check_name(name: &str, path: &str, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::new(path, FieldErrorType::Required, ""));
    } else if let Some(problem) = NameRule::Subdomain.problem(name) {
        errors.push(FieldError::invalid(path, &json!(name), problem));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}

fn compile_side_effects(
    given: Option<String>,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> Option<SideEffects> {
    let known = [("None", SideEffects::None), ("NoneOnDryRun", SideEffects::NoneOnDryRun)];
    if given.is_none() {
        let detail = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::new(path, FieldErrorType::Required, detail));
    }
    choose(given, path, &known, errors)
}

fn compile_timeout(given: Option<i64>, path: &str, errors: &mut Vec<FieldError>) -> Duration {
    match given {
        None => Policy::TIMEOUT,
        Some(seconds @ 1..=30) => Duration::from_secs(seconds.unsigned_abs()),
        Some(seconds) => {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(path, &json!(seconds), detail));
            Policy::TIMEOUT
        }
    }
}

fn check_versions(versions: &[String], path: &str, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::new(path, FieldErrorType::Required, "must specify one of v1"));
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let at = format!("{path}[{i}]");
        if versions[..i].contains(version) {
            errors.push(FieldError::invalid(at, &json!(version), "duplicate version"));
        } else if let Some(problem) = NameRule::Label1035.problem(version) {
            errors.push(FieldError::invalid(at, &json!(version), problem));
        }
    }
    if !versions.iter().any(|version| version == "v1") {
        errors.push(FieldError::invalid(path, &json!(versions), "must include at least one of v1"));
    }
}

/// The value that a name stands for; none if the field is absent or names nothing known, which is an error.
fn choose<T: Copy>(
    given: Option<String>,
    path: &str,
    known: &[(&str, T)],
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let given = given?;
    let found = known.iter().find(|(name, _)| *name == given).map(|(_, value)| *value);
    if found.is_none() {
        let mut names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        names.sort();
        let detail = format!("supported values: {}", names.join(", "));
        errors.push(FieldError::with_value(path, FieldErrorType::NotSupported, &json!(given), detail));
    }
    found
}
