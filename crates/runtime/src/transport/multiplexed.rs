//! An HTTP/2 connection: many requests at once.
//!
//! It is used through `h2` itself, because the pool has to know the server's stream limit as soon as a frame changes it,
//! and which requests a GOAWAY leaves untouched.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::{Ping, PingPong, RecvStream};
use http::{Request, Response, request};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::client::TlsStream;

use super::error::{ConnectError, Error};
use super::pool::Pool;

/// What one stream may have in flight to a reader that does not read.
const STREAM_WINDOW: u32 = 1 << 20;
/// As much as there can be: a connection has no limit of its own, so that a stream that nobody reads does not
/// take it from the others.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// Answers have few headers; a server that sends more is broken.
const MAX_HEADER_LIST: u32 = 64 << 10;

/// Sends requests on a connection.
pub(super) type Sender = h2::client::SendRequest<Bytes>;

/// A connection whose server has told its limits.
pub(super) struct Multiplexed {
    /// For requests.
    pub(super) sender: Sender,
    /// How many streams the server allows at once.
    pub(super) limit: usize,
    connection: h2::client::Connection<TlsStream<TcpStream>, Bytes>,
    pings: PingPong,
    ping_interval: Duration,
    ping_timeout: Duration,
}

/// Speaks first, and waits for the server's first frame: it says how many streams there may be.
pub(super) async fn handshake(
    stream: TlsStream<TcpStream>,
    ping_interval: Duration,
    ping_timeout: Duration,
) -> Result<Multiplexed, ConnectError> {
    let (sender, mut connection) = h2::client::Builder::new()
        .enable_push(false)
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(MAX_HEADER_LIST)
        .handshake(stream)
        .await
        .map_err(ConnectError::Http2)?;
    let pings = connection.ping_pong().expect("nobody has taken the pings of a new connection");
    let limit = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(ConnectError::Http2(error))),
        Poll::Ready(Ok(())) => Poll::Ready(Err(ConnectError::Http2(h2::Reason::NO_ERROR.into()))),
        Poll::Pending => match connection.max_concurrent_send_streams() {
            0 => Poll::Pending,
            limit => Poll::Ready(Ok(limit)),
        },
    })
    .await?;
    Ok(Multiplexed { sender, limit, connection, pings, ping_interval, ping_timeout })
}

/// Sends a request, and waits for the head of its answer. Dropping the future cancels the stream.
pub(super) async fn send(
    mut sender: Sender,
    head: request::Parts,
    body: Bytes,
) -> Result<Response<RecvStream>, Error> {
    let mut request = Request::from_parts(head, ());
    *request.version_mut() = http::Version::HTTP_2;
    poll_fn(|cx| sender.poll_ready(cx)).await.map_err(|_| Error::Unsent)?;
    let (answer, mut stream) = sender.send_request(request, body.is_empty()).map_err(|error| {
        // What the library finds wrong with the request stays wrong; anything else is the connection's end.
        if error.is_go_away() || error.is_io() { Error::Unsent } else { Error::Http2(error) }
    })?;
    // Only the stream itself keeps the connection from closing, not the means to start another one.
    drop(sender);
    if !body.is_empty() {
        // The library holds the bytes until the server makes room for them. An error here shows in the answer too.
        let _ = stream.send_data(body, true);
    }
    answer.await.map_err(Error::Http2)
}

/// What happens on a connection.
enum Happening {
    Ended(Result<(), h2::Error>),
    Limit(usize),
    GoingAway,
    Pong,
    Timer,
}

/// Keeps a connection going until it ends, and tells the pool of everything that changes what it can be used for.
pub(super) struct Driver {
    connection: h2::client::Connection<TlsStream<TcpStream>, Bytes>,
    pings: PingPong,
    /// A ping is on its way; the timer is for its answer.
    is_asking: bool,
    timer: Pin<Box<Sleep>>,
    limit: usize,
    /// Tells when no more streams can be opened. Gone once the connection only ends what it has.
    probe: Option<Sender>,
    ping_interval: Duration,
    ping_timeout: Duration,
    pool: Weak<Pool>,
    id: u64,
}

impl Multiplexed {
    /// The connection's future, to be run in a task of its own.
    pub(super) fn into_driver(self, pool: Weak<Pool>, id: u64) -> Driver {
        Driver {
            connection: self.connection,
            pings: self.pings,
            is_asking: false,
            timer: Box::pin(tokio::time::sleep(self.ping_interval)),
            limit: self.limit,
            probe: Some(self.sender),
            ping_interval: self.ping_interval,
            ping_timeout: self.ping_timeout,
            pool,
            id,
        }
    }
}

impl Driver {
    /// Runs until the connection has ended.
    pub(super) async fn run(mut self) {
        loop {
            match poll_fn(|cx| self.poll_next(cx)).await {
                Happening::Ended(result) => {
                    tracing::debug!(connection = self.id, ?result, "connection ended");
                    break;
                }
                Happening::Limit(limit) => {
                    self.limit = limit;
                    self.tell(|pool, id| pool.set_limit(id, limit));
                }
                Happening::GoingAway => {
                    tracing::debug!(connection = self.id, "connection takes no more streams");
                    self.probe = None;
                    self.tell(Pool::drain);
                }
                Happening::Pong => {
                    self.is_asking = false;
                    self.timer.as_mut().reset(Instant::now() + self.ping_interval);
                }
                Happening::Timer if self.is_asking => {
                    tracing::debug!(connection = self.id, "connection does not answer");
                    break;
                }
                Happening::Timer => {
                    if self.probe.is_some()
                        && self.pool.upgrade().is_none_or(|pool| pool.retire_if_idle(self.id))
                    {
                        // Without a sender the connection closes after its last stream.
                        self.probe = None;
                    }
                    self.is_asking = self.pings.send_ping(Ping::opaque()).is_ok();
                    let wait = if self.is_asking { self.ping_timeout } else { self.ping_interval };
                    self.timer.as_mut().reset(Instant::now() + wait);
                }
            }
        }
        self.tell(Pool::remove);
    }

    fn tell(&self, what: impl FnOnce(&std::sync::Arc<Pool>, u64)) {
        if let Some(pool) = self.pool.upgrade() {
            what(&pool, self.id);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Happening> {
        if let Poll::Ready(result) = Pin::new(&mut self.connection).poll(cx) {
            return Poll::Ready(Happening::Ended(result));
        }
        let limit = self.connection.max_concurrent_send_streams();
        if limit != self.limit {
            return Poll::Ready(Happening::Limit(limit));
        }
        if self.probe.as_mut().is_some_and(|probe| matches!(probe.poll_ready(cx), Poll::Ready(Err(_)))) {
            return Poll::Ready(Happening::GoingAway);
        }
        if self.is_asking && matches!(self.pings.poll_pong(cx), Poll::Ready(Ok(_))) {
            return Poll::Ready(Happening::Pong);
        }
        self.timer.as_mut().poll(cx).map(|()| Happening::Timer)
    }
}
