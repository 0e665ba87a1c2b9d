//! The three patches that a `PATCH` may carry: JSON patch, merge patch and strategic merge patch.
//!
//! All are pure functions from a document and a patch to a document. Whatever the patch says, the result
//! stays within the depth that can be read back and a JSON patch cannot blow the document up.

mod json;
mod merge;
pub mod strategic;

#[cfg(test)]
mod tests;

pub use json::json_patch;
pub use merge::merge_patch;

/// How many levels a document may have: as many as can be read back.
const MAX_DEPTH: usize = crate::limits::bounds::PATCHED_NESTING;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The patch is not what its media type says; answered with 400.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the document; answered with 422.
    #[error("{0}")]
    Invalid(String),
    /// The patch has too many operations, or makes the document too large; answered with 413.
    #[error("{0}")]
    TooLarge(String),
}
