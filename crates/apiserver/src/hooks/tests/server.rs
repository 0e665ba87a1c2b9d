//! A webhook server with TLS on loopback that answers as a test says and remembers what it was asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What the server does with a call.
pub(super) enum Reply {
    /// An answer with status 200.
    Json(Value),
    /// Any answer.
    Raw(u16, Bytes),
    /// No answer, ever.
    Hang,
    /// No answer, and the connection is gone.
    Drop,
    /// This answer, and the connection is closed after it.
    Last(Value),
}

type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Reply> + Send + Sync>;

/// One call as it came in.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) target: String,
    pub(super) host: String,
    pub(super) review: Value,
}

/// A running server; stops when it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    ca: String,
    calls: Arc<Mutex<Vec<Call>>>,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// How the certificate is made.
#[derive(Clone, Copy)]
pub(super) struct Certificate {
    pub(super) names: &'static [&'static str],
    pub(super) expires: i32,
}

impl Default for Certificate {
    fn default() -> Self {
        Self { names: &["127.0.0.1", "hook.ns.svc"], expires: 2040 }
    }
}

impl Server {
    pub(super) async fn start(handler: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_async(move |review| futures::future::ready(handler(&review)).boxed()).await
    }

    pub(super) async fn start_async(
        handler: impl Fn(Value) -> BoxFuture<'static, Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(Certificate::default(), Arc::new(handler)).await
    }

    pub(super) async fn start_with(certificate: Certificate, handler: Handler) -> Self {
        let (ca, chain, key) = issue(certificate);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let mut task = JoinSet::new();
        task.spawn(accept(listener, acceptor, handler, calls.clone(), connections.clone()));
        Self { address, ca, calls, connections, _task: task }
    }

    /// A server that allows everything.
    pub(super) async fn allowing() -> Self {
        Self::start(|review| allow(review, json!({}))).await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub(super) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.ca)
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// How many TLS connections were made.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn issue(certificate: Certificate) -> (String, CertificateDer<'static>, PrivateKeyDer<'static>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names: Vec<String> = certificate.names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_after = rcgen::date_time_ymd(certificate.expires, 1, 1);
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &issuer).unwrap();
    let der = PrivatePkcs8KeyDer::from(key.serialize_der());
    (issuer.pem(), signed.der().clone(), der.into())
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handler: Handler,
    calls: Arc<Mutex<Vec<Call>>>,
    connections: Arc<AtomicUsize>,
) {
    let mut open = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, handler, calls) = (acceptor.clone(), handler.clone(), calls.clone());
        let connections = connections.clone();
        open.spawn(async move {
            // A client that does not trust us ends the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            connections.fetch_add(1, Ordering::Relaxed);
            let service = service_fn(|request| answer(request, &handler, &calls));
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    handler: &Handler,
    calls: &Mutex<Vec<Call>>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let target = request.uri().to_string();
    let host = request.headers()["host"].to_str().unwrap().to_owned();
    assert_eq!(request.method(), "POST");
    assert_eq!(request.headers()["content-type"], "application/json");
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    calls.lock().push(Call { target, host, review: review.clone() });
    let body = |value: Value| Full::new(Bytes::from(value.to_string()));
    Ok(match handler(review).await {
        Reply::Json(value) => Response::new(body(value)),
        Reply::Last(value) => Response::builder().header("connection", "close").body(body(value)).unwrap(),
        Reply::Raw(code, bytes) => Response::builder().status(code).body(Full::new(bytes)).unwrap(),
        Reply::Hang => futures::future::pending().await,
        Reply::Drop => return Err("dropped on purpose".into()),
    })
}

/// The review with this response, for the same uid.
pub(super) fn respond(review: &Value, response: Value) -> Value {
    let mut response = response;
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// Yes, and more.
pub(super) fn allow(review: &Value, more: Value) -> Reply {
    let mut response = more;
    response["allowed"] = json!(true);
    Reply::Json(respond(review, response))
}

/// Yes, with a patch.
pub(super) fn patch(review: &Value, operations: &Value) -> Reply {
    let patch = STANDARD.encode(operations.to_string());
    allow(review, json!({"patchType": "JSONPatch", "patch": patch}))
}

/// No, with this status.
pub(super) fn deny(review: &Value, status: &Value) -> Reply {
    Reply::Json(respond(review, json!({"allowed": false, "status": status})))
}
