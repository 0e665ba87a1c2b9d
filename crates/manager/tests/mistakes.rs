//! Every mistake that a configuration can have, told by the real binary: exit code 1, one line that names the field, and nothing started.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use compute_apiserver::Authority;
use tokio::process::Command;

/// Runs the binary to its end, with nothing in its environment. One that does not end has started, which is the worst that it can do.
async fn output(change: impl FnOnce(&mut Command)) -> Result<Output, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compute-manager"));
    change(command.env_clear().kill_on_drop(true));
    match tokio::time::timeout(Duration::from_secs(60), command.output()).await {
        Ok(ended) => Ok(ended.unwrap()),
        Err(_) => Err("it has started".to_owned()),
    }
}

/// What must not be in any line.
const SECRET: &str = "very-secret-token";

/// Both roles' settings in one, as far as they go together.
const HEAD: &str = "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: WorkloadOperator\n";

struct Case {
    /// What the test says it is about.
    what: &'static str,
    /// Flags; `%` stands for the folder of files.
    flags: &'static str,
    /// The settings of the server config, after its head; `%` as before.
    settings: &'static str,
    /// What the line has to begin with, after `error: `.
    field: &'static str,
    /// What else has to be in it.
    said: &'static str,
}

const fn case(
    what: &'static str,
    flags: &'static str,
    settings: &'static str,
    field: &'static str,
    said: &'static str,
) -> Case {
    Case { what, flags, settings, field, said }
}

