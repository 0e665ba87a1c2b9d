//! The disk's own limit: what a program could write durably in the same folder if it did nothing else.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::report::Section;
use crate::sample::SIZE;
use crate::stats::{Load, Samples};
use crate::table::{Table, figure};

const TEXT: &str = "\
Nothing of ours is in this table's first rows: a loop appends objects of 2 KiB to a file in the folder that the servers use, with one \
`fdatasync` after each batch. The last rows write the same batches to the storage engine alone, without a server. p50 \
and p99 are of one batch.";

/// Batch sizes: one object, and as many as the writers of the other measurements.
const BATCHES: [usize; 3] = [1, 16, 64];

/// What the other measurements are held against.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Median of a sync after one object of 2 KiB, in milliseconds.
    pub sync_p50: f64,
    /// Objects per second with one sync per 64.
    pub batched: f64,
    /// The same through the storage engine.
    pub engine_batched: f64,
}

/// Measures them.
pub fn measure(folder: &Path, each: Duration) -> Result<(Limits, Section)> {
    let mut limits = Limits { sync_p50: 0.0, batched: 0.0, engine_batched: 0.0 };
    let mut table = Table::new(&["durable batches of 2 KiB objects", "objects/s", "p50 (ms)", "p99 (ms)"]);
    let mut row = |what: &str, batch: usize, load: &Load| {
        let objects = load.rate * batch as f64;
        let what = format!("{what}, one sync per {batch}");
        table.row([what, figure(objects), figure(load.samples.p50()), figure(load.samples.p99())]);
        objects
    };
    for batch in BATCHES {
        let load = bare(folder, batch, each)?;
        if batch == 1 {
            limits.sync_p50 = load.samples.p50();
        }
        limits.batched = row("file", batch, &load);
    }
    for batch in BATCHES {
        limits.engine_batched = row("storage engine", batch, &engine(folder, batch, each)?);
    }
    Ok((limits, Section { title: "Disk", text: TEXT, tables: vec![table] }))
}

fn bare(folder: &Path, batch: usize, each: Duration) -> Result<Load> {
    let mut file: File = tempfile::tempfile_in(folder).context("cannot make a file")?;
    let bytes = vec![b'x'; SIZE * batch];
    timed(each, |_| {
        file.write_all(&bytes)?;
        Ok(file.sync_data()?)
    })
}

fn engine(folder: &Path, batch: usize, each: Duration) -> Result<Load> {
    let folder = tempfile::tempdir_in(folder)?;
    let database = fjall::Database::builder(folder.path()).open()?;
    let keyspace = database.keyspace("objects", fjall::KeyspaceCreateOptions::default)?;
    let value = vec![b'x'; SIZE];
    timed(each, |round| {
        let mut writes = database.batch().durability(Some(fjall::PersistMode::SyncData));
        for at in 0..batch {
            writes.insert(&keyspace, format!("{round:08}-{at:04}"), &value[..]);
        }
        Ok(writes.commit()?)
    })
}

/// Does it again and again for `each`.
fn timed(each: Duration, mut work: impl FnMut(usize) -> Result<()>) -> Result<Load> {
    let mut samples = Samples::default();
    let start = Instant::now();
    while start.elapsed() < each {
        let before = Instant::now();
        work(samples.len())?;
        samples.push(before.elapsed());
    }
    Ok(Load::over(samples, start.elapsed()))
}

/// How many objects the storage engine alone takes in durable batches of the largest size during `each`.
pub fn engine_objects(folder: &Path, each: Duration) -> Result<usize> {
    let batch = BATCHES[BATCHES.len() - 1];
    Ok(engine(folder, batch, each)?.all * batch)
}
