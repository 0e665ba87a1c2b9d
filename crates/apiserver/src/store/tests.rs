use jiff::Timestamp;
use serde_json::json;

use super::disk::Faults;
use super::*;

fn store() -> Arc<PlaneStore> {
    Arc::new(PlaneStore::new("p", Arc::new(Revisions::starting_at(100))))
}

fn draft(namespace: &str, name: &str, owner: Option<&str>) -> Draft {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|uid| json!({"apiVersion": "v1", "kind": "X", "name": "o", "uid": uid}))
        .collect();
    Draft::new(
        &json!({"metadata": {"namespace": namespace, "name": name, "uid": name, "ownerReferences": owners}}),
        &[],
    )
}

fn things() -> GroupResource {
    GroupResource::new("g", "things")
}

async fn write(
    store: &Arc<PlaneStore>,
    name: &str,
    expect: Expect,
    delete: bool,
) -> Result<Arc<Event>, CommitError> {
    store
        .commit(Write {
            resource: things(),
            expect,
            draft: draft("ns", name, None),
            delete,
            guards: Vec::new(),
        })
        .await
}

#[tokio::test]
async fn a_write_takes_effect_only_on_what_it_expects() {
    let store = store();
    let added = write(&store, "a", Expect::Absent, false).await.unwrap();
    assert_eq!((added.change, added.revision()), (Change::Added, 101));
    assert_eq!(write(&store, "a", Expect::Absent, false).await.unwrap_err(), CommitError::Stale);
    assert_eq!(write(&store, "a", Expect::At(7), false).await.unwrap_err(), CommitError::Stale);
    assert_eq!(write(&store, "a", Expect::At(101), false).await.unwrap().change, Change::Modified);
    assert_eq!(write(&store, "a", Expect::At(102), true).await.unwrap().change, Change::Deleted);
    assert_eq!(write(&store, "a", Expect::At(103), true).await.unwrap_err(), CommitError::Stale);
    assert_eq!(store.revision(), 103);
}

#[tokio::test]
async fn a_past_revision_can_be_listed_until_it_leaves_the_window() {
    let store = store();
    for name in ["a", "b", "c"] {
        write(&store, name, Expect::Absent, false).await.unwrap();
    }
    write(&store, "b", Expect::At(102), true).await.unwrap();
    write(&store, "d", Expect::Absent, false).await.unwrap();
    let at = |revision: u64, after: Option<&ObjectKey>, limit: usize| {
        let page = Page { namespace: None, revision, after, limit };
        let (objects, more, _) = store.page(&things(), page, |_| true)?;
        Ok::<_, TooOld>((objects.iter().map(|o| o.meta.key.name.to_string()).collect::<Vec<_>>(), more))
    };
    let names = |revision: u64| at(revision, None, 0).unwrap().0;
    assert_eq!(names(101), ["a"]);
    assert_eq!(names(103), ["a", "b", "c"]);
    assert_eq!(names(104), ["a", "c"]);
    assert_eq!(names(105), ["a", "c", "d"]);
    assert_eq!(at(103, None, 2).unwrap(), (vec!["a".to_owned(), "b".to_owned()], 1));
    assert_eq!(at(103, Some(&ObjectKey::new("ns", "b")), 2).unwrap(), (vec!["c".to_owned()], 0));
    assert_eq!(names(0), names(105));
    assert!(at(99, None, 0).is_err(), "older than the plane");
    let mut newest = 101;
    for _ in 0..2000 {
        newest = write(&store, "a", Expect::At(newest), false).await.unwrap().revision();
    }
    assert!(
        store
            .page(&things(), Page { namespace: None, revision: 105, after: None, limit: 0 }, |_| true)
            .is_err()
    );
    assert!(store.changes_after(&things(), 105, 10).is_err());
    assert!(store.changes_after(&things(), newest - 5, 10).unwrap().0.len() == 5);
}

#[tokio::test]
async fn a_plane_from_a_template_shares_until_it_writes() {
    let template = store();
    write(&template, "a", Expect::Absent, false).await.unwrap();
    let plane = Arc::new(PlaneStore::from_template("q", &template, None));
    let key = ObjectKey::new("ns", "a");
    assert!(Arc::ptr_eq(&template.get(&things(), &key).unwrap(), &plane.get(&things(), &key).unwrap()));
    write(&plane, "a", Expect::At(101), true).await.unwrap();
    assert!(plane.get(&things(), &key).is_none() && template.get(&things(), &key).is_some());
}

