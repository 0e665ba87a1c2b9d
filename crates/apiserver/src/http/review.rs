//! Questions that are answered and not kept: what somebody may do, who somebody is, and a token for a service account.

use serde::Deserialize as _;
use serde_json::{Value, json};

use jiff::{SignedDuration, Timestamp};

use super::authenticate::token_bearer;
use crate::auth::service_accounts::{BoundObject, Claims, Grant, Reference};
use crate::authz::{self, ReviewError};
use crate::clock::rfc3339;
use crate::error::{ApiError, Result};
use crate::field_error::{FieldError, FieldErrorType};
use crate::store::{GroupResource, ObjectKey};
use crate::verbs::{Target, namespaces};

/// How long a token counts if nothing else is asked for.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
/// Beyond this the time to come has no meaning.
const MAX_SECONDS: i64 = 1 << 32;

/// The most audiences of a token, and the longest of them.
const MAX_AUDIENCES: usize = 32;
const MAX_AUDIENCE: usize = 512;

/// Answers a review that was sent to `namespace`.
pub(super) fn answer(target: &Target, namespace: Option<&str>, review: Value) -> Result<Value> {
    let def = &target.resource.def;
    let policy = target.plane.policy();
    let caller = target.identity.as_caller();
    let answered = match def.names.kind.as_str() {
        "SubjectAccessReview" => authz::subject_access_review(review, &policy),
        "LocalSubjectAccessReview" => {
            authz::local_subject_access_review(review, namespace.unwrap_or_default(), &policy)
        }
        "SelfSubjectAccessReview" => authz::self_subject_access_review(review, caller, &policy),
        "SelfSubjectRulesReview" => authz::self_subject_rules_review(review, caller, &policy),
        "SelfSubjectReview" => authz::self_subject_review(review, caller),
        "TokenReview" => return token_review(target, review),
        _ => return Err(ApiError::NoSuchPath),
    };
    let mut answered = answered.map_err(|error| match error {
        ReviewError::Invalid(errors) => ApiError::Invalid { subject: target.kind_subject(""), errors },
        ReviewError::BadRequest(message) => ApiError::BadRequest(message),
    })?;
    complete(&mut answered, &def.gv.to_string(), &def.names.kind, target.shared.options.clock.now());
    Ok(answered)
}

/// A review comes back with its kind, whoever left it out, and the time of the answer.
fn complete(review: &mut Value, api_version: &str, kind: &str, now: Timestamp) {
    review["apiVersion"] = json!(api_version);
    review["kind"] = json!(kind);
    if review["metadata"].is_null() {
        review["metadata"] = json!({});
    }
    review["metadata"]["creationTimestamp"] = json!(rfc3339(now));
}

fn texts(value: &Value) -> Option<Vec<String>> {
    Option::<Vec<String>>::deserialize(value).ok().map(Option::unwrap_or_default)
}

fn token_review(target: &Target, mut review: Value) -> Result<Value> {
    let def = &target.resource.def;
    let spec = &review["spec"];
    let token = spec["token"].as_str().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| ApiError::BadRequest("token is required for TokenReview".to_owned()))?;
    let audiences = texts(&spec["audiences"]);
    let audiences = audiences.ok_or_else(|| bad("spec.audiences must be a list of texts"))?;
    let status = match token_bearer(&target.shared, &target.plane, token, &audiences) {
        Some((identity, audiences)) => {
            json!({ "authenticated": true, "user": *identity, "audiences": audiences })
        }
        None => json!({ "user": {}, "error": "the token is not valid here" }),
    };
    // The answer need not carry the token about.
    review["spec"] = json!({ "audiences": audiences });
    review["status"] = status;
    complete(&mut review, &def.gv.to_string(), &def.names.kind, target.shared.options.clock.now());
    Ok(review)
}

fn bad(message: &str) -> ApiError {
    ApiError::BadRequest(message.to_owned())
}

