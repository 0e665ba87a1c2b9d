//! What was acknowledged is there, whatever happens to the process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use compute_apiserver::{ApiServer, Identity, Options, PlaneName, StorageError};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinSet;

const KILLS: usize = 100;

async fn reopen(folder: &Path) -> (ApiServer, Client) {
    // The lock on the folder goes with the process that held it, not a moment earlier.
    let deadline = Instant::now() + Duration::from_secs(20);
    let server = loop {
        match ApiServer::open(Options::default(), folder) {
            Ok(server) => break server,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let template = server.template(&[]).await.unwrap();
    let plane = PlaneName::new("demo").unwrap();
    server.create_plane(plane.clone(), &template).await.unwrap();
    let client = Client::new(server.service(&plane, Identity::superuser("tester")), "default");
    (server, client)
}

/// The program that writes; cargo builds examples along with tests.
fn writers() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/durable_writers");
    assert!(
        program.exists(),
        "{} is missing: run `cargo build -p compute-apiserver --examples`",
        program.display()
    );
    program
}

/// What a name must be after a crash: the last acknowledged write of it, or a later one.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    revision: u64,
    round: Option<u64>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_kills_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut newest = 0;
    let mut writes = 0;
    for kill in 0..KILLS {
        let mut child = Command::new(writers())
            .args([folder.path().to_str().unwrap(), "8"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged: BTreeMap<(String, String), Acknowledged> = BTreeMap::new();
        let mut note = |line: String| {
            let [kind, name, revision, round] = line.split(' ').collect::<Vec<_>>()[..] else { return };
            let entry = Acknowledged { revision: revision.parse().unwrap(), round: round.parse().ok() };
            acknowledged.insert((kind.to_owned(), name.to_owned()), entry);
            writes += 1;
        };
        // At a moment that no schedule of ours knows: after some number of lines, in the middle of whatever comes next.
        for _ in 0..(kill * 37) % 400 + 1 {
            note(lines.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        lines.map_while(Result::ok).for_each(&mut note);
        child.wait().unwrap();

        let (server, client) = reopen(folder.path()).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let secrets: Api<Secret> = Api::default_namespaced(client.clone());
        let found = maps.list(&ListParams::default()).await.unwrap();
        let revision: u64 = found.metadata.resource_version.unwrap().parse().unwrap();
        assert!(revision >= newest, "revisions went back from {newest} to {revision}");
        newest = revision;
        let mut present: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
        for map in &found.items {
            let round = map.data.as_ref().unwrap()["round"].parse::<u64>().unwrap();
            let filler = map.data.as_ref().unwrap().get("filler").map_or(0, String::len);
            assert_eq!(filler as u64, round % 2048, "half of a write is there");
            let revision = map.resource_version().unwrap().parse().unwrap();
            present.insert(("map".to_owned(), map.name_any()), (revision, round));
        }
        for secret in secrets.list(&ListParams::default()).await.unwrap().items {
            let text = String::from_utf8(secret.data.as_ref().unwrap()["round"].0.clone()).unwrap();
            let revision = secret.resource_version().unwrap().parse().unwrap();
            let round = text.strip_prefix("plaintext-").unwrap().parse().unwrap();
            present.insert(("secret".to_owned(), secret.name_any()), (revision, round));
        }
        for (key, acknowledged) in &acknowledged {
            match (acknowledged.round, present.get(key)) {
                (Some(round), Some((revision, found))) => {
                    assert!(
                        *revision >= acknowledged.revision && *found >= round,
                        "kill {kill}: {key:?} is at {revision} ({found}), {acknowledged:?} was acknowledged"
                    );
                }
                // One write per writer may be on its way when the process dies. The next one of a map comes five rounds
                // later, and is its deletion in every seventh.
                (Some(round), None) => assert!(
                    key.0 == "map" && (round + 5) % 7 == 3,
                    "kill {kill}: {key:?} {acknowledged:?} is gone"
                ),
                (None, _) => {}
            }
        }
        // A watch from before goes on or is told that it cannot.
        let stale = WatchParams::default().timeout(1);
        let mut stream = std::pin::pin!(maps.watch(&stale, "1").await.unwrap());
        let first = futures::StreamExt::next(&mut stream).await.unwrap();
        assert!(matches!(&first, Ok(WatchEvent::Error(status)) if status.code == 410), "{first:?}");
        drop((server, client));
    }
    assert!(writes > KILLS * 100, "{writes} writes in all");
    assert_no_plaintext(folder.path());
}

/// No file of the store has a secret's value in it.
fn assert_no_plaintext(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_plaintext(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        // As JSON has it: base64 of "plaintext-".
        for needle in [&b"plaintext-"[..], b"cGxhaW50ZXh0L"] {
            assert!(
                !bytes.windows(needle.len()).any(|window| window == needle),
                "{} has a secret",
                path.display()
            );
        }
    }
}

#[tokio::test]
async fn everything_is_found_again_and_what_was_dropped_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "things", "kind": "Thing" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": { "type": "object", "properties": {
                    "size": { "type": "integer" },
                } } },
            } } }],
        },
    });
    let mut newer = crd.clone();
    newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mode"] =
        json!({ "type": "string", "default": "auto" });
    let name = |name: &str| PlaneName::new(name).unwrap();
    let things = kube::discovery::ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.com/v1".to_owned(),
        kind: "Thing".to_owned(),
        plural: "things".to_owned(),
    };
    let uid = {
        let server = ApiServer::open(Options::default(), folder.path()).unwrap();
        let template = server.template(std::slice::from_ref(&crd)).await.unwrap();
        for plane in ["a", "b", "gone"] {
            server.create_plane(name(plane), &template).await.unwrap();
        }
        assert!(server.drop_plane(&name("gone")).await.unwrap());
        let client = Client::new(server.service(&name("a"), Identity::superuser("t")), "default");
        let api: Api<kube::core::DynamicObject> = Api::default_namespaced_with(client.clone(), &things);
        let thing =
            serde_json::from_value(json!({ "metadata": { "name": "t" }, "spec": { "size": 1 } })).unwrap();
        api.create(&PostParams::default(), &thing).await.unwrap();
        let child = json!({ "metadata": { "name": "child", "ownerReferences": [{
            "apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": api.get("t").await.unwrap().uid().unwrap(),
        }] } });
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.create(&PostParams::default(), &serde_json::from_value(child).unwrap()).await.unwrap();
        // A template's own CRD can be removed from one plane.
        let other = Client::new(server.service(&name("b"), Identity::superuser("t")), "default");
        let crds: Api<
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        > = Api::all(other);
        kube::runtime::wait::delete::delete_and_finalize(
            crds,
            "things.example.com",
            &DeleteParams::default(),
        )
        .await
        .unwrap();
        let namespaces: Api<Namespace> = Api::all(client);
        namespaces.get("default").await.unwrap().uid().unwrap()
    };
    let server = loop {
        match ApiServer::open(Options::default(), folder.path()) {
            Ok(server) => break server,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(server.found_planes(), [name("a"), name("b")]);
    let template = server.template(&[newer]).await.unwrap();
    for plane in ["a", "b"] {
        server.create_plane(name(plane), &template).await.unwrap();
    }
    assert_eq!(server.found_planes(), []);
    let client = Client::new(server.service(&name("a"), Identity::superuser("t")), "default");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert_eq!(namespaces.get("default").await.unwrap().uid().unwrap(), uid, "the same namespace as before");
    let api: Api<kube::core::DynamicObject> = Api::default_namespaced_with(client.clone(), &things);
    let thing = api.get("t").await.unwrap();
    assert_eq!(thing.data["spec"], json!({ "size": 1, "mode": "auto" }), "as the newer definition has it");
    // Owners are known again: the child goes with its owner.
    api.delete("t", &DeleteParams::default()).await.unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let deadline = Instant::now() + Duration::from_secs(10);
    while maps.get_opt("child").await.unwrap().is_some() {
        assert!(Instant::now() < deadline, "the child outlives its owner");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = Client::new(server.service(&name("b"), Identity::superuser("t")), "default");
    let absent: Api<kube::core::DynamicObject> = Api::default_namespaced_with(other, &things);
    assert!(absent.list(&ListParams::default()).await.is_err(), "the plane has removed that kind");
}

#[test]
fn a_store_that_cannot_be_trusted_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    drop(ApiServer::open(Options::default(), folder.path()).unwrap());
    let key = folder.path().join("secrets.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = || {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match ApiServer::open(Options::default(), folder.path()) {
                Err(StorageError::Engine(_)) if Instant::now() < deadline => {}
                result => break result.map(drop),
            }
        }
    };
    assert!(matches!(open(), Err(StorageError::KeyMode(_))));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(open().is_ok());
    std::fs::write(&key, b"short").unwrap();
    assert!(matches!(open(), Err(StorageError::KeySize(_))));
}

/// Who collects what lost its owner decides by what can be read. A write that is on its way to the disk overtakes it: that is no reason to leave
/// the object behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_while_it_is_collected_goes_all_the_same() {
    const DEPENDENTS: usize = 32;
    const WRITES: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let (_server, client) = reopen(folder.path()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let post = PostParams::default();
    let named = |name: &str| ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let owner = maps.create(&post, &named("owner")).await.unwrap();
    let mut writers = JoinSet::new();
    for number in 0..DEPENDENTS {
        let mut dependent = named(&format!("dependent-{number}"));
        dependent.metadata.owner_references = owner.owner_ref(&()).map(|reference| vec![reference]);
        maps.create(&post, &dependent).await.unwrap();
        let (maps, name) = (maps.clone(), dependent.name_any());
        writers.spawn(async move {
            for write in 0..WRITES {
                let patch = Patch::Merge(json!({ "data": { "write": write.to_string() } }));
                // It may be gone, and that is what this is about.
                let _ = maps.patch(&name, &PatchParams::default(), &patch).await;
            }
        });
    }
    maps.delete("owner", &DeleteParams::background()).await.unwrap();
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let left = maps.list(&ListParams::default()).await.unwrap().items;
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{} are left", left.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
