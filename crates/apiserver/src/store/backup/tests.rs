use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::clock::SystemClock;
use crate::store::{Draft, Expect, GroupResource, ObjectKey, PlaneStore, Storage, Write as Change};

fn now() -> Timestamp {
    SystemClock.now()
}

async fn put(plane: &Arc<PlaneStore>, resource: &str, name: &str, note: &str) -> u64 {
    let value = json!({ "metadata": { "namespace": "ns", "name": name }, "note": note });
    let change = Change {
        resource: GroupResource::new("", resource),
        expect: Expect::Absent,
        draft: Draft::new(&value, &[]),
        delete: false,
        guards: Vec::new(),
    };
    plane.commit(change).await.unwrap().revision()
}

/// A store with two planes, of which the first has a Secret if `secret`, and its backup.
async fn backed_up(folder: &Path, secret: bool) -> (BackupSummary, Vec<u8>) {
    let (storage, revisions) = Storage::open(folder, now()).unwrap();
    let template = PlaneStore::new("template", revisions);
    for name in ["a", "b"] {
        storage.take_plane(name).await.unwrap();
        let plane = Arc::new(PlaneStore::from_template(name, &template, Some(&storage)));
        put(&plane, "configmaps", "map", name).await;
        if secret && name == "a" {
            put(&plane, "secrets", "secret", "hidden-value").await;
        }
    }
    storage.backup(now(), Vec::new()).await.unwrap()
}

