//! An HTTP/1.1 connection: one request at a time. What is left when a host does not speak HTTP/2.

use std::sync::Weak;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header, request};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::{ConnectError, Error};
use super::pool::Pool;

/// Sends requests on a connection, one after the other.
pub(super) type Sender = http1::SendRequest<Full<Bytes>>;

/// The connection itself.
pub(super) type Driver = BoxFuture<'static, hyper::Result<()>>;

/// A new connection.
pub(super) struct Single {
    /// For requests.
    pub(super) sender: Sender,
    /// The connection's future, to be run in a task of its own.
    pub(super) driver: Driver,
}

/// Nothing is said before the first request.
pub(super) async fn handshake<T>(stream: T) -> Result<Single, ConnectError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(ConnectError::Http1)?;
    Ok(Single { sender, driver: Box::pin(connection) })
}

/// Sends a request, and waits for the head of its answer. Dropping the future ends the connection.
pub(super) async fn send(
    sender: &mut Sender,
    mut head: request::Parts,
    body: Bytes,
) -> Result<Response<Incoming>, Error> {
    let host = head.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    if let Some(host) = host {
        head.headers.insert(header::HOST, host);
    }
    if let Some(path) = head.uri.path_and_query() {
        head.uri = path.clone().into();
    }
    head.version = http::Version::HTTP_11;
    let request = Request::from_parts(head, Full::new(body));
    sender.try_send_request(request).await.map_err(|mut error| {
        // The message comes back if and only if not a byte of it has been written.
        if error.take_message().is_some() { Error::Unsent } else { Error::Http1(error.into_error()) }
    })
}

/// Keeps a connection going until it ends, and takes it out of use when nobody has used it for a while.
pub(super) async fn run(mut driver: Driver, pool: Weak<Pool>, id: u64, idle_timeout: Duration) {
    let result = loop {
        tokio::select! {
            biased;
            result = &mut driver => break result,
            // A retired connection has lost its sender, and ends by itself.
            () = tokio::time::sleep(idle_timeout) => drop(pool.upgrade().map(|pool| pool.retire_if_idle(id))),
        }
    };
    tracing::debug!(connection = id, ?result, "connection ended");
    if let Some(pool) = pool.upgrade() {
        pool.remove(id);
    }
}
