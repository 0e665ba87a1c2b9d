//! How long the platform takes to be up, and how large it is then.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::budget::Budget;
use crate::process;
use crate::report::Section;
use crate::stats::Samples;
use crate::table::{Table, figure};

const TEXT: &str = "\
`compute-local up` with three cities and a project, durable, as a user runs it: from the start of the process until it says that it is up, \
with the project ready and the kubeconfig written. The first start makes everything; the others find it again. Memory is resident \
(`VmRSS`) a second later. The median of several starts.";

/// Measures it.
pub async fn measure(
    folder: &Path,
    program: &Path,
    times: usize,
    budgets: &mut Vec<Budget>,
) -> Result<Section> {
    let mut table = Table::new(&["start", "up (ms)", "memory (MiB)"]);
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let data = tempfile::tempdir_in(folder)?;
        first.push(once(program, data.path()).await?);
        again.push(once(program, data.path()).await?);
    }
    for (what, starts) in [("new", first), ("again", again)] {
        let times: Samples = starts.iter().map(|(took, _)| *took).collect();
        let memory = starts.iter().map(|(_, kib)| kib / 1024.0).fold(0.0, f64::max);
        table.row([what.to_owned(), figure(times.p50()), figure(memory)]);
        budgets.push(Budget::at_most(format!("platform up, {what}"), times.p50(), 300.0, "ms"));
        budgets.push(Budget::at_most(format!("platform up, {what}, memory"), memory, 60.0, "MiB"));
    }
    Ok(Section { title: "Up", text: TEXT, tables: vec![table] })
}

/// One start: how long it took, and what the process holds in KiB.
async fn once(program: &Path, data: &Path) -> Result<(Duration, f64)> {
    let began = Instant::now();
    let mut process = Command::new(program)
        .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut lines = BufReader::new(process.stdout.take().context("no output")?).lines();
    let said = lines.next_line().await?.unwrap_or_default();
    let took = began.elapsed();
    ensure!(said.starts_with("The platform is up"), "it said: {said}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = process.id().context("it has ended")?;
    let memory = process::resident_of(&id.to_string())?;
    process.kill().await?;
    Ok((took, memory))
}
