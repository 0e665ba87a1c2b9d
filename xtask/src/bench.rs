//! `cargo xtask bench`: builds `crates/bench` as users run the platform (release) and runs it.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Passes everything on; its tables go straight to the terminal.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "compute-bench", "--"])
        .args(arguments)
        .current_dir(crate::root())
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}
