//! `compute-local` as a user runs it: up, a second up, status, kubeconfig, down, signals, backup, restore.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "binary/backup.rs"]
mod backup;

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Client};

const DEADLINE: Duration = Duration::from_secs(30);

struct Platform {
    child: Child,
    dir: PathBuf,
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compute_local(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compute-local"));
    command.args(args).arg("--data-dir").arg(dir);
    command
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn up(dir: &Path) -> Platform {
    up_with(dir, &[]).await
}

async fn up_with(dir: &Path, more: &[&str]) -> Platform {
    let args = [&["up", "--listen", "127.0.0.1:0", "--cities", "DFW,iad"], more].concat();
    let child = compute_local(dir, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let platform = Platform { child, dir: dir.to_owned() };
    let pid = format!("\"pid\": {}", platform.child.id());
    until("the platform announces itself", || {
        std::fs::read_to_string(dir.join("running.json")).is_ok_and(|announced| announced.contains(&pid))
    })
    .await;
    platform
}

impl Platform {
    async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the platform ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    async fn client(&self, context: &str) -> Client {
        let config = Kubeconfig::read_from(self.dir.join("kubeconfig")).unwrap();
        let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
        Client::try_from(kube::Config::from_custom_kubeconfig(config, &options).await.unwrap()).unwrap()
    }
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), read(&output.stdout), read(&output.stderr))
}

#[tokio::test]
async fn up_status_and_down() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let mut platform = up(&dir).await;

    let config = dir.join("kubeconfig");
    assert_eq!(std::fs::metadata(&config).unwrap().permissions().mode() & 0o777, 0o600);
    let config = Kubeconfig::read_from(&config).unwrap();
    let contexts: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
    assert_eq!(contexts, ["core", "hub", "cell-dfw", "cell-iad", "project-demo"]);
    assert_eq!(config.current_context.as_deref(), Some("project-demo"));

    // Each plane serves the kinds of its role, and only those.
    let workloads = ApiResource {
        group: "compute.datumapis.com".to_owned(),
        version: "v1alpha".to_owned(),
        api_version: "compute.datumapis.com/v1alpha".to_owned(),
        kind: "Workload".to_owned(),
        plural: "workloads".to_owned(),
    };
    for (context, serves) in [("project-demo", true), ("hub", true), ("cell-dfw", true), ("core", false)] {
        let api: Api<DynamicObject> = Api::all_with(platform.client(context).await, &workloads);
        assert_eq!(api.list(&ListParams::default()).await.is_ok(), serves, "{context}");
    }

    let (code, stdout, stderr) = text(&compute_local(&dir, &["status"]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for context in contexts {
        let line = stdout.lines().find(|line| line.starts_with(context)).unwrap();
        assert!(line.ends_with("ready"), "{line}");
    }

    let (code, stdout, stderr) =
        text(&compute_local(&dir, &["up", "--listen", "127.0.0.1:0"]).output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("runs already") && stderr.contains("compute-local down"), "{stderr}");

    let (code, stdout, _) = text(&compute_local(&dir, &["down"]).output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(0), "The platform has stopped.\n"));
    assert!(platform.ended().await.success());
    assert!(!dir.join("kubeconfig").exists());

    let (code, _, stderr) = text(&compute_local(&dir, &["status"]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("not running") && stderr.contains("compute-local up"), "{stderr}");
    let (code, stdout, _) = text(&compute_local(&dir, &["down"]).output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(0), "The platform is not running.\n"));
}

#[tokio::test]
async fn signals_stop_it_cleanly_although_a_watch_is_open() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let temp = tempfile::tempdir().unwrap();
        let mut platform = up(temp.path()).await;
        let namespaces: Api<compute_api::k8s::Namespace> = Api::all(platform.client("hub").await);
        let watch = namespaces.watch(&kube::api::WatchParams::default(), "0").await.unwrap();
        let pid = i32::try_from(platform.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(platform.ended().await.code(), Some(0), "{signal:?}");
        drop(watch);
        let mut said = String::new();
        platform.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "stopping\n");
    }
}

#[tokio::test]
async fn a_killed_platform_leaves_nothing_that_stops_the_next() {
    let temp = tempfile::tempdir().unwrap();
    let mut platform = up(temp.path()).await;
    platform.child.kill().unwrap();
    platform.child.wait().unwrap();
    let (_, stdout, _) = text(&compute_local(temp.path(), &["down"]).output().unwrap());
    assert_eq!(stdout, "The platform is not running.\n");
    assert!(!temp.path().join("running.json").exists() && !temp.path().join("kubeconfig").exists());
    let again = up(temp.path()).await;
    assert!(again.client("core").await.apiserver_version().await.is_ok());
}

#[tokio::test]
async fn state_survives_a_kill_unless_it_is_ephemeral() {
    for (more, survives) in [(&[][..], true), (&["--ephemeral"][..], false)] {
        let temp = tempfile::tempdir().unwrap();
        let mut platform = up_with(temp.path(), more).await;
        let maps: Api<compute_api::k8s::ConfigMap> = Api::default_namespaced(platform.client("hub").await);
        let map = serde_json::from_value(serde_json::json!({ "metadata": { "name": "kept" } })).unwrap();
        let made = maps.create(&kube::api::PostParams::default(), &map).await.unwrap();
        platform.child.kill().unwrap();
        platform.child.wait().unwrap();

        let again = up_with(temp.path(), more).await;
        let maps: Api<compute_api::k8s::ConfigMap> = Api::default_namespaced(again.client("hub").await);
        let found = maps.get_opt("kept").await.unwrap();
        assert_eq!(found, survives.then_some(made));
    }
}

#[test]
fn bad_arguments_are_named() {
    let temp = tempfile::tempdir().unwrap();
    for (args, words) in [
        (&["up", "--cities", "D F W"][..], "city code"),
        (&["up", "--cities", ""], "city code"),
        (&["up", "--listen", "nowhere"], "--listen"),
        (&["sideways"], "sideways"),
    ] {
        let (code, _, stderr) = text(&compute_local(temp.path(), args).output().unwrap());
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, stderr) =
        text(&compute_local(temp.path(), &["up", "--listen", &address]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains(&address) && stderr.contains("--listen 127.0.0.1:0"), "{stderr}");
}

#[tokio::test]
async fn who_did_what_is_written_down() {
    for (args, file) in [
        (&[][..], Some("audit.log")),
        (&["--audit-log", "off"], None),
        (&["--audit-log", "{dir}/other.log"], Some("other.log")),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let args: Vec<String> = args.iter().map(|arg| arg.replace("{dir}", dir.to_str().unwrap())).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut platform = up_with(&dir, &[&["--ephemeral"], &args[..]].concat()).await;
        platform.client("project-demo").await.list_core_api_versions().await.unwrap();
        assert!(compute_local(&dir, &["down"]).status().unwrap().success());
        platform.ended().await;
        let logs = |name: &str| std::fs::read_to_string(dir.join(name));
        let Some(file) = file else {
            assert!(logs("audit.log").is_err());
            continue;
        };
        assert!(logs(file).unwrap().contains("\"control-plane/name\":\"project-demo\""));
        assert_eq!(std::fs::metadata(dir.join(file)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
