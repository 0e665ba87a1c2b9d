//! `cargo xtask bench`: builds `crates/bench` as users run the platform (release) and runs it; on the real stack, if that is what is to be measured.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{clients, realstack};

/// Passes everything on; its tables go straight to the terminal.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let is = |name: &str| arguments.first().is_some_and(|subject| subject == name);
    let (on_realstack, of_cli) = (is("realstack"), is("cli"));
    let program = if on_realstack { "compute-manager" } else { "compute-local" };
    build(&["--release", "--package", "compute-bench", "--package", program])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), Into::into);
    let mut bench = Command::new(target.join("release/compute-bench"));
    bench.args(arguments).current_dir(crate::root());
    if of_cli && !arguments.iter().any(|argument| argument == "--help") {
        build(&["--profile", "dist", "--package", "compute-cli"])?;
        bench.arg("--program").arg(target.join("dist/datumctl-compute"));
        bench.arg("--kubectl").arg(clients::tools::kubectl()?.program);
    }
    if on_realstack {
        bench.env("COMPUTE_MANAGER", target.join("release/compute-manager"));
        return realstack::run_program(bench);
    }
    if !bench.status().context("cannot run the benchmark")?.success() {
        bail!("the benchmark failed");
    }
    Ok(ExitCode::SUCCESS)
}

fn build(what: &[&str]) -> Result<()> {
    let mut cargo = crate::cargo();
    cargo.args(["build", "--quiet"]).args(what);
    if !cargo.status().context("cannot run cargo")?.success() {
        bail!("the benchmark does not build");
    }
    Ok(())
}
