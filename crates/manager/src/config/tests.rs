//! Configurations that are right, as a function of what is given. What is wrong is told by the binary: `tests/mistakes.rs`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use compute_core::admission::guard::Subject;

use super::*;
use crate::flags::{Flags, Instead};

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: one}}]
clusters: [{name: one, cluster: {server: 'https://127.0.0.1:6443', certificate-authority: ca.crt}}]
users: [{name: one, user: {tokenFile: token}}]
";

fn files(server_config: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for (path, content) in [
        ("/k/own", KUBECONFIG),
        ("/k/hub", KUBECONFIG),
        ("/k/core", KUBECONFIG),
        ("/k/projects", KUBECONFIG),
        ("/k/quota", KUBECONFIG),
        ("/k/ca.crt", "a certificate"),
        ("/k/token", "a token"),
        ("/tls/tls.crt", "a certificate"),
        ("/tls/tls.key", "a key"),
        ("/config.yaml", server_config),
    ] {
        files.insert(PathBuf::from(path), content.as_bytes().to_vec());
    }
    files
}

fn flags(words: &str) -> Flags {
    Flags::read(words.split_whitespace().map(OsString::from)).unwrap()
}

fn config(words: &str, settings: &str) -> Result<Config, Mistake> {
    let words = format!("compute-manager --kubeconfig /k/own --server-config /config.yaml {words}");
    let head = format!("apiVersion: {API_VERSION}\nkind: {KIND}\n");
    Config::from(&flags(&words), &BTreeMap::new(), &files(&(head + settings)))
}

fn path(connection: &Connection) -> String {
    connection.origin().unwrap().display().to_string()
}

const MANAGEMENT: &str = "--enable-management-controllers --federation-kubeconfig /k/hub";
const CELL: &str = "--enable-cell-controllers --federation-kubeconfig /k/hub";
const BOTH: &str = "--enable-management-controllers --enable-cell-controllers";

#[test]
fn management_finds_projects_in_the_core_plane() {
    let found = config(MANAGEMENT, "discovery: {mode: milo}").unwrap();
    let management = found.management.unwrap();
    assert_eq!(path(&management.hub.unwrap()), "/k/hub");
    let Projects::Milo { core, planes, internal } = management.projects else { panic!("not milo") };
    assert_eq!((path(&core), path(&planes), internal), ("/k/own".into(), "/k/own".into(), false));
    assert!(found.cell.is_none() && found.webhook.is_none() && found.leader_election.is_none());
    assert!(found.gates.networking_integration);

    let elsewhere =
        "discovery: {mode: milo, discoveryKubeconfigPath: /k/core, internalServiceDiscovery: true}";
    let Projects::Milo { core, planes, internal } =
        config(MANAGEMENT, elsewhere).unwrap().management.unwrap().projects
    else {
        panic!("not milo")
    };
    assert_eq!((path(&core), path(&planes), internal), ("/k/core".into(), "/k/core".into(), true));
    let apart =
        "discovery: {mode: milo, discoveryKubeconfigPath: /k/core, projectKubeconfigPath: /k/projects}";
    let Projects::Milo { core, planes, .. } = config(MANAGEMENT, apart).unwrap().management.unwrap().projects
    else {
        panic!("not milo")
    };
    assert_eq!((path(&core), path(&planes)), ("/k/core".into(), "/k/projects".into()));
}

#[test]
fn management_of_one_project() {
    let Projects::Single { name, plane } = config(MANAGEMENT, "").unwrap().management.unwrap().projects
    else {
        panic!("not single")
    };
    assert_eq!((name.as_str(), path(&plane)), ("single", "/k/own".into()));
    let named = "discovery: {projectName: shop, projectKubeconfigPath: /k/projects}";
    let Projects::Single { name, plane } = config(MANAGEMENT, named).unwrap().management.unwrap().projects
    else {
        panic!("not single")
    };
    assert_eq!((name.as_str(), path(&plane)), ("shop", "/k/projects".into()));
}