/// What is in a folder, by plane and name.
async fn found(folder: &Path) -> Vec<(String, String, String)> {
    let (storage, _) = Storage::open(folder, now()).unwrap();
    let mut found = Vec::new();
    for plane in storage.found_planes() {
        for (_, objects) in storage.take_plane(&plane).await.unwrap().unwrap() {
            for (key, object) in objects {
                let value: serde_json::Value = serde_json::from_slice(&object.unwrap().1).unwrap();
                found.push((plane.clone(), key.name.to_string(), value["note"].as_str().unwrap().to_owned()));
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn restored(place: &TempDir, key: Option<&Path>, bytes: &[u8]) -> Result<BackupSummary, BackupError> {
    restore(&place.path().join("store"), key, &SystemClock, bytes)
}

#[tokio::test]
async fn a_backup_becomes_the_same_store() {
    let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (summary, bytes) = backed_up(folder.path(), true).await;
    assert_eq!((summary.planes, summary.objects, summary.secrets), (2, 3, 1));
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert!(!bytes.windows(12).any(|window| window == b"hidden-value"), "a secret is readable");

    let key = folder.path().join("secrets.key");
    assert_eq!(restored(&place, Some(&key), &bytes).unwrap(), summary);
    assert_eq!(files(place.path()), ["store"]);
    let store = place.path().join("store");
    assert_eq!(std::fs::metadata(store.join("secrets.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let text = |plane: &str, name: &str, note: &str| (plane.to_owned(), name.to_owned(), note.to_owned());
    assert_eq!(
        found(&store).await,
        [text("a", "map", "a"), text("a", "secret", "hidden-value"), text("b", "map", "b")]
    );
    // A copy is the same, byte for byte, and says the same of itself.
    assert_eq!(copy(&bytes[..], Vec::new()).unwrap(), (summary, bytes));
}

#[tokio::test]
async fn the_key_is_needed_for_secrets_alone() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, with) = backed_up(folder.path(), true).await;
    let (_, without) = backed_up(other.path(), false).await;
    let other_key = other.path().join("secrets.key");

    let place = tempfile::tempdir().unwrap();
    assert!(matches!(restored(&place, None, &with), Err(BackupError::KeyNeeded)));
    assert!(matches!(restored(&place, Some(&other_key), &with), Err(BackupError::OtherKey(_))));
    let missing = folder.path().join("no.key");
    assert!(matches!(restored(&place, Some(&missing), &with), Err(BackupError::Storage(_))));
    assert_eq!(files(place.path()), Vec::<String>::new(), "nothing is left of a refused restore");

    for key in [None, Some(folder.path().join("secrets.key"))] {
        let place = tempfile::tempdir().unwrap();
        restored(&place, key.as_deref(), &without).unwrap();
        assert_eq!(found(&place.path().join("store")).await.len(), 2);
        let made = std::fs::read(place.path().join("store/secrets.key")).unwrap();
        assert_ne!(made, std::fs::read(&other_key).unwrap(), "a new store has a new key");
    }
}

#[tokio::test]
async fn a_backup_that_is_not_whole_is_refused() {
    let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, bytes) = backed_up(folder.path(), false).await;
    // Reading alone shows all of it; each is read to the end, so that every byte counts.
    let read = |bytes: &[u8]| copy(bytes, std::io::sink()).map(|(summary, _)| summary);
    for length in 0..bytes.len() {
        assert!(
            matches!(read(&bytes[..length]), Err(BackupError::Truncated | BackupError::NotABackup)),
            "{length}"
        );
    }
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 0x40;
        assert!(read(&altered).is_err(), "byte {at} may be anything");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(read(&longer), Err(BackupError::Altered)));
    // And so it is with a restore, which leaves nothing.
    for bad in [&bytes[..bytes.len() - 1], &bytes[..bytes.len() / 2], &longer[..], b"", b"something else"] {
        assert!(restored(&place, None, bad).is_err());
        assert_eq!(files(place.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_newer_backup_is_refused_by_both_versions_names() {
    let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, bytes) = backed_up(folder.path(), false).await;
    for (at, what) in [(8, "backup"), (12, "store")] {
        let mut newer = bytes.clone();
        newer[at..at + 4].copy_from_slice(&7u32.to_be_bytes());
        let error = restored(&place, None, &newer).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("{what} format 7")) && text.contains("up to 1"), "{text}");
        assert!(text.contains("newer one"), "{text}");
        assert_eq!(files(place.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn only_an_empty_place_is_taken_and_what_a_crash_left_goes() {
    let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, bytes) = backed_up(folder.path(), false).await;
    let store = place.path().join("store");
    std::fs::create_dir(&store).unwrap();
    std::fs::create_dir(place.path().join("store.restoring")).unwrap();
    std::fs::write(place.path().join("store.restoring/half"), b"x").unwrap();
    std::fs::write(store.join("mine"), b"x").unwrap();
    assert!(matches!(restored(&place, None, &bytes), Err(BackupError::NotEmpty(_))));
    assert_eq!(files(&store), ["mine"]);
    std::fs::remove_file(store.join("mine")).unwrap();
    restored(&place, None, &bytes).unwrap();
    assert_eq!(files(place.path()), ["store"]);
    assert!(!store.join("half").exists());
}

#[test]
fn a_lie_about_lengths_costs_no_memory() {
    let header = Header { revision: 1, taken: now(), key: [0; 32] };
    let (_, mut bytes) = BackupWriter::start(Vec::new(), header).unwrap().finish().unwrap();
    let end = bytes.len() - 44;
    bytes.truncate(end);
    for (key, value) in [(1u32, u32::MAX - 1), (u32::MAX - 1, 1), (1, 60 << 20)] {
        let claim = [&bytes[..], &key.to_be_bytes(), &value.to_be_bytes(), b"p"].concat();
        assert!(copy(&claim[..], std::io::sink()).is_err());
    }
}

#[tokio::test]
async fn a_backup_is_one_point_in_time_and_ends_with_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let (storage, revisions) = Storage::open(folder.path(), now()).unwrap();
    let template = PlaneStore::new("template", revisions);
    storage.take_plane("a").await.unwrap();
    let plane = Arc::new(PlaneStore::from_template("a", &template, Some(&storage)));
    let before = put(&plane, "configmaps", "before", "").await;
    let (view, key) = storage.journal.view().await.unwrap();
    put(&plane, "configmaps", "after", "").await;
    let (summary, bytes) = of_view(&view, key, now(), Vec::new()).unwrap();
    assert_eq!((summary.objects, summary.revision), (1, before));
    assert!(!bytes.windows(5).any(|window| window == b"after"));
    assert!(plane.get(&GroupResource::new("", "configmaps"), &ObjectKey::new("ns", "after")).is_some());

    drop((storage, plane, template));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !matches!(of_view(&view, key, now(), Vec::new()), Err(BackupError::Interrupted)) {
        assert!(std::time::Instant::now() < deadline, "the view outlives its store");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}
