//! One call of a webhook: the question, and whether the answer is one.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::admit::{Context, Phase};
use super::outcome::{Change, Denial, MutationOutcome, Outcome};
use super::request::AdmissionRequest;
use super::transport::PostError;
use super::webhook::Webhook;

/// Why a webhook gave no usable answer; its failure policy decides.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// It was not reached, or did not answer.
    #[error("failed to call webhook: Post {url:?}: {cause}")]
    Post {
        /// Where.
        url: String,
        /// Why.
        cause: PostError,
    },
    /// It answered with something else.
    #[error("received invalid webhook response: {0}")]
    Answer(String),
    /// A hook in this process failed.
    #[error("{0}")]
    Hook(String),
}

/// Calls a webhook, for at most `timeout`.
pub(super) async fn call(
    webhook: &Webhook,
    request: &AdmissionRequest,
    phase: Phase,
    ctx: &Context<'_>,
    timeout: Duration,
) -> Result<MutationOutcome, CallError> {
    let (url, endpoint) = webhook.client.endpoint(ctx.resolver);
    // The webhook learns how long it has, in whole seconds.
    let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
    let query = format!("timeout={seconds}s");
    let uid = (ctx.uid)();
    let post = async {
        let body = request.to_review(&uid);
        ctx.transport.post(&endpoint?, &query, body.into()).await
    };
    let answer = match tokio::time::timeout(timeout, post).await {
        Ok(answer) => answer,
        Err(_) => Err(PostError::Deadline),
    };
    let answer = answer.map_err(|cause| CallError::Post { url: format!("{url}?{query}"), cause })?;
    read(&answer, &uid, phase).map_err(CallError::Answer)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    allowed: bool,
    status: Option<Status>,
    patch: Option<String>,
    patch_type: Option<String>,
    audit_annotations: Option<BTreeMap<String, String>>,
    warnings: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
struct Status {
    code: Option<i64>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<Value>,
}

/// Reads an answer to the call `uid`. What is wrong is said without showing what was answered.
fn read(answer: &[u8], uid: &str, phase: Phase) -> Result<MutationOutcome, String> {
    let review: Review = serde_json::from_slice(answer).map_err(|error| {
        format!("couldn't decode an AdmissionReview: line {}, column {}", error.line(), error.column())
    })?;
    let response = review.response.ok_or("webhook response was absent")?;
    if response.uid != uid {
        return Err(format!("expected response.uid={uid:?}, got another"));
    }
    if review.api_version != "admission.k8s.io/v1" || review.kind != "AdmissionReview" {
        return Err("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview".to_owned());
    }
    let patch = response.patch.filter(|patch| !patch.is_empty());
    let change = read_patch(patch, response.patch_type.as_deref(), phase)?;
    let denied = (!response.allowed).then(|| {
        let status = response.status.unwrap_or_default();
        Denial {
            code: status.code.and_then(|code| code.try_into().ok()).unwrap_or_default(),
            reason: status.reason.unwrap_or_default(),
            message: status.message.unwrap_or_default(),
            details: status.details.filter(Value::is_object).map(Box::new),
        }
    });
    let outcome = Outcome {
        denied,
        warnings: response.warnings.unwrap_or_default(),
        audit_annotations: response.audit_annotations.unwrap_or_default(),
    };
    Ok(MutationOutcome { outcome, change })
}

fn read_patch(
    patch: Option<String>,
    type_: Option<&str>,
    phase: Phase,
) -> Result<Option<Change>, &'static str> {
    match (phase, patch, type_) {
        (_, None, None) => Ok(None),
        (Phase::Validating, Some(_), _) => Err("validating webhook may not return response.patch"),
        (Phase::Validating, None, Some(_)) => Err("validating webhook may not return response.patchType"),
        (Phase::Mutating, Some(_), None) => Err("webhook returned response.patch but not response.patchType"),
        (Phase::Mutating, None, Some(_)) => Err("webhook returned response.patchType but not response.patch"),
        (Phase::Mutating, Some(patch), Some("JSONPatch")) => {
            let patch = STANDARD.decode(patch).map_err(|_| "response.patch is not base64")?;
            Ok(Some(Change::Patch(patch)))
        }
        (Phase::Mutating, Some(_), Some(_)) => Err("webhook returned an unsupported response.patchType"),
    }
}
