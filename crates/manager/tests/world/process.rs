//! A manager as a process: started, read, told to stop, killed.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use compute_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::Served;

/// A running manager. It is killed when this is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Process {
    /// Starts a manager, and waits until it says that it does.
    pub async fn start(served: &Served, name: &str, arguments: &[&str]) -> Self {
        let log = served.path(&format!("{name}.log"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_compute-manager"));
        command.args(arguments).args(["--health-probe-bind-address", "127.0.0.1:0"]).env_clear();
        command.env("POD_NAME", name).stderr(File::create(&log).unwrap());
        let filter = std::env::var("COMPUTE_LOG").unwrap_or_else(|_| "info,compute_runtime=debug".to_owned());
        command.env("COMPUTE_LOG", filter);
        let mut process = Self { child: command.spawn().unwrap(), log, name: name.to_owned() };
        eventually(&format!("{name} starts"), async || {
            if let Some(status) = process.child.try_wait().unwrap() {
                panic!("{name} ended: {status}: {}", process.log());
            }
            process.said("starting").ok_or_else(|| process.log())
        })
        .await;
        process
    }

    /// Everything that it said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Each line of it, which must be JSON.
    pub fn lines(&self) -> Vec<Value> {
        let log = self.log();
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        let read = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{} said {line}", self.name));
        whole.lines().map(read).collect()
    }

    /// The first line with this message.
    pub fn said(&self, message: &str) -> Option<Value> {
        self.lines().into_iter().find(|line| line["message"] == message)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it serves `health`, `metrics` or `webhooks`.
    pub fn address(&self, what: &str) -> String {
        self.said("starting").unwrap()[what].as_str().unwrap().to_owned()
    }

    /// A page of its: code and body.
    pub async fn page(&self, server: &str, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address(server)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Waits until it says that it is ready.
    pub async fn until_ready(&mut self) {
        let name = self.name.clone();
        eventually(&format!("{name} is ready"), async || {
            self.assert_runs();
            match self.page("health", "/readyz").await {
                (200, _) => Ok(()),
                (_, why) => Err(why),
            }
        })
        .await;
    }

    /// Fails if it has ended.
    pub fn assert_runs(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} ended: {status}: {}", self.name, self.log());
        }
    }

    /// Asks it to stop.
    pub fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// Ends it in the middle of whatever it does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has ended, for so long.
    pub async fn ended_within(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "{} does not end: {}", self.name, self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("=== {}\n{}", self.name, std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}
