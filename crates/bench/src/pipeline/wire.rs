//! A way to a plane that counts what goes over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use compute_apiserver::{ApiServer, PlaneName};
use compute_local::Worker;
use http::Request;
use kube::Client;

/// What went over all wires that share it.
#[derive(Debug, Default)]
pub struct Counts {
    /// Watches opened.
    pub watches: AtomicUsize,
    /// Everything else, but for the question whether a plane answers at all.
    pub requests: AtomicUsize,
}

/// The ways of all workers to all planes of a server, in its own process.
pub fn to_planes(server: &ApiServer, counts: &Arc<Counts>) -> Box<compute_local::Connect> {
    let (server, counts) = (server.clone(), counts.clone());
    Box::new(move |worker: &Worker, plane: &PlaneName| {
        let inner = server.service(plane, worker.identity());
        Client::new(Counted { inner, counts: counts.clone() }, "default")
    })
}

/// Counts the requests that go through.
#[derive(Clone)]
pub struct Counted<S> {
    /// Where they go.
    pub inner: S,
    /// Where they are counted.
    pub counts: Arc<Counts>,
}

impl<S, B> tower::Service<Request<B>> for Counted<S>
where
    S: tower::Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        let uri = request.uri();
        if uri.query().is_some_and(|query| query.contains("watch=true")) {
            self.counts.watches.fetch_add(1, Ordering::Relaxed);
        } else if !uri.path().ends_with("/readyz") {
            self.counts.requests.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.call(request)
    }
}
