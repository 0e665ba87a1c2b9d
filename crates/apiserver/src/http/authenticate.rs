//! From credentials to a caller: a client certificate, a token that the embedder gave out, or one of a service account.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use std::sync::Arc;

use crate::audit::Trail;
use crate::auth::Identity;
use crate::auth::certificate::ClientCertificate;
use crate::auth::service_accounts::{BoundObject, Claims, Reference};
use crate::error::{ApiError, Result, Subject};
use crate::planes::{Plane, PlaneName};
use crate::server::Shared;
use crate::store::{GroupResource, ObjectKey};

/// The plane that a request may enter, and as whom. `name` is none if no plane can have the name in the path.
///
/// # Errors
/// 401 if nothing valid was shown. 403 if it was, but for other planes; whether there is such a plane makes no
/// difference.
pub(super) fn enter(
    shared: &Shared,
    certificate: Option<&ClientCertificate>,
    headers: &HeaderMap,
    name: Option<&PlaneName>,
    trail: &Trail,
) -> Result<(Arc<Plane>, Arc<Identity>)> {
    let now = shared.options.clock.now();
    let find = |name: &PlaneName| shared.planes.find(name).ok_or(ApiError::NoSuchPath);
    let token = bearer_token(headers);
    let holder = certificate.and_then(|certificate| certificate.holder(now)).cloned();
    if let Some(holder) = holder.or_else(|| shared.tokens.identify(token?, now)) {
        trail.caller(&holder.identity);
        let name = name.filter(|name| holder.opens(name)).ok_or_else(refused)?;
        return Ok((find(name)?, holder.identity));
    }
    let claims = token.and_then(|token| shared.signer.verify(token, now)).ok_or(ApiError::Unauthorized)?;
    let identity = Arc::new(claims.identity());
    trail.caller(&identity);
    let name = name.filter(|name| claims.is_of(name)).ok_or_else(refused)?;
    // The token is of this plane, so that it exists, or not any more, is no secret.
    let plane = shared.planes.find(name).ok_or(ApiError::Unauthorized)?;
    if !claims.is_for(name, &[]) || !is_current(&plane, &claims) {
        return Err(ApiError::Unauthorized);
    }
    Ok((plane, identity))
}

/// The one answer for every plane that credentials do not open, whether it exists or not.
fn refused() -> ApiError {
    let message = "forbidden: the credentials are not valid for this control plane".to_owned();
    ApiError::Forbidden { subject: Subject::default(), message, causes: Vec::new() }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether the service account of a token, and what the token is bound to, are still the ones it was made for.
fn is_current(plane: &Plane, claims: &Claims) -> bool {
    let (namespace, account) = claims.account();
    let is_there = |resource: &str, object: &Reference| {
        let namespace = if resource == "nodes" { "" } else { namespace };
        let found =
            plane.store.get(&GroupResource::new("", resource), &ObjectKey::new(namespace, &object.name));
        found.is_some_and(|found| *found.meta.uid == *object.uid)
    };
    let bound = |bound: &BoundObject| is_there(&bound.resource, &bound.object);
    is_there("serviceaccounts", account) && claims.bound().is_none_or(bound)
}

/// Who bears a token in a plane, and for which of `audiences` (none: the plane's own API) it counts.
pub(super) fn token_bearer(
    shared: &Shared,
    plane: &Plane,
    token: &str,
    audiences: &[String],
) -> Option<(Arc<Identity>, Vec<String>)> {
    let now = shared.options.clock.now();
    if let Some(holder) = shared.tokens.identify(token, now).filter(|holder| holder.opens(plane.name())) {
        // Such a token is for the server alone, whatever else asks for it.
        let own = crate::auth::service_accounts::issuer(plane.name());
        return match audiences {
            [] => Some((holder.identity, Vec::new())),
            _ if audiences.contains(&own) => Some((holder.identity, vec![own])),
            _ => None,
        };
    }
    let claims = shared.signer.verify(token, now)?;
    let counts =
        claims.is_of(plane.name()) && claims.is_for(plane.name(), audiences) && is_current(plane, &claims);
    let common = || claims.audiences().iter().filter(|own| audiences.is_empty() || audiences.contains(own));
    counts.then(|| (Arc::new(claims.identity()), common().cloned().collect()))
}
