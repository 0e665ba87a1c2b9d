//! What the controllers of a cell make of a write that lost a race.

use compute_runtime::write::{Error, Result};

/// What was written; `None` if the object has changed or gone since it was looked at. Caches show every change after the version that was
/// looked at, and that brings the object back into the queue: there is nothing to retry.
pub(super) fn unless_outdated<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(written) => Ok(Some(written)),
        Err(Error::Conflict(status) | Error::NotFound(status)) => {
            tracing::debug!(%status, "the object has changed meanwhile");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
