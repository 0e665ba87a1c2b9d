//! What is noted of one request on its way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderName, USER_AGENT};
use http::{HeaderValue, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Sink;
use super::event::{Event, ObjectRef, Outcome, Stage};
use crate::auth::Identity;
use crate::authz::{Attributes, Target};
use crate::error::ApiError;
use crate::http::{AuditAnnotations, Body, Peer};
use crate::planes::PlaneName;
use crate::server::Options;

static AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Paths and queries can be as long as a request head; what tells one request from another is at their start.
const MAX_URI: usize = 2048;
const MAX_AGENT: usize = 256;

/// Marks an answer that goes on after its head.
#[derive(Clone, Copy)]
pub(crate) struct Streaming;

/// The record of one request, while it is made. Found among the request's extensions; does nothing if there is no
/// audit log. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Trail(Option<Arc<Record>>);

struct Record {
    sink: Arc<dyn Sink>,
    started: Instant,
    event: Mutex<Event>,
}

impl Trail {
    /// Starts the record of a request, and puts it among the request's extensions.
    pub(crate) fn start(options: &Options, request: &mut http::request::Parts) -> Open {
        let Some(sink) = &options.audit else { return Open(Self(None)) };
        let mut event = Event::new(options.random.uuid(), options.clock.now());
        let uri = request.uri.path_and_query().map_or("/", |uri| uri.as_str());
        event.uri = uri.chars().take(MAX_URI).collect();
        event.verb = request.method.as_str().to_ascii_lowercase();
        let agent = request.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        event.user_agent = agent.chars().take(MAX_AGENT).collect();
        event.sources.extend(request.extensions.get().map(|Peer(peer)| peer.ip().to_string()));
        let record = Record { sink: sink.clone(), started: Instant::now(), event: Mutex::new(event) };
        let trail = Self(Some(Arc::new(record)));
        request.extensions.insert(trail.clone());
        Open(trail)
    }

    /// The record of a request.
    pub(crate) fn of(request: &http::request::Parts) -> Self {
        request.extensions.get().cloned().unwrap_or_default()
    }

    fn note(&self, note: impl FnOnce(&mut Event)) {
        if let Some(record) = &self.0 {
            note(&mut record.event.lock());
        }
    }

    /// Notes the plane that the request is for.
    pub(crate) fn plane(&self, plane: &PlaneName) {
        self.note(|event| event.set_plane(plane.as_str()));
    }

    /// Notes who sent the request.
    pub(crate) fn caller(&self, caller: &Identity) {
        self.note(|event| event.user = caller.clone());
    }

    /// Notes on whose behalf it was sent.
    pub(crate) fn impersonated(&self, user: &Identity) {
        self.note(|event| event.impersonated_user = Some(user.clone()));
    }

    /// Notes what the request asks, as authorization sees it.
    pub(crate) fn request(&self, asked: &Attributes<'_>) {
        self.note(|event| {
            event.verb = asked.verb.to_owned();
            if let Target::Resource(target) = asked.target {
                event.object_ref = Some(ObjectRef {
                    resource: target.resource.to_owned(),
                    namespace: target.namespace.to_owned(),
                    name: target.name.to_owned(),
                    api_group: target.group.to_owned(),
                    api_version: target.version.to_owned(),
                    subresource: target.subresource.to_owned(),
                });
            }
        });
    }

    /// Whether anything is noted at all.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Notes the name of a new object, which is not in the path.
    pub(crate) fn created(&self, name: &str) {
        self.note(|event| {
            if let Some(object) = event.object_ref.as_mut().filter(|object| object.name.is_empty()) {
                name.clone_into(&mut object.name);
            }
        });
    }

    /// Adds a fact, such as `authorization.k8s.io/decision`. It must not show content of objects.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        self.note(|event| {
            event.annotations.insert(key.to_owned(), value.to_owned());
        });
    }

    /// Hands the record as it is to the log.
    fn send(&self, stage: Stage) {
        let Some(record) = &self.0 else { return };
        let elapsed = record.started.elapsed();
        let mut event = record.event.lock().clone();
        event.stage = stage;
        event.at = event.received.checked_add(elapsed).unwrap_or(event.received);
        event.set_latency(elapsed);
        record.sink.record(event);
    }
}

