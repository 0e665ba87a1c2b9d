//! One call over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use crate::webhooks::{Phase, Webhooks, patience};

/// The largest body: an object and what it was before, each at the limit of API servers, and a little.
const MAX_BODY: usize = 8 << 20;

/// Answers calls.
pub(super) struct Service {
    pub(super) webhooks: Webhooks,
    pub(super) calls: Semaphore,
}

impl Service {
    /// The answer to a request.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if matches!(path, "/healthz" | "/readyz") {
            return text(StatusCode::OK, "ok");
        }
        let Some(phase) = Phase::of_path(path) else {
            return text(StatusCode::NOT_FOUND, "there is no webhook here");
        };
        if request.method() != Method::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "webhooks are called with POST");
        }
        let within = patience(request.uri().query());
        match tokio::time::timeout(within, self.call(request, phase, within)).await {
            Ok(answer) => answer,
            Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the call did not arrive in time"),
        }
    }

    async fn call(
        &self,
        request: Request<Incoming>,
        phase: Phase,
        within: Duration,
    ) -> Response<Full<Bytes>> {
        let arrived = tokio::time::Instant::now();
        let _place = self.calls.acquire().await.expect("the semaphore is never closed");
        let body = match Limited::new(request.into_body(), MAX_BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return text(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
            }
            Err(_) => return text(StatusCode::BAD_REQUEST, "the body did not arrive whole"),
        };
        match self.webhooks.review(phase, &body, within.saturating_sub(arrived.elapsed())).await {
            Ok(answer) => {
                let mut response = Response::new(Full::new(Bytes::from(answer)));
                let json = http::HeaderValue::from_static("application/json");
                response.headers_mut().insert(http::header::CONTENT_TYPE, json);
                response
            }
            Err(error) => text(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

fn text(code: StatusCode, words: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(words.to_owned())));
    *response.status_mut() = code;
    response
}
