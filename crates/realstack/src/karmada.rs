//! Karmada beside its API server: its four processes, and the objects that make an API server its hub.
//!
//! `Cluster` is no CRD: an aggregated API server serves it, which the hub finds through a Service that points to this machine. Without the
//! webhook server nothing reaches a member. Both are known by certificates of the hub's own authority.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Error;
use crate::clients::write_kubeconfig;
use crate::kubernetes::{Account, Etcd, Plane, flag, write_certificate};
use crate::objects::Objects;
use crate::process::{Probe, Process};
use crate::tools::Tools;
use crate::{manifests, objects};

/// Where Karmada's own Services would be.
const SYSTEM: &str = "karmada-system";
/// The aggregated API server's Service.
const AGGREGATED: &str = "karmada-aggregated-apiserver";
/// Karmada's parts are members of this group in its own deployments too.
const MASTERS: &str = "system:masters";

/// Rate limits are lifted: they protect hubs with hundreds of members, and cost most of the time that an object takes to a member.
const QPS: &str = "1000";
const BURST: &str = "2000";

/// Who Karmada's processes are on the hub.
pub(crate) struct Accounts {
    aggregated: Account,
    webhook: Account,
    controllers: Account,
    scheduler: Account,
}

impl Accounts {
    pub(crate) fn generate() -> Result<Self, Error> {
        let part = |name: &str| Account::new(format!("system:karmada:karmada-{name}"), MASTERS);
        Ok(Self {
            aggregated: part("aggregated-apiserver")?,
            webhook: part("webhook")?,
            controllers: part("controller-manager")?,
            scheduler: part("scheduler")?,
        })
    }

    pub(crate) fn into_list(self) -> [Account; 4] {
        [self.aggregated, self.webhook, self.controllers, self.scheduler]
    }
}

/// Karmada's processes, ready to be started.
pub(crate) struct Karmada {
    pub(crate) aggregated: Process,
    pub(crate) webhook: Process,
    pub(crate) controllers: Process,
    pub(crate) scheduler: Process,
    aggregated_port: u16,
    webhook_port: u16,
    /// The hub's authority, for the API server to know both by.
    ca_bundle: String,
}

impl Karmada {
    /// Makes certificates, kubeconfigs and command lines.
    pub(crate) fn prepare(
        hub: &Plane,
        tools: &Tools,
        etcd: &Etcd,
        [aggregated, webhook, webhook_health, controllers, scheduler]: [u16; 5],
        accounts: &[Account; 4],
    ) -> Result<Self, Error> {
        let server = &hub.server;
        let kubeconfigs = ["aggregated-apiserver", "webhook", "controller-manager", "scheduler"]
            .map(|name| hub.pki().join(format!("karmada-{name}.kubeconfig")));
        for (path, account) in kubeconfigs.iter().zip(accounts) {
            write_kubeconfig(path, "hub", &server.url, &server.ca_pem, &account.token)?;
        }
        let names = [format!("{AGGREGATED}.{SYSTEM}.svc"), format!("karmada-webhook.{SYSTEM}.svc")];
        let serving =
            |file: &str, name: &str| write_certificate(hub.pki(), file, &server.authority.server(&[name])?);
        let aggregated_serving = serving("karmada-aggregated-apiserver", &names[0])?;
        serving("karmada-webhook", &names[1])?;

        let secure = |port: u16, path: &str| Probe {
            base: format!("https://127.0.0.1:{port}"),
            path: path.into(),
            ca_pem: Some(server.ca_pem.clone()),
        };
        let plain = |port: u16| Probe {
            base: format!("http://127.0.0.1:{port}"),
            path: "/healthz".into(),
            ca_pem: None,
        };
        let process = |name: &str, arguments: Vec<String>, probe: Probe| Process {
            name: name.into(),
            program: tools.karmada(name),
            arguments,
            probe,
        };
        let [aggregated_config, webhook_config, controllers_config, scheduler_config] = &kubeconfigs;
        let mut aggregated_arguments = etcd.flags("karmada-aggregated");
        aggregated_arguments.extend(aggregated_flags(
            aggregated,
            aggregated_config,
            &aggregated_serving.0,
            &aggregated_serving.1,
        ));
        Ok(Self {
            aggregated: process(AGGREGATED, aggregated_arguments, secure(aggregated, "/readyz")),
            webhook: process(
                "karmada-webhook",
                webhook_flags(webhook, webhook_health, webhook_config, hub.pki()),
                secure(webhook, "/readyz/"),
            ),
            controllers: process(
                "karmada-controller-manager",
                controllers_flags(controllers, controllers_config),
                plain(controllers),
            ),
            scheduler: process(
                "karmada-scheduler",
                scheduler_flags(scheduler, scheduler_config),
                plain(scheduler),
            ),
            aggregated_port: aggregated,
            webhook_port: webhook,
            ca_bundle: STANDARD.encode(&server.ca_pem),
        })
    }

    /// Karmada's own CRDs, with its webhook converting between their versions, and its roles for people.
    pub(crate) async fn install_crds(&self, hub: &Objects, manifests: &Path) -> Result<(), Error> {
        let webhook = self.webhook_url();
        let (crds, roles) =
            (manifests::crds(manifests, &webhook, &self.ca_bundle)?, manifests::roles(manifests)?);
        hub.create_all(crds.iter().chain(&roles)).await?;
        for crd in &crds {
            hub.wait(&objects::path(crd), "the CRD is established", |crd| has_condition(crd, "Established"))
                .await?;
        }
        Ok(())
    }

