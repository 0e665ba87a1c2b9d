//! How a write can fail, sorted by what its controller can do about it.

use std::time::Duration;

use compute_api::kube;
use compute_api::kube::core::Status;

/// What a server that is too busy means if it names no time.
const BUSY: Duration = Duration::from_secs(1);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object, or its namespace or kind, does not exist. A retry helps only after somebody has made it.
    #[error("not found")]
    NotFound(#[source] Box<Status>),
    /// The object has changed, or is another one. A retry helps after reading it again.
    #[error("the object has changed")]
    Conflict(#[source] Box<Status>),
    /// There is an object of that name. A retry does not help.
    #[error("the object already exists")]
    AlreadyExists(#[source] Box<Status>),
    /// The caller may not do that, or the namespace is being deleted. A retry helps once somebody has changed that.
    #[error("forbidden")]
    Forbidden(#[source] Box<Status>),
    /// The server does not accept the content. A retry does not help.
    #[error("the content is not valid")]
    Invalid(#[source] Box<Status>),
    /// The server does not know the caller. A retry helps once there is a new token.
    #[error("not authenticated")]
    Unauthorized(#[source] Box<Status>),
    /// The server is too busy. A retry helps after that time.
    #[error("too many requests")]
    TooManyRequests {
        /// How long the server wants to be left alone.
        retry_after: Duration,
        /// What it said.
        #[source]
        status: Box<Status>,
    },
    /// The server cannot be reached, does not answer in time, or is broken. The write may have happened. A retry helps
    /// later.
    #[error("the server is not available")]
    Unavailable(#[source] Outage),
    /// Anything else: the request or its answer makes no sense. A retry does not help.
    #[error("the request failed")]
    Other(#[source] kube::Error),
}

/// How a server is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Outage {
    /// No answer in time.
    #[error("no answer in time")]
    Timeout,
    /// It says so.
    #[error("the server failed")]
    Server(#[source] Box<Status>),
    /// The connection broke or could not be opened.
    #[error("the connection failed")]
    Connection(#[source] kube::Error),
}

/// Whether and how a retry can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It cannot: the same request fails again until something else changes.
    Never,
    /// At once, with a request made from the object as it is now.
    AfterRead,
    /// Later, with growing pauses.
    Backoff,
    /// After that time.
    After(Duration),
}

impl Error {
    /// Whether and how a retry can help.
    pub fn retry(&self) -> Retry {
        match self {
            Self::NotFound(_) | Self::AlreadyExists(_) | Self::Invalid(_) | Self::Other(_) => Retry::Never,
            Self::Conflict(_) => Retry::AfterRead,
            Self::Forbidden(_) | Self::Unauthorized(_) | Self::Unavailable(_) => Retry::Backoff,
            Self::TooManyRequests { retry_after, .. } => Retry::After(*retry_after),
        }
    }

    /// A short word for the kind of failure, for metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::Conflict(_) => "conflict",
            Self::AlreadyExists(_) => "already_exists",
            Self::Forbidden(_) => "forbidden",
            Self::Invalid(_) => "invalid",
            Self::Unauthorized(_) => "unauthorized",
            Self::TooManyRequests { .. } => "too_many_requests",
            Self::Unavailable(_) => "unavailable",
            Self::Other(_) => "other",
        }
    }

    /// What the server said, if it said anything.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::NotFound(status)
            | Self::Conflict(status)
            | Self::AlreadyExists(status)
            | Self::Forbidden(status)
            | Self::Invalid(status)
            | Self::Unauthorized(status)
            | Self::TooManyRequests { status, .. }
            | Self::Unavailable(Outage::Server(status)) => Some(status),
            Self::Unavailable(_) | Self::Other(_) => None,
        }
    }

    fn from_status(status: Box<Status>) -> Self {
        // The reason says more than the code: both a conflict and an existing object are 409.
        match (status.reason.as_str(), status.code) {
            ("NotFound", _) => Self::NotFound(status),
            ("AlreadyExists", _) => Self::AlreadyExists(status),
            ("Conflict", _) => Self::Conflict(status),
            ("Forbidden", _) => Self::Forbidden(status),
            ("Invalid", _) => Self::Invalid(status),
            ("Unauthorized", _) => Self::Unauthorized(status),
            ("TooManyRequests", _) | (_, 429) => {
                Self::TooManyRequests { retry_after: pause(&status), status }
            }
            (_, 404) => Self::NotFound(status),
            (_, 409) => Self::Conflict(status),
            (_, 403) => Self::Forbidden(status),
            (_, 422) => Self::Invalid(status),
            (_, 401) => Self::Unauthorized(status),
            (_, 408 | 500..) => Self::Unavailable(Outage::Server(status)),
            _ => Self::Other(kube::Error::Api(status)),
        }
    }
}

fn pause(status: &Status) -> Duration {
    match status.details.as_ref().map_or(0, |details| details.retry_after_seconds) {
        0 => BUSY,
        seconds => Duration::from_secs(seconds.into()),
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::from_status(status),
            kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => {
                Self::Unavailable(Outage::Connection(error))
            }
            error => Self::Other(error),
        }
    }
}
