//! Management in mode milo and a cell, each as a process of its own with its own rights, and the platform around them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compute_admission::{MUTATE_WORKLOADS, VALIDATE_INSTANCES, VALIDATE_WORKLOADS};
use compute_api::compute::{Instance, Workload};
use compute_api::milo::{RESOURCE_MANAGER_GROUP, extra};
use compute_apiserver::{Authority, Identity};
use compute_controllers::{cell, management};
use compute_local::{Worker, planes, workers};
use compute_testkit::objects::workload;
use compute_testkit::{View, eventually};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use world::process::Process;
use world::{CITY, NAMESPACE, World, argument, server_config};

const MANAGER_TOKEN: &str = "first-token-of-management";
const CELL_TOKEN: &str = "first-token-of-cell";

/// Webhooks' certificates, and what is written to make API servers call them.
struct Hooks {
    authority: Authority,
}

impl Hooks {
    /// Writes a new certificate.
    fn renew(&self, world: &World) -> String {
        let issued = self.authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        world.served.write("tls.key", &issued.key);
        world.served.write("tls.crt", &issued.certificate);
        issued.certificate
    }

    async fn register(&self, world: &World, project: &str, address: &str) {
        let hook = |name: &str, path: &str, resources: &[&str]| {
            json!({
                "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
                "clientConfig": { "url": format!("https://{address}{path}"), "caBundle": STANDARD.encode(self.authority.certificate()) },
                "rules": [{ "operations": ["*"], "apiGroups": ["compute.datumapis.com"], "apiVersions": ["v1alpha"], "resources": resources }],
            })
        };
        let client = world.served.admin(&planes::project(project).unwrap());
        let mutating = json!({ "metadata": { "name": "compute" },
            "webhooks": [hook("defaults.compute.datumapis.com", MUTATE_WORKLOADS, &["workloads"])] });
        let mutating: MutatingWebhookConfiguration = serde_json::from_value(mutating).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &mutating).await.unwrap();
        let validating = json!({ "metadata": { "name": "compute" }, "webhooks": [
            hook("workloads.compute.datumapis.com", VALIDATE_WORKLOADS, &["workloads"]),
            hook("instances.compute.datumapis.com", VALIDATE_INSTANCES, &["instances", "instances/status"]),
        ] });
        let validating: ValidatingWebhookConfiguration = serde_json::from_value(validating).unwrap();
        Api::all(client).create(&PostParams::default(), &validating).await.unwrap();
    }

    /// The certificate that a server shows.
    async fn shown(&self, address: &str) -> CertificateDer<'static> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.certificate().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
    }
}

/// A person in a project, as the platform lets her in: the project is in what is known of her.
fn person(project: &str) -> Identity {
    let mut person = Identity::user("ann").in_group(workers::PROJECT_ADMINS);
    for (key, value) in [
        (extra::PARENT_NAME, project),
        (extra::PARENT_TYPE, "Project"),
        (extra::PARENT_API_GROUP, RESOURCE_MANAGER_GROUP),
    ] {
        person.extra.insert(key.to_owned(), vec![value.to_owned()]);
    }
    person
}

async fn start_management(world: &World) -> Process {
    let identity = Worker::Management.identity();
    let served = &world.served;
    served.admit(MANAGER_TOKEN, identity.clone());
    served.allow_leases(&planes::core(), &identity.user, &management::rbac::leader_election()).await;
    let core = served.kubeconfig("management-core", &planes::core(), MANAGER_TOKEN);
    let hub = served.kubeconfig("management-hub", &planes::hub(), MANAGER_TOKEN);
    let settings = json!({
        "discovery": { "mode": "milo" },
        "projectorIdentity": identity.user,
        "webhookServer": { "bindAddress": "127.0.0.1:0", "certDir": argument(served.folder.path()) },
    });
    let config = served.write("management.yaml", &server_config(&settings));
    let arguments = [
        "--enable-management-controllers",
        "--kubeconfig",
        &argument(&core),
        "--federation-kubeconfig",
        &argument(&hub),
        "--server-config",
        &argument(&config),
        "--leader-elect",
        "--leader-election-namespace",
        NAMESPACE,
    ];
    Process::start(served, "management", &arguments).await
}

