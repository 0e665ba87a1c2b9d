//! Backups: everything that a store holds at one point in time, in one stream, and the way back into an empty folder.
//!
//! Guarantees: a backup is the state of all planes at one revision, taken while writing goes on; Secrets in it stay encrypted
//! with the store's key, which is not in it; a restore puts a whole store in place or nothing; after a restore, revisions
//! go on above everything that any client has seen, also of what was written after the backup and is lost.

mod error;
mod file;
mod restore;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::path::Path;

use jiff::Timestamp;

use super::StorageError;
use super::disk::{self, Disk, Faults};
use super::engine::View;
use super::key;
use super::seal::Fingerprint;
use crate::clock::Clock;
pub use error::BackupError;
use file::{BackupReader, BackupWriter, Header};
pub use restore::restore;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupSummary {
    /// When it was taken.
    pub taken: Timestamp,
    /// The revision of the newest change in it.
    pub revision: u64,
    /// How many planes it has.
    pub planes: u64,
    /// How many objects; those that planes have from their templates, unchanged, are not kept and not counted.
    pub objects: u64,
    /// How many of the objects are Secrets.
    pub secrets: u64,
    /// Its size.
    pub bytes: u64,
}

/// Backs up the store in a folder that no server uses. Returns the writer, to be synced or closed.
pub fn of_folder<W: Write>(
    folder: &Path,
    clock: &dyn Clock,
    writer: W,
) -> Result<(BackupSummary, W), BackupError> {
    if !folder.join(disk::OBJECTS).is_dir() {
        return Err(BackupError::NoStore(folder.to_owned()));
    }
    let mut disk = Disk::open_unread(folder, Faults::default())?;
    let (view, key) = disk.view()?;
    of_view(&view, key, clock.now(), writer)
}

/// Copies a backup from a reader to a writer, and says what is in it when it has come through whole.
pub fn copy<R: Read, W: Write>(reader: R, writer: W) -> Result<(BackupSummary, W), BackupError> {
    let mut from = BackupReader::start(reader)?;
    let mut to = BackupWriter::start(writer, *from.header())?;
    while let Some(record) = from.next()? {
        to.record(&record.key, &record.value)?;
    }
    to.finish()
}

pub(super) fn of_view<W: Write>(
    view: &View,
    key: Fingerprint,
    taken: Timestamp,
    writer: W,
) -> Result<(BackupSummary, W), BackupError> {
    let engine = |error| BackupError::Storage(StorageError::Engine(error));
    let revision = match view.get(key::REVISION).map_err(engine)? {
        Some(revision) => revision.as_ref().try_into().map(u64::from_be_bytes).unwrap_or_default(),
        None => 0,
    };
    // As it can be read back.
    let taken = Timestamp::from_microsecond(taken.as_microsecond()).unwrap_or(taken);
    let mut out = BackupWriter::start(writer, Header { revision, taken, key })?;
    for group in [key::PLANES, key::OBJECTS] {
        for entry in view.prefix(group) {
            view.check().map_err(|_| BackupError::Interrupted)?;
            let (key, value) = entry.into_inner().map_err(engine)?;
            out.record(&key, &value)?;
        }
    }
    out.finish()
}
