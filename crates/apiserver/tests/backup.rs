//! Backups of a server at work, and what its clients see after a restore.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compute_apiserver::backup::{self, BackupError};
use compute_apiserver::{ApiServer, Clock, Identity, Options, PlaneName, StorageError, SystemClock};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

const PLANES: [&str; 2] = ["a", "b"];

fn name(name: &str) -> PlaneName {
    PlaneName::new(name).unwrap()
}

async fn open(folder: &Path, options: Options) -> ApiServer {
    let deadline = Instant::now() + Duration::from_secs(20);
    let server = loop {
        // A server before ends in the background when its last user is gone.
        match ApiServer::open(options.clone(), folder) {
            Ok(server) => break server,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let template = server.template(&[]).await.unwrap();
    for plane in PLANES {
        server.create_plane(name(plane), &template).await.unwrap();
    }
    server
}

fn client(server: &ApiServer, plane: &str) -> Client {
    Client::new(server.service(&name(plane), Identity::superuser("tester")), "default")
}

fn maps(server: &ApiServer, plane: &str) -> Api<ConfigMap> {
    Api::default_namespaced(client(server, plane))
}

fn map(name: &str, round: u64) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "round": round.to_string() } }))
        .unwrap()
}

async fn rounds(server: &ApiServer, plane: &str) -> BTreeMap<String, (u64, u64)> {
    let list = maps(server, plane).list(&ListParams::default()).await.unwrap();
    let found = list.items.into_iter().map(|map| {
        let revision = map.resource_version().unwrap().parse().unwrap();
        (map.name_any(), (map.data.unwrap()["round"].parse().unwrap(), revision))
    });
    found.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_one_revision_of_all_planes_while_writers_go_on() {
    const WRITERS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path(), Options::default()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let done: Arc<Vec<AtomicU64>> = Arc::new((0..WRITERS).map(|_| AtomicU64::new(0)).collect());
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let apis = PLANES.map(|plane| maps(&server, plane));
        for api in &apis {
            api.create(&PostParams::default(), &map(&format!("w{writer}"), 0)).await.unwrap();
        }
        let (stop, done) = (stop.clone(), done.clone());
        writers.push(tokio::spawn(async move {
            // First in one plane, then in the other: no moment shows the second ahead of the first.
            let mut round = 0;
            while !stop.load(Ordering::SeqCst) {
                round += 1;
                for api in &apis {
                    let patch = Patch::Merge(json!({ "data": { "round": round.to_string() } }));
                    api.patch(&format!("w{writer}"), &PatchParams::default(), &patch).await.unwrap();
                }
                done[writer].store(round, Ordering::SeqCst);
            }
        }));
    }
    let mut backups = Vec::new();
    for _ in 0..10 {
        let before: Vec<u64> = done.iter().map(|round| round.load(Ordering::SeqCst)).collect();
        let (summary, bytes) = server.backup(Vec::new()).await.unwrap();
        backups.push((before, summary, bytes));
        let written = done[0].load(Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(20);
        while done[0].load(Ordering::SeqCst) < written + 3 {
            assert!(Instant::now() < deadline, "writers do not go on");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    stop.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }

    for (before, summary, bytes) in backups {
        let place = tempfile::tempdir().unwrap();
        let store = place.path().join("store");
        assert_eq!(backup::restore(&store, None, &SystemClock, &bytes[..]).unwrap(), summary);
        let server = open(&store, Options::default()).await;
        let (a, b) = (rounds(&server, "a").await, rounds(&server, "b").await);
        for (writer, acknowledged) in before.iter().enumerate() {
            let name = format!("w{writer}");
            let ((first, first_revision), (second, second_revision)) = (a[&name], b[&name]);
            assert!(second >= *acknowledged, "{name}: {acknowledged} was acknowledged, {second} is there");
            assert!(first == second || first == second + 1, "{name}: {first} and {second} at one moment");
            assert!(first_revision <= summary.revision && second_revision <= summary.revision);
        }
    }
}

async fn first_event(api: &Api<ConfigMap>, revision: &str) -> WatchEvent<ConfigMap> {
    let mut stream = std::pin::pin!(api.watch(&WatchParams::default().timeout(1), revision).await.unwrap());
    stream.next().await.unwrap().unwrap()
}

fn is_expired(event: &WatchEvent<ConfigMap>) -> bool {
    matches!(event, WatchEvent::Error(status) if status.code == 410 && status.reason == "Expired")
}

/// A clock that has been set to some time.
struct SetTo(i64);

impl Clock for SetTo {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.0).unwrap()
    }
}

