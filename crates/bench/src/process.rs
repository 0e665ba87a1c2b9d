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
    let stat = std::fs::read_to_string("/proc/self/schedstat").context("no /proc")?;
    let own: u64 = stat.split_whitespace().next().context("no time in schedstat")?.parse()?;
    let mut total = own;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?;
        if task.file_name().to_str() == Some(&std::process::id().to_string()) {
            continue;
        }
        // A thread may end while it is looked at.
        let Ok(stat) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
        total += stat.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(total))
}
