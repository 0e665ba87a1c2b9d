//! Where planes are kept: a folder, the thread that writes to it, and what was found in it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::backup::{self, BackupError, BackupSummary};
use super::disk::{Disk, Faults, Found, StorageError};
use super::journal::Journal;
use super::{CommitError, GroupResource, Revisions, life};

/// What was found of a plane on disk.
pub type FoundObjects = BTreeMap<GroupResource, Vec<Found>>;

/// Where planes are kept: a folder, and what was found in it.
#[derive(Debug)]
pub struct Storage {
    pub(super) journal: Journal,
    found: Mutex<BTreeMap<String, FoundObjects>>,
}

impl Storage {
    /// Opens a store, or makes one. Also returns the revisions, which go on above all that were ever given out.
    pub fn open(path: &Path, now: Timestamp) -> Result<(Self, Arc<Revisions>), StorageError> {
        Self::open_with(path, now, Faults::default())
    }

    pub(super) fn open_with(
        path: &Path,
        now: Timestamp,
        faults: Faults,
    ) -> Result<(Self, Arc<Revisions>), StorageError> {
        let (mut disk, recovered) = Disk::open(path, faults)?;
        let first = life::after(recovered.revision, now);
        // Kept at once, so that the next life begins above this one even if nothing is written in it. A full disk is no reason
        // not to start: what there is can be read.
        if let Err(error) = disk.write(first, &[]) {
            tracing::error!(error = &error as &dyn std::error::Error, "the store cannot be written to");
        }
        let revisions = Arc::new(Revisions::starting_at(first));
        let journal = Journal::start(disk, revisions.clone())
            .map_err(|source| StorageError::File { path: path.to_owned(), source })?;
        Ok((Self { journal, found: Mutex::new(recovered.planes) }, revisions))
    }

    /// Planes that were found and not taken over yet.
    pub fn found_planes(&self) -> Vec<String> {
        self.found.lock().keys().cloned().collect()
    }

    /// Takes over what was found of a plane; `None` if it is new, which is written down.
    pub async fn take_plane(&self, name: &str) -> Result<Option<FoundObjects>, CommitError> {
        let found = self.found.lock().remove(name);
        if found.is_none() {
            self.journal.create_plane(name).await?;
        }
        Ok(found)
    }

    /// Forgets a plane and everything in it.
    pub async fn drop_plane(&self, name: &str) -> Result<(), CommitError> {
        self.journal.drop_plane(name).await
    }

    /// Backs everything up to a writer, as it is when this is called, and returns the writer. Writers of objects do not wait.
    pub async fn backup<W: Write + Send + 'static>(
        &self,
        now: Timestamp,
        writer: W,
    ) -> Result<(BackupSummary, W), BackupError> {
        let (view, key) = self.journal.view().await.map_err(|_| BackupError::Unavailable)?;
        let task = tokio::task::spawn_blocking(move || backup::of_view(&view, key, now, writer));
        task.await.unwrap_or(Err(BackupError::Interrupted))
    }
}
