//! Which connection a request takes, and when another one is opened.
//!
//! Connections are filled in the order in which they were opened, so that the youngest run empty and close when load
//! goes away. A request that finds them all full waits in line; whoever frees a place hands it to the first in line, and
//! connections are opened for the rest, a few at a time. If the last attempt under way fails, all who wait
//! fail with its reason.
//!
//! Invariant: while somebody waits, at least one connection is being opened.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, request};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::body::HostBody;
use super::connect::{Connection, Connector};
use super::error::{ConnectError, Error};
use super::{Options, multiplexed, single};

/// Connections that are opened at the same time. A handshake costs the server a signature; a storm of them after its
/// restart would not bring anybody in sooner.
const MAX_OPENING: usize = 4;

/// What a host's connections carry now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Connections that take or finish requests.
    pub connections: usize,
    /// Requests on them, watches among them.
    pub streams: usize,
    /// Connections that are being opened.
    pub opening: usize,
    /// Requests that wait for one.
    pub waiting: usize,
    /// Connections opened since the host was made.
    pub opened: u64,
}

/// A host's connections.
pub(super) struct Pool {
    state: Mutex<State>,
    connector: Connector,
    idle_timeout: Duration,
    max_streams: usize,
    opened: AtomicU64,
}

struct State {
    /// In the order in which they were opened.
    slots: Vec<Slot>,
    waiting: VecDeque<oneshot::Sender<Result<Lease, Arc<ConnectError>>>>,
    opening: usize,
    /// Streams that the last opened connection allows: what the next one is expected to.
    expected: usize,
}

struct Slot {
    id: u64,
    link: Link,
    limit: usize,
    active: usize,
    /// When the last stream ended.
    idle_since: Instant,
}

/// What a slot can still give out.
enum Link {
    Multiplexed(multiplexed::Sender),
    /// The sender, while no request has it.
    Single(Option<single::Sender>),
    /// Nothing: the connection only ends what it has.
    Draining,
}

/// What a request got.
enum Ticket {
    Multiplexed(multiplexed::Sender),
    Single(single::Sender),
}

/// A place on a connection. It is free again when this is dropped.
pub(super) struct Lease {
    /// None once the place has been given back.
    pool: Option<Weak<Pool>>,
    id: u64,
    ticket: Option<Ticket>,
}

impl Pool {
    pub(super) fn new(connector: Connector, options: &Options) -> Arc<Self> {
        let max_streams = options.max_streams.max(1);
        let state = State { slots: Vec::new(), waiting: VecDeque::new(), opening: 0, expected: max_streams };
        Arc::new(Self {
            state: Mutex::new(state),
            connector,
            idle_timeout: options.idle_timeout,
            max_streams,
            opened: AtomicU64::new(0),
        })
    }

    pub(super) fn stats(&self) -> Stats {
        let state = self.state.lock();
        Stats {
            connections: state.slots.len(),
            streams: state.slots.iter().map(|slot| slot.active).sum(),
            opening: state.opening,
            waiting: state.waiting.len(),
            opened: self.opened.load(Ordering::Relaxed),
        }
    }

    /// A place on a connection, on a new one if need be.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<Lease, Arc<ConnectError>> {
        let place = {
            let mut state = self.state.lock();
            if let Some(lease) = self.take(&mut state) {
                return Ok(lease);
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back(sender);
            self.open_for_waiting(&mut state);
            receiver
        };
        place.await.unwrap_or_else(|_| Err(Arc::new(ConnectError::Closed)))
    }

    fn take(self: &Arc<Self>, state: &mut State) -> Option<Lease> {
        for slot in &mut state.slots {
            if slot.active >= slot.limit {
                continue;
            }
            let ticket = match &mut slot.link {
                Link::Multiplexed(sender) => Ticket::Multiplexed(sender.clone()),
                Link::Single(sender) => match sender.take() {
                    Some(sender) if !sender.is_closed() => Ticket::Single(sender),
                    // Its driver is about to remove it.
                    _ => continue,
                },
                Link::Draining => continue,
            };
            slot.active += 1;
            return Some(Lease { pool: Some(Arc::downgrade(self)), id: slot.id, ticket: Some(ticket) });
        }
        None
    }

