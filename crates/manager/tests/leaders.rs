//! Direct mode in one process, replicas that take over from each other, and orderly ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use std::time::Duration;

use compute_api::compute::Workload;
use compute_api::labels::TOPOLOGY_CITY_CODE;
use compute_api::networking::{LocationBinding, Network};
use compute_apiserver::{Identity, PlaneName};
use compute_controllers::{cell, management};
use compute_testkit::eventually;
use compute_testkit::objects::workload;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use world::process::Process;
use world::{CITY, NAMESPACE, Served, argument, granted, server_config};

/// How long a stop may take.
const STOP: Duration = Duration::from_secs(10);

/// One plane that is project and cell in one.
struct Direct {
    served: Served,
    plane: PlaneName,
}

impl Direct {
    /// With `users` who may do what a manager with both roles does.
    async fn start(users: &[&str]) -> Self {
        let served = Served::start().await;
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let mut objects: Vec<Value> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let rules =
            [management::rbac::project(), cell::rbac::cell(), compute_providers::rbac::cell()].concat();
        objects.extend(users.iter().flat_map(|user| granted(user, &rules)));
        let template = served.server.template(&objects).await.unwrap();
        let plane = PlaneName::new("one").unwrap();
        served.server.create_plane(plane.clone(), &template).await.unwrap();
        let leases = [management::rbac::leader_election(), cell::rbac::leader_election()].concat();
        for user in users {
            served.admit(&format!("token-of-{user}"), Identity::user(*user));
            served.allow_leases(&plane, user, &leases).await;
        }
        let direct = Self { served, plane };
        direct.offer().await;
        direct
    }

    fn client(&self) -> Client {
        self.served.admin(&self.plane)
    }

