//! How much of the server one client, one control plane and all of them together may take.
//!
//! Three things are scarce, and each has its own keeper:
//! - Memory. A request that has begun holds its body and its answer, so the number of those is bounded, by caller, by plane
//!   and in all ([`slots`]). A burst waits a moment in a queue before it is refused with 429; what has waited there is let in at a
//!   measured pace, so that a caller that never stops asking cannot take all that the server has.
//! - Processors. Whatever is ready to run goes through a queue that gives each plane its turn, and within a plane each
//!   caller ([`turns`]), so that a thousand requests of one plane delay another plane's by a few, not by a thousand.
//! - What lasts: watches are counted apart, for as long as they are open.
//!
//! Guarantees: no bound is ever exceeded; whatever a request holds comes back when it ends, however it ends; whoever waits is served in
//! turn, and does not wait for the callers that hold the most; only callers and planes with requests are
//! remembered, so that idle ones cost nothing; a request never holds a turn while it waits for anything, so requests that
//! wait for each other (an admission webhook that calls back) cannot lock each other out.

pub(crate) mod bounds;
mod fair;
mod slots;
mod turns;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::Identity;
use crate::error::ApiError;
use crate::planes::PlaneName;
use fair::{Caps, Flow};
pub(crate) use slots::Slot;
use slots::{Pool, Refusal};
use turns::Turns;
pub(crate) use turns::yield_turn;

/// What clients may take of a server. The defaults suit a server of two to eight cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body in bytes. Kubernetes has the same: 3 MiB, twice what etcd takes.
    pub body_bytes: usize,
    /// How long a request body may take to arrive. 3 MiB in 30 s need 100 KiB/s, which any link has.
    pub body_time: Duration,
    /// How long a TLS handshake, or the head of a request, may take. Honest ones take milliseconds; ten seconds
    /// leave room for a bad link with lost packets.
    pub head_time: Duration,
    /// TLS handshakes at the same time. When there are more, the oldest is given up: honest ones are over
    /// in milliseconds, those that are left to hang are not.
    pub handshakes: usize,
    /// Connections at the same time; more wait in the socket's backlog. Each costs about 40 KiB, and clients that speak HTTP/1.1
    /// alone need one for each watch.
    pub connections: usize,
    /// Requests and watches at the same time on one HTTP/2 connection. Clients open a further one when it is
    /// reached: 10,000 watches take ten.
    pub streams_per_connection: u32,
    /// Requests in flight in all: two batches of the disk's writer, and at most 3 GiB of the largest bodies. Half as many
    /// again are kept for callers that have few.
    pub requests: usize,
    /// Requests in flight in one plane: a quarter of all, so that no three planes can fill the server. Half as many again
    /// are kept for callers that have few.
    pub requests_per_plane: usize,
    /// Requests in flight of one caller in one plane: half of the plane's, and more than any controller keeps busy.
    pub requests_per_caller: usize,
    /// So many requests of each caller do not wait for those of others in its plane, nor in other planes. Enough
    /// for an admission webhook to go on calling back while the plane is full of requests that wait for it.
    pub kept_per_caller: usize,
    /// Requests of one caller that wait for a place. A client with 300 requests at once is served late; one with more is
    /// refused, and comes back when it is told to.
    pub queue_per_caller: usize,
    /// Requests in one plane that wait for a place. One that waits holds no body, and costs about 2 KiB.
    pub queue_per_plane: usize,
    /// How long a request waits for a place before it is refused: longer than a burst, shorter than clients wait.
    pub queue_time: Duration,
    /// How long a request that had to wait for a place holds it before it begins. Whoever has more requests than places is thereby
    /// held to `requests_per_caller` in this time and that of one request, so that a loop without an end leaves processors and
    /// disk to others: some 2,500 requests per second. Whoever stays within its places never notices.
    pub pause: Duration,
    /// Watches in all. An idle one costs 2 to 6 KiB: at most some 800 MiB. Enough for 10,000 planes with a dozen each.
    pub watchers: usize,
    /// Watches in one plane.
    pub watchers_per_plane: usize,
    /// Watches of one caller in one plane: two thirds of the plane's, so that no caller can take them all.
    pub watchers_per_caller: usize,
    /// Requests that are ready to run or running at the same time, beside one of each plane. Four for each core keep every core
    /// busy; each further one only makes another plane's request wait longer for its turn.
    pub running: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            body_bytes: 3 << 20,
            body_time: Duration::from_secs(30),
            head_time: Duration::from_secs(10),
            handshakes: 512,
            connections: 16_384,
            streams_per_connection: 1000,
            requests: 1024,
            requests_per_plane: 256,
            requests_per_caller: 128,
            kept_per_caller: 8,
            queue_per_caller: 256,
            queue_per_plane: 1024,
            queue_time: Duration::from_secs(5),
            pause: Duration::from_millis(50),
            watchers: 131_072,
            watchers_per_plane: 16_384,
            watchers_per_caller: 10_922,
            running: 4 * cores.max(2),
        }
    }
}

