//! A server on a loopback socket behind TLS whose connections can be limited, told to go, frozen and cut.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use compute_apiserver::{Access, ApiServer, Authority, Identity, Issued};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use kube::Config;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The bearer token that opens every plane.
pub const TOKEN: &str = "test-token";

/// How the front behaves.
#[derive(Clone, Debug)]
pub struct FrontOptions {
    /// Streams on one connection.
    pub max_streams: u32,
    /// What it offers to speak.
    pub protocols: Vec<&'static str>,
}

impl Default for FrontOptions {
    fn default() -> Self {
        Self { max_streams: 100, protocols: vec!["h2", "http/1.1"] }
    }
}

#[derive(Default)]
struct Shared {
    accepted: AtomicUsize,
    open: AtomicUsize,
    /// Cancelled and made anew by each [`Front::go_away`].
    going: Mutex<CancellationToken>,
    freeze: Arc<Freeze>,
}

/// A front that listens on a port of its own until this is dropped.
pub struct Front {
    /// Where it listens.
    pub address: SocketAddr,
    /// The authority's certificate, as PEM.
    pub authority: String,
    authority_key: Arc<Authority>,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Front {
    /// Starts to serve; [`TOKEN`] opens every plane.
    pub async fn start(server: &ApiServer, options: FrontOptions) -> Self {
        let authority = Authority::generate("test authority").unwrap();
        let Issued { certificate, key, .. } = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        server.tokens().add(TOKEN, Identity::superuser("test"), Access::AllPlanes);
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        tls.alpn_protocols = options.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(Shared::default());
        Self {
            address: listener.local_addr().unwrap(),
            authority: authority.certificate().to_owned(),
            authority_key: Arc::new(authority),
            serving: tokio::spawn(serve(server.clone(), listener, Arc::new(tls), options, shared.clone())),
            shared,
        }
    }

    /// How a client is told to reach it, with [`TOKEN`].
    pub fn config(&self) -> Config {
        let mut config = Config::new(format!("https://{}", self.address).parse().unwrap());
        let certificate = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        config.root_cert = Some(vec![certificate.to_vec()]);
        config.auth_info.token = Some(TOKEN.to_owned().into());
        config
    }

    /// Connections taken so far.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Tells every open connection to end once its streams have.
    pub fn go_away(&self) {
        std::mem::take(&mut *self.shared.going.lock()).cancel();
    }

    /// Open connections neither read nor write any more, and do not close. New ones are not affected.
    pub fn freeze(&self) {
        self.shared.freeze.advance();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    server: ApiServer,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    options: FrontOptions,
    shared: Arc<Shared>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        shared.accepted.fetch_add(1, Ordering::SeqCst);
        shared.open.fetch_add(1, Ordering::SeqCst);
        let (server, acceptor, options, shared) =
            (server.clone(), TlsAcceptor::from(tls.clone()), options.clone(), shared.clone());
        let going = shared.going.lock().clone();
        connections.spawn(async move {
            connection(server, acceptor, &options, stream, &shared, going).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn connection(
    server: ApiServer,
    acceptor: TlsAcceptor,
    options: &FrontOptions,
    stream: TcpStream,
    shared: &Shared,
    going: CancellationToken,
) {
    stream.set_nodelay(true).unwrap();
    let stream = Freezing { stream, freeze: shared.freeze.clone(), born: shared.freeze.now() };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(options.max_streams);
    let service = TowerToHyperService::new(server.network_service());
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = going.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Counts how often everything was frozen: a connection lives in the time since its birth.
#[derive(Default)]
struct Freeze {
    time: AtomicUsize,
    stuck: Mutex<Vec<Waker>>,
}

impl Freeze {
    fn now(&self) -> usize {
        self.time.load(Ordering::SeqCst)
    }

    fn advance(&self) {
        self.time.fetch_add(1, Ordering::SeqCst);
    }
}

/// A stream that stops when its time is over.
struct Freezing {
    stream: TcpStream,
    freeze: Arc<Freeze>,
    born: usize,
}

impl Freezing {
    fn is_frozen(&self, cx: &Context<'_>) -> bool {
        let is_frozen = self.freeze.now() != self.born;
        if is_frozen {
            // Kept, so that the connection is neither closed nor polled again.
            self.freeze.stuck.lock().push(cx.waker().clone());
        }
        is_frozen
    }
}

impl AsyncRead for Freezing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.is_frozen(cx) { Poll::Pending } else { Pin::new(&mut self.stream).poll_read(cx, buf) }
    }
}

impl AsyncWrite for Freezing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if self.is_frozen(cx) { Poll::Pending } else { Pin::new(&mut self.stream).poll_write(cx, buf) }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.is_frozen(cx) { Poll::Pending } else { Pin::new(&mut self.stream).poll_flush(cx) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.is_frozen(cx) { Poll::Pending } else { Pin::new(&mut self.stream).poll_shutdown(cx) }
    }
}
