//! The stack itself, while it is up: `cargo xtask realstack test` runs this first. What fails here is no fault of what is tested on it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use compute_realstack::{Credential, Running, STATE_VARIABLE};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind, ObjectMeta};
use kube::{Client, Error};
use tokio::time::{Instant, sleep};

/// Long enough for a machine that has other things to do.
const WITHIN: Duration = Duration::from_secs(300);

fn running() -> Running {
    let dir = std::env::var_os(STATE_VARIABLE).map(PathBuf::from);
    Running::open(&dir.expect("COMPUTE_REALSTACK names the state folder of a stack that is up")).unwrap()
}

/// Waits until `check` gives a value.
async fn eventually<T, F: Future<Output = Result<T, String>>>(what: &str, check: impl Fn() -> F) -> T {
    let deadline = Instant::now() + WITHIN;
    loop {
        match check().await {
            Ok(value) => return value,
            Err(why) if Instant::now() >= deadline => panic!("{what}: {why}"),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn namespace(client: &Client, prefix: &str) -> String {
    let namespace = Namespace {
        metadata: ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    let made =
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    made.metadata.name.unwrap()
}

/// Until a namespace of the hub is in the cell: Karmada takes namespaces there by itself.
async fn arrives(cell: &Client, name: &str) {
    let api = Api::<Namespace>::all(cell.clone());
    eventually("the namespace in the cell", || async {
        api.get(name).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

async fn goes(hub: &Client, name: &str) {
    Api::<Namespace>::all(hub.clone()).delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn servers_tell_the_version_that_was_built_and_take_signed_users_at_their_word() {
    let running = running();
    let cells = running.cells().values().map(|cell| &cell.server);
    for server in [running.management(), running.hub()].into_iter().chain(cells) {
        let client = server.client().unwrap();
        // Another test stops one of them for a moment.
        let version = eventually("the version", || async {
            client.apiserver_version().await.map_err(|error| error.to_string())
        })
        .await;
        assert_eq!(version.git_version, running.versions().kubernetes);
    }

    let server = running.management();
    let certificate = server.certificate("live-reader", None).unwrap();
    let reader = Api::<Namespace>::all(server.client_as(Credential::Certificate(&certificate)).unwrap());
    let refused = reader.get("default").await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.code == 403), "{refused}");
    let binding = ClusterRoleBinding {
        metadata: ObjectMeta { generate_name: Some("live-".into()), ..ObjectMeta::default() },
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".into(),
            kind: "ClusterRole".into(),
            name: "view".into(),
        },
        subjects: Some(vec![Subject {
            kind: "User".into(),
            name: "live-reader".into(),
            ..Subject::default()
        }]),
    };
    let bindings = Api::<ClusterRoleBinding>::all(server.client().unwrap());
    let binding = bindings.create(&PostParams::default(), &binding).await.unwrap();
    eventually("what the role grants", || async {
        reader.get("default").await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    bindings.delete(&binding.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();

    let codes: Vec<u64> = std::fs::read_to_string(&server.audit_log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|event| event["user"]["username"] == "live-reader" && event["verb"] == "get")
        .filter_map(|event| event["responseStatus"]["code"].as_u64())
        .collect();
    assert!(codes.contains(&403) && codes.contains(&200), "the audit log has {codes:?}");
}

#[tokio::test]
async fn members_are_ready_with_their_city_and_are_reached_through_the_hub() {
    let running = running();
    let hub = running.hub().client().unwrap();
    let kind = GroupVersionKind::gvk("cluster.karmada.io", "v1alpha1", "Cluster");
    let clusters = Api::<DynamicObject>::all_with(hub.clone(), &ApiResource::from_gvk(&kind));
    let cities: BTreeMap<_, _> = clusters
        .list(&Default::default())
        .await
        .unwrap()
        .into_iter()
        .map(|one| {
            (one.metadata.labels.unwrap()["topology.datum.net/city-code"].clone(), one.metadata.name.unwrap())
        })
        .collect();
    let expected: BTreeMap<_, _> =
        running.cells().iter().map(|(city, cell)| (city.clone(), cell.cluster.clone())).collect();
    assert_eq!(cities, expected);
    for cell in running.cells().values() {
        let path = format!(
            "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy/api/v1/namespaces/kube-system",
            cell.cluster
        );
        // Karmada gives its impersonator its role in the cell only after the member has joined.
        eventually("the cell through the hub", || async {
            let request = http::Request::get(&path).body(Vec::new()).unwrap();
            hub.request::<Namespace>(request).await.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }
}

#[tokio::test]
async fn processes_are_stopped_and_started_and_take_up_where_they_left() {
    let running = running();
    for name in running.process_names() {
        let usage = running.usage(&name).unwrap();
        eprintln!("{name:<34} {:4} MiB {:7.1} s", usage.resident_bytes >> 20, usage.cpu_seconds);
        assert!(usage.resident_bytes > 0);
    }
    let hub = running.hub().client().unwrap();
    let cell = running.cells()["DFW"].server.client().unwrap();

    running.stop_process("karmada-controller-manager").await.unwrap();
    assert!(running.usage("karmada-controller-manager").is_err());
    let meanwhile = namespace(&hub, "live-stopped").await;
    running.start_process("karmada-controller-manager").await.unwrap();
    arrives(&cell, &meanwhile).await;

    running.stop_process("cell-dfw-apiserver").await.unwrap();
    let namespaces = Api::<Namespace>::all(cell.clone());
    assert!(namespaces.get("default").await.is_err(), "nothing answers for a server that is stopped");
    running.start_process("cell-dfw-apiserver").await.unwrap();
    running.start_process("cell-dfw-apiserver").await.unwrap();
    namespaces.get("default").await.unwrap();
    let afterwards = namespace(&hub, "live-again").await;
    arrives(&cell, &afterwards).await;
    for name in [meanwhile, afterwards] {
        goes(&hub, &name).await;
    }
}
