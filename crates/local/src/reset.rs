//! `compute-local reset`.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result, bail};

use crate::data_dir::DataDir;

pub(crate) const EXAMPLES: &str = "Examples:
  compute-local reset          asks first
  compute-local reset --yes    does not";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Throws away the planes and the audit log. What `restore` set aside stays.
pub(crate) fn run(dir: &DataDir, options: &Options) -> Result<()> {
    let Some(lock) = dir.lock()? else {
        bail!("the platform runs; stop it first:  compute-local down");
    };
    let planes = dir.planes();
    if !planes.exists() {
        println!("There is nothing to throw away in {}.", dir.path().display());
        return Ok(());
    }
    if !options.yes && !confirmed(&planes.display().to_string())? {
        println!("Nothing was changed.");
        return Ok(());
    }
    // Out of the way in one step: one that is cut short is either whole or gone.
    let doomed = planes.with_extension("doomed");
    let _ = fs::remove_dir_all(&doomed);
    fs::rename(&planes, &doomed).with_context(|| format!("cannot remove {}", planes.display()))?;
    fs::remove_dir_all(&doomed).with_context(|| format!("cannot remove {}", doomed.display()))?;
    drop(lock);
    println!("Everything is gone. The next `compute-local up` starts afresh.");
    Ok(())
}

fn confirmed(what: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("this throws away {what}; say --yes to do so without being asked");
    }
    print!("Throw away {what}, with all planes in it? [y/N] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
