//! Processes of their own: memory and start are those of a fresh process, a server and whoever floods it do not share
//! a scheduler with the client that is measured.
//!
//! A child is this program again. It gets its role as an argument, answers in lines of JSON on its standard output, and ends when
//! its work is done or its standard input closes, so that none outlives the run.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

use crate::host::Endpoint;
use crate::{flood, host, memory, pipeline, start};

/// What a child does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Serves planes over TLS.
    Serve {
        /// Where they are kept; nowhere if there is none.
        folder: Option<PathBuf>,
        /// Their names.
        planes: Vec<String>,
    },
    /// Fills a plane with objects and tells what they take.
    Objects {
        /// Where they are kept.
        folder: Option<PathBuf>,
        /// How many.
        count: usize,
    },
    /// Makes planes and tells what they take.
    Planes {
        /// Where they are kept.
        folder: Option<PathBuf>,
        /// How many.
        count: usize,
        /// How many of them are put to use.
        busy: usize,
    },
    /// Fills the plane of a store.
    Fill {
        /// The store.
        folder: PathBuf,
        /// How many objects.
        count: usize,
    },
    /// Opens a store and tells when the first answer is there.
    Start {
        /// The store.
        folder: PathBuf,
    },
    /// Does a part of a measurement of the pipeline.
    Pipeline(pipeline::Part),
    /// Keeps requests in flight.
    FloodRequests {
        /// The server.
        endpoint: Endpoint,
        /// The plane.
        plane: String,
        /// How many at once.
        in_flight: usize,
    },
    /// Keeps watches open.
    FloodWatches {
        /// The server.
        endpoint: Endpoint,
        /// The plane.
        plane: String,
        /// How many.
        watches: usize,
    },
}

impl Role {
    /// Plays the role. This is the whole of a child process.
    pub async fn play(self) -> Result<()> {
        match self {
            Self::Serve { folder, planes } => host::serve_planes(folder, planes).await,
            Self::Objects { folder, count } => memory::hold_objects(folder, count).await,
            Self::Planes { folder, count, busy } => memory::hold_planes(folder, count, busy).await,
            Self::Fill { folder, count } => start::fill(folder, count).await,
            Self::Start { folder } => start::answer_once(folder).await,
            Self::Pipeline(part) => part.play().await,
            Self::FloodRequests { endpoint, plane, in_flight } => {
                flood::keep_requests(endpoint, plane, in_flight).await
            }
            Self::FloodWatches { endpoint, plane, watches } => {
                flood::keep_watches(endpoint, plane, watches).await
            }
        }
    }
}

/// A running child. It is killed when this is dropped.
pub struct Child {
    process: tokio::process::Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts one.
    pub fn start(role: &Role) -> Result<Self> {
        let program = std::env::current_exe().context("this program cannot be found")?;
        let mut process = Command::new(program)
            .arg("child")
            .arg(serde_json::to_string(role)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a child process")?;
        let output = process.stdout.take().context("a child process has no output")?;
        Ok(Self { input: process.stdin.take(), lines: BufReader::new(output).lines(), process })
    }

    /// What it says next.
    pub async fn line<T: DeserializeOwned>(&mut self) -> Result<T> {
        match self.lines.next_line().await? {
            Some(line) => serde_json::from_str(&line).context("a child process said something unexpected"),
            None => bail!("a child process ended early: {}", self.process.wait().await?),
        }
    }

    /// Tells it that it is not needed any longer; it may have a last word.
    pub fn release(&mut self) {
        self.input = None;
    }

    /// Waits for its end, which must be a good one.
    pub async fn end(mut self) -> Result<()> {
        self.release();
        let status = self.process.wait().await?;
        if status.success() { Ok(()) } else { bail!("a child process failed: {status}") }
    }
}

/// Says something to the parent.
pub fn tell<T: Serialize>(message: &T) -> Result<()> {
    println!("{}", serde_json::to_string(message)?);
    Ok(())
}

/// Ready when the parent needs the child no more.
pub async fn orphaned() {
    // An error of the pipe means the same as its end.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
}
