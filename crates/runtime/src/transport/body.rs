//! The body of an answer: bytes as they come, and the place on the connection until they have all come.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::error::Error;
use super::pool::Lease;

/// The body of an answer. Dropping it before its end cancels the request and frees its place.
pub struct HostBody {
    source: Source,
    /// The place on the connection. Gone after the end.
    lease: Option<Lease>,
}

enum Source {
    Multiplexed(RecvStream),
    Single(Incoming),
}

impl HostBody {
    pub(super) fn multiplexed(stream: RecvStream, lease: Lease) -> Self {
        Self { source: Source::Multiplexed(stream), lease: Some(lease) }
    }

    pub(super) fn single(incoming: Incoming, lease: Lease) -> Self {
        Self { source: Source::Single(incoming), lease: Some(lease) }
    }

    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.finish();
        }
    }
}

impl Body for HostBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        let frame = match &mut self.source {
            Source::Multiplexed(stream) => match ready!(stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    // Whoever asks for the next bytes has done with these: the server may send as many again.
                    let _ = stream.flow_control().release_capacity(data.len());
                    Some(Ok(Frame::data(data)))
                }
                // A reset without an error is how a server says that it wants no more of the request's body.
                Some(Err(error)) if error.is_reset() && error.reason() == Some(h2::Reason::NO_ERROR) => None,
                Some(Err(error)) => Some(Err(Error::Http2(error))),
                // API servers send no trailers.
                None => None,
            },
            Source::Single(incoming) => {
                ready!(Pin::new(incoming).poll_frame(cx)).map(|frame| frame.map_err(Error::Http1))
            }
        };
        match &frame {
            None => self.end(),
            Some(Err(_)) => drop(self.lease.take()),
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
            || match &self.source {
                Source::Multiplexed(stream) => stream.is_end_stream(),
                Source::Single(incoming) => incoming.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Multiplexed(_) => SizeHint::default(),
            Source::Single(incoming) => incoming.size_hint(),
        }
    }
}

impl Drop for HostBody {
    fn drop(&mut self) {
        // An answer without a body is often not asked for its end.
        if self.is_end_stream() {
            self.end();
        }
    }
}

impl std::fmt::Debug for HostBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostBody")
    }
}
