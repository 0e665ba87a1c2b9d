//! The managers of a stack: who each is on which server, over which wire it goes there, and how it is started.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compute_apiserver::PlaneName;
use compute_local::planes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::foundation::Endpoint;
use super::install;
use super::manager::{Files, Launch, Manager};
use super::proxy::{Host, Listener};
use super::stack::RealStack;
use crate::stack::Worker;

impl RealStack {
    /// Writes each manager's files: who it is on each host, over which wire it goes there, and its configuration.
    pub(super) async fn prepare(&mut self) {
        let hub = self.foundation.hub.clone();
        let management = self.foundation.management.clone();
        let worker = Worker::Management;
        let own = management_plane();
        install::identity(&management.admin(), &worker, &[]).await;
        install::leases(&management.admin(), &worker).await;
        let own = self.kubeconfig(&worker, "own", own, &management).await;
        install::identity(&hub.admin(), &worker, &["compute-management"]).await;
        let to_hub = self.kubeconfig(&worker, "hub", planes::hub(), &hub).await;
        let milo = self.milo_kubeconfig(&worker).await;
        self.write_webhook_certificate();
        for address in self.webhooks {
            let settings = json!({
                "webhookServer": { "bindAddress": address.to_string(), "certDir": self.webhook_dir() },
                "discovery": { "mode": "milo", "discoveryKubeconfigPath": milo, "projectKubeconfigPath": milo },
                "projectorIdentity": worker.identity().user,
            });
            self.plan(&worker, "--enable-management-controllers", &own, &to_hub, &settings);
        }

        for (city, cell) in self.foundation.cells.clone() {
            let worker = Worker::Cell(city.clone());
            let admin = cell.server.admin();
            install::identity(&admin, &worker, &["compute-cell", "compute-provider"]).await;
            install::leases(&admin, &worker).await;
            let own = self.kubeconfig(&worker, "own", planes::cell(&city).unwrap(), &cell.server).await;
            install::identity(&hub.admin(), &worker, &["compute-cell"]).await;
            let to_hub = self.kubeconfig(&worker, "hub", planes::hub(), &hub).await;
            let milo = self.milo_kubeconfig(&worker).await;
            let settings = json!({
                "discovery": { "mode": "single", "clusterName": cell.cluster, "quotaKubeconfigPath": milo },
                "provider": "simulated",
            });
            self.plan(&worker, "--enable-cell-controllers", &own, &to_hub, &settings);
        }
    }

    /// Plans one more replica of a worker.
    fn plan(&mut self, worker: &Worker, role: &str, own: &Path, hub: &Path, settings: &Value) {
        let planned = self.launches.entry(worker.clone()).or_default().len();
        let config = self.files(worker).server_config(planned, settings);
        let name = format!("{}-{planned}", install::account(worker));
        let flags = vec![
            role.to_owned(),
            format!("--kubeconfig={}", own.display()),
            format!("--federation-kubeconfig={}", hub.display()),
            format!("--server-config={}", config.display()),
        ];
        let log = self.dir.join(format!("{name}.log"));
        self.launches.entry(worker.clone()).or_default().push(Launch { name, flags, log });
    }

    /// Starts a replica of the management role that runs for leader, beside whatever runs already.
    pub async fn start_replica(&self, replica: usize) -> Manager {
        let mut launch = self.launches[&Worker::Management][replica].clone();
        launch.flags.push("--leader-elect".to_owned());
        launch.flags.push(format!("--leader-election-namespace={}", install::NAMESPACE));
        let mut manager = Manager::launch(&launch);
        manager.until_ready().await;
        manager
    }

    /// The tokens of a worker count no more, on any server; others that count are in its files, as if somebody had renewed them.
    pub async fn rotate_tokens(&self, worker: &Worker) {
        let files = self.files(worker);
        let token = format!("next-token-of-{}", install::account(worker));
        *self.tokens[worker].lock() = BTreeSet::from([token.clone()]);
        files.token("milo", &token);
        let own = match worker {
            Worker::Cell(city) => &self.foundation.cells[city].server,
            Worker::Management | Worker::Surroundings => &self.foundation.management,
        };
        for (name, server) in [("own", own), ("hub", &self.foundation.hub)] {
            install::revoke(&server.admin(), worker).await;
            files.token(name, &install::token(&server.admin(), worker).await);
        }
    }

    /// The files of a worker.
    pub fn files(&self, worker: &Worker) -> Files {
        Files::new(self.dir.join(install::account(worker)))
    }

    /// A kubeconfig for one server, with a token of the worker's service account there, over a wire.
    async fn kubeconfig(
        &mut self,
        worker: &Worker,
        name: &str,
        plane: PlaneName,
        server: &Endpoint,
    ) -> PathBuf {
        let host = Host::Plane { plane, upstream: server.bare() };
        let listener = Listener::start(&self.authority, &self.wires, worker, host).await;
        let token = install::token(&server.admin(), worker).await;
        let path = self.files(worker).kubeconfig(name, &listener.url(), self.authority.certificate(), &token);
        self.listeners.push(listener);
        path
    }

    /// A kubeconfig for the host of core and projects.
    async fn milo_kubeconfig(&mut self, worker: &Worker) -> PathBuf {
        let token = format!("first-token-of-{}", install::account(worker));
        let tokens = Arc::new(Mutex::new(BTreeSet::from([token.clone()])));
        self.tokens.insert(worker.clone(), tokens.clone());
        let host = Host::Milo { milo: self.milo.clone(), identity: worker.identity(), tokens };
        let listener = Listener::start(&self.authority, &self.wires, worker, host).await;
        let ca = self.authority.certificate();
        let path = self.files(worker).kubeconfig("milo", &listener.url(), ca, &token);
        self.listeners.push(listener);
        path
    }

    fn webhook_dir(&self) -> PathBuf {
        self.dir.join("webhook")
    }

    /// Writes a new certificate for the webhook server, and gives it back.
    pub fn write_webhook_certificate(&self) -> String {
        let issued = self.authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        let dir = self.webhook_dir();
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("tls.crt"), &issued.certificate).unwrap();
        std::fs::write(dir.join("tls.key"), issued.key).unwrap();
        issued.certificate
    }

    /// The authority of everything that this stack serves.
    pub fn authority_pem(&self) -> &str {
        self.authority.certificate()
    }

    /// Where the first replica of the management role serves webhooks.
    pub fn webhook_address(&self) -> SocketAddr {
        self.webhooks[0]
    }
}

/// The management role's own cluster, as a plane of the wires.
fn management_plane() -> PlaneName {
    PlaneName::new("management").unwrap()
}