    /// Offers the city and makes a network, as the platform around would.
    async fn offer(&self) {
        let name = CITY.to_lowercase();
        let binding = json!({ "metadata": { "name": name },
            "spec": { "locationRef": { "name": name }, "topology": { TOPOLOGY_CITY_CODE: CITY } } });
        let binding: LocationBinding = serde_json::from_value(binding).unwrap();
        let bindings: Api<LocationBinding> = Api::all(self.client());
        bindings.create(&PostParams::default(), &binding).await.unwrap();
        let available = json!({ "status": { "conditions": [{ "type": "Available", "status": "True", "reason": "Offered",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
        bindings.patch_status(&name, &PatchParams::default(), &Patch::Merge(available)).await.unwrap();
        let network = json!({ "metadata": { "name": "default" }, "spec": { "ipam": { "mode": "Auto" } } });
        let network: Network = serde_json::from_value(network).unwrap();
        Api::default_namespaced(self.client()).create(&PostParams::default(), &network).await.unwrap();
    }

    /// A manager with both roles.
    async fn manager(&self, user: &str, more: &[&str]) -> Process {
        let own = self.served.kubeconfig(&format!("{user}-own"), &self.plane, &format!("token-of-{user}"));
        let config = self.served.write("direct.yaml", &server_config(&json!({ "provider": "simulated" })));
        let (own, config) = (argument(&own), argument(&config));
        let mut arguments = vec![
            "--enable-management-controllers",
            "--enable-cell-controllers=true",
            "--kubeconfig",
            &own,
            "--server-config",
            &config,
            "--feature-gates",
            "NetworkingIntegration=false",
        ];
        arguments.extend(more);
        Process::start(&self.served, user, &arguments).await
    }

    async fn replica(&self, user: &str) -> Process {
        self.manager(user, &["--leader-elect", "--leader-election-namespace", NAMESPACE]).await
    }

    /// Makes a workload, and waits until it is ready.
    async fn runs(&self, name: &str) {
        let workloads: Api<Workload> = Api::default_namespaced(self.client());
        workloads.create(&PostParams::default(), &workload(name, &[CITY], 2)).await.unwrap();
        eventually(&format!("{name} is ready"), async || {
            let status = workloads.get(name).await.unwrap().status.unwrap_or_default();
            if status.ready_replicas == Some(2) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    async fn holder(&self, lease: &str) -> Option<String> {
        let leases: Api<Lease> = Api::namespaced(self.client(), NAMESPACE);
        leases.get_opt(lease).await.unwrap()?.spec?.holder_identity
    }

    /// Waits until both Leases are held by a process of this name.
    async fn until_led_by(&self, name: &str) {
        for lease in [management::LEASE, cell::LEASE] {
            eventually(&format!("{name} holds {lease}"), async || match self.holder(lease).await {
                Some(holder) if holder.starts_with(&format!("{name}_")) => Ok(()),
                other => Err(format!("held by {other:?}")),
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn direct_mode_runs_a_workload_in_one_process() {
    let direct = Direct::start(&["manager"]).await;
    let mut manager = direct.manager("manager", &[]).await;
    manager.until_ready().await;
    direct.runs("web").await;
    let quota = manager.lines().into_iter().find(|line| {
        line["level"] == "ERROR"
            && line["message"].as_str().unwrap_or_default().starts_with("quota is not configured")
    });
    assert!(quota.is_some(), "{}", manager.log());
    let (_, metrics) = manager.page("metrics", "/metrics").await;
    assert!(metrics.contains("compute_quota_enforcement_enabled 0"), "{metrics}");
    let refused = direct.served.audit.refused("manager");
    assert!(refused.is_empty(), "{refused:?}");
    let leases = direct.served.audit.of("manager").iter().any(|event| event.uri.contains("/leases"));
    assert!(!leases, "who does not run for leader touches no Lease");
    manager.terminate();
    assert_eq!(manager.ended_within(STOP).await.code(), Some(0), "{}", manager.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_replica_takes_over_from_one_that_is_killed_or_stopped() {
    let direct = Direct::start(&["first", "second"]).await;
    let mut first = direct.replica("first").await;
    direct.until_led_by("first").await;
    first.until_ready().await;
    let mut second = direct.replica("second").await;
    second.until_ready().await;
    let (_, text) = second.page("health", "/readyz").await;
    assert_eq!(text, "cell: ready, another replica leads\nmanagement: ready, another replica leads\n");
    direct.runs("web").await;
    let (_, metrics) = second.page("metrics", "/metrics").await;
    assert!(metrics.contains("compute_leader{role=\"cell\"} 0"), "{metrics}");
    let writes = direct.served.audit.writes("second");
    assert!(writes.is_empty(), "a standby wrote: {writes:?}");

    first.kill();
    direct.until_led_by("second").await;
    direct.runs("more").await;

    // One that is told to stop gives the Leases up, so that the next one need not wait for them to end.
    let mut third = direct.replica("first").await;
    third.until_ready().await;
    second.terminate();
    assert_eq!(second.ended_within(STOP).await.code(), Some(0), "{}", second.log());
    let given_up = second.lines().iter().filter(|line| line["message"] == "lease given up").count();
    assert_eq!(given_up, 2, "{}", second.log());
    direct.until_led_by("first").await;
    direct.runs("last").await;
    for user in ["first", "second"] {
        let refused = direct.served.audit.refused(user);
        assert!(refused.is_empty(), "{user}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_loses_its_lease_ends_and_says_why() {
    let direct = Direct::start(&["manager"]).await;
    let mut manager = direct.replica("manager").await;
    direct.until_led_by("manager").await;
    let leases: Api<Lease> = Api::namespaced(direct.client(), NAMESPACE);
    let taken = json!({ "spec": { "holderIdentity": "somebody-else" } });
    leases.patch(cell::LEASE, &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    assert_eq!(manager.ended_within(Duration::from_secs(30)).await.code(), Some(1), "{}", manager.log());
    let reason = manager.said("ended").unwrap()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("compute-manager-cell") && reason.contains("somebody-else"), "{reason}");
    assert_eq!(direct.holder(cell::LEASE).await.as_deref(), Some("somebody-else"));
    assert_eq!(direct.holder(management::LEASE).await, None, "the other role's Lease is given up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plane_that_hangs_does_not_hold_up_the_end() {
    let served = Served::start().await;
    let template = served.server.template(&[]).await.unwrap();
    let plane = PlaneName::new("one").unwrap();
    served.server.create_plane(plane.clone(), &template).await.unwrap();
    served.admit("token", Identity::superuser("manager"));
    let own = served.kubeconfig("own", &plane, "token");
    // Takes connections, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let hub = served.write("hub.token", "token");
    let hub = served.write(
        "hub",
        &std::fs::read_to_string(&own)
            .unwrap()
            .replace(&format!("{}/planes/one", served.url), &format!("https://{address}"))
            .replace("own.token", hub.file_name().unwrap().to_str().unwrap()),
    );
    let config = served.write("config.yaml", &server_config(&json!({})));
    let arguments = [
        "--enable-management-controllers",
        "--kubeconfig",
        &argument(&own),
        "--federation-kubeconfig",
        &argument(&hub),
        "--server-config",
        &argument(&config),
    ];
    let mut manager = Process::start(&served, "manager", &arguments).await;
    eventually("it waits for the hub", async || match manager.page("health", "/readyz").await {
        (503, text) if text.contains("waiting for") => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    silent.accept().await.unwrap();
    manager.terminate();
    assert_eq!(manager.ended_within(STOP).await.code(), Some(0), "{}", manager.log());
}