#[test]
fn a_cell_claims_quota_where_it_is_told() {
    let cell = |settings: &str| {
        config(CELL, &format!("provider: simulated\ndiscovery: {{clusterName: cell-dfw{settings}}}"))
            .unwrap()
            .cell
            .unwrap()
    };
    let found = cell("");
    let Source::Hub { hub, cluster_name } = found.source else { panic!("no hub") };
    assert_eq!((path(&hub), cluster_name.as_str()), ("/k/hub".into(), "cell-dfw"));
    assert!(found.quota.is_none(), "never the local API server");
    assert_eq!(found.provider, Provider::Simulated);
    assert_eq!(path(&cell(", projectKubeconfigPath: /k/projects").quota.unwrap()), "/k/projects");
    let both = ", projectKubeconfigPath: /k/projects, quotaKubeconfigPath: /k/quota";
    assert_eq!(path(&cell(both).quota.unwrap()), "/k/quota");
}

#[test]
fn direct_mode_has_no_hub() {
    let found = config(BOTH, "provider: simulated\ndiscovery: {projectName: shop}").unwrap();
    let management = found.management.unwrap();
    assert!(management.hub.is_none());
    let Projects::Single { name, plane } = management.projects else { panic!("not single") };
    assert_eq!((name.as_str(), path(&plane)), ("shop", "/k/own".into()));
    let Source::Project { name } = found.cell.unwrap().source else { panic!("a hub") };
    assert_eq!(name, "shop");
    let webhooks = "provider: simulated\nwebhookServer: {certDir: /tls}";
    assert!(config(BOTH, webhooks).unwrap().webhook.unwrap().guard.is_none(), "Instances are the cell's own");
}

#[test]
fn both_roles_with_a_hub_have_a_plane_each() {
    let settings = "provider: none\ndiscovery: {clusterName: cell-dfw, projectKubeconfigPath: /k/projects}";
    let found = config(&format!("{BOTH} --federation-kubeconfig /k/hub"), settings).unwrap();
    let Projects::Single { plane, .. } = found.management.unwrap().projects else { panic!("not single") };
    assert_eq!(path(&plane), "/k/projects");
    assert!(matches!(found.cell.unwrap().source, Source::Hub { .. }));
}

#[test]
fn webhooks_guard_instances() {
    let settings = "projectorIdentity: system:serviceaccount:compute-system:compute-manager\nwebhookServer: {certDir: /tls}";
    let webhook = config(MANAGEMENT, settings).unwrap().webhook.unwrap();
    let projector = Subject::User("system:serviceaccount:compute-system:compute-manager".to_owned());
    assert_eq!(webhook.guard, Some(Guard::with_defaults(projector.clone())));
    assert_eq!(webhook.server.certificates.key, Path::new("/tls/tls.key"));
    let allowed = format!("{settings}\ninstanceGuard: {{allow: ['group:ops']}}");
    let guard = config(MANAGEMENT, &allowed).unwrap().webhook.unwrap().guard;
    assert_eq!(guard, Some(Guard::new(projector, [Subject::Group("ops".to_owned())])));
}

#[test]
fn flags_win_over_the_environment_and_empty_is_unset() {
    let read = |words: &str, env: &[(&str, &str)]| {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let words = format!("compute-manager --kubeconfig /k/own --enable-management-controllers {words}");
        Config::from(&flags(&words), &env, &files(""))
    };
    let hub = ("FEDERATION_KUBECONFIG", "/k/hub");
    let off = ("FEATURE_GATES", "NetworkingIntegration=false");
    assert!(!read("", &[hub, off]).unwrap().gates.networking_integration);
    assert!(read("", &[hub, ("FEATURE_GATES", "")]).unwrap().gates.networking_integration);
    assert!(
        read("--feature-gates NetworkingIntegration=true", &[hub, off]).unwrap().gates.networking_integration
    );
    assert!(!read("--feature-gates=", &[hub, off]).unwrap().gates.networking_integration);
    let flagged = read("--federation-kubeconfig /k/core", &[hub]).unwrap();
    assert_eq!(path(&flagged.management.unwrap().hub.unwrap()), "/k/core");
    assert!(read("", &[("FEDERATION_KUBECONFIG", "")]).is_err());
    assert!(read("--enable-cell-controllers=false", &[hub]).unwrap().cell.is_none());
    assert_eq!(read("", &[hub, ("POD_NAME", "p-0")]).unwrap().host.as_deref(), Some("p-0"));
}

