//! HTTP: from a request to a verb, and from its answer to a response.
//!
//! The way of a request, in order: plane from the path ([`route`]), caller from the credentials ([`authenticate`]), whether and as
//! whom the caller may do it ([`authorize`]), resource from the rest of the path, body and options ([`body`], [`query`]), verb, answer
//! in the form that was asked for ([`negotiate`], [`respond`]). In-process requests ([`PlaneService`]) skip the first two: their plane
//! and caller are fixed.

mod authenticate;
mod authorize;
mod body;
mod bulk;
mod handshakes;
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

use crate::audit::Trail;
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
pub(crate) use respond::AuditAnnotations;
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
        let Self { server: ApiServer(shared), plane, identity } = self.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let open = Trail::start(&shared.options, &mut parts);
            Trail::of(&parts).caller(&identity);
            let answer = match shared.planes.find(&plane) {
                Some(plane) => {
                    let path = parts.uri.path().to_owned();
                    limited(&shared, plane, identity, path, parts, body).await
                }
                None => Err(ApiError::NoSuchPath),
            };
            Ok(open.answer(answer, respond::error))
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
            let (mut parts, body) = request.into_parts();
            // Probes have no credentials, wait for nobody and are nothing that anyone did.
            let is_probe = matches!(parts.uri.path(), "/healthz" | "/livez" | "/readyz");
            if is_probe && parts.method == Method::GET {
                return Ok(respond::text("ok"));
            }
            let open = Trail::start(&server.0.options, &mut parts);
            let answer = authenticated(&server.0, certificate.as_deref(), parts, body).await;
            Ok(open.answer(answer, respond::error))
        })
    }
}

/// Answers a request whose plane is named by its path and whose caller by its credentials.
async fn authenticated<B>(
    shared: &Arc<Shared>,
    certificate: Option<&ClientCertificate>,
    parts: http::request::Parts,
    body: B,
) -> Result<Response<Body>>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let (name, rest) = route::plane_of(&shared.options, parts.uri.path());
    let (plane, identity) =
        authenticate::enter(shared, certificate, &parts.headers, name.as_ref(), &Trail::of(&parts))?;
    let rest = rest.to_owned();
    limited(shared, plane, identity, rest, parts, body).await
}

/// Answers a request to a plane within the limits of its caller; `path` is relative to the plane.
async fn limited<B>(
    shared: &Arc<Shared>,
    plane: Arc<Plane>,
    caller: Arc<Identity>,
    path: String,
    parts: http::request::Parts,
    body: B,
) -> Result<Response<Body>>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    describe(&Trail::of(&parts), &plane, &caller, &path, &parts);
    let name = plane.name().clone();
    let work = {
        let (shared, caller) = (shared.clone(), caller.clone());
        // Boxed here, because it is large and would be moved from hand to hand.
        Box::pin(async move { in_plane(&shared, &plane, caller, &path, &parts, body).await })
    };
    shared.gate.request(&name, &caller, work).await
}

/// Notes what a request asks, whatever becomes of it.
fn describe(trail: &Trail, plane: &Plane, caller: &Identity, path: &str, parts: &http::request::Parts) {
    if !trail.is_kept() {
        return;
    }
    trail.plane(plane.name());
    let segments = route::segments(path).unwrap_or_default();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let query = Query::parse(parts.uri.query());
    let resource = route::resource_segments(&segments)
        .and_then(|(group, version, rest)| Some((group, version, route::place(rest).ok()?)));
    let (caller, method) = (caller.as_caller(), parts.method.as_str());
    trail.request(&match &resource {
        Some((group, version, place)) => {
            let watch = query.is_watch().unwrap_or(false);
            resource_request(caller, method, &resource_path((group, version), place, &query, watch))
        }
        None => path_request(caller, method, path),
    });
}

/// What a request to a resource asks.
fn resource_path<'a>(
    (group, version): (&'a str, &'a str),
    place: &route::Place<'a>,
    query: &'a Query,
    watch: bool,
) -> ResourcePath<'a> {
    ResourcePath {
        group,
        version,
        resource: place.plural,
        subresource: place.subresource,
        namespace: place.namespace,
        name: place.name,
        watch,
        selected_name: query.selected_name(),
    }
}

/// Where a request comes from. Found among its extensions if it came over a network: [`serve`] puts it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub std::net::SocketAddr);

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
    let trail = Trail::of(parts);
    let identity = authorize::acting(&policy, caller, &parts.headers, &trail)?;
    if let Some((group, version, rest)) = route::resource_segments(&segments) {
        let (place, query) = (route::place(rest)?, Query::parse(parts.uri.query()));
        let path = resource_path((group, version), &place, &query, query.is_watch()?);
        let asked = resource_request(identity.as_caller(), parts.method.as_str(), &path);
        authorize::decide(&policy, &asked, &trail)?;
        return resource::serve(shared, plane, identity, (group, version), &place, query, parts, body).await;
    }
    let decoded = format!("/{}", segments.join("/"));
    let asked = path_request(identity.as_caller(), parts.method.as_str(), &decoded);
    authorize::decide(&policy, &asked, &trail)?;
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
