use serde_json::json;

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