/// Management, right but for what a case adds.
const M: &str = "--enable-management-controllers --kubeconfig %/good --federation-kubeconfig %/good";
/// A cell, right but for what a case adds.
const C: &str = "--enable-cell-controllers --kubeconfig %/good --federation-kubeconfig %/good";
/// Direct mode, right but for what a case adds.
const D: &str = "--enable-management-controllers --enable-cell-controllers --kubeconfig %/good";
/// What a cell needs.
const CELL: &str = "provider: simulated\ndiscovery: {clusterName: c}\n";
/// What webhooks need beside their server.
const P: &str = "projectorIdentity: me\n";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Flags.
    case("no role", "--kubeconfig %/good", "", "--enable-management-controllers, --enable-cell-controllers", "at least one must be on"),
    case("both roles off", "--enable-management-controllers=false --enable-cell-controllers=false", "", "--enable-management-controllers, --enable-cell-controllers", "at least one"),
    case("unknown flag", "--enable-cell-controller", "", "command line", "--enable-cell-controllers"),
    case("flag value not a bool", "--enable-cell-controllers=maybe", "", "command line", "maybe"),
    case("log format", "--log-format xml", "", "command line", "json"),
    case("positional argument", "serve", "", "command line", "serve"),
    case("flag without its value", "--kubeconfig", "", "command line", "--kubeconfig"),
    case("flag given twice", "--kubeconfig a --kubeconfig b", "", "command line", "--kubeconfig"),
    case("health address", "M --health-probe-bind-address nonsense", "", "--health-probe-bind-address", "is not an address"),
    case("health port", "M --health-probe-bind-address :99999", "", "--health-probe-bind-address", "is not an address"),
    case("health address is not ours", "M --health-probe-bind-address 192.0.2.1:1", "", "--health-probe-bind-address", "cannot listen on 192.0.2.1:1"),
    case("unknown gate", "M --feature-gates Networking=true", "", "--feature-gates", "did you mean NetworkingIntegration?"),
    case("quite unknown gate", "M --feature-gates Xyz=true", "", "--feature-gates", "known are NetworkingIntegration"),
    case("gate value", "M --feature-gates NetworkingIntegration=yes", "", "--feature-gates", "must be true or false"),
    case("gate without value", "M --feature-gates NetworkingIntegration", "", "--feature-gates", "NAME=true"),
    case("gate twice", "M --feature-gates NetworkingIntegration=true,NetworkingIntegration=true", "", "--feature-gates", "twice"),
    case("leader election without namespace", "M --leader-elect", "", "--leader-election-namespace", "is missing"),
    case("leader election namespace", "M --leader-elect --leader-election-namespace Not_One", "", "--leader-election-namespace", "is not the name of a namespace"),
    // Kubeconfigs.
    case("no kubeconfig outside of a cluster", "--enable-management-controllers --federation-kubeconfig %/good", "", "--kubeconfig", "does not run in a cluster"),
    case("kubeconfig not there", "M --kubeconfig %/absent", "", "--kubeconfig", "cannot read"),
    case("kubeconfig is a folder", "M --kubeconfig %", "", "--kubeconfig", "cannot read"),
    case("kubeconfig is not YAML", "M --kubeconfig %/not-yaml", "", "--kubeconfig", "is not a kubeconfig: line"),
    case("kubeconfig is something else", "M --kubeconfig %/list", "", "--kubeconfig", "is not a kubeconfig"),
    case("kubeconfig is empty", "M --kubeconfig %/empty", "", "--kubeconfig", "has no current-context"),
    case("no current context", "M --kubeconfig %/no-context", "", "--kubeconfig", "has no current-context"),
    case("unknown context", "M --kubeconfig %/unknown-context", "", "--kubeconfig", "has no context \"two\""),
    case("unknown cluster", "M --kubeconfig %/unknown-cluster", "", "--kubeconfig", "has no cluster \"two\""),
    case("unknown user", "M --kubeconfig %/unknown-user", "", "--kubeconfig", "has no user \"two\""),
    case("server", "M --kubeconfig %/bad-server", "", "--kubeconfig", "is not an https address"),
    case("proxy", "M --kubeconfig %/proxy", "", "--kubeconfig", "proxies are not supported"),
    case("credential plugin", "M --kubeconfig %/exec", "", "--kubeconfig", "credential plugin"),
    case("token file not there", "M --kubeconfig %/no-token-file", "", "--kubeconfig", "absent-token"),
    case("token file is empty", "M --kubeconfig %/empty-token-file", "", "--kubeconfig", "which is empty"),
    case("token with a line break", "M --kubeconfig %/bad-token", "", "--kubeconfig", "characters that cannot be sent"),
    case("certificate without key", "M --kubeconfig %/no-key", "", "--kubeconfig", "without a client key"),
    case("key without certificate", "M --kubeconfig %/no-certificate", "", "--kubeconfig", "without a client certificate"),
    case("certificate is none", "M --kubeconfig %/bad-certificate", "", "--kubeconfig", "cannot be used"),
    case("authority not there", "M --kubeconfig %/no-authority", "", "--kubeconfig", "absent-ca"),
    case("authority is none", "M --kubeconfig %/bad-authority", "", "--kubeconfig", "without a certificate"),
    case("federation kubeconfig not there", "--enable-management-controllers --kubeconfig %/good --federation-kubeconfig %/absent", "", "--federation-kubeconfig", "cannot read"),
    case("federation kubeconfig without context", "--enable-management-controllers --kubeconfig %/good --federation-kubeconfig %/no-context", "", "--federation-kubeconfig", "has no current-context"),
    // Server config.
    case("server config not there", "M --server-config %/absent", "", "--server-config", "cannot read"),
    case("server config is not YAML", "M --server-config %/not-yaml", "", "--server-config", "is not valid YAML"),
    case("server config is a list", "M --server-config %/list", "", "--server-config", "must hold a mapping"),
    case("server config is empty", "M --server-config %/empty", "", "--server-config", "must hold a mapping"),
    case("no apiVersion", "M --server-config %/no-version", "", "apiVersion", "is missing"),
    case("wrong apiVersion", "M --server-config %/wrong-version", "", "apiVersion", "must be apiserver.config.datumapis.com/v1alpha1"),
    case("wrong kind", "M --server-config %/wrong-kind", "", "kind", "must be WorkloadOperator"),
    case("field twice", "M", "provider: none\nprovider: none\n", "--server-config", "duplicate"),
    case("unknown field", "M", "metricServer: {}\n", "metricServer", "did you mean metricsServer?"),
    case("quite unknown field", "M", "zzz: {}\n", "zzz", "known are"),
    case("unknown field of discovery", "C", "provider: none\ndiscovery: {clustername: c}\n", "discovery.clustername", "did you mean discovery.clusterName?"),
    case("unknown field of webhookServer", "M", "webhookServer: {certdir: /x}\n", "webhookServer.certdir", "did you mean webhookServer.certDir?"),
    case("unknown field of metricsServer", "M", "metricsServer: {bindAdress: ':1'}\n", "metricsServer.bindAdress", "did you mean metricsServer.bindAddress?"),
    case("unknown field of instanceGuard", "M", "instanceGuard: {allowed: []}\n", "instanceGuard.allowed", "did you mean instanceGuard.allow?"),
    case("section is text", "M", "discovery: milo\n", "discovery", "must be a mapping"),
    case("text is a number", "M", "discovery: {mode: 1}\n", "discovery.mode", "must be text"),
    case("flag is text", "M", "discovery: {mode: milo, internalServiceDiscovery: 'yes'}\n", "discovery.internalServiceDiscovery", "must be true or false"),
    case("list is text", "M", "instanceGuard: {allow: me}\n", "instanceGuard.allow", "must be a list"),
    case("entry is a number", "M", "instanceGuard: {allow: [1]}\n", "instanceGuard.allow[0]", "must be text"),
    case("entry names nobody", "M", "instanceGuard: {allow: ['group:']}\n", "instanceGuard.allow[0]", "name of a group"),
    case("projectorIdentity names nobody", "M", "projectorIdentity: ' '\n", "projectorIdentity", "name of a user"),
    case("metrics address", "M", "metricsServer: {bindAddress: localhost}\n", "metricsServer.bindAddress", "is not an address"),
    case("metrics address is that of health", "M --health-probe-bind-address 127.0.0.1:7", "metricsServer: {bindAddress: '127.0.0.1:7'}\n", "metricsServer.bindAddress", "must not be the address of"),
    case("metrics certificate not there", "M", "metricsServer: {certDir: '%/absent'}\n", "metricsServer.certDir", "cannot read"),
    case("unknown mode", "M", "discovery: {mode: many}\n", "discovery.mode", "must be milo or single"),
    case("cell in mode milo", "C", "provider: none\ndiscovery: {mode: milo, clusterName: c}\n", "discovery.mode", "must be single"),
    case("both roles in mode milo", "D --federation-kubeconfig %/good", "provider: none\ndiscovery: {mode: milo}\n", "discovery.mode", "must be single"),
    case("cell alone without a hub", "--enable-cell-controllers --kubeconfig %/good", CELL, "--federation-kubeconfig", "is missing"),
    case("management without a hub", "--enable-management-controllers --kubeconfig %/good", "", "--federation-kubeconfig", "is missing"),
    case("management of many without a hub", "--enable-management-controllers --kubeconfig %/good", "discovery: {mode: milo}\n", "--federation-kubeconfig", "is missing"),
    case("cell without its name", "C", "provider: none\n", "discovery.clusterName", "is missing"),
    case("cell with a bad name", "C", "provider: none\ndiscovery: {clusterName: Cell_1}\n", "discovery.clusterName", "is not the name of a Cluster"),
    case("cell with an empty name", "C", "provider: none\ndiscovery: {clusterName: ''}\n", "discovery.clusterName", "is missing"),
    case("cell without provider", "C", "discovery: {clusterName: c}\n", "provider", "is missing"),
    case("direct mode without provider", "D", "", "provider", "is missing"),
    case("unknown provider", "C", "provider: docker\n", "provider", "there are simulated and none"),
    case("bad project name", "D", "provider: none\ndiscovery: {projectName: 'My Project'}\n", "discovery.projectName", "is not the name of a project"),
    case("project name too long", "D", "provider: none\ndiscovery: {projectName: aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff}\n", "discovery.projectName", "label"),
    case("one plane for both", "D --federation-kubeconfig %/good", CELL, "discovery.projectKubeconfigPath", "must name the project's own plane"),
    case("internal discovery of one project", "M", "discovery: {internalServiceDiscovery: true}\n", "discovery.internalServiceDiscovery", "must be left out in mode single"),
    case("discovery kubeconfig of one project", "M", "discovery: {discoveryKubeconfigPath: '%/good'}\n", "discovery.discoveryKubeconfigPath", "must be left out in mode single"),
    case("discovery kubeconfig not there", "M", "discovery: {mode: milo, discoveryKubeconfigPath: '%/absent'}\n", "discovery.discoveryKubeconfigPath", "cannot read"),
    case("project kubeconfig not there", "M", "discovery: {mode: milo, projectKubeconfigPath: '%/absent'}\n", "discovery.projectKubeconfigPath", "cannot read"),
    case("quota kubeconfig not there", "C", "provider: none\ndiscovery: {clusterName: c, quotaKubeconfigPath: '%/absent'}\n", "discovery.quotaKubeconfigPath", "cannot read"),
    case("quota kubeconfig without context", "C", "provider: none\ndiscovery: {clusterName: c, quotaKubeconfigPath: '%/no-context'}\n", "discovery.quotaKubeconfigPath", "has no current-context"),
    case("quota kubeconfig that cannot be used", "C", "provider: none\ndiscovery: {clusterName: c, quotaKubeconfigPath: '%/bad-certificate'}\n", "discovery.quotaKubeconfigPath", "cannot be used"),
    // Webhooks.
    case("webhooks of a cell", "C", "provider: none\ndiscovery: {clusterName: c}\nwebhookServer: {certDir: '%'}\n", "webhookServer", "must be left out"),
    case("webhooks without certificates", "M", "P webhookServer: {}\n", "webhookServer.certDir", "is missing"),
    case("webhooks without an identity", "M", "webhookServer: {certDir: '%'}\n", "projectorIdentity", "is missing"),
    case("certDir not there", "M", "P webhookServer: {certDir: '%/absent'}\n", "webhookServer.certDir", "cannot read"),
    case("certificate of another name", "M", "P webhookServer: {certDir: '%', certName: other.crt}\n", "webhookServer.certDir", "other.crt"),
    case("certName is a path", "M", "P webhookServer: {certDir: '%', certName: ../tls.crt}\n", "webhookServer.certName", "must be the name of a file"),
    case("certificate is none", "M", "P webhookServer: {certDir: '%', certName: good}\n", "webhookServer.certDir", "cannot be used"),
    case("key of another certificate", "M", "P webhookServer: {certDir: '%', keyName: other.key}\n", "webhookServer.certDir", "cannot be used"),
    case("webhook address", "M", "P webhookServer: {certDir: '%', bindAddress: here}\n", "webhookServer.bindAddress", "is not an address"),
    case("webhooks nowhere", "M", "P webhookServer: {certDir: '%', bindAddress: 0}\n", "webhookServer.bindAddress", "leave webhookServer out"),
    case("webhook address is not ours", "M", "P webhookServer: {certDir: '%', bindAddress: '192.0.2.1:1'}\n", "webhookServer.bindAddress", "cannot listen on"),
];

