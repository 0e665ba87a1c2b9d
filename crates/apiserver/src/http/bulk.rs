//! Where connections with much to do are served: threads of their own, which the operating system lets run when nobody else wants to.
//!
//! One poll of a connection with a thousand watches encrypts megabytes. On the threads that serve everyone, whoever comes next waits for
//! the end of it; a thread of lower priority is interrupted at once. A connection moves there when it has many requests
//! or watches open, and back when it has few.
//!
//! Guarantees: a connection is polled in one place at a time and loses no wake-up when it moves; it ends with whoever waits for it; without such
//! threads (the system has none left to give) everything is served where it is.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use super::Body;

/// Requests and watches that a connection has open when it counts as busy, and those at which it does no longer. A controller with a
/// watch for each kind that it knows stays below.
const MANY: usize = 48;
const FEW: usize = 16;
/// How much lower their priority is, as `nice` counts: they get a third of what the others get while both want to run. Lower ones would hold
/// the locks that they share with the others for too long.
const NICE: i32 = 5;

/// The threads of connections with much to do.
pub(super) struct Bulk(Option<Runtime>);

impl Bulk {
    /// Starts them.
    pub(super) fn start() -> Self {
        let runtime = Builder::new_multi_thread()
            .thread_name("bulk")
            .enable_all()
            .on_thread_start(|| {
                if let Err(error) = rustix::process::nice(NICE) {
                    tracing::warn!(%error, "priority not lowered");
                }
            })
            .build();
        Self(runtime.inspect_err(|error| tracing::warn!(%error, "no threads for busy connections")).ok())
    }

    pub(super) fn handle(&self) -> Option<Handle> {
        self.0.as_ref().map(|runtime| runtime.handle().clone())
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Waiting for it is not allowed where tasks run.
            runtime.shutdown_background();
        }
    }
}

/// How many requests and watches a connection has open.
#[derive(Clone, Default)]
pub(super) struct Load(Arc<AtomicUsize>);

impl Load {
    /// Counts one for as long as what is returned lives.
    pub(super) fn open(&self) -> Opened {
        self.0.fetch_add(1, Relaxed);
        Opened(self.clone())
    }

    fn is_many(&self) -> bool {
        self.0.load(Relaxed) > MANY
    }

    fn is_few(&self) -> bool {
        self.0.load(Relaxed) < FEW
    }
}

/// An open request, or the answer to it that is not at its end.
pub(super) struct Opened(Load);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// The body of an answer, counted until its end.
pub(super) struct Counted {
    body: Body,
    _opened: Opened,
}

impl Counted {
    pub(super) fn new(body: Body, opened: Opened) -> Self {
        Self { body, _opened: opened }
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a connection where it belongs, until its end.
pub(super) async fn run(mut work: Work, load: Load, bulk: Option<Handle>) {
    let Some(bulk) = bulk else { return work.await };
    loop {
        match (Stay { work: Some(work), load: load.clone(), until: Load::is_many }).await {
            ControlFlow::Break(()) => return,
            ControlFlow::Continue(moved) => work = moved,
        }
        let there = Stay { work: Some(work), load: load.clone(), until: Load::is_few };
        let mut task = Task(bulk.spawn(there));
        match (&mut task.0).await {
            Ok(ControlFlow::Continue(moved)) => work = moved,
            Ok(ControlFlow::Break(())) | Err(_) => return,
        }
    }
}

/// Runs the requests of a connection where the connection is served: they share its locks.
#[derive(Clone)]
pub(super) struct Beside {
    load: Load,
    bulk: Option<Handle>,
}

impl Beside {
    pub(super) fn new(load: Load, bulk: Option<Handle>) -> Self {
        Self { load, bulk }
    }

    pub(super) fn load(&self) -> &Load {
        &self.load
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Beside {
    fn execute(&self, request: F) {
        tokio::spawn(run(Box::pin(request), self.load.clone(), self.bulk.clone()));
    }
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Work that is done here until it is time to leave; then it is handed out.
struct Stay {
    work: Option<Work>,
    load: Load,
    until: fn(&Load) -> bool,
}

impl Future for Stay {
    type Output = ControlFlow<(), Work>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = self.work.as_mut() else { return Poll::Ready(ControlFlow::Break(())) };
        if work.as_mut().poll(cx).is_ready() {
            return Poll::Ready(ControlFlow::Break(()));
        }
        // After the poll, which may have opened or ended many. Wherever it goes, it is polled there first of all.
        if (self.until)(&self.load)
            && let Some(work) = self.work.take()
        {
            return Poll::Ready(ControlFlow::Continue(work));
        }
        Poll::Pending
    }
}
