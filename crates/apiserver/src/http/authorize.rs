//! Whether a caller may do what a request asks, and as whom.

use std::sync::Arc;

use http::HeaderMap;

use crate::audit::Trail;
use crate::auth::Identity;
use crate::authz::{Attributes, Impersonation, Policy};
use crate::error::{ApiError, Result};

/// Whom a request is served as: the caller, or whom the `Impersonate-*` headers name.
///
/// # Errors
/// The headers make no sense, or the caller may not act as that user.
pub(super) fn acting(
    policy: &Policy,
    caller: Arc<Identity>,
    headers: &HeaderMap,
    trail: &Trail,
) -> Result<Arc<Identity>> {
    let texts = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let asked =
        Impersonation::from_headers(texts).map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let Some(asked) = asked else { return Ok(caller) };
    for attributes in asked.required(caller.as_caller()) {
        check(policy, &attributes)?;
    }
    let user = Arc::new(asked.into_user());
    trail.impersonated(&user);
    Ok(user)
}

fn check(policy: &Policy, attributes: &Attributes<'_>) -> Result<()> {
    let decision = policy.allows(attributes);
    if decision.allowed { Ok(()) } else { Err(ApiError::refused(attributes, &decision)) }
}

/// Refuses a request that no rule allows, and notes why it is allowed or not.
pub(super) fn decide(policy: &Policy, attributes: &Attributes<'_>, trail: &Trail) -> Result<()> {
    let decision = policy.allows(attributes);
    if trail.is_kept() {
        trail.annotate("authorization.k8s.io/decision", if decision.allowed { "allow" } else { "forbid" });
        trail.annotate("authorization.k8s.io/reason", &decision.reason());
    }
    if decision.allowed { Ok(()) } else { Err(ApiError::refused(attributes, &decision)) }
}
