//! Wires over TLS: what passes, what is counted, what breaks when they are cut.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use compute_apiserver::{ApiServer, Authority, Identity, Options, PlaneName};
use compute_local::planes;
use compute_runtime::transport::{self, SharedHost};
use compute_testkit::faults::Wires;
use compute_testkit::real::milo::Milo;
use compute_testkit::real::proxy::{Host, Listener};
use compute_testkit::real::{Foundation, install};
use compute_testkit::{Worker, eventually};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use parking_lot::Mutex;
use serde_json::json;

fn config(listener: &Listener, authority: &Authority, token: &str) -> Config {
    let mut config = Config::new(listener.url().parse().unwrap());
    config.root_cert = Some(vec![pem(authority.certificate())]);
    config.auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    config
}

fn pem(text: &str) -> Vec<u8> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::from_pem_slice(text.as_bytes()).unwrap().to_vec()
}

fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// One plane behind a wire, reached in HTTP/2 by our own transport and in HTTP/1.1 by kube's.
struct OnePlane {
    _foundation: Foundation,
    _listener: Listener,
    wires: Wires,
    plane: PlaneName,
    worker: Worker,
    clients: [(&'static str, Client); 2],
}

async fn one_plane() -> OnePlane {
    let foundation = Foundation::embedded(&[]).await;
    let admin = foundation.management.admin();
    let worker = Worker::Management;
    install::identity(&admin, &worker, &["cluster-admin"]).await;
    let token = install::token(&admin, &worker).await;
    let authority = Authority::generate("wires").unwrap();
    let (wires, plane) = (Wires::default(), PlaneName::new("management").unwrap());
    let host = Host::Plane { plane: plane.clone(), upstream: foundation.management.bare() };
    let listener = Listener::start(&authority, &wires, &worker, host).await;
    let config = config(&listener, &authority, &token);
    let shared = SharedHost::new(config.clone(), &transport::Options::default()).unwrap();
    let clients = [("HTTP/2", shared.client("")), ("HTTP/1.1", Client::try_from(config).unwrap())];
    OnePlane { _foundation: foundation, _listener: listener, wires, plane, worker, clients }
}

#[tokio::test]
async fn requests_and_watches_pass_as_the_caller_and_break_with_the_wire() {
    let OnePlane { wires, plane, clients, _foundation, _listener, .. } = one_plane().await;
    for (protocol, client) in clients {
        let me = Api::<SelfSubjectReview>::all(client.clone())
            .create(&PostParams::default(), &SelfSubjectReview::default())
            .await
            .unwrap();
        let me = me.status.unwrap().user_info.unwrap().username.unwrap();
        assert_eq!(me, "system:serviceaccount:compute-system:compute-manager-management", "{protocol}");
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let since = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let mut events = maps.watch(&WatchParams::default(), &since).await.unwrap().boxed();
        let name = format!("over-{}", protocol.to_lowercase().replace(['/', '.'], "-"));
        maps.create(&PostParams::default(), &map(&name)).await.unwrap();
        let seen = events.try_next().await.unwrap();
        assert!(matches!(seen, Some(WatchEvent::Added(_))), "{protocol}: {seen:?}");
        wires.cut(&plane);
        let broken = events.try_next().await;
        assert!(!matches!(broken, Ok(Some(_))), "{protocol}: {broken:?}");
        maps.get(&name).await.unwrap_err();
        wires.mend(&plane);
        maps.get(&name).await.unwrap();
    }
}

#[tokio::test]
async fn so_many_writes_get_through_and_nothing_afterwards() {
    let OnePlane { wires, worker, clients, _foundation, _listener, .. } = one_plane().await;
    let admin: Api<ConfigMap> = Api::default_namespaced(_foundation.management.admin());
    for (protocol, client) in clients {
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        wires.allow_writes(&worker, 2);
        let prefix = protocol.to_lowercase().replace(['/', '.'], "-");
        maps.create(&PostParams::default(), &map(&format!("{prefix}-1"))).await.unwrap();
        maps.list(&ListParams::default()).await.unwrap();
        let label = Patch::Merge(json!({ "metadata": { "labels": { "second": "yes" } } }));
        maps.patch(&format!("{prefix}-1"), &PatchParams::default(), &label).await.unwrap();
        assert!(!wires.is_spent(&worker));
        maps.create(&PostParams::default(), &map(&format!("{prefix}-3"))).await.unwrap_err();
        assert!(wires.is_spent(&worker));
        maps.list(&ListParams::default()).await.unwrap_err();
        assert!(admin.get_opt(&format!("{prefix}-3")).await.unwrap().is_none());
        wires.unlimited(&worker);
        maps.create(&PostParams::default(), &map(&format!("{prefix}-3"))).await.unwrap();
    }
}

#[tokio::test]
async fn a_project_on_another_server_is_reached_like_any() {
    let foundation = Foundation::embedded(&[]).await;
    let server = ApiServer::new(Options::default());
    let blank = server.template(&[]).await.unwrap();
    for plane in [planes::core(), planes::project("here").unwrap()] {
        server.create_plane(plane, &blank).await.unwrap();
    }
    let milo = Arc::new(Milo {
        server,
        template: blank,
        real: (foundation.management.bare(), foundation.management.admin_token.clone()),
        on_real: Mutex::new(Some("there".to_owned())),
    });
    let authority = Authority::generate("wires").unwrap();
    let (wires, worker) = (Wires::default(), Worker::Management);
    let tokens = Arc::new(Mutex::new(BTreeSet::from(["good".to_owned()])));
    let identity = Identity::superuser("somebody");
    let host = Host::Milo { milo, identity, tokens: tokens.clone() };
    let listener = Listener::start(&authority, &wires, &worker, host).await;
    let shared =
        SharedHost::new(config(&listener, &authority, "good"), &transport::Options::default()).unwrap();
    for project in ["here", "there"] {
        let path = compute_api::milo::project_control_plane_path(project);
        let client = shared.client(&path);
        let me = Api::<SelfSubjectReview>::all(client.clone())
            .create(&PostParams::default(), &SelfSubjectReview::default())
            .await
            .unwrap();
        let me = me.status.unwrap().user_info.unwrap();
        assert_eq!(me.username.as_deref(), Some("somebody"), "{project}");
        let parent = &me.extra.unwrap()[compute_api::milo::extra::PARENT_NAME];
        assert_eq!(parent, &[project.to_owned()]);
        Api::<ConfigMap>::default_namespaced(client)
            .create(&PostParams::default(), &map(project))
            .await
            .unwrap();
    }
    let on_server: Api<ConfigMap> = Api::default_namespaced(foundation.management.admin());
    on_server.get("there").await.unwrap();
    assert!(on_server.get_opt("here").await.unwrap().is_none());
    // Core is at the root, and one project can be cut while the others live.
    Api::<Namespace>::all(shared.client("")).get("default").await.unwrap();
    wires.cut(&planes::project("there").unwrap());
    let maps = |project: &str| -> Api<ConfigMap> {
        Api::default_namespaced(shared.client(&compute_api::milo::project_control_plane_path(project)))
    };
    maps("there").get("there").await.unwrap_err();
    maps("here").get("here").await.unwrap();
    wires.mend_all();
    eventually("it is reached again", async || maps("there").get("there").await).await;
    // A token that counts no more opens nothing.
    tokens.lock().clear();
    let refused = maps("here").get("here").await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused:?}");
}