/// How soon a client that was refused may try again, in seconds.
const RETRY_AFTER: u32 = 1;

/// The keepers of a server's limits.
pub(crate) struct Gate {
    queue_time: Duration,
    pause: Duration,
    kept_per_caller: usize,
    /// For all but privileged callers.
    ordinary: Arc<Pool>,
    /// For callers that have few requests, when the others are taken.
    kept: Arc<Pool>,
    /// For privileged callers, whom no limit of their own holds back.
    privileged: Arc<Pool>,
    watchers: Arc<Pool>,
    turns: Arc<Turns>,
}

impl Gate {
    pub(crate) fn new(limits: &Limits) -> Self {
        let half = |limit: usize| limit.div_ceil(2);
        Self {
            queue_time: limits.queue_time,
            pause: limits.pause,
            kept_per_caller: limits.kept_per_caller,
            ordinary: Pool::new(Caps {
                all: limits.requests,
                floor: 0,
                plane: limits.requests_per_plane,
                caller: limits.requests_per_caller,
                queue_plane: limits.queue_per_plane,
                queue_caller: limits.queue_per_caller,
            }),
            kept: Pool::new(Caps::without_queue(
                half(limits.requests),
                half(limits.requests_per_plane),
                limits.kept_per_caller,
            )),
            privileged: Pool::new(Caps {
                all: limits.requests,
                floor: 0,
                plane: limits.requests,
                caller: limits.requests,
                queue_plane: limits.queue_per_plane,
                queue_caller: limits.queue_per_plane,
            }),
            watchers: Pool::new(Caps::without_queue(
                limits.watchers,
                limits.watchers_per_plane,
                limits.watchers_per_caller,
            )),
            turns: Turns::new(limits.running),
        }
    }

    /// Does the work of one request: waits for its place among those in flight, and lets it run in turn.
    ///
    /// # Errors
    /// There is no place for it; or the work came to no end, because it panicked or the runtime stops.
    pub(crate) async fn request<F, T>(
        &self,
        plane: &PlaneName,
        caller: &Identity,
        work: F,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, ApiError>> + Send + 'static,
        T: Send + 'static,
    {
        let flow = Flow::new(plane, caller);
        let slot = self.slot(&flow, caller.as_caller().is_superuser()).await?;
        let work = async move {
            let _held = slot;
            work.await
        };
        let done = self.turns.clone().run(flow, work).await;
        done.unwrap_or_else(|| Err(ApiError::Internal("the request was not brought to an end".to_owned())))
    }

    async fn slot(&self, flow: &Flow, privileged: bool) -> Result<Slot, ApiError> {
        let wait = |pool: &Arc<Pool>| pool.clone().wait(flow.clone(), self.queue_time);
        let slot = if privileged {
            wait(&self.privileged).await.map(|(slot, _)| slot)
        } else if let Some(slot) = self.ordinary.try_take(flow).or_else(|| self.keep(flow)) {
            return Ok(slot);
        } else {
            match wait(&self.ordinary).await {
                Ok((slot, waited)) => {
                    if waited {
                        tokio::time::sleep(self.pause).await;
                    }
                    Ok(slot)
                }
                Err(refusal) => Err(refusal),
            }
        };
        slot.map_err(|refusal| {
            too_many(match refusal {
                Refusal::QueueFull => "too many requests in flight, please try again later",
                Refusal::TooLong => "too many requests in flight, none ended in time; please try again later",
            })
        })
    }

    /// A place of those that are kept for callers with few requests, if this is one.
    fn keep(&self, flow: &Flow) -> Option<Slot> {
        let has_few = self.ordinary.held(flow) + self.kept.held(flow) < self.kept_per_caller;
        if has_few { self.kept.try_take(flow) } else { None }
    }

    /// Counts a watch for as long as what is returned lives.
    pub(crate) fn watcher(&self, plane: &PlaneName, caller: &Identity) -> Result<Slot, ApiError> {
        let slot = self.watchers.try_take(&Flow::new(plane, caller));
        slot.ok_or_else(|| too_many("too many watches are open, please try again later"))
    }
}

fn too_many(message: &str) -> ApiError {
    ApiError::TooManyRequests { message: message.to_owned(), retry_after: RETRY_AFTER }
}
