//! The wires between workers and planes: each can be cut, and everything that goes over them is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_apiserver::{ApiServer, PlaneName};
use http::{Method, Request, Response};
use http_body::{Frame, SizeHint};
use kube::Client;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::BoxError;

use crate::stack::Worker;

/// Requests by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads that are not watches.
    pub reads: u64,
    /// Watches that were opened.
    pub watches: u64,
    /// Writes, other than of Leases.
    pub writes: u64,
    /// Writes of Leases.
    pub leases: u64,
    /// What the requests were, newest last, without watches and Leases.
    pub log: Vec<String>,
}

/// All wires of a system. Cheap to clone.
#[derive(Clone, Default)]
pub struct Wires(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By plane: cut for everybody, or for one worker.
    cut: BTreeSet<(PlaneName, Option<Worker>)>,
    /// Cancelled when the wire is cut, for what is under way.
    live: BTreeMap<(PlaneName, Worker), CancellationToken>,
    /// How many more writes a worker has.
    writes_left: BTreeMap<Worker, u64>,
    spent: BTreeSet<Worker>,
    counts: Counts,
}

impl Wires {
    /// A worker's wire to a plane.
    pub fn connect(&self, server: &ApiServer, worker: &Worker, plane: &PlaneName) -> Client {
        Client::new(self.wire(worker, plane, server.service(plane, worker.identity())), "default")
    }

    /// A worker's wire to a plane, over whatever reaches it.
    pub fn wire<S>(&self, worker: &Worker, plane: &PlaneName, inner: S) -> Wire<S> {
        Wire { wires: self.clone(), worker: worker.clone(), plane: plane.clone(), inner }
    }

    /// Nothing gets through to a plane from now on, and what is under way breaks.
    pub fn cut(&self, plane: &PlaneName) {
        let mut state = self.0.lock();
        state.cut.insert((plane.clone(), None));
        state.live.retain(|(of, _), live| {
            if of == plane {
                live.cancel();
            }
            of != plane
        });
    }

    /// The plane can be reached again.
    pub fn mend(&self, plane: &PlaneName) {
        self.0.lock().cut.remove(&(plane.clone(), None));
    }

    /// One worker does not reach a plane from now on; others do.
    pub fn cut_for(&self, worker: &Worker, plane: &PlaneName) {
        let mut state = self.0.lock();
        state.cut.insert((plane.clone(), Some(worker.clone())));
        if let Some(live) = state.live.remove(&(plane.clone(), worker.clone())) {
            live.cancel();
        }
    }

    /// Whatever was cut can be reached again, by everybody.
    pub fn mend_all(&self) {
        self.0.lock().cut.clear();
    }

    /// Gives a worker so many writes.
    pub fn allow_writes(&self, worker: &Worker, writes: u64) {
        let mut state = self.0.lock();
        state.spent.remove(worker);
        state.writes_left.insert(worker.clone(), writes);
    }

    /// Takes a worker's limit away.
    pub fn unlimited(&self, worker: &Worker) {
        let mut state = self.0.lock();
        state.spent.remove(worker);
        state.writes_left.remove(worker);
    }

    /// Whether a worker has tried to write more than it may.
    pub fn is_spent(&self, worker: &Worker) -> bool {
        self.0.lock().spent.contains(worker)
    }

    /// What went over all wires since this was last asked.
    pub fn take_counts(&self) -> Counts {
        std::mem::take(&mut self.0.lock().counts)
    }

    /// Lets a request pass, or says why not. What it gives is cancelled when the plane is cut.
    fn pass(&self, worker: &Worker, plane: &PlaneName, request: &Call) -> io::Result<CancellationToken> {
        let mut state = self.0.lock();
        if state.spent.contains(worker) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the worker is dead"));
        }
        let is_cut = |whom| state.cut.contains(&(plane.clone(), whom));
        if !state.cut.is_empty() && (is_cut(None) || is_cut(Some(worker.clone()))) {
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the plane is cut off"));
        }
        match request.kind {
            Kind::Watch => state.counts.watches += 1,
            Kind::Read => state.counts.reads += 1,
            Kind::Write => {
                if let Some(left) = state.writes_left.get_mut(worker) {
                    if *left == 0 {
                        state.spent.insert(worker.clone());
                        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the worker is dead"));
                    }
                    *left -= 1;
                }
                state.counts.writes += 1;
            }
            Kind::Lease => state.counts.leases += 1,
        }
        if matches!(request.kind, Kind::Read | Kind::Write) {
            state.counts.log.push(format!("{worker:?} {plane}: {}", request.line));
        }
        Ok(state.live.entry((plane.clone(), worker.clone())).or_default().clone())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Watch,
    Read,
    Write,
    Lease,
}

/// A request, in short.
struct Call {
    kind: Kind,
    line: String,
}

impl Call {
    fn of<B>(request: &Request<B>) -> Self {
        let (method, uri) = (request.method(), request.uri());
        let watches = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "watch=true"));
        let kind = match *method {
            Method::GET if watches => Kind::Watch,
            // A question that is asked by POST, and leaves nothing behind.
            _ if uri.path().ends_with("accessreviews") => Kind::Read,
            Method::GET => Kind::Read,
            _ if uri.path().contains("/leases/") || uri.path().ends_with("/leases") => Kind::Lease,
            _ => Kind::Write,
        };
        Self { kind, line: format!("{method} {uri}") }
    }
}

/// One worker's wire to one plane.
#[derive(Clone)]
pub struct Wire<S> {
    wires: Wires,
    worker: Worker,
    plane: PlaneName,
    inner: S,
}

impl<S, B> tower::Service<Request<kube::client::Body>> for Wire<S>
where
    S: tower::Service<Request<kube::client::Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = Response<Line<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Line<B>>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        // What was made ready is what is called.
        let inner = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, inner);
        let (wires, worker, plane) = (self.wires.clone(), self.worker.clone(), self.plane.clone());
        Box::pin(async move {
            let live = wires.pass(&worker, &plane, &Call::of(&request))?;
            let answer = tokio::select! {
                biased;
                () = live.cancelled() => return Err(broken().into()),
                answer = inner.call(request) => answer.map_err(Into::into)?,
            };
            Ok(answer.map(|inner| Line { inner, broken: Box::pin(live.cancelled_owned()) }))
        })
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the wire was cut")
}

/// An answer on its way, which breaks when the wire does.
pub struct Line<B> {
    inner: B,
    broken: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<B> http_body::Body for Line<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.broken.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(broken().into())));
        }
        Pin::new(&mut self.inner).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
