//! What the kernel says about a process.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// Resident memory of this process, in KiB.
pub fn resident() -> Result<f64> {
    resident_of("self")
}

/// Resident memory of a process, in KiB.
pub fn resident_of(process: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).context("no /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in /proc")?;
    line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is not a number")
}

/// Time that the processors have spent on this process so far.
pub fn cpu() -> Result<Duration> {
    cpu_of("self")
}

/// Time that the processors have spent on a process so far, but for threads that have ended.
pub fn cpu_of(process: &str) -> Result<Duration> {
    let mut total = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task")).context("no /proc")? {
        let task = task?;
        // A thread may end while it is looked at.
        let Ok(stat) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
        total += stat.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(total))
}