#[tokio::test]
async fn dependents_follow_owner_references() {
    let store = store();
    let put = |owner: Option<&'static str>, expect: Expect, delete: bool| {
        store.commit(Write {
            resource: things(),
            expect,
            draft: draft("ns", "a", owner),
            delete,
            guards: Vec::new(),
        })
    };
    put(Some("u1"), Expect::Absent, false).await.unwrap();
    assert_eq!(store.dependents("u1").len(), 1);
    put(Some("u2"), Expect::At(101), false).await.unwrap();
    assert_eq!((store.dependents("u1").len(), store.dependents("u2").len()), (0, 1));
    put(Some("u2"), Expect::At(102), true).await.unwrap();
    assert_eq!(store.dependents("u2").len(), 0);
}

#[tokio::test]
async fn guards_hold_at_the_instant_of_the_write() {
    let store = store();
    let guarded = |guard: Guard| {
        store.commit(Write {
            resource: things(),
            expect: Expect::Absent,
            draft: draft("ns", "x", None),
            delete: false,
            guards: vec![guard],
        })
    };
    let absent = Guard::Living(GroupResource::new("", "namespaces"), ObjectKey::new("", "ns"));
    assert_eq!(guarded(absent).await.unwrap_err(), CommitError::Guarded);
    guarded(Guard::EmptyNamespace("ns".to_owned())).await.unwrap();
    assert_eq!(write(&store, "y", Expect::Absent, false).await.unwrap().change, Change::Added);
    let delete_with = |guard: Guard| {
        store.commit(Write {
            resource: things(),
            expect: Expect::At(101),
            draft: draft("ns", "x", None),
            delete: true,
            guards: vec![guard],
        })
    };
    assert_eq!(delete_with(Guard::EmptyTable(things())).await.unwrap_err(), CommitError::Guarded);
}

#[tokio::test]
async fn a_dropped_plane_takes_no_writes_and_ends_its_watches() {
    let store = store();
    let mut woken = store.subscribe(&things());
    store.clear();
    assert!(woken.changed().await.is_err());
    assert!(store.subscribe(&things()).changed().await.is_err());
    assert_eq!(write(&store, "a", Expect::Absent, false).await.unwrap_err(), CommitError::PlaneGone);
}

fn now() -> Timestamp {
    crate::clock::Clock::now(&crate::clock::SystemClock)
}

/// A durable plane over an empty template, with what was found of it.
async fn durable(path: &std::path::Path, faults: &Faults) -> Arc<PlaneStore> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let (storage, revisions) = loop {
        // The store before ends in the background when its last user is gone.
        match Storage::open_with(path, now(), faults.clone()) {
            Ok(opened) => break opened,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    };
    let template = PlaneStore::new("template", revisions);
    let plane = Arc::new(PlaneStore::from_template("p", &template, Some(&storage)));
    for (resource, objects) in storage.take_plane("p").await.unwrap().unwrap_or_default() {
        plane.restore(resource, objects, &[], None).unwrap();
    }
    plane
}

async fn commit_owned(store: Arc<PlaneStore>, write: Write) -> Result<Arc<Event>, CommitError> {
    store.commit(write).await
}

fn names(store: &PlaneStore) -> Vec<String> {
    store.list(&things(), None, |_| true).0.iter().map(|object| object.meta.key.name.to_string()).collect()
}

