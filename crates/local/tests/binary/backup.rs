//! `compute-local backup` and `compute-local restore`.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use compute_api::k8s::{ConfigMap, Secret};
use kube::api::PostParams;
use serde_json::json;

use super::*;

async fn put(platform: &Platform, name: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(platform.client("hub").await);
    let map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
}

async fn put_secret(platform: &Platform) {
    let secrets: Api<Secret> = Api::default_namespaced(platform.client("hub").await);
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "word": "plaintext" } });
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
}

async fn names(platform: &Platform) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(platform.client("hub").await);
    let found = maps.list(&ListParams::default()).await.unwrap();
    found.items.into_iter().map(|map| map.metadata.name.unwrap()).collect()
}

async fn down(mut platform: Platform) {
    assert_eq!(text(&compute_local(&platform.dir, &["down"]).output().unwrap()).0, Some(0));
    assert!(platform.ended().await.success());
}

fn entries(dir: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_running_platform_is_backed_up_and_restored_over_what_came_later() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, file) = (temp.path().join("data"), temp.path().join("my.backup"));
    let named = file.to_str().unwrap();
    let platform = up(&dir).await;
    put(&platform, "before").await;
    put_secret(&platform).await;

    let (code, stdout, stderr) = text(&compute_local(&dir, &["backup", named]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("Backed up 5 planes, "), "{stdout}");
    assert!(stdout.contains("secrets.key") && stdout.contains(&format!("restore {named}")), "{stdout}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(dir.join("backup.sock")).unwrap().permissions().mode() & 0o777, 0o600);
    let taken = std::fs::read(&file).unwrap();
    let secret = b"cGxhaW50ZXh0";
    assert!(!taken.windows(secret.len()).any(|window| window == secret), "a secret is readable");

    put(&platform, "after").await;
    let (code, _, stderr) = text(&compute_local(&dir, &["backup", named]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("exists already") && stderr.contains("--force"), "{stderr}");
    assert_eq!(std::fs::read(&file).unwrap(), taken);
    let (code, _, stderr) = text(&compute_local(&dir, &["restore", named, "--force"]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the platform runs") && stderr.contains("compute-local down"), "{stderr}");
    down(platform).await;
    assert!(!dir.join("backup.sock").exists());

    let (code, _, stderr) = text(&compute_local(&dir, &["restore", named]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("planes") && stderr.contains("--force"), "{stderr}");
    assert_eq!(entries(&dir), ["audit.log", "lock", "planes"]);

    let (code, stdout, stderr) = text(&compute_local(&dir, &["restore", named, "--force"]).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("Restored 5 planes, "), "{stdout}");
    assert!(stdout.contains("compute-local up"), "{stdout}");
    let kept = entries(&dir);
    assert_eq!(kept.len(), 4, "{kept:?}");
    let aside = kept.iter().find(|name| name.starts_with("planes.aside-")).unwrap();
    assert!(stdout.contains(aside.as_str()), "{stdout}");
    let platform = up(&dir).await;
    assert_eq!(names(&platform).await, ["before"]);
    down(platform).await;

    // What was put aside is the state before, whole.
    std::fs::rename(dir.join("planes"), dir.join("restored")).unwrap();
    std::fs::rename(dir.join(aside), dir.join("planes")).unwrap();
    assert_eq!(names(&up(&dir).await).await, ["after", "before"]);
}

#[tokio::test]
async fn a_stopped_platform_is_backed_up_and_restored_elsewhere_with_its_key() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let (code, _, stderr) =
        text(&compute_local(&dir, &["backup"]).current_dir(temp.path()).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("nothing to back up") && stderr.contains("compute-local up"), "{stderr}");
    let platform = up(&dir).await;
    put(&platform, "kept").await;
    put_secret(&platform).await;
    down(platform).await;

    // Without a name, and to standard output.
    let run = temp.path().join("here");
    std::fs::create_dir(&run).unwrap();
    let (code, stdout, stderr) = text(&compute_local(&dir, &["backup"]).current_dir(&run).output().unwrap());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let [file] = &entries(&run)[..] else { panic!("{:?}", entries(&run)) };
    assert!(file.starts_with("compute-local-") && file.ends_with(".backup"), "{file}");
    assert!(stdout.contains(file.as_str()), "{stdout}");
    let output = compute_local(&dir, &["backup", "-"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.starts_with("Backed up 5 planes"), "{stderr}");
    assert_eq!(output.stdout.len(), std::fs::read(run.join(file)).unwrap().len());

    let other = temp.path().join("other");
    let restore = |more: &[&str], input: &[u8]| {
        let args = [&["restore", "-"], more].concat();
        let mut command = compute_local(&other, &args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that has seen enough does not read on.
        let _ = child.stdin.take().unwrap().write_all(input);
        text(&child.wait_with_output().unwrap())
    };
    let (code, _, stderr) = restore(&[], &output.stdout);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("holds Secrets") && stderr.contains("--key FILE"), "{stderr}");
    let (code, _, stderr) = restore(&[], &output.stdout[..output.stdout.len() - 1]);
    assert_eq!(code, Some(1), "{stderr}");
    let (code, _, stderr) = restore(&[], b"something else");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("not a backup"), "{stderr}");
    assert_eq!(entries(&other), ["lock"], "nothing is left of a refused restore");
    let key = dir.join("planes/secrets.key");
    let (code, stdout, stderr) = restore(&["--key", key.to_str().unwrap()], &output.stdout);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("Restored 5 planes"), "{stdout}");

    let platform = up(&other).await;
    assert_eq!(names(&platform).await, ["kept"]);
    let secrets: Api<Secret> = Api::default_namespaced(platform.client("hub").await);
    assert_eq!(secrets.get("s").await.unwrap().data.unwrap()["word"].0, b"plaintext");
}

#[tokio::test]
async fn a_platform_in_memory_says_that_there_is_nothing_to_back_up() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("b");
    let platform = up_with(&temp.path().join("data"), &["--ephemeral"]).await;
    let (code, _, stderr) =
        text(&compute_local(&platform.dir, &["backup", file.to_str().unwrap()]).output().unwrap());
    assert_eq!(code, Some(1));
    assert!(stderr.contains("in memory alone"), "{stderr}");
    assert_eq!(entries(temp.path()), ["data"], "nothing is left of a backup that failed");
}

#[tokio::test]
async fn one_who_does_not_read_holds_up_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let platform = up(temp.path()).await;
    // More than a socket takes without a reader.
    let maps: Api<ConfigMap> = Api::default_namespaced(platform.client("hub").await);
    for i in 0..4 {
        let map = json!({ "metadata": { "name": format!("m{i}") }, "data": { "x": "y".repeat(500_000) } });
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    }
    let mut silent = UnixStream::connect(platform.dir.join("backup.sock")).unwrap();
    let mut first = [0; 3];
    silent.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"ok\n");
    put(&platform, "meanwhile").await;
    assert_eq!(names(&platform).await.len(), 5);
    down(platform).await;
}