/// Answers a TokenRequest for the service account `key`.
pub(super) fn token_request(target: &Target, key: &ObjectKey, mut request: Value) -> Result<Value> {
    let account = target.live(key)?;
    if !request.is_object() || !(request["spec"].is_null() || request["spec"].is_object()) {
        return Err(bad("the body must be a JSON object of kind TokenRequest"));
    }
    if request["kind"].as_str().is_some_and(|kind| kind != "TokenRequest") {
        return Err(bad("the body must be an object of kind TokenRequest"));
    }
    let mut errors = Vec::new();
    let spec = &request["spec"];
    let seconds = match &spec["expirationSeconds"] {
        Value::Null => DEFAULT_SECONDS,
        value => value.as_i64().unwrap_or_default(),
    };
    let mut out_of_range = |detail: &str| {
        errors.push(FieldError::invalid("spec.expirationSeconds", &spec["expirationSeconds"], detail));
    };
    if seconds < MIN_SECONDS {
        out_of_range("may not specify a duration less than 10 minutes");
    }
    if seconds > MAX_SECONDS {
        out_of_range("may not specify a duration larger than 2^32 seconds");
    }
    let audiences = texts(&spec["audiences"]).unwrap_or_else(|| {
        errors.push(FieldError::invalid("spec.audiences", &spec["audiences"], "must be a list of texts"));
        Vec::new()
    });
    if audiences.len() > MAX_AUDIENCES || audiences.iter().any(|audience| audience.len() > MAX_AUDIENCE) {
        let detail = format!("may have at most {MAX_AUDIENCES} entries of {MAX_AUDIENCE} bytes");
        errors.push(FieldError::new("spec.audiences", FieldErrorType::TooLong, detail));
    }
    let bound = bound_object(target, key, &spec["boundObjectRef"]);
    let bound = bound.unwrap_or_else(|error| {
        errors.push(*error);
        None
    });
    if !errors.is_empty() {
        let subject =
            crate::error::Subject { resource: "TokenRequest".to_owned(), ..target.kind_subject(&key.name) };
        return Err(ApiError::Invalid { subject, errors });
    }
    let options = &target.shared.options;
    let now = options.clock.now();
    let claims = Claims::new(Grant {
        plane: target.plane.name().clone(),
        namespace: key.namespace.to_string(),
        account: Reference { name: key.name.to_string(), uid: account.meta.uid.to_string() },
        bound,
        audiences,
        now,
        seconds,
        id: options.random.uuid(),
    });
    let signed = target.shared.signer.sign(&claims);
    let token = signed.ok_or_else(|| ApiError::Internal("no token can be signed".to_owned()))?;
    let expires =
        Timestamp::from_second(claims.expires()).unwrap_or(now + SignedDuration::from_secs(seconds));
    let mut answered_spec = spec.clone();
    answered_spec["audiences"] = json!(claims.audiences());
    answered_spec["expirationSeconds"] = json!(seconds);
    request["spec"] = answered_spec;
    request["status"] = json!({ "token": token, "expirationTimestamp": rfc3339(expires) });
    request["metadata"] = json!({ "name": &*key.name, "namespace": &*key.namespace });
    complete(&mut request, "authentication.k8s.io/v1", "TokenRequest", now);
    Ok(request)
}

/// The object that a token is to be bound to, as it is now.
fn bound_object(
    target: &Target,
    account: &ObjectKey,
    reference: &Value,
) -> Result<Option<BoundObject>, Box<FieldError>> {
    if reference.is_null() {
        return Ok(None);
    }
    let path = |field: &str| format!("spec.boundObjectRef.{field}");
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (resource, namespace) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") => ("pods", &*account.namespace),
        ("v1", "Secret") => ("secrets", &*account.namespace),
        ("v1", "Node") => ("nodes", ""),
        _ => {
            let detail = "must be a Pod, a Secret or a Node of v1";
            return Err(Box::new(FieldError::invalid(path("kind"), &reference["kind"], detail)));
        }
    };
    let key = ObjectKey::new(namespace, text("name"));
    let Some(found) = target.plane.store.get(&GroupResource::new("", resource), &key) else {
        let detail = "there is no such object";
        return Err(Box::new(FieldError::invalid(path("name"), &reference["name"], detail)));
    };
    if !text("uid").is_empty() && text("uid") != &*found.meta.uid {
        let detail = format!("does not match the object's uid {}", found.meta.uid);
        return Err(Box::new(FieldError::invalid(path("uid"), &reference["uid"], detail)));
    }
    let object = Reference { name: key.name.to_string(), uid: found.meta.uid.to_string() };
    Ok(Some(BoundObject { resource: resource.to_owned(), object }))
}

/// Refuses a review that is sent to a namespace that does not exist.
pub(super) fn check_namespace(target: &Target, namespace: Option<&str>) -> Result<()> {
    let Some(namespace) = namespace else { return Ok(()) };
    match target.plane.store.get(&namespaces(), &ObjectKey::new("", namespace)) {
        Some(_) => Ok(()),
        None => Err(ApiError::NotFound(crate::error::Subject {
            group: String::new(),
            resource: "namespaces".to_owned(),
            name: namespace.to_owned(),
        })),
    }
}