#[tokio::test]
async fn a_failing_disk_gives_errors_and_no_lies_and_then_goes_on() {
    for fault in [disk::Fault::Before, disk::Fault::After] {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let plane = durable(folder.path(), &faults).await;
        let first = write(&plane, "a", Expect::Absent, false).await.unwrap().revision();
        faults.set(Some(fault));
        assert_eq!(write(&plane, "b", Expect::Absent, false).await.unwrap_err(), CommitError::NotDurable);
        assert_eq!(write(&plane, "a", Expect::At(first), true).await.unwrap_err(), CommitError::NotDurable);
        assert_eq!(names(&plane), ["a"], "{fault:?}: what is not durable is not shown");
        assert_eq!(plane.revision(), first);

        faults.set(None);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let last = loop {
            match write(&plane, "c", Expect::Absent, false).await {
                Ok(event) => break event.revision(),
                Err(error) => assert_eq!(error, CommitError::NotDurable),
            }
            assert!(std::time::Instant::now() < deadline, "the store does not recover");
        };
        assert!(last > first);
        assert_eq!(names(&plane), ["a", "c"]);
        drop(plane);
        let again = durable(folder.path(), &faults).await;
        assert_eq!(names(&again), ["a", "c"], "{fault:?}: what was refused has not come back");
        assert!(again.revision() >= last);
    }
}

#[tokio::test]
async fn many_writers_share_a_sync_and_each_gets_its_own_answer() {
    let folder = tempfile::tempdir().unwrap();
    let plane = durable(folder.path(), &Faults::default()).await;
    // All at once: one of each pair of rivals must lose, though neither is shown when they are checked.
    let rivals = (0..200).map(|i| {
        let plane = plane.clone();
        tokio::spawn(async move { write(&plane, &format!("n{:03}", i / 2), Expect::Absent, false).await })
    });
    let mut results = Vec::new();
    for rival in rivals.collect::<Vec<_>>() {
        results.push(rival.await.unwrap());
    }
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 100);
    assert!(results.iter().all(|result| !matches!(result, Err(error) if *error != CommitError::Stale)));
    assert_eq!(names(&plane).len(), 100);
    let (events, _) = plane.changes_after(&things(), plane.revision() - 100, 200).unwrap();
    assert!(
        events.windows(2).all(|pair| pair[0].revision() < pair[1].revision()),
        "in the order of their revisions"
    );
}

#[tokio::test]
async fn what_loses_to_a_write_that_fails_is_not_told_that_it_came_too_late() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let plane = durable(folder.path(), &faults).await;
    let rivals = || {
        let one = |_| {
            let plane = plane.clone();
            tokio::spawn(async move { write(&plane, "a", Expect::Absent, false).await.map(|_| ()) })
        };
        futures::future::join_all((0..50).map(one).collect::<Vec<_>>())
    };
    // The first of them fails with the disk, so that the others are not too late.
    faults.set(Some(disk::Fault::Before));
    for rival in rivals().await {
        assert_eq!(rival.unwrap(), Err(CommitError::NotDurable));
    }
    faults.set(None);
    let results: Vec<_> = rivals().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(results.iter().filter(|done| done.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|done| **done == Err(CommitError::Stale)).count(), 49);
}

#[test]
fn writes_are_shown_together_up_to_a_number_and_a_size_and_of_one_plane() {
    let (one, other) = (store(), store());
    let staged = |store: &Arc<PlaneStore>, bytes: usize| {
        let object = json!({"metadata": {"name": "a", "uid": "u"}, "data": "x".repeat(bytes)});
        let (expect, draft) = (Expect::Absent, Draft::new(&object, &[]));
        let write = Write { resource: things(), expect, draft, delete: false, guards: Vec::new() };
        store.stage(write, &Accepted::default()).unwrap()
    };
    let together = |sizes: &[usize]| {
        let all: Vec<_> = sizes.iter().map(|bytes| staged(&one, *bytes)).collect();
        journal::shown_together(&all)
    };
    let third = journal::SHOWN_BYTES / 3;
    assert_eq!(together(&[1; 3]), 3);
    assert_eq!(together(&[1; journal::SHOWN_AT_ONCE + 1]), journal::SHOWN_AT_ONCE);
    assert_eq!(together(&[third; 4]), 2, "the third does not fit with what is around it");
    assert_eq!(together(&[journal::SHOWN_BYTES * 2, 1]), 1, "what is too large is shown alone");
    assert_eq!(journal::shown_together(&[staged(&one, 1), staged(&other, 1), staged(&one, 1)]), 1);
}