#[test]
fn a_pod_needs_no_kubeconfig() {
    let mut files = files("");
    for (name, content) in [("token", "t"), ("ca.crt", "c"), ("namespace", "compute-system\n")] {
        let path = PathBuf::from("/var/run/secrets/kubernetes.io/serviceaccount").join(name);
        files.insert(path, content.as_bytes().to_vec());
    }
    let env = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
    let env: BTreeMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let flags = flags(&format!("compute-manager {MANAGEMENT} --leader-elect"));
    let found = Config::from(&flags, &env, &files).unwrap();
    assert!(matches!(found.own, Connection::InCluster));
    assert_eq!(found.leader_election.unwrap().namespace, "compute-system");
}

#[test]
fn what_has_no_effect_is_told() {
    let settings =
        "provider: simulated\nprojectorIdentity: x\ndiscovery: {mode: milo, clusterName: c, projectName: p}";
    let notes = config(&format!("{MANAGEMENT} --leader-election-namespace x"), settings).unwrap().notes;
    for field in [
        "provider",
        "projectorIdentity",
        "discovery.clusterName",
        "discovery.projectName",
        "--leader-election-namespace",
    ] {
        assert!(
            notes.iter().any(|note| note.starts_with(&format!("{field} has no effect"))),
            "{field}: {notes:?}"
        );
    }
}

#[test]
fn paths_in_a_kubeconfig_are_relative_to_it() {
    let Connection::Kubeconfig { content, .. } = config(MANAGEMENT, "").unwrap().own else {
        panic!("in cluster")
    };
    let user = content.auth_infos[0].auth_info.as_ref().unwrap();
    assert_eq!(user.token_file.as_deref(), Some("/k/token"));
}

#[test]
fn the_documented_example_is_right() {
    let page = include_str!("../../../../docs/operations/configuration.md");
    let examples: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3, "the page has an example for each way to run");
    for example in examples {
        let words = example.lines().find_map(|line| line.strip_prefix("# compute-manager ")).unwrap();
        let mut files = files(example);
        for kubeconfig in
            ["/etc/compute/core", "/etc/compute/projects", "/etc/compute/quota", "/etc/compute/hub"]
        {
            files.insert(format!("{kubeconfig}/kubeconfig").into(), KUBECONFIG.as_bytes().to_vec());
            files.insert(format!("{kubeconfig}/ca.crt").into(), b"x".to_vec());
            files.insert(format!("{kubeconfig}/token").into(), b"x".to_vec());
        }
        for name in ["tls.crt", "tls.key"] {
            files.insert(format!("/etc/compute/webhook-tls/{name}").into(), b"x".to_vec());
            files.insert(format!("/etc/compute/metrics-tls/{name}").into(), b"x".to_vec());
        }
        let words = format!("compute-manager --kubeconfig /k/own --server-config /config.yaml {words}");
        let found = Config::from(&flags(&words), &BTreeMap::new(), &files);
        let found = found.unwrap_or_else(|mistake| panic!("{mistake} in {example}"));
        assert_eq!(found.notes, Vec::<String>::new(), "{example}");
    }
}

#[test]
fn help_shows_examples() {
    let Err(Instead::Print(text)) = Flags::read(["compute-manager", "--help"].map(OsString::from)) else {
        panic!("no help")
    };
    for wanted in
        ["Examples:", "--enable-cell-controllers", "direct mode", "FEDERATION_KUBECONFIG", "[default: :8081]"]
    {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
}
