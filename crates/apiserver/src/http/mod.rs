//! HTTP: from a request to a verb, and from its answer to a response.
//!
//! The way of a request, in order: plane from the path ([`route`]), caller from the credentials ([`authenticate`]), whether and as
//! whom the caller may do it ([`authorize`]), resource from the rest of the path, body and options ([`body`], [`query`]), verb, answer
//! in the form that was asked for ([`negotiate`], [`respond`]). In-process requests ([`PlaneService`]) skip the first two: their plane
//! and caller are fixed.

mod authenticate;
mod authorize;
mod body;
mod json;
mod listen;
mod negotiate;
mod protobuf;
mod query;
mod resource;
mod respond;
mod review;
mod route;
mod stream;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};

use crate::auth::Identity;
use crate::auth::certificate::ClientCertificate;
use crate::authz::{ResourcePath, path_request, resource_request};
use crate::error::{ApiError, Result};
use crate::planes::{Plane, PlaneName};
use crate::registry::definition::GroupVersion;
use crate::registry::discovery;
use crate::server::{ApiServer, Shared};
pub use listen::{ListenError, Tls, serve};
use query::Query;
pub use respond::Body;
pub use route::PlaneRoute;

/// An in-process way to one plane for one identity: a tower service that any HTTP client can stand on.
#[derive(Clone, Debug)]
pub struct PlaneService {
    server: ApiServer,
    plane: PlaneName,
    identity: Arc<Identity>,
}

impl PlaneService {
    pub(crate) fn new(server: ApiServer, plane: PlaneName, identity: Identity) -> Self {
        Self { server, plane, identity: Arc::new(identity.authenticated()) }
    }
}

impl<B> tower::Service<Request<B>> for PlaneService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, plane, identity } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path().to_owned();
            let answer = match server.0.planes.find(&plane) {
                Some(plane) => in_plane(&server.0, &plane, identity, &path, &parts, body).await,
                None => Err(ApiError::NoSuchPath),
            };
            Ok(answer.unwrap_or_else(|error| respond::error(&error)))
        })
    }
}

/// The whole server as a tower service: planes by path, callers by their credentials. [`serve`] puts it behind TLS; an
/// embedder with a listener of its own can do likewise.
#[derive(Clone, Debug)]
pub struct NetworkService {
    server: ApiServer,
    /// What the client has shown in the handshake.
    certificate: Option<Arc<ClientCertificate>>,
}

impl NetworkService {
    pub(crate) fn new(server: ApiServer) -> Self {
        Self { server, certificate: None }
    }

    fn for_connection(server: ApiServer, certificate: Option<ClientCertificate>) -> Self {
        Self { server, certificate: certificate.map(Arc::new) }
    }
}

impl<B> tower::Service<Request<B>> for NetworkService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { server, certificate } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answer = authenticated(&server.0, certificate.as_deref(), &parts, body).await;
            Ok(answer.unwrap_or_else(|error| respond::error(&error)))
        })
    }
}

/// Answers a request whose plane is named by its path and whose caller by its credentials.
async fn authenticated<B>(
    shared: &Arc<Shared>,
    certificate: Option<&ClientCertificate>,
    parts: &http::request::Parts,
    body: B,
) -> Result<Response<Body>>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let path = parts.uri.path();
    if matches!(path, "/healthz" | "/livez" | "/readyz") && parts.method == Method::GET {
        return Ok(respond::text("ok"));
    }
    let (name, rest) = route::plane_of(&shared.options, path);
    let (plane, identity) = authenticate::enter(shared, certificate, &parts.headers, name.as_ref())?;
    in_plane(shared, &plane, identity, rest, parts, body).await
}

/// Answers a request to a plane; `path` is relative to it.
async fn in_plane<B>(
    shared: &Arc<Shared>,
    plane: &Arc<Plane>,
    caller: Arc<Identity>,
    path: &str,
    parts: &http::request::Parts,
    body: B,
) -> Result<Response<Body>>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let segments = route::segments(path)?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let policy = plane.policy();
    let identity = authorize::acting(&policy, caller, &parts.headers)?;
    if let Some((group, version, rest)) = route::resource_segments(&segments) {
        let (place, query) = (route::place(rest)?, Query::parse(parts.uri.query()));
        let path = ResourcePath {
            group,
            version,
            resource: place.plural,
            subresource: place.subresource,
            namespace: place.namespace,
            name: place.name,
            watch: query.is_watch()?,
            selected_name: query.selected_name(),
        };
        authorize::check(&policy, &resource_request(identity.as_caller(), parts.method.as_str(), &path))?;
        return resource::serve(shared, plane, identity, (group, version), &place, query, parts, body).await;
    }
    let decoded = format!("/{}", segments.join("/"));
    authorize::check(&policy, &path_request(identity.as_caller(), parts.method.as_str(), &decoded))?;
    if parts.method != Method::GET {
        return Err(ApiError::NoSuchPath);
    }
    let registry = plane.registry();
    let json = |value: Option<serde_json::Value>| {
        value.map(|v| respond::json(&parts.headers, &v)).ok_or(ApiError::NoSuchPath)
    };
    let gv =
        |group: &str, version: &str| GroupVersion { group: group.to_owned(), version: version.to_owned() };
    let aggregated = negotiate::aggregated_discovery(&parts.headers);
    let document = |bytes: Option<Bytes>| {
        bytes
            .map(|bytes| respond::bytes(&parts.headers, bytes, "application/json"))
            .ok_or(ApiError::NoSuchPath)
    };
    match segments.as_slice() {
        ["version"] => json(Some(discovery::version())),
        ["healthz" | "livez" | "readyz"] => Ok(respond::text("ok")),
        ["api"] if aggregated => {
            Ok(respond::aggregated(&parts.headers, &discovery::aggregated(&registry, true)))
        }
        ["apis"] if aggregated => {
            Ok(respond::aggregated(&parts.headers, &discovery::aggregated(&registry, false)))
        }
        ["api"] => json(Some(discovery::core_versions())),
        ["apis"] => json(Some(discovery::group_list(&registry))),
        ["api", version] => json(discovery::resource_list(&registry, &gv("", version))),
        ["apis", group] => json(discovery::group(&registry, group)),
        ["apis", group, version] => json(discovery::resource_list(&registry, &gv(group, version))),
        ["openapi", "v3"] => document(Some(registry.openapi_index())),
        ["openapi", "v3", "api", version] => document(registry.openapi(&gv("", version))),
        ["openapi", "v3", "apis", group, version] => document(registry.openapi(&gv(group, version))),
        _ => Err(ApiError::NoSuchPath),
    }
}