#[tokio::test]
async fn what_clients_saw_of_the_lost_time_is_too_old_after_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path(), Options::default()).await;
    let kept = maps(&server, "a").create(&PostParams::default(), &map("kept", 1)).await.unwrap();
    let (_, bytes) = server.backup(Vec::new()).await.unwrap();
    // Written after the backup, seen by clients, and then lost.
    let mut lost = Vec::new();
    for round in 0..20 {
        let name = format!("lost{round}");
        let made = maps(&server, "a").create(&PostParams::default(), &map(&name, round)).await.unwrap();
        lost.push(made.resource_version().unwrap());
    }
    let listed = maps(&server, "a").list(&ListParams::default().limit(1)).await.unwrap();
    let next_page = listed.metadata.continue_.unwrap();
    drop(server);

    // Several times from the same backup: the lives after the restores are different histories as well. The clock is right, or
    // far behind.
    for clock in [None, Some(1_000_000), None] {
        let place = tempfile::tempdir().unwrap();
        let store = place.path().join("store");
        let options = Options {
            clock: clock.map_or_else(|| Options::default().clock, |second| Arc::new(SetTo(second))),
            ..Options::default()
        };
        backup::restore(&store, None, &*options.clock, &bytes[..]).unwrap();
        let server = open(&store, options).await;
        let api = maps(&server, "a");
        let found = api.list(&ListParams::default()).await.unwrap();
        assert_eq!(found.items, [kept.clone()]);
        let now: u64 = found.metadata.resource_version.unwrap().parse().unwrap();
        assert!(now > lost[19].parse().unwrap(), "{now} is not above {}", lost[19]);
        for revision in lost.iter().chain([&kept.resource_version().unwrap()]) {
            let event = first_event(&api, revision).await;
            assert!(is_expired(&event), "clock {clock:?}: a watch from {revision} gets {event:?}");
            let exact = ListParams::default().at(revision).matching(kube::api::VersionMatch::Exact);
            let error = api.list(&exact).await.unwrap_err();
            // What is above the present revision, after a life with a wrong clock, is told so.
            let expected = if revision.parse::<u64>().unwrap() > now { 504 } else { 410 };
            assert!(matches!(&error, kube::Error::Api(status) if status.code == expected), "{error:?}");
        }
        let page = api.list(&ListParams::default().limit(1).continue_token(&next_page)).await;
        assert!(matches!(&page, Err(kube::Error::Api(status)) if status.code == 410), "{page:?}");

        let made = api.create(&PostParams::default(), &map("new", 1)).await.unwrap();
        assert!(made.resource_version().unwrap().parse::<u64>().unwrap() > now);
        // Revisions of the life after this one, too, are unknown to a server that is restored again.
        lost.push(made.resource_version().unwrap());
        drop((server, api));
        let mut again = backup::restore(&place.path().join("again"), None, &SystemClock, &bytes[..]);
        assert!(again.is_ok());
        again = backup::restore(&place.path().join("again"), None, &SystemClock, &bytes[..]);
        assert!(matches!(again, Err(BackupError::NotEmpty(_))));
    }
}

#[tokio::test]
async fn a_revision_that_was_never_given_out_is_unknown() {
    let server = ApiServer::new(Options::default());
    let template = server.template(&[]).await.unwrap();
    server.create_plane(name("a"), &template).await.unwrap();
    let api = maps(&server, "a");
    let made = api.create(&PostParams::default(), &map("x", 1)).await.unwrap();
    let now: u64 = made.resource_version().unwrap().parse().unwrap();
    let event = first_event(&api, &(now + 1_000_000_000_000).to_string()).await;
    assert!(is_expired(&event), "{event:?}");
    assert!(matches!(server.backup(Vec::new()).await, Err(BackupError::InMemory)));
}

#[tokio::test]
async fn a_stopped_store_is_backed_up_too_and_comes_back_with_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    assert!(matches!(
        backup::of_folder(&store, &SystemClock, Vec::new()),
        Err(BackupError::NoStore(path)) if path == store
    ));
    assert!(!store.exists());
    let server = open(&store, Options::default()).await;
    let secrets: Api<Secret> = Api::default_namespaced(client(&server, "b"));
    let secret = serde_json::from_value(json!({
        "metadata": { "name": "s" }, "stringData": { "word": "plaintext" },
    }));
    let made = secrets.create(&PostParams::default(), &secret.unwrap()).await.unwrap();
    drop((server, secrets));
    let deadline = Instant::now() + Duration::from_secs(20);
    let (summary, bytes) = loop {
        match backup::of_folder(&store, &SystemClock, Vec::new()) {
            Ok(done) => break done,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!((summary.planes, summary.secrets), (2, 1));
    let place = folder.path().join("elsewhere");
    let key = store.join("secrets.key");
    backup::restore(&place, Some(&key), &SystemClock, &bytes[..]).unwrap();
    let server = open(&place, Options::default()).await;
    let secrets: Api<Secret> = Api::default_namespaced(client(&server, "b"));
    assert_eq!(secrets.get("s").await.unwrap(), made);
}

/// Every file below a folder, with its content.
fn content(folder: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path(), Options::default()).await;
    maps(&server, "a").create(&PostParams::default(), &map("x", 1)).await.unwrap();
    drop(server);
    // Opened once more and closed, so that nothing is under way in the background.
    drop(open(folder.path(), Options::default()).await);
    let deadline = Instant::now() + Duration::from_secs(20);
    while backup::of_folder(folder.path(), &SystemClock, std::io::sink()).is_err() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::write(folder.path().join("format"), "2\n").unwrap();
    std::fs::remove_file(folder.path().join("secrets.key")).unwrap();
    let before = content(folder.path());
    let open = || ApiServer::open(Options::default(), folder.path()).map(drop);
    let error = open().unwrap_err();
    assert!(matches!(error, StorageError::NewerFormat { found: 2, .. }), "{error:?}");
    let text = error.to_string();
    for part in [folder.path().to_str().unwrap(), "format 2", "up to 1", "a newer one"] {
        assert!(text.contains(part), "{text}");
    }
    let backup = backup::of_folder(folder.path(), &SystemClock, std::io::sink());
    assert!(matches!(backup, Err(BackupError::Storage(StorageError::NewerFormat { .. }))));
    assert!(content(folder.path()) == before, "a refused store has changed");
    std::fs::write(folder.path().join("format"), "zero\n").unwrap();
    assert!(matches!(open(), Err(StorageError::Damaged { .. })));
    std::fs::write(folder.path().join("format"), "1\n").unwrap();
    assert!(matches!(open(), Err(StorageError::KeyMissing(_))), "a new key would open nothing");
}
