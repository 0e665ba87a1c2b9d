//! `cargo xtask cli-screens`: pictures of `datumctl-compute` on a real terminal (tmux), with a real platform behind it.
//!
//! The program's own test takes them, and compares them at every other time.

use anyhow::{Context as _, Result, bail};

/// Takes the pictures.
pub(crate) fn run() -> Result<()> {
    let mut cargo = crate::cargo();
    cargo.args(["test", "--quiet", "--package", "compute-cli", "--test", "real", "screens::"]);
    if !cargo.env("UPDATE_SCREENS", "1").status().context("cargo cannot be run")?.success() {
        bail!("the pictures cannot be taken");
    }
    Ok(())
}
