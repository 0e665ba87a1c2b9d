//! Requests that end: every wait for a server is bounded.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use tokio::time::{Instant, timeout, timeout_at};

/// Why a request did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    /// The server refused, with its reason.
    #[error("refused: {} ({} {})", .0.message, .0.code, .0.reason)]
    Refused(Box<Status>),
    /// The server could not be reached, or the connection broke.
    #[error("connection: {0}")]
    Broken(#[source] kube::Error),
    /// The server sent nothing for too long.
    #[error("the server was silent for too long")]
    Silent,
    /// The server sent something that is not what it should be.
    #[error("malformed answer: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The request could not be built.
    #[error("cannot ask: {0}")]
    Request(#[from] kube::core::request::Error),
}

impl FetchError {
    /// Whether the server does not remember the version that it was asked to go on from.
    pub(super) fn is_expired(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 410)
    }

    /// Whether it is the server's answer, and not that of whatever is between.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Malformed(_))
    }

    /// How long the server asks to be left alone.
    pub(super) fn retry_after(&self) -> Duration {
        /// A server may not stop us for longer than this.
        const LONGEST: u32 = 60;
        match self {
            Self::Refused(status) => {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                Duration::from_secs(seconds.min(LONGEST).into())
            }
            _ => Duration::ZERO,
        }
    }
}

/// Sends a request; the body of a good answer. The server may take `patience` to begin it.
pub(super) async fn open(
    client: &Client,
    request: Request<Vec<u8>>,
    patience: Duration,
) -> Result<Body, FetchError> {
    let response = timeout(patience, client.send(request.map(Body::from)))
        .await
        .map_err(|_| FetchError::Silent)?
        .map_err(FetchError::Broken)?;
    if response.status().is_success() {
        return Ok(response.into_body());
    }
    let code = response.status().as_u16();
    let text = read(response.into_body(), patience).await?;
    let status = serde_json::from_slice::<Status>(&text).unwrap_or_else(|_| {
        let message = String::from_utf8_lossy(&text[..text.len().min(200)]);
        Status::failure(&message, "").with_code(code)
    });
    Err(FetchError::Refused(Box::new(if status.code == 0 { status.with_code(code) } else { status })))
}

/// The whole body. The server may take `patience` between two pieces.
pub(super) async fn read(mut body: Body, patience: Duration) -> Result<Vec<u8>, FetchError> {
    let mut whole = Vec::new();
    while let Some(data) = piece(&mut body, Instant::now() + patience).await? {
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

/// The next piece of a body, or `None` at its end.
pub(super) async fn piece(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, FetchError> {
    loop {
        let frame = timeout_at(deadline, body.frame()).await.map_err(|_| FetchError::Silent)?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(FetchError::Broken(error)),
            // Trailers are of no interest.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Cuts pieces into lines. Holds nothing between lines: most watches are idle most of the time.
#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Calls `each` for every line that `data` completes, up to the first error.
    pub(super) fn push<E>(
        &mut self,
        data: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut data = data;
        while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&data[..end], &data[end + 1..]);
            if self.rest.is_empty() {
                each(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                each(&whole)?;
            }
            data = after;
        }
        self.rest.extend_from_slice(data);
        Ok(())
    }
}
