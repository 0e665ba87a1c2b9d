//! Why a backup cannot be made, read or put in place.

use std::path::PathBuf;

use crate::store::StorageError;

/// Why a backup cannot be made, read or put in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The server keeps nothing on disk.
    #[error("the planes are kept in memory alone: there is nothing to back up")]
    InMemory,
    /// There is no store in the folder.
    #[error("there is no store in {0}")]
    NoStore(PathBuf),
    /// The store takes no writes at present, so that it is not known what it holds. Can be tried again.
    #[error(
        "the store cannot be written to at present: see the server's log, make room on its disk and try again"
    )]
    Unavailable,
    /// The store was closed or had to be opened anew meanwhile. Can be tried again.
    #[error("the store was closed while the backup was taken: try again")]
    Interrupted,
    /// An object is larger than a backup can hold.
    #[error("{0} is too large for a backup")]
    TooLarge(String),
    /// The store failed.
    #[error("the store cannot be read or written")]
    Storage(#[from] StorageError),
    /// The backup could not be written.
    #[error("the backup cannot be written")]
    Write(#[source] std::io::Error),
    /// The backup could not be read.
    #[error("the backup cannot be read")]
    Read(#[source] std::io::Error),
    /// It is something else.
    #[error("this is not a backup")]
    NotABackup,
    /// It was written by a newer version.
    #[error(
        "the backup has {what} format {found}, and this version reads formats up to {newest}; nothing was changed: use the \
         version that wrote it, or a newer one"
    )]
    Newer {
        /// Which format: that of the backup, or that of the store in it.
        what: &'static str,
        /// Its version.
        found: u32,
        /// The newest version that can be read.
        newest: u32,
    },
    /// It ends too early.
    #[error("the backup is cut short; nothing was changed")]
    Truncated,
    /// It is not as it was written.
    #[error("the backup is damaged; nothing was changed")]
    Altered,
    /// It holds Secrets, and there is no key to read them with.
    #[error(
        "the backup holds Secrets: the key of the store that it was made from is needed (its file secrets.key)"
    )]
    KeyNeeded,
    /// The key is another one.
    #[error("the key in {0} is not the one that the Secrets in the backup are encrypted with")]
    OtherKey(PathBuf),
    /// There is something where the store is to be.
    #[error("{0} is not empty")]
    NotEmpty(PathBuf),
}
