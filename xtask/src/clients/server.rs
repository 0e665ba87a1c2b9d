//! The server under test: `compute-local up` as a child process in a directory of its own, with nobody but the clients at work.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::process::Process;
use super::tools::Kubectl;

/// How long the server may take to write its kubeconfig and to be ready.
const START: Duration = Duration::from_secs(60);
/// How often to look for a file that appears.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many of the server's lines are shown when a case failed.
const TAIL: usize = 60;

/// A running server. Stopped when dropped.
pub(crate) struct Server {
    // Before the directory, so that the process goes first.
    process: Process,
    directory: TempDir,
}

impl Server {
    /// Builds the server, starts it and waits until it is ready.
    pub(crate) fn start(kubectl: &Kubectl) -> Result<Self> {
        let program = build()?;
        let directory = tempfile::tempdir().context("cannot make a directory for the server")?;
        let mut command = Command::new(&program);
        command.arg("up").arg("--data-dir").arg(directory.path());
        command.args(["--listen", "127.0.0.1:0", "--cities", "DFW,IAD", "--planes-only"]);
        let process = Process::start(&mut command, format!("{} up", program.display()), "")?;
        let mut server = Self { process, directory };
        server.wait_until_ready(kubectl)?;
        Ok(server)
    }

    /// How clients reach it.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// An empty home directory, so that clients find no settings of the person who runs this.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// The last lines it wrote.
    pub(crate) fn tail(&mut self) -> String {
        let stderr = &self.process.output().stderr;
        let lines: Vec<&str> = stderr.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    fn wait_until_ready(&mut self, kubectl: &Kubectl) -> Result<()> {
        std::fs::create_dir_all(self.home())?;
        let deadline = Instant::now() + START;
        while Instant::now() < deadline && self.is_running() {
            let kubeconfig = self.kubeconfig();
            if !kubeconfig.exists() {
                // Its output is the only thing to wait on; it need not write any.
                self.process.wait_until(LOOK_EVERY, |_| kubeconfig.exists());
                continue;
            }
            let mut command = kubectl.command(self);
            command.args(["--context=core", "get", "--raw", "/readyz"]);
            let output =
                Process::start(&mut command, "kubectl get --raw /readyz".to_owned(), "")?.wait(START)?;
            if output.code == Some(0) && output.stdout.trim() == "ok" {
                return Ok(());
            }
        }
        bail!("the server is not ready after {START:?}; it wrote:\n{}", self.tail())
    }
}

/// Builds the server; gives the path of the program.
fn build() -> Result<PathBuf> {
    let output = crate::cargo()
        // With a test of the workspace, features are those of all its tests, and little is built twice.
        .args(["build", "--workspace", "--bin", "compute-local", "--test", "live"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("compute-local does not build");
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "compute-local")
        .find_map(|message| message["executable"].as_str().map(|path| Path::new(path).to_owned()))
        .context("cargo does not say where compute-local is")
}
