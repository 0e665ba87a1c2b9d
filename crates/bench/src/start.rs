//! Start: how long it takes from nothing to the first answer.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::api::ListParams;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::child::{Child, Role, tell};
use crate::host::{Local, PLANE};
use crate::report::Section;
use crate::stats::Samples;
use crate::table::{Table, figure};
use crate::{load, sample};

const TEXT: &str = "\
From the start of the process until a list of a plane (its first 500 objects) is answered in-process; the last column \
counts from the opening of the store. Each start is a fresh process; the files are in the page cache, as they are when \
a process is restarted. The median of several starts.";

/// Clients that fill the store at once.
const FILLERS: usize = 256;
/// Objects of the first list.
const PAGE: usize = 500;

#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    from_open: Duration,
    objects: usize,
}

#[derive(Debug, Default)]
struct Starts {
    process: Samples,
    from_open: Samples,
}

/// Measures it with an empty store, and with one of so many objects.
pub async fn measure(
    folder: &Path,
    objects: usize,
    times: usize,
    budgets: &mut Vec<Budget>,
) -> Result<Section> {
    let mut table =
        Table::new(&["start to first answer", "objects", "process (ms)", "from opening the store (ms)"]);
    let mut empty = Starts::default();
    for _ in 0..times {
        let data = tempfile::tempdir_in(folder)?;
        empty.once(data.path(), 0).await?;
    }
    let mut full = Starts::default();
    let data = tempfile::tempdir_in(folder)?;
    let role = Role::Fill { folder: data.path().to_owned(), count: objects };
    Child::start(&role)?.end().await?;
    for _ in 0..times {
        full.once(data.path(), objects).await?;
    }
    for (what, objects, starts, limit) in
        [("empty store", 0, empty, 50.0), ("full store", objects, full, 2000.0)]
    {
        let process = starts.process.p50();
        table.row([what.to_owned(), objects.to_string(), figure(process), figure(starts.from_open.p50())]);
        let what = format!("start to first answer with {objects} objects");
        budgets.push(Budget::at_most(what, process, limit, "ms"));
    }
    Ok(Section { title: "Start", text: TEXT, tables: vec![table] })
}

impl Starts {
    async fn once(&mut self, folder: &Path, objects: usize) -> Result<()> {
        let begin = Instant::now();
        let mut child = Child::start(&Role::Start { folder: folder.to_owned() })?;
        let answered: Answered = child.line().await?;
        self.process.push(begin.elapsed());
        self.from_open.push(answered.from_open);
        ensure!(answered.objects == objects.min(PAGE), "{} objects were listed", answered.objects);
        child.end().await
    }
}

/// The child's side: opens the store and lists once.
pub async fn answer_once(folder: PathBuf) -> Result<()> {
    let begin = Instant::now();
    let local = Local::open(Some(&folder)).await?;
    let plane = local.plane(PLANE).await?;
    let page = ListParams::default().limit(PAGE as u32);
    let listed = sample::api(&local.client(&plane)).list(&page).await?;
    tell(&Answered { from_open: begin.elapsed(), objects: listed.items.len() })
}

/// The child's side: makes the store that others open.
pub async fn fill(folder: PathBuf, count: usize) -> Result<()> {
    let local = Local::open(Some(&folder)).await?;
    let plane = local.plane(PLANE).await?;
    let clients: Vec<_> = (0..FILLERS).map(|_| local.client(&plane)).collect();
    load::fill(&clients, count).await
}
