//! `compute-local backup`.
//!
//! Guarantees: the file is there whole or not at all, readable by its owner alone; one that is there already is not touched
//! unless asked to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use compute_apiserver::backup::{self, BackupSummary};
use compute_apiserver::{Clock as _, SystemClock};

use crate::backup_server::OK;
use crate::data_dir::DataDir;

pub(crate) const EXAMPLES: &str = "Examples:
  compute-local backup                      to a file here, named after the time
  compute-local backup /backups/today       to this file
  compute-local backup - | gzip > b.gz      to standard output

Secrets in a backup are encrypted with the key in planes/secrets.key of the data directory. The key is not in
the backup: keep a copy of it in another place. More: docs/operations/backup.md";

/// How long the running platform may take to say something. It takes one backup at a time.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// File to write; `-` is standard output [default: compute-local-TIME.backup in this directory]
    file: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Backs up the planes: through the running platform, or from the directory itself if none runs.
pub(crate) fn run(dir: &DataDir, options: &Options) -> Result<()> {
    let file = match &options.file {
        Some(file) if file.as_os_str() == "-" => {
            let (summary, _) = take(dir, io::stdout().lock())?;
            eprint!("{}", report(dir, &summary, "standard output", None));
            return Ok(());
        }
        Some(file) => file.clone(),
        None => PathBuf::from(format!("compute-local-{}.backup", stamp())),
    };
    if file.is_dir() {
        bail!("{} is a directory; name a file in it", file.display());
    }
    if file.exists() && !options.force {
        bail!("{} exists already\n  replace it:  pass --force", file.display());
    }
    let summary = write_whole(&file, |out| take(dir, out))?;
    print!("{}", report(dir, &summary, &file.display().to_string(), Some(&file)));
    Ok(())
}

/// The present time, as part of a file's name.
pub(crate) fn stamp() -> String {
    SystemClock.now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn take<W: Write>(dir: &DataDir, out: W) -> Result<(BackupSummary, W)> {
    if !dir.planes().exists() && !dir.is_taken()? {
        bail!(
            "there is nothing to back up in {}\n  start the platform:  compute-local up",
            dir.path().display()
        );
    }
    match dir.lock()? {
        Some(_lock) => backup::of_folder(&dir.planes(), &SystemClock, out)
            .with_context(|| format!("cannot back up {}", dir.planes().display())),
        None => from_running(dir, out),
    }
}

fn from_running<W: Write>(dir: &DataDir, out: W) -> Result<(BackupSummary, W)> {
    if dir.running().is_none() {
        bail!("the platform is just starting or stopping; try again");
    }
    let mut stream = UnixStream::connect(dir.backup_socket()).with_context(|| {
        "the running platform hands out no backups (its log says why)\n  stop it first:  compute-local down\n  cause"
    })?;
    stream.set_read_timeout(Some(PATIENCE)).context("cannot talk to the running platform")?;
    match first_line(&mut stream).context("the running platform does not answer")? {
        line if line == OK => {}
        line => bail!("{line}"),
    }
    backup::copy(stream, out).context("the running platform did not finish the backup (its log says why)")
}

fn first_line(stream: &mut UnixStream) -> io::Result<String> {
    const LONGEST: usize = 4096;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < LONGEST {
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Puts a file in place when `fill` has written it and it is on disk.
fn write_whole(
    file: &Path,
    fill: impl FnOnce(File) -> Result<(BackupSummary, File)>,
) -> Result<BackupSummary> {
    let mut name = file.file_name().context("the file needs a name")?.to_owned();
    name.push(".partial");
    let partial = file.with_file_name(name);
    let cannot = || format!("cannot write {}", file.display());
    // Left behind by a crash, with whatever mode: a fresh file gets ours.
    let _ = fs::remove_file(&partial);
    let out = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&partial);
    let filled = fill(out.with_context(cannot)?).and_then(|(summary, out)| {
        out.sync_all().with_context(cannot)?;
        fs::rename(&partial, file).with_context(cannot)?;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))
            .and_then(|folder| folder.sync_all())
            .with_context(cannot)?;
        Ok(summary)
    });
    if filled.is_err() {
        let _ = fs::remove_file(&partial);
    }
    filled
}

fn report(dir: &DataDir, summary: &BackupSummary, to: &str, file: Option<&Path>) -> String {
    let key = match summary.secrets {
        0 => "not needed: there are no Secrets in it".to_owned(),
        _ => format!("{} (keep a copy in another place)", dir.planes().join("secrets.key").display()),
    };
    let restore = match file {
        Some(file) => format!("\nRestore it:  compute-local restore {}\n", file.display()),
        None => String::new(),
    };
    format!("Backed up {} to {to}\n\n  key:  {key}\n{restore}", describe(summary))
}

/// What is in a backup.
pub(crate) fn describe(summary: &BackupSummary) -> String {
    let count = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!(
        "{}, {} ({}), {}",
        count(summary.planes, "plane"),
        count(summary.objects, "object"),
        count(summary.secrets, "Secret"),
        size(summary.bytes)
    )
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (5 << 20, "5.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }
}
