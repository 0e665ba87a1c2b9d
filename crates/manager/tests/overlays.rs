//! The server configs of `config/overlays`, read as the pods of those overlays read them: each is right, and nothing in it is without effect.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compute_manager::config::{Config, Projects, Provider, Source};
use compute_manager::flags::Flags;

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'https://example.com'}}]
users: [{name: u, user: {token: t}}]
";
/// Where a pod finds who it is.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a pod of an overlay with these roles is told to do. `kubeconfigs` are the folders of its Secrets.
fn configured(overlay: &str, roles: &[&str], env: &[(&str, &str)], kubeconfigs: &[&str]) -> Config {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/overlays"));
    let server = std::fs::read(folder.join(overlay).join("server.yaml")).unwrap();
    let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::from([
        (PathBuf::from("/etc/compute/config/server.yaml"), server),
        (PathBuf::from("/etc/compute/webhook/tls.crt"), b"certificate".to_vec()),
        (PathBuf::from("/etc/compute/webhook/tls.key"), b"key".to_vec()),
    ]);
    for name in ["token", "ca.crt", "namespace"] {
        files.insert(Path::new(SERVICE_ACCOUNT).join(name), b"compute-system".to_vec());
    }
    for name in kubeconfigs {
        files.insert(Path::new("/etc/compute").join(name).join("kubeconfig"), KUBECONFIG.into());
    }
    let mut arguments = vec![
        "compute-manager".to_owned(),
        "--server-config=/etc/compute/config/server.yaml".to_owned(),
        "--health-probe-bind-address=:8081".to_owned(),
        "--log-format=json".to_owned(),
        "--leader-elect".to_owned(),
        "--leader-election-namespace=compute-system".to_owned(),
    ];
    arguments.extend(roles.iter().map(|role| format!("--enable-{role}-controllers")));
    let flags = Flags::read(arguments.into_iter().map(Into::into)).unwrap();
    let in_cluster = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    let env =
        in_cluster.iter().chain(env).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = Config::from(&flags, &env, &files).unwrap_or_else(|mistake| panic!("{overlay}: {mistake}"));
    assert_eq!(config.notes, Vec::<String>::new(), "{overlay}");
    config
}

const HUB: (&str, &str) = ("FEDERATION_KUBECONFIG", "/etc/compute/federation/kubeconfig");

#[test]
fn management_plane() {
    let config = configured("management-plane", &["management"], &[HUB], &["management", "federation"]);
    let management = config.management.unwrap();
    assert!(matches!(management.projects, Projects::Milo { .. }));
    assert!(management.hub.is_some() && config.cell.is_none());
    assert!(config.webhook.unwrap().guard.is_some());
}

#[test]
fn cell() {
    let config = configured("cell", &["cell"], &[HUB], &["federation", "quota"]);
    let cell = config.cell.unwrap();
    assert!(matches!(cell.source, Source::Hub { .. }));
    assert!(cell.quota.is_some() && config.webhook.is_none() && config.management.is_none());
}

#[test]
fn single_cluster() {
    let config = configured("single-cluster", &["management", "cell"], &[], &["quota"]);
    let cell = config.cell.unwrap();
    assert!(matches!(cell.source, Source::Project { .. }));
    assert!(cell.quota.is_some());
    assert!(config.webhook.unwrap().guard.is_none());
}

#[test]
fn dev() {
    let gates = ("FEATURE_GATES", "NetworkingIntegration=false");
    let config = configured("dev", &["management", "cell"], &[gates], &[]);
    let cell = config.cell.unwrap();
    assert_eq!(cell.provider, Provider::Simulated);
    assert!(cell.quota.is_none() && !config.gates.networking_integration);
}