    /// Gives free places to those who wait.
    fn serve_waiting(self: &Arc<Self>, state: &mut State) {
        loop {
            while state.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                state.waiting.pop_front();
            }
            if state.waiting.is_empty() {
                return;
            }
            let Some(lease) = self.take(state) else { return };
            let Some(waiter) = state.waiting.pop_front() else { return };
            if let Err(Ok(lease)) = waiter.send(Ok(lease)) {
                // The waiter left at this very moment; its place is given back here, under the lock.
                lease.give_back(state);
            }
        }
    }

    fn open_for_waiting(self: &Arc<Self>, state: &mut State) {
        let wanted = state.waiting.len().div_ceil(state.expected.max(1)).min(MAX_OPENING);
        while state.opening < wanted {
            state.opening += 1;
            tokio::spawn(self.clone().open());
        }
    }

    async fn open(self: Arc<Self>) {
        let result = self.connector.connect().await;
        let mut state = self.state.lock();
        state.opening -= 1;
        match result {
            Ok(connection) => {
                let id = self.opened.fetch_add(1, Ordering::Relaxed);
                self.add(&mut state, id, connection);
                self.serve_waiting(&mut state);
                self.open_for_waiting(&mut state);
            }
            Err(error) => {
                tracing::debug!(%error, "connection not opened");
                if state.opening == 0 {
                    let error = Arc::new(error);
                    for waiter in state.waiting.drain(..) {
                        let _ = waiter.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    fn add(self: &Arc<Self>, state: &mut State, id: u64, connection: Connection) {
        let pool = Arc::downgrade(self);
        let (link, limit) = match connection {
            Connection::Multiplexed(connection) => {
                let link = Link::Multiplexed(connection.sender.clone());
                let limit = connection.limit.min(self.max_streams);
                tokio::spawn(connection.into_driver(pool, id).run());
                (link, limit)
            }
            Connection::Single(connection) => {
                tokio::spawn(single::run(connection.driver, pool, id, self.idle_timeout));
                (Link::Single(Some(connection.sender)), 1)
            }
        };
        state.expected = limit;
        state.slots.push(Slot { id, link, limit, active: 0, idle_since: Instant::now() });
    }

    /// The server allows another number of streams from now on.
    pub(super) fn set_limit(self: &Arc<Self>, id: u64, limit: usize) {
        let mut state = self.state.lock();
        if let Some(slot) = state.slot(id) {
            slot.limit = limit.min(self.max_streams);
        }
        self.serve_waiting(&mut state);
    }

    /// If there is a new client certificate, the connections of the one before take no more streams; whether there is.
    pub(super) async fn renew(self: &Arc<Self>, at_once: bool) -> bool {
        let is_new = self.connector.has_new_certificate(at_once).await;
        if is_new {
            tracing::info!("there is a new client certificate; connections are opened anew");
            for slot in &mut self.state.lock().slots {
                slot.link = Link::Draining;
            }
        }
        is_new
    }

    /// The connection takes no more streams.
    pub(super) fn drain(self: &Arc<Self>, id: u64) {
        if let Some(slot) = self.state.lock().slot(id) {
            slot.link = Link::Draining;
        }
    }

    /// The connection has ended.
    pub(super) fn remove(self: &Arc<Self>, id: u64) {
        self.state.lock().slots.retain(|slot| slot.id != id);
    }

    /// Whether the connection has been without streams for so long that it takes no more.
    pub(super) fn retire_if_idle(&self, id: u64) -> bool {
        let mut state = self.state.lock();
        let Some(slot) = state.slot(id) else { return true };
        let is_idle = slot.active == 0 && slot.idle_since.elapsed() >= self.idle_timeout;
        if is_idle {
            slot.link = Link::Draining;
        }
        is_idle
    }

    fn release(self: &Arc<Self>, id: u64, sender: Option<single::Sender>) {
        let mut state = self.state.lock();
        state.release(id, sender);
        self.serve_waiting(&mut state);
    }
}

impl State {
    fn slot(&mut self, id: u64) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.id == id)
    }

    fn release(&mut self, id: u64, returned: Option<single::Sender>) {
        let Some(slot) = self.slot(id) else { return };
        slot.active -= 1;
        slot.idle_since = Instant::now();
        if let (Link::Single(sender), Some(returned)) = (&mut slot.link, returned) {
            *sender = Some(returned);
        }
    }
}

impl Lease {
    /// Sends a request on its place. The body of the answer keeps the place until it ends.
    pub(super) async fn send(
        mut self,
        head: request::Parts,
        body: Bytes,
        head_timeout: Duration,
    ) -> Result<Response<HostBody>, Error> {
        let ticket = self.ticket.take().expect("a lease is used once");
        match ticket {
            Ticket::Multiplexed(sender) => {
                let answer = multiplexed::send(sender, head, body);
                let answer =
                    tokio::time::timeout(head_timeout, answer).await.unwrap_or(Err(Error::HeadTimeout));
                if answer.as_ref().is_err_and(Error::is_going_away) {
                    // The driver tells the pool as well, but the next attempt must not be faster.
                    self.drain();
                }
                Ok(answer?.map(|stream| HostBody::multiplexed(stream, self)))
            }
            Ticket::Single(mut sender) => {
                let answer = single::send(&mut sender, head, body);
                let answer =
                    tokio::time::timeout(head_timeout, answer).await.map_err(|_| Error::HeadTimeout)??;
                self.ticket = Some(Ticket::Single(sender));
                Ok(answer.map(|incoming| HostBody::single(incoming, self)))
            }
        }
    }

    /// The answer has ended as it should: an HTTP/1.1 connection can be used again.
    pub(super) fn finish(mut self) {
        let Some(Ticket::Single(mut sender)) = self.ticket.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // The connection says in a moment whether the server keeps it open.
            if sender.ready().await.is_ok() {
                self.ticket = Some(Ticket::Single(sender));
                self.end();
            }
        });
    }

    fn drain(&self) {
        if let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) {
            pool.drain(self.id);
        }
    }

    /// Undoes the lease under the pool's lock.
    fn give_back(mut self, state: &mut State) {
        self.pool = None;
        let sender = self.returned();
        state.release(self.id, sender);
    }

    fn returned(&mut self) -> Option<single::Sender> {
        match self.ticket.take() {
            Some(Ticket::Single(sender)) => Some(sender),
            Some(Ticket::Multiplexed(_)) | None => None,
        }
    }

    fn end(mut self) {
        let sender = self.returned();
        if let Some(pool) = self.pool.take().and_then(|pool| pool.upgrade()) {
            pool.release(self.id, sender);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A sender that is dropped with its lease ends its connection; the place goes with it.
        self.ticket = None;
        if let Some(pool) = self.pool.take().and_then(|pool| pool.upgrade()) {
            pool.release(self.id, None);
        }
    }
}
