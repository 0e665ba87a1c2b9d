//! One request and its answer: within bounded time, with a token if there is a helper for it, and once more with a fresh one if the first
//! is refused.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tower::BoxError;

use super::helper::Tokens;
use crate::failure::Silence;

/// How long a server may take to begin its answer to a write, which admission may look at: its webhooks have up to 30 seconds.
const WRITE_ANSWER: Duration = Duration::from_secs(35);
/// How long an answer may pause once it has begun.
const PAUSE: Duration = Duration::from_secs(30);

/// A client whose requests all end. `inner` knows the server.
pub(super) fn client(
    mut config: kube::Config,
    patience: Duration,
    tokens: Option<Arc<Tokens>>,
    namespace: &str,
) -> Result<kube::Client, kube::Error> {
    // The way there is a part of the answer.
    config.connect_timeout = Some(patience.mul_f32(0.7));
    config.read_timeout = Some(PAUSE.max(patience));
    // A write that is sent again after it took effect would look like somebody else's.
    config.default_retry = false;
    let inner = kube::Client::try_from(config)?;
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, tokens) = (inner.clone(), tokens.clone());
        async move { exchange(&inner, patience, tokens.as_deref(), request).await }
    });
    Ok(kube::Client::new(service, namespace))
}

async fn exchange(
    inner: &kube::Client,
    patience: Duration,
    tokens: Option<&Tokens>,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let Some(tokens) = tokens else { return in_time(inner, patience, request).await };
    let (parts, body) = request.into_parts();
    // What we send is small and whole, so it can be sent again.
    let again = body.try_clone();
    let first = Request::from_parts(parts.clone(), body);
    let answer = in_time(inner, patience, with_token(first, &tokens.get().await?)?).await?;
    let (StatusCode::UNAUTHORIZED, Some(body)) = (answer.status(), again) else { return Ok(answer) };
    let fresh = tokens.renew().await?;
    in_time(inner, patience, with_token(Request::from_parts(parts, body), &fresh)?).await
}

fn with_token(mut request: Request<Body>, token: &secrecy::SecretString) -> Result<Request<Body>, BoxError> {
    use secrecy::ExposeSecret as _;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
        // The error would show the token.
        .map_err(|_| "the credentials helper gave something that is no token")?;
    value.set_sensitive(true);
    request.headers_mut().insert(AUTHORIZATION, value);
    Ok(request)
}

async fn in_time(
    inner: &kube::Client,
    patience: Duration,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let is_write = request.method() != Method::GET;
    let patience = if is_write { patience.max(WRITE_ANSWER) } else { patience };
    match tokio::time::timeout(patience, inner.send(request)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            let tenths = u64::try_from(patience.as_millis() / 100).unwrap_or(u64::MAX);
            Err(Box::new(Silence { tenths, is_write }))
        }
    }
}
