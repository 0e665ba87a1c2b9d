//! A `compute-manager` as a process of its own: its files, its start, its end.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::wait::eventually;

/// How long the end of a process may take that is told to stop.
const STOP: Duration = Duration::from_secs(10);

/// A running process. It is killed when this is dropped.
pub struct Manager {
    name: String,
    log: PathBuf,
    health: SocketAddr,
    child: Child,
}

/// How a process is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What it is called in logs and complaints.
    pub name: String,
    /// Its flags, but for where it tells of its health.
    pub flags: Vec<String>,
    /// Where its log goes; added to if it is there.
    pub log: PathBuf,
}

/// The manager: what `COMPUTE_MANAGER` says, or what was built beside this test.
fn manager() -> PathBuf {
    std::env::var_os("COMPUTE_MANAGER").map_or_else(|| program("compute-manager"), PathBuf::from)
}

/// A program of ours that was built beside this test.
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().join(name);
    assert!(built.exists(), "{} is not there: cargo build --workspace --bins", built.display());
    built
}

/// An address that nobody listens on.
pub fn free_address() -> SocketAddr {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

impl Manager {
    /// Starts a process. It may not be ready yet.
    pub fn launch(launch: &Launch) -> Self {
        let health = free_address();
        let log = File::options().create(true).append(true).open(&launch.log).unwrap();
        let child = Command::new(manager())
            .args(&launch.flags)
            .arg(format!("--health-probe-bind-address={health}"))
            .arg("--log-format=text")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { name: launch.name.clone(), log: launch.log.clone(), health, child }
    }

    /// Waits until it says that it is ready.
    pub async fn until_ready(&mut self) {
        let (name, health) = (self.name.clone(), self.health);
        eventually(&format!("{name} is ready"), async || {
            self.assert_runs();
            ask(health, "/readyz").await
        })
        .await;
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, for the system.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Fails if it has ended, with the end of its log.
    pub fn assert_runs(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} has ended by itself ({status}):\n{}", self.name, tail(&self.log));
        }
    }

    /// Ends it as a crash would.
    pub async fn kill(mut self) {
        self.assert_runs();
        self.child.kill().await.unwrap();
    }

    /// Asks it to stop, and waits until it has; fails if it takes too long, or says that something was wrong.
    pub async fn stop(mut self) {
        self.assert_runs();
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = tokio::time::timeout(STOP, self.child.wait()).await;
        let status =
            status.unwrap_or_else(|_| panic!("{} does not stop within {STOP:?}", self.name)).unwrap();
        assert!(status.success(), "{} ended with {status}:\n{}", self.name, tail(&self.log));
    }
}

/// The end of a log.
pub fn tail(log: &Path) -> String {
    const LINES: usize = 40;
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Asks a process a question by HTTP, and takes 200 for yes.
async fn ask(address: SocketAddr, path: &str) -> Result<(), String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(|error| error.to_string())?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
}

/// The files of one process: who it is on each host, and its configuration.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// In a folder of its own.
    pub fn new(dir: PathBuf) -> Self {
        std::fs::create_dir_all(&dir).unwrap();
        Self { dir }
    }

    /// Writes a kubeconfig with a token in a file beside it, which can be written anew; its path.
    pub fn kubeconfig(&self, name: &str, url: &str, ca_pem: &str, token: &str) -> PathBuf {
        let ca = self.write(&format!("{name}-ca.crt"), ca_pem);
        let token = self.token(name, token);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{ "name": name, "cluster": { "server": url, "certificate-authority": ca } }],
            "users": [{ "name": name, "user": { "tokenFile": token } }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        });
        self.write(&format!("{name}.kubeconfig"), &config.to_string())
    }

    /// Writes a token anew, as a mounted Secret is: the file is another one from one moment to the next.
    pub fn token(&self, name: &str, token: &str) -> PathBuf {
        let next = self.write(&format!("{name}.token.next"), token);
        let path = self.dir.join(format!("{name}.token"));
        std::fs::rename(next, &path).unwrap();
        path
    }

    /// Writes the server config of a replica; its path.
    pub fn server_config(&self, replica: usize, settings: &Value) -> PathBuf {
        let mut config = json!({
            "apiVersion": "apiserver.config.datumapis.com/v1alpha1", "kind": "WorkloadOperator",
            "metricsServer": { "bindAddress": "0" },
        });
        let (config_fields, fields) = (config.as_object_mut().unwrap(), settings.as_object().unwrap());
        config_fields.extend(fields.clone());
        self.write(&format!("config-{replica}.yaml"), &config.to_string())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}