#[tokio::test]
async fn what_watchers_get_is_made_once_and_forgotten_with_the_next_change() {
    let store = store();
    let made = std::cell::Cell::new(0);
    let line = |event: &Event| {
        event.line(|| {
            made.set(made.get() + 1);
            bytes::Bytes::from_static(b"line")
        })
    };
    let first = write(&store, "a", Expect::Absent, false).await.unwrap();
    assert_eq!((line(&first), line(&first), made.get()), ("line".into(), "line".into(), 1));
    let second = write(&store, "b", Expect::Absent, false).await.unwrap();
    assert_eq!((line(&first), line(&first), made.get()), ("line".into(), "line".into(), 2));
    assert_eq!((line(&second), line(&second), made.get()), ("line".into(), "line".into(), 3));
}

#[tokio::test]
async fn guards_see_writes_that_are_not_shown_yet() {
    let folder = tempfile::tempdir().unwrap();
    let plane = durable(folder.path(), &Faults::default()).await;
    let spaces = GroupResource::new("", "namespaces");
    let space = |expect: Expect, delete: bool, guards: Vec<Guard>| {
        let draft = Draft::new(&json!({"metadata": {"name": "ns", "uid": "u"}}), &[]);
        commit_owned(plane.clone(), Write { resource: spaces.clone(), expect, draft, delete, guards })
    };
    let made = space(Expect::Absent, false, Vec::new()).await.unwrap().revision();
    // In one batch: an object comes into the namespace, and the namespace goes if it is empty.
    for round in 0..50 {
        let thing = commit_owned(
            plane.clone(),
            Write {
                resource: things(),
                expect: Expect::Absent,
                draft: draft("ns", &format!("t{round}"), None),
                delete: false,
                guards: vec![Guard::Living(spaces.clone(), ObjectKey::new("", "ns"))],
            },
        );
        let gone = space(Expect::At(made), true, vec![Guard::EmptyNamespace("ns".to_owned())]);
        let (thing, gone) = tokio::join!(tokio::spawn(thing), tokio::spawn(gone));
        let (thing, gone) = (thing.unwrap(), gone.unwrap());
        assert!(!(thing.is_ok() && gone.is_ok()), "an object outlives its namespace");
        if gone.is_ok() {
            assert_eq!(names(&plane), Vec::<String>::new());
            return;
        }
    }
}

#[tokio::test]
async fn a_plane_that_could_not_be_made_or_dropped_does_not_come_back() {
    for fault in [disk::Fault::Before, disk::Fault::After] {
        let folder = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let (storage, revisions) = Storage::open_with(folder.path(), now(), faults.clone()).unwrap();
        let template = Arc::new(PlaneStore::new("template", revisions));
        let of_template = write(&template, "t", Expect::Absent, false).await.unwrap().revision();
        let make = |name: &str| Arc::new(PlaneStore::from_template(name, &template, Some(&storage)));
        storage.take_plane("kept").await.unwrap();
        storage.take_plane("dropped").await.unwrap();
        let (kept, dropped) = (make("kept"), make("dropped"));
        write(&dropped, "a", Expect::Absent, false).await.unwrap();

        faults.set(Some(fault));
        let failed = write(&dropped, "t", Expect::At(of_template), true).await;
        assert_eq!(failed.unwrap_err(), CommitError::NotDurable);
        assert_eq!(storage.take_plane("new").await.unwrap_err(), CommitError::NotDurable);
        dropped.clear();
        assert_eq!(storage.drop_plane("dropped").await.unwrap_err(), CommitError::NotDurable);
        assert!(matches!(
            storage.backup(now(), std::io::sink()).await,
            Err(backup::BackupError::Unavailable)
        ));
        faults.set(None);
        let (summary, _) = storage.backup(now(), std::io::sink()).await.unwrap();
        assert_eq!((summary.planes, summary.objects), (1, 0), "{fault:?}: what was refused is in a backup");
        write(&kept, "a", Expect::Absent, false).await.unwrap();
        drop((storage, template, kept, dropped));

        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let (storage, _) = loop {
            match Storage::open_with(folder.path(), now(), faults.clone()) {
                Ok(opened) => break opened,
                Err(error) => assert!(std::time::Instant::now() < deadline, "{error:?}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        };
        assert_eq!(storage.found_planes(), ["kept"], "{fault:?}");
    }
}
