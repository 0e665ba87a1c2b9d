//! Request bodies: bounded, in JSON, YAML or (built-in kinds) Protobuf.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::{json, protobuf};
use crate::error::{ApiError, Result};
use crate::limits::Limits;
use crate::verbs::Patch;

/// How much of a larger body is read before the answer.
const MAX_DISCARDED: usize = 64 << 20;

const OBJECT_TYPES: &str = "application/json, application/yaml";
const PATCH_TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
    application/strategic-merge-patch+json, application/apply-patch+yaml";

/// Reads a body to its end, if it comes in time. One that is over the limit is read on without keeping it, up to a bound: a client that is
/// still sending when the connection closes never sees the answer.
pub(super) async fn read<B>(limits: &Limits, headers: &HeaderMap, body: B) -> Result<Bytes>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let whole = read_whole(limits.body_bytes, headers, body);
    let in_time = tokio::time::timeout(limits.body_time, whole).await;
    in_time.unwrap_or_else(|_| Err(ApiError::TooSlow(limits.body_time.as_secs())))
}

async fn read_whole<B>(most: usize, headers: &HeaderMap, body: B) -> Result<Bytes>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let announced = headers.get(http::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced
        .and_then(|value| value.parse::<u64>().ok())
        .is_some_and(|length| length > MAX_DISCARDED as u64)
    {
        return Err(ApiError::TooLarge(most));
    }
    let mut body = std::pin::pin!(body);
    let mut kept = BytesMut::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            ApiError::BadRequest(format!("the body of the request cannot be read: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        seen += data.remaining();
        if seen <= most {
            kept.put(data);
        } else if seen > MAX_DISCARDED {
            break;
        }
    }
    if seen > most { Err(ApiError::TooLarge(most)) } else { Ok(kept.freeze()) }
}

fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

fn malformed(error: impl std::fmt::Display) -> ApiError {
    ApiError::BadRequest(format!("the body of the request cannot be decoded: {error}"))
}

fn yaml(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(malformed)?;
    serde_saphyr::from_str(text).map_err(malformed)
}

/// An object, and the fields in it that stand twice.
pub(super) fn object(headers: &HeaderMap, bytes: &[u8]) -> Result<(Value, Vec<String>)> {
    match media_type(headers) {
        "" | "application/json" | "*/*" => json::parse(bytes).map_err(malformed),
        "application/yaml" => Ok((yaml(bytes)?, Vec::new())),
        "application/vnd.kubernetes.protobuf" => {
            let object = protobuf::decode(bytes).map_err(malformed)?;
            object.map(|object| (object, Vec::new())).ok_or(ApiError::UnsupportedMediaType(OBJECT_TYPES))
        }
        _ => Err(ApiError::UnsupportedMediaType(OBJECT_TYPES)),
    }
}

/// A patch, and the fields in it that stand twice.
pub(super) fn patch(headers: &HeaderMap, bytes: Bytes, force: bool) -> Result<(Patch, Vec<String>)> {
    let parse = |bytes: &[u8]| {
        let (value, duplicates) = json::parse(bytes).map_err(malformed)?;
        if value.is_object() {
            Ok((value, duplicates))
        } else {
            Err(malformed("a merge patch must be a JSON object"))
        }
    };
    match media_type(headers) {
        "application/json-patch+json" => Ok((Patch::Json(bytes), Vec::new())),
        "application/merge-patch+json" => parse(&bytes).map(|(value, twice)| (Patch::Merge(value), twice)),
        "application/strategic-merge-patch+json" => {
            parse(&bytes).map(|(value, twice)| (Patch::Strategic(value), twice))
        }
        "application/apply-patch+yaml" => {
            // Most clients send JSON under this type; YAML is tried when it is not.
            let (config, twice) = match json::parse(&bytes) {
                Ok(parsed) => parsed,
                Err(_) => (yaml(&bytes)?, Vec::new()),
            };
            if !config.is_object() {
                return Err(malformed("an applied configuration must be an object"));
            }
            Ok((Patch::Apply { config, force }, twice))
        }
        _ => Err(ApiError::UnsupportedMediaType(PATCH_TYPES)),
    }
}
