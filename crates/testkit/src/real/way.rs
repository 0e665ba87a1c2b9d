//! Ways to planes: each carries requests to one plane as one identity, whatever serves the plane.

use std::io;

use bytes::Bytes;
use compute_api::milo::{RESOURCE_MANAGER_GROUP, extra};
use compute_apiserver::{ApiServer, Identity, PlaneName};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

/// What comes back.
pub type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// A way to one plane.
pub type Way = BoxCloneSyncService<Request<Body>, Response<Answer>, io::Error>;

/// To a plane of the embedded server in this process.
pub fn embedded(server: &ApiServer, plane: &PlaneName, identity: Identity) -> Way {
    let service = server.service(plane, identity);
    let carry = tower::service_fn(move |request: Request<Body>| {
        let service = service.clone();
        async move {
            let answer = service.oneshot(request).await.map_err(io::Error::other)?;
            Ok(answer.map(|body| body.map_err(io::Error::other).boxed_unsync()))
        }
    });
    BoxCloneSyncService::new(carry)
}

/// To a server elsewhere.
pub fn remote(client: &Client, credentials: Credentials) -> Way {
    let client = client.clone();
    let carry = tower::service_fn(move |mut request: Request<Body>| {
        let (client, credentials) = (client.clone(), credentials.clone());
        async move {
            credentials.write(request.headers_mut())?;
            let answer = client.send(request).await.map_err(io::Error::other)?;
            Ok(answer.map(|body| body.map_err(io::Error::other).boxed_unsync()))
        }
    });
    BoxCloneSyncService::new(carry)
}

/// By what a server elsewhere knows the caller.
#[derive(Clone)]
pub enum Credentials {
    /// Those that the request or the client brings.
    Own,
    /// A front that the server trusts says who it is.
    Vouched {
        /// The front's own token.
        token: String,
        /// Who it is.
        identity: Identity,
    },
}

impl Credentials {
    fn write(&self, headers: &mut HeaderMap) -> io::Result<()> {
        let Self::Vouched { token, identity } = self else { return Ok(()) };
        headers.insert(AUTHORIZATION, value(&format!("Bearer {token}"))?);
        if !headers.contains_key(IMPERSONATE_USER) {
            headers.insert(IMPERSONATE_USER, value(&identity.user)?);
            for group in &identity.groups {
                headers.append("impersonate-group", value(group)?);
            }
        }
        write_extra(headers, identity)
    }
}

const IMPERSONATE_USER: &str = "impersonate-user";

fn value(text: &str) -> io::Result<HeaderValue> {
    HeaderValue::try_from(text).map_err(io::Error::other)
}

/// Gives whoever is impersonated the extra information of an identity.
fn write_extra(headers: &mut HeaderMap, identity: &Identity) -> io::Result<()> {
    for (key, values) in &identity.extra {
        let name = format!("impersonate-extra-{}", key.replace('/', "%2f"));
        let name = HeaderName::try_from(&name).map_err(io::Error::other)?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Ok(())
}

/// Somebody in the context of a project, as the platform's front says it of every request there.
pub fn in_project(mut identity: Identity, project: &str) -> Identity {
    for (key, value) in [
        (extra::PARENT_API_GROUP, RESOURCE_MANAGER_GROUP),
        (extra::PARENT_TYPE, "Project"),
        (extra::PARENT_NAME, project),
    ] {
        identity.extra.insert(key.to_owned(), vec![value.to_owned()]);
    }
    identity
}

/// The same way, on which people who are impersonated are in the caller's context, too.
pub fn with_context(way: Way, identity: Identity) -> Way {
    let carry = tower::service_fn(move |mut request: Request<Body>| {
        let (way, identity) = (way.clone(), identity.clone());
        async move {
            if request.headers().contains_key(IMPERSONATE_USER) {
                write_extra(request.headers_mut(), &identity)?;
            }
            way.oneshot(request).await
        }
    });
    BoxCloneSyncService::new(carry)
}
