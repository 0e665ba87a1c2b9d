//! `cargo xtask bench`: builds `crates/bench` as users run the platform (release) and runs it.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Passes everything on; its tables go straight to the terminal.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let built = crate::cargo()
        .args(["build", "--quiet", "--release", "--package", "compute-bench", "--package", "compute-local"])
        .status()
        .context("cannot run cargo")?;
    if !built.success() {
        bail!("the benchmark does not build");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), Into::into);
    let status = Command::new(target.join("release/compute-bench"))
        .args(arguments)
        .current_dir(crate::root())
        .status()
        .context("cannot run the benchmark")?;
    if !status.success() {
        bail!("the benchmark failed");
    }
    Ok(())
}
