//! What a pass does about a write that failed.

use std::time::Duration;

use super::Error;
use crate::controller::{self, Next};

/// How long a pass that found its cache to be behind waits at most: the watch shows what the other has written, and makes the key due,
/// long before.
pub const STALE: Duration = Duration::from_secs(1);

impl Error {
    /// How a pass over an object ends whose write failed: an object that is gone or has changed is no failure, as its cache is about to
    /// say so; a busy server is left alone for as long as it asks.
    ///
    /// # Errors
    /// Anything else, to be tried again with backoff.
    pub fn into_next(self) -> Result<Next, controller::Error> {
        match self {
            Self::NotFound(_) => Ok(Next::Done),
            Self::Conflict(_) => Ok(Next::After(STALE)),
            Self::TooManyRequests { retry_after, .. } => Ok(Next::After(retry_after)),
            error => Err(error.into()),
        }
    }
}
