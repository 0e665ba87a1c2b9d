//! `compute-local down`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::data_dir::DataDir;

/// A stop takes no longer: open requests get two seconds.
const DEADLINE: Duration = Duration::from_secs(10);

/// Tells the running platform to stop, and waits until it has.
pub(crate) async fn run(dir: &DataDir) -> Result<()> {
    if !dir.is_taken()? {
        println!("The platform is not running.");
        return Ok(());
    }
    let running = dir.running().context("the platform is just starting or stopping; try again")?;
    let pid =
        i32::try_from(running.pid).ok().and_then(Pid::from_raw).context("running.json names no process")?;
    kill_process(pid, Signal::TERM).with_context(|| format!("cannot stop process {}", running.pid))?;
    let stopped = tokio::time::timeout(DEADLINE, async {
        while dir.is_taken()? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    });
    match stopped.await {
        Ok(done) => done?,
        Err(_) => bail!("process {} has not stopped within {} s", running.pid, DEADLINE.as_secs()),
    }
    println!("The platform has stopped.");
    Ok(())
}
