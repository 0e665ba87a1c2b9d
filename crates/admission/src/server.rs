//! The webhook server: TLS, connections, and an orderly end.
//!
//! # Guarantees
//!
//! Whatever clients do, they hold a bounded number of connections, bodies and time. A new certificate on disk is shown to new connections
//! without a restart; one that cannot be used is reported, and the one before it stays.

mod certificates;
mod http;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use certificates::{CertificateError, Certificates};

use crate::webhooks::Webhooks;

/// How long a handshake may take, and the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long open calls get to end after the stop.
const DRAIN: Duration = Duration::from_secs(5);
/// Connections at once. API servers keep a few each.
const CONNECTIONS: usize = 1024;
/// Calls at once on one connection.
const STREAMS: u32 = 250;
/// A peer that has not been heard of for so long is asked whether it is there…
const PING_AFTER: Duration = Duration::from_secs(30);
/// …and has so long to answer.
const PING_TIME: Duration = Duration::from_secs(20);

/// How the server runs.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often the files of the certificate are looked at.
    pub look_every: Duration,
    /// How many calls are read and judged at once; others wait. This bounds the memory that bodies take.
    pub calls: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { look_every: Duration::from_secs(10), calls: 64 }
    }
}

/// Why the server cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The socket is of no more use.
    #[error("cannot accept connections")]
    Accept(#[source] std::io::Error),
}

/// Serves webhooks until `stop` is ready; then takes no more connections, gives open calls a moment to end, and returns.
///
/// # Errors
///
/// If TLS cannot be set up, or the socket fails.
pub async fn serve(
    listener: TcpListener,
    certificates: Certificates,
    webhooks: Webhooks,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let acceptor = TlsAcceptor::from(certificates.config().map_err(ServeError::Tls)?);
    let service = Arc::new(http::Service { webhooks, calls: Semaphore::new(settings.calls.max(1)) });
    let connections = GracefulShutdown::new();
    let mut following = JoinSet::new();
    following.spawn(certificates.follow(settings.look_every));
    let mut open = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let stream = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = open.join_next() => continue,
            // Beyond the limit, connections wait in the socket's backlog until others end.
            accepted = listener.accept(), if open.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "a connection is not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
                Err(error) => return Err(ServeError::Accept(error)),
            },
        };
        open.spawn(connection(acceptor.clone(), stream, service.clone(), connections.watcher()));
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, connections.shutdown()).await.is_err() {
        tracing::warn!("calls that were still open are cut");
    }
    open.shutdown().await;
    following.shutdown().await;
    Ok(())
}

/// Errors of one connection, or of too many at once, not of the socket.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24];
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
        || error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
}

async fn connection(acceptor: TlsAcceptor, stream: TcpStream, service: Arc<http::Service>, watcher: Watcher) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no delay not set");
    }
    let stream = match tokio::time::timeout(HEAD, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "handshake failed"),
        Err(_) => return tracing::debug!("handshake timed out"),
    };
    // The handshake says which protocol comes, so that the timers of that protocol hold from the first byte.
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIME);
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, std::convert::Infallible>(service.respond(request).await) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(%error, "connection ended");
    }
}