async fn start_cell(world: &World, cluster_name: &str) -> Process {
    let identity = Worker::Cell(CITY.to_owned()).identity();
    let (served, here) = (&world.served, planes::cell(CITY).unwrap());
    served.admit(CELL_TOKEN, identity.clone());
    served.allow_leases(&here, &identity.user, &cell::rbac::leader_election()).await;
    let own = served.kubeconfig("cell-own", &here, CELL_TOKEN);
    let hub = served.kubeconfig("cell-hub", &planes::hub(), CELL_TOKEN);
    let quota = served.kubeconfig("cell-quota", &planes::core(), CELL_TOKEN);
    let settings = json!({
        "discovery": { "mode": "single", "clusterName": cluster_name, "quotaKubeconfigPath": argument(&quota) },
        "provider": "simulated",
    });
    let config = served.write("cell.yaml", &server_config(&settings));
    let arguments = [
        "--enable-cell-controllers",
        "--kubeconfig",
        &argument(&own),
        "--federation-kubeconfig",
        &argument(&hub),
        "--server-config",
        &argument(&config),
        "--leader-elect",
        "--leader-election-namespace",
        NAMESPACE,
    ];
    Process::start(served, "cell", &arguments).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workload_becomes_ready_while_credentials_rotate() {
    let world = World::start().await;
    let hooks = Hooks { authority: Authority::generate("webhooks").unwrap() };
    hooks.renew(&world);
    let (mut manager, mut cell) = (start_management(&world).await, start_cell(&world, "cell-dfw").await);
    manager.until_ready().await;
    cell.until_ready().await;

    let view = View::new(&world, "demo").await;
    let webhooks = manager.address("webhooks");
    hooks.register(&world, "demo", &webhooks).await;
    let plane = planes::project("demo").unwrap();
    let person = world.served.client(&plane, person("demo"));
    let workloads: Api<Workload> = Api::default_namespaced(person.clone());
    let made = workloads.create(&PostParams::default(), &workload("web", &[CITY], 2)).await.unwrap();
    let policy = made.spec.placements[0].scale_settings.instance_management_policy.clone();
    assert_eq!(policy, "OrderedReady", "webhooks fill in defaults");
    view.until_ready("web", &[("web-main-dfw", 2)]).await;

    // What must not be is refused, by what the person may know and do in her project.
    let error = workloads.create(&PostParams::default(), &workload("bad", &["XYZ"], 1)).await.unwrap_err();
    assert!(error.to_string().contains("city XYZ is not offered"), "{error}");
    let instances: Api<Instance> = Api::default_namespaced(person);
    let error = instances.delete("web-main-dfw-0", &DeleteParams::default()).await.unwrap_err();
    assert!(error.to_string().contains("read-only"), "{error}");

    // Tokens rotate: the old ones end, and work goes on.
    for (file, old, identity) in [
        ("management-core", MANAGER_TOKEN, Worker::Management.identity()),
        ("management-hub", MANAGER_TOKEN, Worker::Management.identity()),
        ("cell-own", CELL_TOKEN, Worker::Cell(CITY.to_owned()).identity()),
        ("cell-hub", CELL_TOKEN, Worker::Cell(CITY.to_owned()).identity()),
        ("cell-quota", CELL_TOKEN, Worker::Cell(CITY.to_owned()).identity()),
    ] {
        let next = old.replace("first", "second");
        world.served.admit(&next, identity);
        world.served.write(&format!("{file}.token"), &next);
    }
    for old in [MANAGER_TOKEN, CELL_TOKEN] {
        assert!(world.served.server.tokens().remove(old));
    }
    workloads.create(&PostParams::default(), &workload("again", &[CITY], 1)).await.unwrap();
    view.until_ready("again", &[("again-main-dfw", 1)]).await;

    // A new webhook certificate is shown without a restart.
    let next = CertificateDer::from_pem_slice(hooks.renew(&world).as_bytes()).unwrap().into_owned();
    eventually("the new certificate is shown", async || {
        if hooks.shown(&webhooks).await == next { Ok(()) } else { Err("another one is") }
    })
    .await;
    workloads.delete("again", &DeleteParams::default()).await.unwrap();
    eventually("it is gone", async || match workloads.get_opt("again").await.unwrap() {
        None => Ok(()),
        Some(left) => Err(format!("{:?}", left.status)),
    })
    .await;

    look_at_metrics(&manager, &cell).await;
    for user in [Worker::Management.identity().user, Worker::Cell(CITY.to_owned()).identity().user] {
        let refused = world.served.audit.refused(&user);
        assert!(refused.is_empty(), "{user} was refused: {refused:?}");
    }
    for process in [&mut manager, &mut cell] {
        process.terminate();
        let ended = process.ended_within(Duration::from_secs(10)).await;
        assert_eq!(ended.code(), Some(0), "{}", process.log());
        assert!(process.said("lease given up").is_some(), "{}", process.log());
        let log = process.log();
        for secret in [MANAGER_TOKEN, CELL_TOKEN, "second-token-of", "Bearer", "PRIVATE KEY"] {
            assert!(!log.contains(secret), "{secret} is in the log");
        }
    }
}

async fn look_at_metrics(manager: &Process, cell: &Process) {
    let (code, text) = manager.page("metrics", "/metrics").await;
    assert_eq!(code, 200);
    for wanted in [
        "compute_leader{role=\"management\"} 1",
        "compute_engaged_planes 1",
        "compute_reconciles_total{controller=",
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "compute_build_info{version=",
        "# EOF",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
    let (_, text) = cell.page("metrics", "/metrics").await;
    for wanted in ["compute_quota_enforcement_enabled 1", "compute_writeback_enabled{cluster=\"cell-dfw\"} 1"]
    {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
    assert_eq!(cell.page("health", "/healthz").await.0, 200);
    assert_eq!(cell.page("health", "/nothing").await.0, 404);
    println!("management {}", resident(manager));
    println!("cell {}", resident(cell));
}

fn resident(process: &Process) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or("unknown").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_the_hub_does_not_know_says_so_and_writes_nothing_there() {
    let world = World::start().await;
    let cell = start_cell(&world, "cell-unknown").await;
    let loud = eventually("it says so", async || {
        let lines: Vec<Value> = cell.lines();
        let loud = lines.iter().find(|line| line["level"] == "ERROR" && line["cluster"] == "cell-unknown");
        loud.cloned().ok_or_else(|| cell.log())
    })
    .await;
    assert!(loud["message"].as_str().unwrap().contains("discovery.clusterName"), "{loud}");
    let (_, text) = cell.page("metrics", "/metrics").await;
    assert!(text.contains("compute_writeback_enabled{cluster=\"cell-unknown\"} 0"), "{text}");
    let writes = world.served.audit.writes(&Worker::Cell(CITY.to_owned()).identity().user);
    assert!(!writes.iter().any(|write| write.contains("/planes/hub/")), "{writes:?}");
}
