//! The storage engine as the store uses it: one `fjall` keyspace, batches that are synced, and views that stand still.
//!
//! Guarantees: a batch is there after a crash whole or not at all; a commit that cannot succeed any more fails instead of
//! waiting for ever; a view shows one point in time however long it is read, and ends when its engine does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::{
    Database, Iter, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable as _, Snapshot,
};
use parking_lot::Mutex;

use super::reclaim::Reclaim;

/// Objects live in memory: the engine's own caches are kept small.
const CACHE_BYTES: u64 = 1 << 20;
/// What has gone to the journal is written to a table each time that it is this much. Until then the engine holds it in memory, up to three
/// times this much. Of what is created that costs little, for the values are the very bytes that objects are served from
/// ([`Draft::for_disk`](super::Draft::for_disk)); what is overwritten or removed meanwhile is kept for this alone. A store that is there
/// already keeps the size that it was made with.
const MEMTABLE_BYTES: u64 = 4 << 20;
/// So many of them are merged at once, into tables of this size. A writer's sync waits in the file system for that of a table: with the
/// engine's own choice (4, and 64 MiB) one batch in a hundred takes 30 ms, with this one 14 ms.
const MERGED_AT_ONCE: u8 = 8;
const TABLE_BYTES: u64 = 16 << 20;
/// The engine starts a new journal after 64 MB and removes the old one when what it holds is in tables: more than two are
/// never needed.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Threads that seal, flush and compact, most of them idle. The engine keeps the first for sealing and flushing: it hands compactions
/// back to the queue, without a pause, until another thread takes them, so that with two threads it takes a core for as long as a
/// compaction lasts. One thread alone would seal nothing meanwhile, and the table in memory would grow.
const THREADS: usize = 4;
/// Tables that wait to be written, and those that wait to be merged, above which a writer waits. Both are below the engine's own
/// bounds (4 and 30), at which it waits without looking whether anyone is left to do the work.
const WAITING_MEMTABLES: usize = 2;
const WAITING_TABLES: usize = 24;
const WAIT: Duration = Duration::from_millis(2);

/// An open engine.
pub(super) struct Engine {
    database: Database,
    keyspace: Keyspace,
    closed: Arc<AtomicBool>,
    reclaim: Mutex<Reclaim>,
}

impl Engine {
    pub(super) fn open(path: &Path) -> fjall::Result<Self> {
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(THREADS)
            .open()?;
        let merging =
            Leveled::default().with_l0_threshold(MERGED_AT_ONCE).with_table_target_size(TABLE_BYTES);
        let merging = Arc::new(merging);
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES)
                .compaction_strategy(merging.clone())
        };
        let keyspace = database.keyspace("objects", options)?;
        Ok(Self { database, keyspace, closed: Arc::default(), reclaim: Mutex::default() })
    }

    pub(super) fn get(&self, key: &[u8]) -> fjall::Result<Option<fjall::UserValue>> {
        self.keyspace.get(key)
    }

    pub(super) fn prefix(&self, prefix: &[u8]) -> Iter {
        self.keyspace.prefix(prefix)
    }

    /// An empty batch, on disk when it is committed.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            inner: self.database.batch().durability(Some(PersistMode::SyncData)),
            engine: self,
            removals: 0,
        }
    }

    /// An empty batch that is on disk when [`Engine::sync`] has been called.
    pub(super) fn unsynced_batch(&self) -> Batch<'_> {
        Batch {
            inner: self.database.batch().durability(Some(PersistMode::Buffer)),
            engine: self,
            removals: 0,
        }
    }

    pub(super) fn sync(&self) -> fjall::Result<()> {
        self.database.persist(PersistMode::SyncAll)
    }

    /// What the tables take on disk.
    #[cfg(test)]
    pub(super) fn table_bytes(&self) -> u64 {
        self.keyspace.disk_space()
    }

    /// What there is now, to be read while writing goes on.
    pub(super) fn view(&self) -> View {
        View {
            snapshot: self.database.snapshot(),
            keyspace: self.keyspace.clone(),
            closed: self.closed.clone(),
        }
    }

    /// Waits until the engine's background work is not too far behind. That work ends for good with its first error (a full disk,
    /// say); the engine tells so only when it is asked.
    #[expect(clippy::disallowed_methods, reason = "the engine has no way to be told; this is its own thread")]
    fn wait_for_background(&self) -> fjall::Result<()> {
        while self.keyspace.sealed_memtable_count() >= WAITING_MEMTABLES
            || self.keyspace.l0_table_count() >= WAITING_TABLES
        {
            self.database.persist(PersistMode::Buffer)?;
            std::thread::sleep(WAIT);
        }
        Ok(())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Views keep the folder locked: they must go before it can be opened anew.
        self.closed.store(true, Ordering::Release);
    }
}

/// Changes that are made together.
pub(super) struct Batch<'a> {
    inner: OwnedWriteBatch,
    engine: &'a Engine,
    removals: usize,
}

impl Batch<'_> {
    pub(super) fn insert(&mut self, key: impl Into<fjall::UserKey>, value: impl Into<fjall::UserValue>) {
        self.inner.insert(&self.engine.keyspace, key, value);
    }

    pub(super) fn remove(&mut self, key: impl Into<fjall::UserKey>) {
        self.inner.remove(&self.engine.keyspace, key);
        self.removals += 1;
    }

    pub(super) fn commit(self) -> fjall::Result<()> {
        let Engine { keyspace, closed, reclaim, .. } = self.engine;
        self.engine.wait_for_background()?;
        self.inner.commit()?;
        reclaim.lock().removed(self.removals, keyspace, closed);
        Ok(())
    }
}

/// The engine is gone from under a view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed;

/// What an engine held at one point in time.
pub(super) struct View {
    snapshot: Snapshot,
    keyspace: Keyspace,
    closed: Arc<AtomicBool>,
}

impl View {
    pub(super) fn get(&self, key: &[u8]) -> fjall::Result<Option<fjall::UserValue>> {
        self.snapshot.get(&self.keyspace, key)
    }

    pub(super) fn prefix(&self, prefix: &[u8]) -> Iter {
        self.snapshot.prefix(&self.keyspace, prefix)
    }

    /// Whether reading may go on. A view that is kept when it may not keeps the store from being opened anew.
    pub(super) fn check(&self) -> Result<(), Closed> {
        if self.closed.load(Ordering::Acquire) { Err(Closed) } else { Ok(()) }
    }
}
