//! A TLS listener in front of API servers: one worker's way to one host.
//!
//! Requests and streams pass through, in HTTP/2 and in HTTP/1.1, unless the wires say otherwise: a request that does not get through ends as
//! on a broken connection, and an answer under way breaks off.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use compute_apiserver::{Authority, Identity, PlaneName};
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::milo::Milo;
use super::way::{self, Answer, Credentials, Way};
use crate::faults::Wires;
use crate::stack::Worker;

/// What is behind a listener.
#[derive(Clone)]
pub enum Host {
    /// One plane. Callers show it their own credentials.
    Plane {
        /// What the plane is called on the wires.
        plane: PlaneName,
        /// How it is reached.
        upstream: Client,
    },
    /// Core and all projects. Who shows one of the tokens is who they say; others are refused.
    Milo {
        /// Where they are.
        milo: Arc<Milo>,
        /// Who the worker is there.
        identity: Identity,
        /// The tokens that count now.
        tokens: Arc<Mutex<BTreeSet<String>>>,
    },
}

/// A listener. It ends, with all its connections, when this is dropped.
pub struct Listener {
    /// Where it listens.
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Listener {
    /// Listens on a free port, with a certificate of this authority.
    pub async fn start(authority: &Authority, wires: &Wires, worker: &Worker, host: Host) -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let acceptor = acceptor(authority);
        let front = Front { wires: wires.clone(), worker: worker.clone(), host };
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let stream = tokio::select! {
                    biased;
                    Some(_) = connections.join_next() => continue,
                    accepted = socket.accept() => match accepted {
                        Ok((stream, _)) => stream,
                        Err(error) => {
                            tracing::warn!(%error, "a wire does not accept a connection");
                            continue;
                        }
                    },
                };
                let (acceptor, front) = (acceptor.clone(), front.clone());
                connections.spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer = service_fn(move |request| {
                        let front = front.clone();
                        async move { front.carry(request).await }
                    });
                    let serve = auto::Builder::new(TokioExecutor::new());
                    let _ = serve.serve_connection(TokioIo::new(stream), answer).into_owned().await;
                });
            }
        });
        Self { address, serving }
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn acceptor(authority: &Authority) -> TlsAcceptor {
    let issued = authority.issue_server(&["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// One worker's side of a host.
#[derive(Clone)]
struct Front {
    wires: Wires,
    worker: Worker,
    host: Host,
}

impl Front {
    /// Carries one request. An error ends it without an answer.
    async fn carry(&self, request: Request<Incoming>) -> io::Result<Response<Answer>> {
        let (mut parts, body) = request.into_parts();
        let (plane, way) = match self.route(&mut parts) {
            Ok(routed) => routed,
            Err(status) => return Ok(refusal(status)),
        };
        // What belongs to this connection stays here.
        for header in [HOST, CONNECTION, TE, TRANSFER_ENCODING, CONTENT_LENGTH] {
            parts.headers.remove(header);
        }
        parts.version = Version::HTTP_11;
        let body = Body::from(body.collect().await.map_err(io::Error::other)?.to_bytes());
        let wire = self.wires.wire(&self.worker, &plane, way);
        let answer = wire.oneshot(Request::from_parts(parts, body)).await.map_err(io::Error::other)?;
        let (mut parts, body) = answer.into_parts();
        for header in [CONNECTION, TRANSFER_ENCODING] {
            parts.headers.remove(header);
        }
        parts.version = Version::default();
        Ok(Response::from_parts(parts, body.map_err(io::Error::other).boxed_unsync()))
    }

    /// Where a request goes. Its path is that within the plane afterwards.
    fn route(&self, parts: &mut Parts) -> Result<(PlaneName, Way), StatusCode> {
        match &self.host {
            Host::Plane { plane, upstream } => Ok((plane.clone(), way::remote(upstream, Credentials::Own))),
            Host::Milo { milo, identity, tokens } => {
                let shown = parts.headers.remove(AUTHORIZATION);
                let shown = shown.as_ref().and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
                if !shown.is_some_and(|token| tokens.lock().contains(token)) {
                    return Err(StatusCode::UNAUTHORIZED);
                }
                let (project, rest) = Milo::split(parts.uri.path());
                let project = project.map(str::to_owned);
                let rest = match parts.uri.query() {
                    Some(query) => format!("{rest}?{query}"),
                    None => rest.to_owned(),
                };
                let routed = milo.way(project.as_deref(), identity).ok_or(StatusCode::NOT_FOUND)?;
                parts.uri = Uri::try_from(rest).map_err(|_| StatusCode::BAD_REQUEST)?;
                Ok(routed)
            }
        }
    }
}

fn refusal(status: StatusCode) -> Response<Answer> {
    let reason = status.canonical_reason().unwrap_or_default();
    let body = serde_json::json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": status.as_u16(), "reason": reason.replace(' ', ""), "message": reason });
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    answer
}
