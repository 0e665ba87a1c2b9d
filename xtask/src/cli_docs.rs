//! `cargo xtask cli-docs`: the reference and the man pages of `datumctl-compute` are made from its own help.
//!
//! The program's own test does it, so that this chore need not be built with the program.

use anyhow::{Context as _, Result, bail};

const TEST: &str = "reference::tests::the_documents_are_up_to_date";

/// Writes the files, or only compares them.
pub(crate) fn run(check: bool) -> Result<()> {
    let mut cargo = crate::cargo();
    cargo.args(["test", "--quiet", "--package", "compute-cli", "--lib", TEST]);
    if !check {
        cargo.env("UPDATE_DOCS", "1");
    }
    if !cargo.status().context("cargo cannot be run")?.success() {
        bail!("docs/cli.md or docs/man is stale\nrun `cargo xtask cli-docs` and commit the result");
    }
    Ok(())
}
