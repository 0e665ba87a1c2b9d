//! What can go wrong with the stack. A message says what was being done; what came of it is the source.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the stack could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read, written or removed.
    #[error("cannot {action} {}", path.display())]
    File {
        /// Read, write, remove and so on.
        action: &'static str,
        /// What was to be read or written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the stack does not hold what it should.
    #[error("{} is not what this program writes: {why}; run `cargo xtask realstack down`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing is up in this folder.
    #[error("no stack is up in {}: run `cargo xtask realstack up` first", path.display())]
    NotUp {
        /// The state folder.
        path: PathBuf,
    },
    /// A stack of another version is up.
    #[error(
        "a stack with Kubernetes {running} is up, and {wanted} is asked for: run `cargo xtask realstack down` first"
    )]
    OtherVersion {
        /// What runs.
        running: String,
        /// What was asked for.
        wanted: String,
    },
    /// Another command works on the same folder.
    #[error("another `cargo xtask realstack` is at work on {}: wait for it", path.display())]
    Busy {
        /// The state folder.
        path: PathBuf,
    },
    /// There is no such Kubernetes minor.
    #[error("Kubernetes {asked} is not one that the stack runs; it runs {known}")]
    UnknownMinor {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// The Go toolchain is missing.
    #[error(
        "{program} is not in the cache and is built with Go, which is not on PATH: \
         install Go 1.26 or newer (https://go.dev/dl/) and put its `bin` folder on PATH"
    )]
    NoGo {
        /// What was to be built.
        program: String,
    },
    /// Go could not build a program.
    #[error("`{command}` failed with {status}")]
    Go {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
    },
    /// Certificates or keys could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandom,
    /// All ports that are looked at are taken.
    #[error("no {wanted} free ports on 127.0.0.1 between {first} and {last}")]
    NoPorts {
        /// How many were wanted.
        wanted: usize,
        /// The first one looked at.
        first: u16,
        /// The last one looked at.
        last: u16,
    },
    /// There is no process of this name.
    #[error("the stack has no process `{name}`; it has {known}")]
    UnknownProcess {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A process could not be started.
    #[error("cannot start {name} ({})", program.display())]
    Spawn {
        /// The process.
        name: String,
        /// Its program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A process does not run.
    #[error("{name} does not run")]
    NotRunning {
        /// The process.
        name: String,
    },
    /// A process could not be signalled.
    #[error("cannot stop {name} (process {pid})")]
    Signal {
        /// The process.
        name: String,
        /// Its id.
        pid: u32,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A process outlived even a kill.
    #[error("{name} (process {pid}) is still there {} s after it was killed", after.as_secs())]
    Unkillable {
        /// The process.
        name: String,
        /// Its id.
        pid: u32,
        /// How long was waited.
        after: Duration,
    },
    /// A process ended, or did not become healthy in time.
    #[error("{name} {why}; the end of {}:\n{tail}", log.display())]
    Unhealthy {
        /// The process.
        name: String,
        /// What it did.
        why: String,
        /// Its log.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A URL or credential does not make a client.
    #[error("cannot make a client for {url}: {why}")]
    Client {
        /// The server.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// A request to an API server failed.
    #[error("cannot {action}")]
    Api {
        /// What was being done.
        action: String,
        /// What the server said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Something did not come about in time.
    #[error("{what} did not come about within {} s; last seen: {last}", within.as_secs())]
    Late {
        /// What was waited for.
        what: String,
        /// How long was waited.
        within: Duration,
        /// How it looked at the end.
        last: String,
    },
    /// A manifest of Karmada does not look as expected.
    #[error("cannot use Karmada's {}: {why}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// For `map_err` on what the file system says.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
