//! `compute-local restore`.
//!
//! Guarantees: nothing happens while the platform runs; what is there is replaced only if asked to, at one instant, and is
//! kept aside; a backup that is refused changes nothing.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use compute_apiserver::SystemClock;
use compute_apiserver::backup::{self, BackupError, BackupSummary};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::backup::{describe, stamp};
use crate::data_dir::DataDir;

pub(crate) const EXAMPLES: &str = "Examples:
  compute-local restore FILE                       into a data directory without planes
  compute-local restore FILE --force               put the present planes aside first
  compute-local restore FILE --key secrets.key     on another machine, if the backup holds Secrets
  gunzip < b.gz | compute-local restore -          from standard input

The platform must be stopped. More: docs/operations/backup.md";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// File that `compute-local backup` has written; `-` is standard input
    file: PathBuf,
    /// The file secrets.key of the platform that was backed up [default: that of this data directory, if there is one]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Restore although there are planes; they are kept under another name
    #[arg(long)]
    force: bool,
}

/// Makes the planes what they were when the backup was taken.
pub(crate) fn run(dir: &DataDir, options: &Options) -> Result<()> {
    let Some(_lock) = dir.lock()? else {
        bail!(
            "the platform runs, data directory {}\n  stop it first:  compute-local down",
            dir.path().display()
        );
    };
    let planes = dir.planes();
    let taken = fs::read_dir(&planes).is_ok_and(|mut entries| entries.next().is_some());
    if taken && !options.force {
        bail!(
            "there are planes in {} already\n  keep them aside and restore:  pass --force",
            planes.display()
        );
    }
    let own_key = planes.join("secrets.key");
    let key = options.key.clone().or_else(|| own_key.exists().then_some(own_key));
    let key = key.as_deref();
    if !taken {
        let summary = restore(&planes, key, &options.file)?;
        print!("{}", report(options, &summary, None));
        return Ok(());
    }
    // Made under the name that the present planes get, and then the two names are swapped: at no instant are there none.
    let aside = dir.path().join(format!("planes.aside-{}", stamp()));
    let summary = restore(&aside, key, &options.file)?;
    swap(&planes, &aside).with_context(|| {
        format!("what was restored is in {}, but cannot be put in place", aside.display())
    })?;
    print!("{}", report(options, &summary, Some(&aside)));
    Ok(())
}

fn restore(folder: &Path, key: Option<&Path>, file: &Path) -> Result<BackupSummary> {
    let name = file.display();
    let restored = if file.as_os_str() == "-" {
        backup::restore(folder, key, &SystemClock, io::stdin().lock())
    } else {
        let file = File::open(file).with_context(|| format!("cannot open {name}"))?;
        backup::restore(folder, key, &SystemClock, file)
    };
    restored.map_err(|error| match error {
        BackupError::KeyNeeded | BackupError::OtherKey(_) => {
            anyhow::anyhow!("{error}\n  give it:  compute-local restore {name} --key FILE")
        }
        error => anyhow::Error::new(error).context(format!("cannot restore {name}")),
    })
}

/// Swaps the names of two folders.
fn swap(one: &Path, other: &Path) -> io::Result<()> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        // Not every file system can do it at once. A crash in between leaves both under names that tell them apart.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            let between = one.with_extension("before");
            fs::rename(one, &between)?;
            fs::rename(other, one)?;
            fs::rename(&between, other)?;
        }
        swapped => swapped?,
    }
    match one.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn report(options: &Options, summary: &BackupSummary, aside: Option<&Path>) -> String {
    let aside = match aside {
        Some(aside) => format!("  the planes before:  {} (remove it when you are sure)\n", aside.display()),
        None => String::new(),
    };
    format!(
        "Restored {} from {}\n\n  as of:              {}\n{aside}\nStart the platform:  compute-local up\n",
        describe(summary),
        options.file.display(),
        summary.taken.strftime("%Y-%m-%d %H:%M:%S UTC"),
    )
}
