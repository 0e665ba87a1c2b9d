//! Processes that outlive the command that starts them: spawn, stop, and ask whether they are well.
//!
//! # Guarantees
//!
//! - Every process carries a mark in its environment. So it is found even if the command that started it was killed before it wrote the
//!   process down, or if its folder is gone.
//! - Nothing is signalled but a process that was written down with its start time, or that carries the mark: a process that got the id of
//!   one that has ended is left alone.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};

use crate::procfs::{self, Identity};
use crate::state::Folder;
use crate::{Error, clients, files};

/// How long a process may take to be well. An API server takes three seconds on an idle machine, and has taken two minutes on one that forty
/// others wanted. One that fails ends, which is seen at once.
const HEALTHY_WITHIN: Duration = Duration::from_secs(300);
/// How long one question may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long a process has to end by itself once it is asked to. An API server waits for open requests, watches among them, longer than
/// anybody wants to wait for it.
const END_WITHIN: Duration = Duration::from_secs(5);
/// How long the system may take to clear away a process that was killed.
const CLEARED_WITHIN: Duration = Duration::from_secs(20);
/// How often a condition is looked at.
const PERIOD: Duration = Duration::from_millis(100);
/// How much of a log an error shows.
const TAIL_LINES: usize = 25;
const TAIL_BYTES: u64 = 16 * 1024;

/// How to run one process, and how to know that it is well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) probe: Probe,
}

/// A URL that answers with success while the process is well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    /// Scheme, host and port.
    pub(crate) base: String,
    pub(crate) path: String,
    /// Whose certificate the server has, if it has one.
    pub(crate) ca_pem: Option<String>,
}

impl Process {
    /// The process as it was started last, if it still runs.
    pub(crate) fn running(&self, folder: &Folder) -> Result<Option<Identity>, Error> {
        let written: Option<Identity> = files::read_json(&folder.record(&self.name))?;
        Ok(written.filter(Identity::runs))
    }

    /// Starts it, in a process group of its own, and writes down which process it is.
    pub(crate) fn spawn(&self, folder: &Folder) -> Result<Identity, Error> {
        let cwd = folder.work(&self.name);
        files::create_folder(&cwd)?;
        let log = folder.log(&self.name);
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&log)
            .map_err(Error::file("write", &log))?;
        let errors = output.try_clone().map_err(Error::file("write", &log))?;
        let spawn = |source| Error::Spawn { name: self.name.clone(), program: self.program.clone(), source };
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .current_dir(&cwd)
            .env_clear()
            .env("HOME", &cwd)
            .env(procfs::MARK, procfs::mark(folder.path(), &self.name))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(spawn)?;
        let identity = Identity::of(child.id())?;
        // Whoever starts a process has to ask how it ended, else it stays in the process table.
        std::thread::spawn(move || child.wait());
        let identity =
            identity.ok_or_else(|| self.unhealthy(folder, "ended as soon as it was started".into()))?;
        files::write_json(&folder.record(&self.name), &identity)?;
        Ok(identity)
    }

    /// Waits until the process is well. It is an error if it ends, or is not well in time.
    pub(crate) async fn healthy(&self, folder: &Folder, identity: &Identity) -> Result<(), Error> {
        let client = clients::anonymous(&self.probe.base, self.probe.ca_pem.as_deref())?;
        let deadline = Instant::now() + HEALTHY_WITHIN;
        loop {
            let request = http::Request::get(&self.probe.path)
                .body(Vec::new())
                .map_err(|error| Error::Client { url: self.probe.path.clone(), why: error.to_string() })?;
            let last = match timeout(ANSWER_WITHIN, client.request_text(request)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if !identity.runs() {
                return Err(self.unhealthy(folder, "has ended".into()));
            }
            if Instant::now() >= deadline {
                let why = format!("was not healthy within {} s ({last})", HEALTHY_WITHIN.as_secs());
                return Err(self.unhealthy(folder, why));
            }
            sleep(PERIOD).await;
        }
    }

    /// Starts it and waits until it is well.
    pub(crate) async fn start(&self, folder: &Folder) -> Result<(), Error> {
        let identity = self.spawn(folder)?;
        self.healthy(folder, &identity).await
    }

    /// The error to show if it was started and does not run any more.
    pub(crate) fn has_ended(&self, folder: &Folder) -> Option<Error> {
        let written: Identity = files::read_json(&folder.record(&self.name)).ok()??;
        (!written.runs()).then(|| self.unhealthy(folder, "has ended".into()))
    }

    fn unhealthy(&self, folder: &Folder, why: String) -> Error {
        let log = folder.log(&self.name);
        Error::Unhealthy { name: self.name.clone(), why, tail: tail(&log), log }
    }
}

/// Asks the process to end, and kills it if it does not. It is gone when this returns.
pub(crate) async fn stop(name: &str, identity: &Identity) -> Result<(), Error> {
    signal(name, identity, Signal::TERM)?;
    if gone(identity, END_WITHIN).await {
        return Ok(());
    }
    kill(name, identity).await
}

/// Kills the process. It is gone when this returns.
pub(crate) async fn kill(name: &str, identity: &Identity) -> Result<(), Error> {
    signal(name, identity, Signal::KILL)?;
    if gone(identity, CLEARED_WITHIN).await {
        return Ok(());
    }
    Err(Error::Unkillable { name: name.to_owned(), pid: identity.pid, after: CLEARED_WITHIN })
}

async fn gone(identity: &Identity, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    while identity.runs() {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(PERIOD).await;
    }
    true
}

/// Signals this very process. The handle is taken before the start time is compared, so the id cannot change hands in between.
fn signal(name: &str, identity: &Identity, signal: Signal) -> Result<(), Error> {
    let failed = |source: rustix::io::Errno| Error::Signal {
        name: name.to_owned(),
        pid: identity.pid,
        source: source.into(),
    };
    let Some(pid) = i32::try_from(identity.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !identity.runs() {
        return Ok(());
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// The end of a log, as far as it can be read.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("(cannot be read: {error})"),
    }
}

#[cfg(test)]
mod tests;
