//! With programs that any Unix has in place of servers.

use super::*;

fn process(name: &str, script: &str) -> Process {
    Process {
        name: name.into(),
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        // Nothing listens on port 1.
        probe: Probe { base: "http://127.0.0.1:1".into(), path: "/".into(), ca_pem: None },
    }
}

fn folder() -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create(dir.path()).unwrap();
    (dir, folder)
}

#[tokio::test]
async fn a_process_is_written_down_and_gone_after_a_stop() {
    let (_dir, folder) = folder();
    let process = process("sleeper", "exec sleep 60");
    assert_eq!(process.running(&folder).unwrap(), None);
    let identity = process.spawn(&folder).unwrap();
    assert_eq!(process.running(&folder).unwrap(), Some(identity.clone()));
    stop("sleeper", &identity).await.unwrap();
    assert!(!identity.runs());
    assert_eq!(process.running(&folder).unwrap(), None);
    stop("sleeper", &identity).await.unwrap();
}

#[tokio::test]
async fn one_that_ignores_the_request_to_end_is_killed() {
    let (_dir, folder) = folder();
    // A file says that the signal is ignored: before, it would end the shell.
    let process = process("deaf", "trap '' TERM; : > ready; while :; do sleep 1; done");
    let identity = process.spawn(&folder).unwrap();
    let ready = folder.work("deaf").join("ready");
    while !ready.exists() {
        assert!(identity.runs());
        sleep(PERIOD).await;
    }
    stop("deaf", &identity).await.unwrap();
    assert!(!identity.runs());
}

#[tokio::test]
async fn a_recycled_id_is_left_alone() {
    let (_dir, folder) = folder();
    let process = process("innocent", "exec sleep 60");
    let identity = process.spawn(&folder).unwrap();
    let stranger = Identity { started: identity.started - 1, ..identity.clone() };
    files::write_json(&folder.record("innocent"), &stranger).unwrap();
    assert_eq!(process.running(&folder).unwrap(), None);
    kill("stranger", &stranger).await.unwrap();
    assert!(identity.runs(), "another process has that id now");
    kill("innocent", &identity).await.unwrap();
}

#[tokio::test]
async fn one_that_ends_shows_the_end_of_its_log() {
    let (_dir, folder) = folder();
    let process =
        process("broken", "for i in $(seq 1 40); do echo line $i; done; echo no such flag >&2; exit 1");
    let error = match process.spawn(&folder) {
        Ok(identity) => process.healthy(&folder, &identity).await.unwrap_err(),
        Err(error) => error,
    };
    let text = error.to_string();
    assert!(matches!(error, Error::Unhealthy { .. }), "{text}");
    assert!(text.starts_with("broken ") && text.contains("broken.log"), "{text}");
}

#[test]
fn the_tail_of_a_log_is_its_last_lines() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("x.log");
    let lines: Vec<String> = (0..5000).map(|n| format!("line {n}")).collect();
    fs::write(&log, lines.join("\n")).unwrap();
    assert_eq!(tail(&log).lines().count(), TAIL_LINES);
    assert!(tail(&log).ends_with("line 4999"));
    assert!(tail(&dir.path().join("absent")).starts_with("(cannot be read"));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let (_dir, folder) = folder();
    let missing = Process { program: "/no/such/program".into(), ..process("lost", "") };
    assert_eq!(missing.spawn(&folder).unwrap_err().to_string(), "cannot start lost (/no/such/program)");
}
