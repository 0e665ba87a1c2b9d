//! The way to webhooks: HTTP/1.1 over TLS, with connections kept for the next call.
//!
//! # Guarantees
//! - A connection is used again only for the same address, the same name and the same certificate authorities.
//! - A call that is dropped ends its connection; nothing runs on behind it.
//! - An answer is read up to [`MAX_ANSWER`] and no further. Redirects are not followed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::client::{Unresolved, server_name};

/// The largest answer that is read: an object and a patch of the largest size, and room.
pub(super) const MAX_ANSWER: usize = 3 << 20;
/// How long a connection waits for its next call: shorter than servers commonly wait before they hang up.
const IDLE_FOR: Duration = Duration::from_secs(45);
/// How many connections wait in all. More would only help bursts, and cost file descriptors between them.
const MAX_IDLE: usize = 128;

/// Why a webhook could not be reached or did not answer. Says nothing of what was sent or answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum PostError {
    /// The resolver knows no way to the service.
    #[error("service {0:?} {1}")]
    NoService(String, Unresolved),
    /// The address makes no sense.
    #[error("the service resolves to no https URL with a host")]
    BadAddress,
    /// Nobody may vouch for the webhook.
    #[error("tls: no certificate authority is trusted: clientConfig.caBundle is empty")]
    NoTrust,
    /// No connection.
    #[error("dial tcp: {0}")]
    Connect(std::io::Error),
    /// No TLS.
    #[error("tls: {0}")]
    Tls(std::io::Error),
    /// The exchange broke off, or is not HTTP.
    #[error("{}", told(.0))]
    Http(hyper::Error),
    /// Not 200.
    #[error("the webhook answered with status {0}")]
    Status(StatusCode),
    /// The answer is too large.
    #[error("the answer is larger than {MAX_ANSWER} bytes")]
    TooLarge,
    /// The time is over.
    #[error("context deadline exceeded")]
    Deadline,
}

/// An error of the protocol with its cause, which it does not tell by itself.
fn told(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Where to call, and who must answer.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    host: String,
    port: u16,
    server_name: ServerName<'static>,
    /// The `Host` header.
    authority: String,
    path: String,
    trust: Arc<RootCertStore>,
}

impl Endpoint {
    /// The endpoint at `url`, which must prove to be `name` and is spoken to as `authority`.
    pub(super) fn new(
        url: &Uri,
        name: &str,
        authority: &str,
        trust: Option<Arc<RootCertStore>>,
    ) -> Result<Self, PostError> {
        let host = url.host().filter(|host| !host.is_empty() && url.scheme_str() == Some("https"));
        let host = host.ok_or(PostError::BadAddress)?.trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: host.to_owned(),
            port: url.port_u16().unwrap_or(443),
            server_name: server_name(name).ok_or(PostError::BadAddress)?,
            authority: authority.to_owned(),
            path: url.path().to_owned(),
            trust: trust.ok_or(PostError::NoTrust)?,
        })
    }

    /// Whether a connection to `other` serves as well.
    fn same_peer(&self, other: &Self) -> bool {
        let same_trust = || Arc::ptr_eq(&self.trust, &other.trust) || self.trust.roots == other.trust.roots;
        self.port == other.port
            && self.host == other.host
            && self.server_name == other.server_name
            && same_trust()
    }

    fn request(&self, query: &str, body: Bytes) -> Request<Full<Bytes>> {
        Request::post(format!("{}?{query}", self.path))
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "apiserver-admission")
            .body(Full::new(body))
            .expect("path and authority come from a parsed URL")
    }
}

/// The time by the caller's clock, for the validity of certificates.
struct Time(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Time")
    }
}

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from((self.0)().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Connections to webhooks. One serves a whole server: planes that have the same webhook share its connections.
pub struct Transport {
    time: Arc<Time>,
    /// Waiting connections, the longest waiting first.
    idle: Mutex<VecDeque<(Instant, Connection)>>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("idle", &self.idle.lock().len()).finish_non_exhaustive()
    }
}

impl Transport {
    /// A transport without connections. Certificates are valid or not by `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { time: Arc::new(Time(Arc::new(now))), idle: Mutex::default() }
    }

    /// Posts a body and gives what is answered with status 200.
    ///
    /// A waiting connection may be closed by the other side at any moment, so a call that breaks off on one before an
    /// answer begins is made again; admission calls may be repeated.
    pub(super) async fn post(&self, to: &Endpoint, query: &str, body: Bytes) -> Result<Bytes, PostError> {
        while let Some(mut connection) = self.take(to) {
            match connection.send(query, body.clone()).await {
                Ok(answer) => return self.finish(connection, answer).await,
                Err(error) => tracing::debug!(%error, "a waiting connection to a webhook was closed"),
            }
        }
        let mut connection = Connection::open(to, &self.time).await?;
        let answer = connection.send(query, body).await.map_err(PostError::Http)?;
        self.finish(connection, answer).await
    }

    async fn finish(
        &self,
        connection: Connection,
        answer: http::Response<Incoming>,
    ) -> Result<Bytes, PostError> {
        if answer.status() != StatusCode::OK {
            return Err(PostError::Status(answer.status()));
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(error) => PostError::Http(*error),
            Err(error) => {
                debug_assert!(error.is::<LengthLimitError>(), "a body fails by itself or by its limit");
                PostError::TooLarge
            }
        })?;
        self.keep(connection);
        Ok(body.to_bytes())
    }

    /// A waiting connection, the last used first.
    fn take(&self, to: &Endpoint) -> Option<Connection> {
        let mut idle = self.idle();
        let at = idle.iter().rposition(|(_, waiting)| waiting.to.same_peer(to))?;
        idle.remove(at).map(|(_, connection)| Connection { to: to.clone(), ..connection })
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() == MAX_IDLE {
            idle.pop_front();
        }
        if connection.is_open() {
            idle.push_back((Instant::now(), connection));
        }
    }

    /// The waiting connections, without those that have ended or waited too long.
    fn idle(&self) -> MutexGuard<'_, VecDeque<(Instant, Connection)>> {
        let now = Instant::now();
        let mut idle = self.idle.lock();
        idle.retain(|(since, waiting)| waiting.is_open() && now.duration_since(*since) < IDLE_FOR);
        idle
    }
}

/// One connection with the task that drives it.
struct Connection {
    to: Endpoint,
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
}

/// The task behind a connection; ends with it.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    async fn open(to: &Endpoint, time: &Arc<Time>) -> Result<Self, PostError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_details(provider, time.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| PostError::Tls(std::io::Error::other(error)))?
            .with_root_certificates(to.trust.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = TcpStream::connect((&*to.host, to.port)).await.map_err(PostError::Connect)?;
        // Requests and answers are single messages: waiting to fill a packet only delays them.
        stream.set_nodelay(true).map_err(PostError::Connect)?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(to.server_name.clone(), stream).await.map_err(PostError::Tls)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(PostError::Http)?;
        let driver = Driver(tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook ended");
            }
        }));
        Ok(Self { to: to.clone(), sender, driver })
    }

    fn is_open(&self) -> bool {
        !self.sender.is_closed() && !self.driver.0.is_finished()
    }

    async fn send(&mut self, query: &str, body: Bytes) -> Result<http::Response<Incoming>, hyper::Error> {
        self.sender.ready().await?;
        self.sender.send_request(self.to.request(query, body)).await
    }
}