/// A kubeconfig with something else in place of one of its parts.
fn kubeconfig(part: &str, instead: &str) -> String {
    let parts = [
        ("current", "current-context: one"),
        ("context", "cluster: one, user: one"),
        ("cluster", "server: 'https://127.0.0.1:1'"),
        ("user", "token: very-secret-token"),
    ];
    let [current, context, cluster, user] =
        parts.map(|(name, usual)| if name == part { instead } else { usual });
    format!(
        "apiVersion: v1\nkind: Config\n{current}\ncontexts: [{{name: one, context: {{{context}}}}}]\n\
         clusters: [{{name: one, cluster: {{{cluster}}}}}]\nusers: [{{name: one, user: {{{user}}}}}]\n"
    )
}

fn lay_out(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let server = "server: 'https://127.0.0.1:1'";
    for (name, part, instead) in [
        ("good", "", ""),
        ("no-context", "current", ""),
        ("unknown-context", "current", "current-context: two"),
        ("unknown-cluster", "context", "cluster: two, user: one"),
        ("unknown-user", "context", "cluster: one, user: two"),
        ("bad-server", "cluster", "server: 'ftp://x'"),
        ("proxy", "cluster", &format!("{server}, proxy-url: 'http://127.0.0.1:2'")),
        ("no-authority", "cluster", &format!("{server}, certificate-authority: absent-ca")),
        ("bad-authority", "cluster", &format!("{server}, certificate-authority: good")),
        ("exec", "user", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"),
        ("no-token-file", "user", "tokenFile: absent-token"),
        ("empty-token-file", "user", "tokenFile: empty"),
        ("bad-token", "user", "token: \"very-secret-token\\n\\u0001\""),
        ("no-key", "user", "client-certificate: tls.crt"),
        ("no-certificate", "user", "client-key: tls.key"),
        ("bad-certificate", "user", "client-certificate: good, client-key: good"),
    ] {
        write(name, &kubeconfig(part, instead));
    }
    write("not-yaml", "users: [{name: one, user: {token: very-secret-token\n  - }\n:::");
    write("list", "[1, 2]");
    write("empty", "");
    write("no-version", "kind: WorkloadOperator");
    write("wrong-version", "apiVersion: v1\nkind: WorkloadOperator");
    write("wrong-kind", "apiVersion: apiserver.config.datumapis.com/v1alpha1\nkind: Config");
    let authority = Authority::generate("test").unwrap();
    let [one, other] = [(); 2].map(|()| authority.issue_server(&["localhost".to_owned()]).unwrap());
    write("tls.crt", &one.certificate);
    write("tls.key", &one.key);
    write("other.key", &other.key);
}

async fn complaint(folder: &Path, case: &Case) -> Result<(), String> {
    let at = folder.to_str().unwrap();
    let (role, rest) = match case.flags.split_at_checked(1) {
        Some(("M", rest)) => (M, rest),
        Some(("C", rest)) => (C, rest),
        Some(("D", rest)) => (D, rest),
        _ => ("", case.flags),
    };
    // What a case says comes later, and must not be there twice.
    let role =
        if rest.contains("--kubeconfig") { role.replace("--kubeconfig %/good", "") } else { role.to_owned() };
    let mut flags = format!("{role} {rest}");
    if !case.settings.is_empty() {
        let settings = case.settings.replace("P ", P).replace('%', at);
        std::fs::write(folder.join("config.yaml"), format!("{HEAD}{settings}")).unwrap();
        flags.push_str(" --server-config %/config.yaml");
    }
    let flags = flags.replace('%', at);
    // Ports of the real world are nobody's business here, unless a case is about them.
    let health = ["--health-probe-bind-address", "127.0.0.1:0"];
    let health = if flags.contains(health[0]) { &[][..] } else { &health[..] };
    let ran = output(|command| _ = command.args(flags.split_whitespace()).args(health)).await?;
    let (said, printed) = (String::from_utf8_lossy(&ran.stderr), String::from_utf8_lossy(&ran.stdout));
    let wanted = format!("error: {}: ", case.field);
    if ran.status.code() != Some(1) || !printed.is_empty() {
        return Err(format!("{}: {said}{printed}", ran.status));
    }
    if said.lines().count() != 1 || !said.starts_with(&wanted) || !said.contains(case.said) {
        return Err(format!("said {said:?}, wanted {wanted:?} and {:?}", case.said));
    }
    if said.contains(SECRET) || said.contains("BEGIN") {
        return Err(format!("a secret is told: {said}"));
    }
    Ok(())
}

#[tokio::test]
async fn each_mistake_gives_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let mut wrong = Vec::new();
    for case in CASES {
        if let Err(why) = complaint(folder.path(), case).await {
            wrong.push(format!("{}: {why}", case.what));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
    assert!(CASES.len() >= 90);
}

#[tokio::test]
async fn mistakes_in_the_environment_name_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    lay_out(folder.path());
    let good = folder.path().join("good");
    for (name, value, said) in [
        ("FEDERATION_KUBECONFIG", "/absent", "error: FEDERATION_KUBECONFIG: cannot read /absent"),
        ("FEATURE_GATES", "Nope=true", "error: FEATURE_GATES: there is no feature gate"),
    ] {
        let ran = output(|command| {
            command.args(["--enable-management-controllers", "--kubeconfig"]).arg(&good);
            command.env("FEDERATION_KUBECONFIG", &good).env(name, value);
        });
        let ran = ran.await.unwrap();
        let text = String::from_utf8_lossy(&ran.stderr);
        assert!(
            ran.status.code() == Some(1) && text.starts_with(said) && text.lines().count() == 1,
            "{text}"
        );
    }
}

#[tokio::test]
async fn help_and_version_are_no_mistakes() {
    for (flag, wanted) in [("--help", "Examples:"), ("--version", "compute-manager")] {
        let ran = output(|command| _ = command.arg(flag)).await.unwrap();
        assert!(ran.status.success());
        assert!(String::from_utf8_lossy(&ran.stdout).contains(wanted));
    }
}
