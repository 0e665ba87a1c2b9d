//! Reviews: asking what somebody may do (`authorization.k8s.io`), and who one is (`authentication.k8s.io`).
//!
//! A review is answered, not stored: the object comes back with its `status` filled. What may be wrong with it is
//! reported as Kubernetes does.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::attributes::{Attributes, Caller, ResourceAttributes};
use super::json::nullable;
use super::policy::Policy;
use crate::auth::{Extra, Identity};
use crate::field_error::{FieldError, FieldErrorType};

/// Why a review is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The object breaks the rules of its kind.
    #[error("the review is invalid")]
    Invalid(Vec<FieldError>),
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AccessSpec {
    #[serde(deserialize_with = "nullable")]
    user: String,
    #[serde(deserialize_with = "nullable")]
    groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    uid: String,
    #[serde(deserialize_with = "nullable")]
    extra: Extra,
    resource_attributes: Option<ResourceSpec>,
    non_resource_attributes: Option<PathSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResourceSpec {
    #[serde(deserialize_with = "nullable")]
    namespace: String,
    #[serde(deserialize_with = "nullable")]
    verb: String,
    #[serde(deserialize_with = "nullable")]
    group: String,
    #[serde(deserialize_with = "nullable")]
    version: String,
    #[serde(deserialize_with = "nullable")]
    resource: String,
    #[serde(deserialize_with = "nullable")]
    subresource: String,
    #[serde(deserialize_with = "nullable")]
    name: String,
    field_selector: Option<SelectorSpec>,
    label_selector: Option<SelectorSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathSpec {
    #[serde(deserialize_with = "nullable")]
    path: String,
    #[serde(deserialize_with = "nullable")]
    verb: String,
}

/// Selectors narrow what is asked; no rule looks at them, so only their form matters.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectorSpec {
    #[serde(deserialize_with = "nullable")]
    raw_selector: String,
    #[serde(deserialize_with = "nullable")]
    requirements: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RulesSpec {
    #[serde(deserialize_with = "nullable")]
    namespace: String,
}

/// Answers a SubjectAccessReview: whether the user of its spec may do something.
pub fn subject_access_review(mut review: Value, policy: &Policy) -> Result<Value, ReviewError> {
    let spec: AccessSpec = read_spec(&review, "SubjectAccessReview")?;
    let mut errors = spec.check();
    errors.extend(spec.check_user());
    errors.extend(check_metadata(&review, false));
    answer_for_spec_user(&mut review, spec, policy, errors)?;
    Ok(review)
}

/// Answers a LocalSubjectAccessReview that was sent to `namespace`.
pub fn local_subject_access_review(
    mut review: Value,
    namespace: &str,
    policy: &Policy,
) -> Result<Value, ReviewError> {
    let spec: AccessSpec = read_spec(&review, "LocalSubjectAccessReview")?;
    let metadata = &mut review["metadata"];
    let own = metadata["namespace"].as_str().unwrap_or_default();
    if own.is_empty() {
        metadata["namespace"] = json!(namespace);
    } else if own != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ReviewError::BadRequest(message.to_owned()));
    }
    let mut errors = spec.check();
    errors.extend(spec.check_user());
    errors.extend(check_metadata(&review, true));
    if let Some(resource) = &spec.resource_attributes
        && resource.namespace != namespace
    {
        let path = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(path, &json!(resource.namespace), "must match metadata.namespace"));
    }
    if spec.non_resource_attributes.is_some() {
        let value = &review["spec"]["nonResourceAttributes"];
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", value, detail));
    }
    answer_for_spec_user(&mut review, spec, policy, errors)?;
    Ok(review)
}

/// Answers a SelfSubjectAccessReview: whether the caller may do something.
pub fn self_subject_access_review(
    mut review: Value,
    caller: Caller<'_>,
    policy: &Policy,
) -> Result<Value, ReviewError> {
    let spec: AccessSpec = read_spec(&review, "SelfSubjectAccessReview")?;
    let mut errors = spec.check();
    errors.extend(check_metadata(&review, false));
    answer(&mut review, caller, &spec, policy, errors)?;
    Ok(review)
}