    /// The API that the aggregated server serves. It must be healthy already: the hub asks it at once, and again only after a while.
    pub(crate) async fn install_api(&self, hub: &Objects) -> Result<(), Error> {
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": AGGREGATED, "namespace": SYSTEM },
            "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": self.aggregated_port }] },
        });
        let api = json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": { "name": "v1alpha1.cluster.karmada.io" },
            "spec": {
                "group": "cluster.karmada.io",
                "version": "v1alpha1",
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                "caBundle": self.ca_bundle,
                "service": { "name": AGGREGATED, "namespace": SYSTEM, "port": self.aggregated_port },
            },
        });
        hub.create(&service).await?;
        hub.create(&api).await?;
        hub.wait(&objects::path(&api), "the aggregated API is available", |api| {
            has_condition(api, "Available")
        })
        .await?;
        Ok(())
    }

    /// Has the API server ask the webhook server, which must be healthy already.
    pub(crate) async fn install_webhooks(&self, hub: &Objects, manifests: &Path) -> Result<(), Error> {
        let configurations = manifests::webhooks(manifests, &self.webhook_url(), &self.ca_bundle)?;
        hub.create_all(&configurations).await
    }

    fn webhook_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.webhook_port)
    }
}

/// The namespaces that Karmada works in.
pub(crate) async fn create_namespaces(hub: &Objects, members: &str) -> Result<(), Error> {
    let namespaces = [SYSTEM, members]
        .map(|name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    hub.create_all(&namespaces).await
}

/// Whether a condition of this type is true.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

fn aggregated_flags(port: u16, kubeconfig: &Path, certificate: &Path, key: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig),
        flag("authentication-kubeconfig", kubeconfig),
        flag("authorization-kubeconfig", kubeconfig),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", port.to_string()),
        flag("tls-cert-file", certificate),
        flag("tls-private-key-file", key),
        flag("kube-api-qps", QPS),
        flag("kube-api-burst", BURST),
    ]
}

fn webhook_flags(port: u16, health: u16, kubeconfig: &Path, certificates: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig),
        flag("bind-address", "127.0.0.1"),
        flag("secure-port", port.to_string()),
        flag("cert-dir", certificates),
        flag("tls-cert-file-name", "karmada-webhook.crt"),
        flag("tls-private-key-file-name", "karmada-webhook.key"),
        flag("metrics-bind-address", "0"),
        flag("health-probe-bind-address", format!("127.0.0.1:{health}")),
        flag("kube-api-qps", QPS),
        flag("kube-api-burst", BURST),
    ]
}

fn controllers_flags(health: u16, kubeconfig: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig),
        flag("leader-elect", "false"),
        flag("metrics-bind-address", "0"),
        flag("health-probe-bind-address", format!("127.0.0.1:{health}")),
        // A member that answers again is taken for healthy at its next good answer, not half a minute later.
        flag("cluster-success-threshold", "1s"),
        // The default is a quarter of an hour, doubling up to it: what failed while a member was away would wait as long again.
        flag("rate-limiter-max-delay", "10s"),
        flag("rate-limiter-qps", QPS),
        flag("rate-limiter-bucket-size", BURST),
        flag("kube-api-qps", QPS),
        flag("kube-api-burst", BURST),
        flag("cluster-api-qps", QPS),
        flag("cluster-api-burst", BURST),
    ]
}

fn scheduler_flags(health: u16, kubeconfig: &Path) -> Vec<String> {
    vec![
        flag("kubeconfig", kubeconfig),
        flag("leader-elect", "false"),
        flag("metrics-bind-address", "0"),
        flag("health-probe-bind-address", format!("127.0.0.1:{health}")),
        flag("rate-limiter-qps", QPS),
        flag("rate-limiter-bucket-size", BURST),
        flag("kube-api-qps", QPS),
        flag("kube-api-burst", BURST),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_listens_beyond_loopback_and_no_rate_limit_is_left_at_its_default() {
        let config = Path::new("/x");
        let all = [controllers_flags(1, config), scheduler_flags(2, config)];
        for flags in all {
            for wanted in [
                "--leader-elect=false",
                "--metrics-bind-address=0",
                "--rate-limiter-qps=1000",
                "--kube-api-qps=1000",
            ] {
                assert!(flags.iter().any(|one| one == wanted), "{wanted}: {flags:?}");
            }
            assert!(
                flags.iter().any(|one| one.starts_with("--health-probe-bind-address=127.0.0.1:")),
                "{flags:?}"
            );
        }
        for flags in [webhook_flags(1, 2, config, config), aggregated_flags(1, config, config, config)] {
            assert!(flags.iter().any(|one| one == "--bind-address=127.0.0.1"), "{flags:?}");
        }
    }

    #[test]
    fn a_condition_counts_only_when_it_is_true() {
        let object = json!({ "status": { "conditions": [{ "type": "A", "status": "True" }, { "type": "B", "status": "False" }] } });
        assert!(has_condition(&object, "A"));
        assert!(
            !has_condition(&object, "B") && !has_condition(&object, "C") && !has_condition(&json!({}), "A")
        );
    }
}
