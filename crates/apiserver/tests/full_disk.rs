//! A disk that takes no more: errors and no lies, reads go on, and so do writes once there is room.
//!
//! The kernel refuses the writes for real: a limit on the size of files (which needs no root, unlike a file system that
//! is full) is set on a server at work and taken away again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// The program that writes; cargo builds examples along with tests.
fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/stubborn_writer");
    assert!(
        program.exists(),
        "{} is missing: run `cargo build -p compute-apiserver --examples`",
        program.display()
    );
    program
}

struct Writer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    acknowledged: BTreeSet<String>,
    refused: BTreeSet<String>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Writer {
    fn start(folder: &Path, bytes: usize) -> Self {
        // Whoever ignores the signal that comes with the limit gets an error from each write instead; programs inherit that.
        let mut child = Command::new("sh")
            .args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#])
            .arg(program())
            .args([folder.as_os_str(), bytes.to_string().as_ref()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, acknowledged: BTreeSet::new(), refused: BTreeSet::new() }
    }

    /// Reads on until so many writes have been acknowledged, or refused.
    fn read(&mut self, word: &str, times: usize) {
        let mut seen = 0;
        while seen < times {
            let line = self.lines.next().expect("the server goes on").unwrap();
            let [outcome, name, count, ref rest @ ..] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            match outcome {
                "ok" => assert!(self.acknowledged.insert(name.to_owned())),
                _ => {
                    assert_eq!(rest, ["500"], "{line}");
                    self.refused.insert(name.to_owned());
                }
            }
            // What can be read is what was acknowledged, at every moment.
            assert_eq!(count.parse::<usize>().unwrap(), self.acknowledged.len(), "{line}");
            seen += usize::from(outcome == word);
        }
    }

    fn limit(&self, bytes: Option<u64>) {
        let pid = Pid::from_child(&self.child);
        prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    }
}

/// How long the engine's newest journal is.
fn journal(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder.join("objects")).unwrap().map(Result::unwrap);
    let journals = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "jnl"));
    let newest = journals
        .max_by_key(|entry| entry.path().file_stem().unwrap().to_str().unwrap().parse::<u64>().unwrap());
    newest.unwrap().metadata().unwrap().len()
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_server_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::start(folder.path(), 10_000);
    writer.read("ok", 20);
    writer.limit(Some(1));
    writer.read("refused", 5);
    writer.limit(None);
    writer.read("ok", 20);
    // After the first failure the journal is as long as what is in it: the limit can be set into the midst of a write.
    for part in [1, 1_000, 5_000, 10_000, 12_000, 25_000, 33_000] {
        writer.limit(Some(journal(folder.path()) + part));
        writer.read("refused", 3);
        writer.limit(None);
        writer.read("ok", 3);
    }
    writer.child.kill().unwrap();
    writer.child.wait().unwrap();
    while let Some(Ok(line)) = writer.lines.next() {
        let mut words = line.split(' ');
        if let (Some("ok"), Some(name)) = (words.next(), words.next()) {
            writer.acknowledged.insert(name.to_owned());
        }
    }

    let deadline = Instant::now() + Duration::from_secs(20);
    let server = loop {
        match ApiServer::open(Options::default(), folder.path()) {
            Ok(server) => break server,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let template = server.template(&[]).await.unwrap();
    let plane = PlaneName::new("demo").unwrap();
    server.create_plane(plane.clone(), &template).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::new(
        server.service(&plane, Identity::superuser("tester")),
        "default",
    ));
    let found = maps.list(&ListParams::default()).await.unwrap();
    let mut present = BTreeSet::new();
    for map in found.items {
        assert_eq!(map.data.as_ref().unwrap()["filler"].len(), 10_000, "half of a write is there");
        present.insert(map.name_any());
    }
    assert!(present.is_superset(&writer.acknowledged), "a write is lost");
    assert!(present.is_disjoint(&writer.refused), "a write that was refused has come back");
    // One may have been on its way when the process was killed.
    assert!(present.len() <= writer.acknowledged.len() + 1);
}

#[tokio::test]
async fn a_server_starts_on_a_full_disk_and_what_is_there_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::start(folder.path(), 1_000);
    writer.read("ok", 10);
    writer.limit(Some(1));
    writer.read("refused", 1);
    writer.child.kill().unwrap();
    writer.child.wait().unwrap();
    let there = writer.acknowledged.clone();
    drop(writer);

    let mut again = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#])
        .arg(program())
        .args([folder.path().as_os_str(), "1000".as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(again.stdout.take().unwrap()).lines();
    let line = lines.next().expect("the server starts").unwrap();
    again.kill().unwrap();
    again.wait().unwrap();
    assert!(line.starts_with("refused ") && line.ends_with(&format!(" {} 500", there.len())), "{line}");
}