/// Answers a SelfSubjectRulesReview: everything that the caller may do in a namespace.
pub fn self_subject_rules_review(
    mut review: Value,
    caller: Caller<'_>,
    policy: &Policy,
) -> Result<Value, ReviewError> {
    let spec: RulesSpec = read_spec(&review, "SelfSubjectRulesReview")?;
    if spec.namespace.is_empty() {
        return Err(ReviewError::BadRequest("no namespace on request".to_owned()));
    }
    let (rules, problem) = policy.rules_for(caller, &spec.namespace);
    let (mut resource_rules, mut path_rules) = (Vec::new(), Vec::new());
    for rule in &rules {
        if !rule.resources.is_empty() {
            let mut entry = json!({ "verbs": rule.verbs, "resources": rule.resources });
            for (field, values) in [("apiGroups", &rule.api_groups), ("resourceNames", &rule.resource_names)]
            {
                if !values.is_empty() {
                    entry[field] = json!(values);
                }
            }
            resource_rules.push(entry);
        }
        if !rule.non_resource_urls.is_empty() {
            path_rules.push(json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
        }
    }
    let mut status =
        json!({ "resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": false });
    if let Some(problem) = problem {
        status["evaluationError"] = json!(problem);
    }
    review["status"] = status;
    Ok(review)
}

/// Answers a SelfSubjectReview: who the caller is.
pub fn self_subject_review(mut review: Value, caller: Caller<'_>) -> Result<Value, ReviewError> {
    check_object(&review, "SelfSubjectReview")?;
    review["status"] = json!({ "userInfo": caller.to_identity() });
    Ok(review)
}

fn check_object(review: &Value, kind: &str) -> Result<(), ReviewError> {
    if review.is_object() {
        return Ok(());
    }
    Err(ReviewError::BadRequest(format!("the body cannot be handled as a {kind}: it is no object")))
}

fn read_spec<T: DeserializeOwned + Default>(review: &Value, kind: &str) -> Result<T, ReviewError> {
    check_object(review, kind)?;
    if !(review["metadata"].is_null() || review["metadata"].is_object()) {
        return Err(ReviewError::BadRequest(format!(
            "the body cannot be handled as a {kind}: its metadata is no object"
        )));
    }
    let spec: Option<T> = Deserialize::deserialize(&review["spec"]).map_err(|error| {
        ReviewError::BadRequest(format!("the body cannot be handled as a {kind}: {error}"))
    })?;
    Ok(spec.unwrap_or_default())
}

fn answer_for_spec_user(
    review: &mut Value,
    mut spec: AccessSpec,
    policy: &Policy,
    errors: Vec<FieldError>,
) -> Result<(), ReviewError> {
    let user = Identity {
        user: std::mem::take(&mut spec.user),
        uid: std::mem::take(&mut spec.uid),
        groups: std::mem::take(&mut spec.groups),
        extra: std::mem::take(&mut spec.extra),
    };
    answer(review, user.as_caller(), &spec, policy, errors)
}

fn answer(
    review: &mut Value,
    caller: Caller<'_>,
    spec: &AccessSpec,
    policy: &Policy,
    errors: Vec<FieldError>,
) -> Result<(), ReviewError> {
    let request = match spec.request(caller) {
        Some(request) if errors.is_empty() => request,
        _ => return Err(ReviewError::Invalid(errors)),
    };
    let decision = policy.allows(&request);
    let mut status = json!({ "allowed": decision.allowed });
    let reason = decision.reason();
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    review["status"] = status;
    Ok(())
}

impl AccessSpec {
    /// What is asked; `None` if it is nothing, which [`Self::check`] reports.
    fn request<'a>(&'a self, caller: Caller<'a>) -> Option<Attributes<'a>> {
        if let Some(spec) = &self.resource_attributes {
            let resource = ResourceAttributes {
                group: &spec.group,
                version: &spec.version,
                resource: &spec.resource,
                subresource: &spec.subresource,
                namespace: &spec.namespace,
                name: &spec.name,
            };
            return Some(Attributes::resource(caller, &spec.verb, resource));
        }
        let spec = self.non_resource_attributes.as_ref()?;
        Some(Attributes::path(caller, &spec.verb, &spec.path))
    }

    fn check(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        match (&self.resource_attributes, &self.non_resource_attributes) {
            (Some(_), Some(_)) => {
                let detail = "cannot be specified in combination with resourceAttributes";
                errors.push(FieldError::invalid("spec.nonResourceAttributes", &json!({}), detail));
            }
            (None, None) => {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                errors.push(FieldError::invalid("spec.resourceAttributes", &Value::Null, detail));
            }
            _ => {}
        }
        if let Some(resource) = &self.resource_attributes {
            let selectors =
                [("fieldSelector", &resource.field_selector), ("labelSelector", &resource.label_selector)];
            for (field, selector) in selectors {
                let path = format!("spec.resourceAttributes.{field}");
                errors.extend(selector.as_ref().and_then(|selector| selector.check(&path)));
            }
        }
        errors
    }

    fn check_user(&self) -> Option<FieldError> {
        let detail = "at least one of user or group must be specified";
        let nobody = self.user.is_empty() && self.groups.is_empty();
        nobody.then(|| FieldError::invalid("spec.user", &json!(""), detail))
    }
}

impl SelectorSpec {
    fn check(&self, path: &str) -> Option<FieldError> {
        match (self.raw_selector.is_empty(), self.requirements.is_empty()) {
            (false, false) => Some(FieldError::invalid(
                format!("{path}.rawSelector"),
                &json!(self.raw_selector),
                "may not specified at the same time as requirements",
            )),
            (true, true) => Some(FieldError::new(
                format!("{path}.requirements"),
                FieldErrorType::Required,
                format!("when {path} is specified, requirements or rawSelector is required"),
            )),
            _ => None,
        }
    }
}

/// A review has no metadata but, if `namespaced`, its namespace; clients that write all fields send them empty.
fn check_metadata(review: &Value, namespaced: bool) -> Option<FieldError> {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let counts = |field: &str| field != "managedFields" && !(namespaced && field == "namespace");
    let metadata = &review["metadata"];
    let fields = metadata.as_object().into_iter().flatten();
    let mut set = fields.filter(|(field, value)| counts(field) && !is_empty(value));
    set.next()?;
    let detail = if namespaced { "must be empty except for namespace" } else { "must be empty" };
    Some(FieldError::invalid("metadata", metadata, detail))
}
