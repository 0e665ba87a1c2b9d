//! A service in front of a plane that fails on demand, and counts what passes.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use compute_apiserver::{ApiServer, Identity, PlaneName};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, ServiceExt as _};

/// What happens to a request instead of its handling.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It gets no answer, ever.
    Hang,
    /// The connection breaks before it arrives.
    Break,
    /// It is handled, and the connection breaks before the answer arrives.
    LoseAnswer,
    /// It is answered by this.
    Answer(StatusCode, serde_json::Value),
}

#[derive(Default)]
struct State {
    /// For every request, until it is taken back.
    always: Option<Fault>,
    /// For the next requests that change something, one each.
    next_writes: VecDeque<Fault>,
    requests: Vec<(Method, String)>,
}

/// What is wrong with a plane.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// A client for a plane that these faults come between.
    pub fn client(&self, server: &ApiServer, plane: &PlaneName) -> Client {
        let inner = server.service(plane, Identity::superuser("test"));
        let faults = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, fault) = (inner.clone(), faults.take(&request));
            async move {
                match fault {
                    Some(Fault::Hang) => pending().await,
                    Some(Fault::Break) => Err::<Response<AnswerBody>, BoxError>("connection refused".into()),
                    Some(Fault::LoseAnswer) => {
                        inner.oneshot(request).await.map_err(BoxError::from)?;
                        Err("connection reset".into())
                    }
                    Some(Fault::Answer(code, body)) => {
                        let body = Full::from(body.to_string()).map_err(BoxError::from).boxed_unsync();
                        Ok(Response::builder().status(code).body(body).unwrap())
                    }
                    None => {
                        let answer = inner.oneshot(request).await.map_err(BoxError::from)?;
                        Ok(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()))
                    }
                }
            }
        });
        Client::new(service, "default")
    }

    fn take(&self, request: &Request<Body>) -> Option<Fault> {
        let mut state = self.0.lock();
        state.requests.push((request.method().clone(), request.uri().path().to_owned()));
        let next = if request.method() == Method::GET { None } else { state.next_writes.pop_front() };
        next.or_else(|| state.always.clone())
    }

    /// From now on, for every request.
    pub fn set(&self, fault: Option<Fault>) {
        self.0.lock().always = fault;
    }

    /// For the next request that changes something.
    pub fn next_write(&self, fault: Fault) {
        self.0.lock().next_writes.push_back(fault);
    }

    /// How many requests of that method there were.
    pub fn count(&self, method: &Method) -> usize {
        self.0.lock().requests.iter().filter(|(have, _)| have == method).count()
    }
}

/// Names the body's type, which nothing else does.
pub type AnswerBody = UnsyncBoxBody<bytes::Bytes, BoxError>;
