//! The wires between workers and planes: each can be cut, and everything that goes over them is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_apiserver::{ApiServer, PlaneName, PlaneService};
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
    cut: BTreeSet<PlaneName>,
    /// Cancelled when the plane is cut, for what is under way.
    live: BTreeMap<PlaneName, CancellationToken>,
    /// How many more writes a worker has.
    writes_left: BTreeMap<Worker, u64>,
    spent: BTreeSet<Worker>,
    counts: Counts,
}

impl Wires {
    /// A worker's wire to a plane.
    pub fn connect(&self, server: &ApiServer, worker: &Worker, plane: &PlaneName) -> Client {
        let wire = Wire {
            wires: self.clone(),
            worker: worker.clone(),
            plane: plane.clone(),
            inner: server.service(plane, worker.identity()),
        };
        Client::new(wire, "default")
    }

    /// Nothing gets through to a plane from now on, and what is under way breaks.
    pub fn cut(&self, plane: &PlaneName) {
        let mut state = self.0.lock();
        state.cut.insert(plane.clone());
        if let Some(live) = state.live.remove(plane) {
            live.cancel();
        }
    }

    /// The plane can be reached again.
    pub fn mend(&self, plane: &PlaneName) {
        self.0.lock().cut.remove(plane);
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
        if state.cut.contains(plane) {
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
        Ok(state.live.entry(plane.clone()).or_default().clone())
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
            Method::GET => Kind::Read,
            _ if uri.path().contains("/leases/") || uri.path().ends_with("/leases") => Kind::Lease,
            _ => Kind::Write,
        };
        Self { kind, line: format!("{method} {uri}") }
    }
}

/// One worker's wire to one plane.
#[derive(Clone)]
struct Wire {
    wires: Wires,
    worker: Worker,
    plane: PlaneName,
    inner: PlaneService,
}

impl tower::Service<Request<kube::client::Body>> for Wire {
    type Response = Response<Line>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Line>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let mut wire = self.clone();
        Box::pin(async move {
            let live = wire.wires.pass(&wire.worker, &wire.plane, &Call::of(&request))?;
            let answer = tokio::select! {
                biased;
                () = live.cancelled() => return Err(broken().into()),
                answer = wire.inner.call(request) => answer?,
            };
            Ok(answer.map(|inner| Line { inner, broken: Box::pin(live.cancelled_owned()) }))
        })
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the wire was cut")
}

/// An answer on its way, which breaks when the wire does.
pub struct Line {
    inner: compute_apiserver::Body,
    broken: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl http_body::Body for Line {
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
