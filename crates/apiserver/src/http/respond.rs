//! Responses: bodies, headers, compression.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write as _;

use bytes::Bytes;
use flate2::write::GzEncoder;
use futures::Stream;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::Value;

use crate::audit::Streaming;
use crate::error::ApiError;
use crate::hooks::Notes;
use crate::limits::{Slot, yield_turn};

/// The body of every response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Answers of this size and more are compressed for clients that take gzip, as Kubernetes does.
const COMPRESS_FROM: usize = 128 * 1024;

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

/// Plain text.
pub(super) fn text(text: &'static str) -> Response<Body> {
    let mut response = Response::new(full(Bytes::from_static(text.as_bytes())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A JSON value.
pub(super) fn json(request: &HeaderMap, value: &Value) -> Response<Body> {
    bytes(request, serialise(value), "application/json")
}

pub(super) fn serialise(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("a value always serialises into memory").into()
}

/// Aggregated discovery has a content type of its own.
pub(super) fn aggregated(request: &HeaderMap, value: &Value) -> Response<Body> {
    bytes(request, serialise(value), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
}

/// Ready bytes.
pub(super) fn bytes(request: &HeaderMap, bytes: Bytes, content_type: &'static str) -> Response<Body> {
    let compressed = wants_gzip(request, &bytes).then(|| gzip(&bytes)).flatten();
    ready(bytes, compressed, content_type)
}

/// Ready bytes that may be many: they are compressed piece by piece, so that others have their turns in between.
pub(super) async fn long(request: &HeaderMap, bytes: Bytes, content_type: &'static str) -> Response<Body> {
    let compressed = if wants_gzip(request, &bytes) { gzip_at_pace(&bytes).await } else { None };
    ready(bytes, compressed, content_type)
}

fn ready(bytes: Bytes, compressed: Option<Bytes>, content_type: &'static str) -> Response<Body> {
    let gzipped = compressed.is_some();
    let mut response = Response::new(full(compressed.unwrap_or(bytes)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    if gzipped {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn wants_gzip(request: &HeaderMap, bytes: &Bytes) -> bool {
    if bytes.len() < COMPRESS_FROM {
        return false;
    }
    let values = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|coding| coding.split(';').next().map(str::trim) == Some("gzip"))
}

fn encoder(length: usize) -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::with_capacity(length / 8), flate2::Compression::fast())
}

fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = encoder(bytes.len());
    encoder.write_all(bytes).ok()?;
    Some(encoder.finish().ok()?.into())
}

async fn gzip_at_pace(bytes: &[u8]) -> Option<Bytes> {
    let (mut encoder, mut pace) = (encoder(bytes.len()), Pace::default());
    for piece in bytes.chunks(Pace::BYTES) {
        encoder.write_all(piece).ok()?;
        pace.spent(piece.len()).await;
    }
    Some(encoder.finish().ok()?.into())
}

/// Lets others run every now and then during long work.
#[derive(Default)]
pub(super) struct Pace {
    since: usize,
}

impl Pace {
    /// Work on so many bytes of JSON takes well below a millisecond, whether it is copied, parsed or compressed.
    const BYTES: usize = 32 << 10;

    /// Counts work on so many bytes.
    pub(super) async fn spent(&mut self, bytes: usize) {
        self.since += bytes;
        if self.since >= Self::BYTES {
            self.since = 0;
            yield_turn().await;
        }
    }
}

/// A stream of watch events; it is counted for as long as it lasts.
pub(super) fn stream(frames: impl Stream<Item = Bytes> + Send + 'static, counted: Slot) -> Response<Body> {
    use futures::StreamExt as _;
    let frames = frames.map(move |bytes| {
        let _ = &counted;
        Ok::<_, Infallible>(Frame::data(bytes))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.extensions_mut().insert(Streaming);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// A failed request.
pub(super) fn error(error: &ApiError) -> Response<Body> {
    if let ApiError::Internal(_) = error {
        tracing::error!(%error, "request failed");
    }
    let mut response = json(&HeaderMap::new(), &error.to_status());
    *response.status_mut() = error.code();
    match error {
        ApiError::Unauthorized => {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        ApiError::TooManyRequests { retry_after, .. } => {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(*retry_after));
        }
        ApiError::ResourceVersionTooLarge { .. } => {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        ApiError::Denied(denial) => {
            let after = denial.details.as_ref().and_then(|details| details["retryAfterSeconds"].as_u64());
            if let Some(after) = after.filter(|after| *after > 0) {
                response.headers_mut().insert(RETRY_AFTER, after.into());
            }
        }
        _ => {}
    }
    response
}

/// Puts warnings into the headers, where kubectl shows them.
pub(super) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    const MOST: usize = 32;
    for warning in warnings.iter().take(MOST) {
        let printable: String = warning.chars().filter(|c| !c.is_control()).take(512).collect();
        let quoted = printable.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}

/// Audit annotations that hooks gave, as `hook name/key`, among the extensions of a response: an audit log finds them there.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditAnnotations(pub BTreeMap<String, String>);

/// An answer with what hooks said beside yes and no: warnings go to the client whatever becomes of the request.
pub(super) fn noted(
    answer: Result<Response<Body>, ApiError>,
    notes: Notes,
) -> Result<Response<Body>, ApiError> {
    if notes == Notes::default() {
        return answer;
    }
    let mut response = answer.unwrap_or_else(|failed| {
        let mut response = error(&failed);
        // The audit log tells the reason of a failure.
        response.extensions_mut().insert(failed);
        response
    });
    warn(&mut response, &notes.warnings);
    if !notes.annotations.is_empty() {
        response.extensions_mut().insert(AuditAnnotations(notes.annotations));
    }
    Ok(response)
}

/// The same with another status code.
pub(super) fn with_code(mut response: Response<Body>, code: StatusCode) -> Response<Body> {
    *response.status_mut() = code;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hooks_said_goes_along_with_any_answer() {
        let mut notes = Notes { warnings: vec!["old".to_owned()], ..Notes::default() };
        notes.annotations.insert("a.example.com/key".to_owned(), "value".to_owned());
        for answer in [Ok(text("ok")), Err(ApiError::NoSuchPath)] {
            let code = answer.as_ref().map_or_else(ApiError::code, Response::status);
            let response = noted(answer, notes.clone()).unwrap();
            assert_eq!(response.status(), code);
            assert_eq!(response.headers()["warning"], "299 - \"old\"");
            let annotations = response.extensions().get::<AuditAnnotations>().unwrap();
            assert_eq!(annotations.0["a.example.com/key"], "value");
        }
        assert!(noted(Err(ApiError::NoSuchPath), Notes::default()).is_err());
    }
}
