//! Gives back the room of what has been removed.
//!
//! The engine drops what is overwritten or removed when it merges tables, and it merges when it has written new ones: a
//! large plane that is dropped would stay on disk until as much again has been written. So when much has been removed, all
//! tables are merged once, by a thread of its own: writers go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fjall::Keyspace;

/// Below this much on disk nothing is gained.
const WORTHWHILE_BYTES: u64 = 64 << 20;
/// How often the engine is asked for its size at most.
const CHECK_EVERY: usize = 1024;
/// Everything is merged when this part of it has been removed: a removal costs at most so many times its size.
const PART: usize = 4;
/// A key that is never there.
const NOTHING: &[u8] = b"mnothing";
const WAIT: Duration = Duration::from_millis(20);

/// Counts removals and merges when it is due.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    removed: usize,
    unchecked: usize,
    busy: Arc<AtomicBool>,
}

impl Reclaim {
    /// Takes note of entries that were removed. `closed` says when the engine is to be left alone.
    pub(super) fn removed(&mut self, entries: usize, keyspace: &Keyspace, closed: &Arc<AtomicBool>) {
        self.removed += entries;
        self.unchecked += entries;
        if self.unchecked < CHECK_EVERY {
            return;
        }
        self.unchecked = 0;
        let due = keyspace.disk_space() >= WORTHWHILE_BYTES
            && self.removed >= keyspace.approximate_len() / PART
            && !self.busy.swap(true, Ordering::AcqRel);
        if !due {
            return;
        }
        self.removed = 0;
        let (keyspace, closed, busy) = (keyspace.clone(), closed.clone(), self.busy.clone());
        let merging = std::thread::Builder::new().name("store:reclaim".to_owned()).spawn(move || {
            if let Err(error) = merge(&keyspace, &closed) {
                tracing::warn!(error = &error as &dyn std::error::Error, "room was not given back");
            }
            busy.store(false, Ordering::Release);
        });
        if let Err(error) = merging {
            tracing::warn!(%error, "no thread to give room back with");
            self.busy.store(false, Ordering::Release);
        }
    }
}

/// Writes what is only in the journal to a table, so that it takes part, and merges all tables. The files from before go when
/// the engine has moved on by one change and one table, which must not wait for the next writer.
fn merge(keyspace: &Keyspace, closed: &AtomicBool) -> fjall::Result<()> {
    flush(keyspace, closed)?;
    keyspace.major_compact()?;
    keyspace.remove(NOTHING)?;
    flush(keyspace, closed)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the engine has no way to be told; this is a thread of its own"
)]
fn flush(keyspace: &Keyspace, closed: &AtomicBool) -> fjall::Result<()> {
    keyspace.rotate_memtable()?;
    while keyspace.sealed_memtable_count() > 0 {
        if closed.load(Ordering::Acquire) {
            return Err(fjall::Error::Poisoned);
        }
        std::thread::sleep(WAIT);
    }
    Ok(())
}
