//! The network side: TLS, connections, and an orderly end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use super::bulk::{self, Beside, Bulk, Counted, Load};
use super::handshakes::{Handshake, Handshakes};
use super::{NetworkService, Peer};
use crate::auth::Access;
use crate::auth::certificate::ClientCertificate;
use crate::server::ApiServer;

/// How long open requests get to end after the stop. Watches never end by themselves.
const DRAIN: Duration = Duration::from_secs(2);
/// A peer that has not been heard of for so long is asked whether it is there…
const PING_AFTER: Duration = Duration::from_secs(30);
/// …and has so long to answer; then its watches are ended.
const PING_TIME: Duration = Duration::from_secs(20);
/// What is kept of an answer on one HTTP/2 stream for a client that does not take it. Watch events and lists are shared
/// with the store, so this bounds work done in advance more than memory.
const SEND_BUFFER: usize = 128 << 10;

/// What the server shows to clients, and what it asks of them.
#[derive(Clone)]
pub struct Tls {
    config: Arc<rustls::ServerConfig>,
    /// Which planes a client's certificate opens.
    clients: Option<Access>,
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// A certificate or key is not PEM.
    #[error("the certificate or key is not valid PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// Certificate and key do not work together.
    #[error("the certificate and key cannot be used")]
    Tls(#[source] rustls::Error),
    /// The authority of clients cannot be used.
    #[error("the certificate of the clients' authority cannot be used")]
    Authority(#[source] rustls::server::VerifierBuilderError),
    /// The socket is of no more use.
    #[error("cannot accept connections")]
    Accept(#[source] std::io::Error),
}

impl Tls {
    /// A certificate chain and its key, as PEM text. Callers show tokens.
    pub fn from_pem(certificates: &str, key: &str) -> Result<Self, ListenError> {
        Self::new(certificates, key, None)
    }

    /// The same, and callers may show a certificate of this authority (PEM text) instead of a token: its common name is
    /// the user, its organizations the groups. It opens the planes of `access`.
    pub fn from_pem_with_clients(
        certificates: &str,
        key: &str,
        authority: &str,
        access: Access,
    ) -> Result<Self, ListenError> {
        Self::new(certificates, key, Some((authority, access)))
    }

    fn new(certificates: &str, key: &str, clients: Option<(&str, Access)>) -> Result<Self, ListenError> {
        let chain = certificates_in(certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(ListenError::Pem)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(ListenError::Tls)?;
        let builder = match &clients {
            None => builder.with_no_client_auth(),
            Some((authority, _)) => {
                let mut roots = rustls::RootCertStore::empty();
                for certificate in certificates_in(authority)? {
                    roots.add(certificate).map_err(ListenError::Tls)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(ListenError::Authority)?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(ListenError::Tls)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), clients: clients.map(|(_, access)| access) })
    }
}

fn certificates_in(pem: &str) -> Result<Vec<CertificateDer<'static>>, ListenError> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(ListenError::Pem)
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// Serves `server` on `listener` until `stop` is ready; then takes no more connections, gives open requests a
/// moment to end, and returns.
pub async fn serve(
    server: ApiServer,
    listener: TcpListener,
    tls: Tls,
    stop: impl Future<Output = ()>,
) -> Result<(), ListenError> {
    let acceptor = TlsAcceptor::from(tls.config);
    let limits = server.0.options.limits.clone();
    let handshakes = Handshakes::new(limits.handshakes);
    let connections = GracefulShutdown::new();
    let bulk = Bulk::start();
    let mut tasks = tokio::task::JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = tasks.join_next() => continue,
            // Beyond the limit, connections wait in the socket's backlog until others end.
            accepted = listener.accept(), if tasks.len() < limits.connections => match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
                Err(error) => return Err(ListenError::Accept(error)),
            },
        };
        let (watcher, handshake) = (connections.watcher(), handshakes.start());
        let (server, acceptor, clients) = (server.clone(), acceptor.clone(), tls.clients.clone());
        let (load, bulk) = (Load::default(), bulk.handle());
        let beside = Beside::new(load.clone(), bulk.clone());
        let served = connection(server, acceptor, clients, stream, peer, handshake, watcher, beside);
        tasks.spawn(bulk::run(Box::pin(served), load, bulk));
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::debug!("open watches are cut");
    }
    tasks.shutdown().await;
    Ok(())
}

/// Errors of one connection, or of too many at once, not of the socket.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24];
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
        || error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
}

#[expect(clippy::too_many_arguments, reason = "each is another part of one connection")]
async fn connection(
    server: ApiServer,
    acceptor: TlsAcceptor,
    clients: Option<Access>,
    stream: tokio::net::TcpStream,
    peer: SocketAddr,
    mut handshake: Handshake,
    watcher: hyper_util::server::graceful::Watcher,
    beside: Beside,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "no delay not set");
    }
    let limits = &server.0.options.limits;
    let accepted = tokio::select! {
        biased;
        accepted = tokio::time::timeout(limits.head_time, acceptor.accept(stream)) => accepted,
        () = handshake.given_up() => return tracing::debug!(%peer, "handshake given up for newer ones"),
    };
    drop(handshake);
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "handshake failed"),
        Err(_) => return tracing::debug!(%peer, "handshake timed out"),
    };
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certificate = clients.zip(shown).and_then(|(access, der)| ClientCertificate::read(der, access));
    let asked = Arc::new(tokio::sync::Notify::new());
    let service = tower::service_fn({
        let (asked, load) = (asked.clone(), beside.load().clone());
        let service = NetworkService::for_connection(server.clone(), certificate);
        move |mut request: Request<Incoming>| {
            asked.notify_one();
            request.extensions_mut().insert(Peer(peer));
            let (opened, answer) = (load.open(), service.clone().call(request));
            async move { answer.await.map(|answer| answer.map(|body| Counted::new(body, opened))) }
        }
    });
    let service = hyper_util::service::TowerToHyperService::new(service);
    // The handshake says which protocol comes, so that the timers of that protocol hold from the first byte.
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let builder = auto::Builder::new(beside);
    let mut builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_per_connection)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIME);
    // Without upgrades, which nothing here needs: with them, the protocol would be read off the first bytes, for which
    // there is no time limit.
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(watcher.watch(connection.into_owned()));
    // The protocols' own timers start at different points, and none with silence before the first byte of HTTP/2.
    let ended = tokio::select! {
        biased;
        ended = &mut connection => ended,
        () = asked.notified() => connection.await,
        () = tokio::time::sleep(limits.head_time) => return tracing::debug!(%peer, "no request in time"),
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}