/// A request that is being served. If this is dropped before there is an answer, the client has gone.
pub(crate) struct Open(Trail);

impl Open {
    /// The answer as the client gets it; `fail` makes one of an error.
    pub(crate) fn answer(
        mut self,
        answer: Result<Response<Body>, ApiError>,
        fail: impl FnOnce(&ApiError) -> Response<Body>,
    ) -> Response<Body> {
        let trail = std::mem::take(&mut self.0);
        let (mut response, failure) = match answer {
            Ok(mut response) => {
                let failure = response.extensions_mut().remove::<ApiError>();
                (response, failure)
            }
            Err(error) => (fail(&error), Some(error)),
        };
        let Some(record) = &trail.0 else { return response };
        let mut outcome = failure.as_ref().map(failed).unwrap_or_default();
        outcome.code = response.status().as_u16();
        let id = {
            let mut event = record.event.lock();
            if event.object_ref.as_ref().is_some_and(is_secret) {
                outcome.message.clear();
            }
            event.response_status = Some(outcome);
            // What a hook wants written down is its own word.
            if let Some(AuditAnnotations(more)) = response.extensions_mut().remove() {
                event.annotations.extend(more);
            }
            event.id.clone()
        };
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(AUDIT_ID.clone(), id);
        }
        if response.extensions_mut().remove::<Streaming>().is_none() {
            trail.send(Stage::ResponseComplete);
            return response;
        }
        trail.send(Stage::ResponseStarted);
        response.map(|body| Watched { body, _end: End(trail) }.boxed_unsync())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.is_kept() {
            // What nginx made the usual code for it; no client sees it.
            const CLIENT_CLOSED_REQUEST: u16 = 499;
            self.0.note(|event| {
                event.response_status = Some(Outcome {
                    status: "Failure",
                    reason: "ClientClosedRequest".to_owned(),
                    message: "the client went away before the answer; a write may have happened".to_owned(),
                    code: CLIENT_CLOSED_REQUEST,
                });
            });
            self.0.send(Stage::ResponseComplete);
        }
    }
}

fn is_secret(object: &ObjectRef) -> bool {
    object.api_group.is_empty() && object.resource == "secrets"
}

fn failed(error: &ApiError) -> Outcome {
    const MAX_REASON: usize = 64;
    // A hook can give any reason; one that is not a word could quote what it was shown.
    let reason = error.reason();
    let is_word = reason.len() <= MAX_REASON && reason.chars().all(|c| c.is_ascii_alphanumeric());
    Outcome {
        status: "Failure",
        reason: if is_word { reason.to_owned() } else { "Denied".to_owned() },
        message: told(error).unwrap_or_default(),
        code: 0,
    }
}

/// The words of an error, if they speak of names and numbers alone. Those of the others may quote what was sent.
fn told(error: &ApiError) -> Option<String> {
    let speaks_of_names = matches!(
        error,
        ApiError::Unauthorized
            | ApiError::NotFound(_)
            | ApiError::NoSuchPath
            | ApiError::MethodNotAllowed(_)
            | ApiError::NotAcceptable(_)
            | ApiError::AlreadyExists(_)
            | ApiError::Expired { .. }
            | ApiError::TooManyRequests { .. }
            | ApiError::TooSlow(_)
            | ApiError::TooLarge(_)
            | ApiError::UnsupportedMediaType(_)
            | ApiError::ResourceVersionTooLarge { .. }
    );
    speaks_of_names.then(|| error.to_string())
}

/// The body of an answer that lasts, and what is to be done at its end.
struct Watched {
    body: Body,
    _end: End,
}

struct End(Trail);

impl Drop for End {
    fn drop(&mut self) {
        self.0.send(Stage::ResponseComplete);
    }
}

impl http_body::Body for Watched {
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
