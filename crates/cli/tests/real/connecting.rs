//! Ways into a project: datumctl's plugin protocol, a kubeconfig, a platform on this machine; and what happens when there is none.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Local, PATIENT, Ran, bare, ended};
use compute_api::milo::ServiceEntitlement;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};

/// A helper program that gives one token after the other, and notes how it was called.
fn helper(dir: &Path, tokens: &[&str]) -> PathBuf {
    let path = dir.join("datumctl");
    let mut script =
        format!("#!/bin/sh\necho \"$@\" >> {0}/calls\nn=$(wc -l < {0}/calls)\ncase $n in\n", dir.display());
    for (at, token) in tokens.iter().enumerate() {
        let pattern = if at + 1 == tokens.len() { "*".to_owned() } else { (at + 1).to_string() };
        script.push_str(&format!("{pattern}) echo '{token}';;\n"));
    }
    script.push_str("esac\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

async fn as_plugin(local: &Local, helper: &Path, line: &str) -> Ran {
    let mut command = bare(local.dir.path());
    command
        .env("DATUMCTL_COMPUTE_REQUEST_TIMEOUT", PATIENT)
        .env("DATUM_API_HOST", &local.url)
        .env("DATUM_PROJECT", "demo")
        .env("DATUM_SESSION", "s1")
        .env("DATUM_PLUGIN_API_VERSION", "1")
        .env("DATUM_CREDENTIALS_HELPER", helper)
        .env("SSL_CERT_FILE", local.dir.path().join("ca.pem"))
        .args(line.split_whitespace());
    ended(command).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_a_plugin_of_datumctl() {
    let local = Local::start().await;
    let calls = local.dir.path().join("calls");
    let good = helper(local.dir.path(), &["token-of-ann"]);
    as_plugin(&local, &good, "workloads").await.ends(0).says("datumctl compute deploy hello");
    // One token is enough for all requests of a command.
    assert_eq!(std::fs::read_to_string(&calls).unwrap(), "auth get-token --session s1\n");

    // One that has expired is replaced, once.
    std::fs::remove_file(&calls).unwrap();
    let expired = helper(local.dir.path(), &["stale", "token-of-ann"]);
    as_plugin(&local, &expired, "cities").await.ends(0).shows("DFW");

    std::fs::remove_file(&calls).unwrap();
    let never = helper(local.dir.path(), &["secret-that-is-stale"]);
    let refused =
        as_plugin(&local, &never, "cities").await.ends(3).says("not signed in").says("datumctl login");
    assert!(!refused.err.contains("secret-that-is-stale"), "{}", refused.err);

    std::fs::write(local.dir.path().join("datumctl"), "#!/bin/sh\necho 'session expired' >&2\nexit 1\n")
        .unwrap();
    as_plugin(&local, &never, "cities").await.ends(3).says("session expired").says("datumctl login");
    as_plugin(&local, Path::new("/nowhere/datumctl"), "cities").await.ends(3).says("cannot be run");
}

#[tokio::test]
async fn what_datumctl_asks() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = bare(dir.path());
    command.arg("--plugin-manifest");
    let manifest = ended(command).await.ends(0);
    let manifest: serde_json::Value = serde_json::from_str(&manifest.out).unwrap();
    assert_eq!(manifest["name"], "compute");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_platform_on_this_machine_needs_no_configuration() {
    let local = Local::start().await;
    local.be_found();
    let run = async |line: &str| {
        let mut command = bare(local.dir.path());
        command.env("DATUMCTL_COMPUTE_REQUEST_TIMEOUT", PATIENT).args(line.split_whitespace());
        ended(command).await
    };
    run("cities").await.ends(0).shows("DFW");
    run("cities --project demo").await.ends(0).shows("DFW");
    run("cities --project other").await.ends(2).says("no such project").says("demo");
    let path = local.kubeconfig("bob");
    run(&format!("cities --kubeconfig {}", path.display())).await.ends(0);
    run(&format!("cities --kubeconfig {} --context x", path.display())).await.ends(2).says("project-demo");
    run("cities --kubeconfig none.yaml").await.ends(2).says("kubeconfig");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_kubeconfig_is_enough() {
    let local = Local::start().await;
    // As for any API server: no project is in the address, no namespace is in the context, and names mean nothing.
    let text = std::fs::read_to_string(local.kubeconfig("ann")).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] = format!("{}/planes/project-demo", local.url).into();
    config["contexts"][0]["name"] = "kind-somewhere".into();
    config["contexts"][0]["context"].as_object_mut().unwrap().remove("namespace");
    config["current-context"] = "kind-somewhere".into();
    let path = local.dir.path().join("plain.yaml");
    std::fs::write(&path, config.to_string()).unwrap();
    let run = async |line: &str| {
        let mut command = bare(local.dir.path());
        command.env("DATUMCTL_COMPUTE_REQUEST_TIMEOUT", PATIENT).env("KUBECONFIG", &path);
        command.args(line.split_whitespace());
        ended(command).await
    };
    run("cities -o name").await.ends(0).shows("DFW");
    run("deploy web --image ghcr.io/example/web:1.0 --city DFW").await.ends(0).shows("1 Available");
    run("destroy web -y").await.ends(0).shows("web is destroyed");
    assert_eq!(run("workloads -o name").await.ends(0).out, "");
}

#[tokio::test]
async fn nothing_to_connect_to() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = bare(dir.path());
    command.arg("workloads");
    ended(command).await.ends(2).says("cannot tell which project").says("compute-local up");
}

fn kubeconfig(dir: &Path, server: &str) -> PathBuf {
    let path = dir.join("dead.yaml");
    let text = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{ "name": "a", "cluster": { "server": server } }],
        "users": [{ "name": "a", "user": { "token": "very-secret" } }],
        "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

#[tokio::test]
async fn a_dead_server_gives_an_answer_soon() {
    let dir = tempfile::tempdir().unwrap();
    // One takes connections and says nothing; at the other nothing listens.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let servers = [
        (format!("http://{}", silent.local_addr().unwrap()), 4, "gave no answer within 4.5 s"),
        (format!("http://{closed}"), 1, "nothing runs there"),
    ];
    for (server, exit, why) in servers {
        let mut command = bare(dir.path());
        command.env("KUBECONFIG", kubeconfig(dir.path(), &server)).arg("workloads");
        // How long it waits is its own to say: a busy machine may take its time to start a program.
        let answer = ended(command).await.ends(exit).says(why).says("next:");
        assert!(!answer.err.contains("very-secret") && !answer.err.contains("://"), "{}", answer.err);
    }
}

/// Every command that needs the service.
const GATED: [&str; 17] = [
    "workloads",
    "workloads describe web",
    "instances",
    "instances describe web",
    "status",
    "status web",
    "cities",
    "quota",
    "instance-types",
    "deploy web --image a --city DFW",
    "scale web --min 1",
    "rollout status web",
    "rollout history web",
    "rollout undo web",
    "explain web",
    "destroy web -y",
    "restart web",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_has_to_be_enabled() {
    let local = Local::start_unhurried().await;
    let requests: Api<ServiceEntitlement> = Api::all(local.client());
    for request in requests.list(&ListParams::default()).await.unwrap().items {
        requests.delete(&request.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
    }
    for line in GATED {
        local.run(line).await.ends(3).says("not enabled").says("datumctl-compute access request");
    }
    local.run("access").await.ends(3).shows("not enabled").shows("access request");

    // Asked for, and asked for again: nothing is wrong, and nothing is asked.
    for _ in 0..2 {
        local.run("access request").await.ends(0).shows("being activated");
    }
    for line in GATED {
        let said = local.run(line).await.ends(3).says("is being activated").says("datumctl-compute access");
        assert!(!said.err.contains("error") && !said.err.contains("request"), "{line}: {said:?}");
    }
    assert_eq!(requests.list(&ListParams::default()).await.unwrap().items.len(), 1);

    // Active.
    let name = compute_api::milo::COMPUTE_ENTITLEMENT;
    let ready = serde_json::json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-05-01T00:00:00Z",
    }] } });
    requests.patch_status(name, &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
    local.run("access").await.ends(0).shows("is enabled");
    local.run("workloads").await.ends(0).says("No workloads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shells_complete_live_names() {
    let local = Local::start().await;
    local.run("deploy web --image a:1 --city DFW --no-wait").await.ends(0);
    let complete = async |words: &[&str]| {
        let mut command = bare(local.dir.path());
        command
            .env("KUBECONFIG", local.kubeconfig("ann"))
            .env("DATUMCTL_COMPUTE_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
            .env("_CLAP_IFS", "\n")
            .arg("--")
            .args(words);
        ended(command).await
    };
    complete(&["datumctl-compute", "status", "w"]).await.ends(0).shows("web");
    complete(&["datumctl-compute", "quota", "--city", "d"]).await.ends(0).shows("DFW");
    complete(&["datumctl-compute", "roll"]).await.ends(0).shows("rollout");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        local.run(&format!("completion {shell}")).await.ends(0).shows("datumctl-compute");
    }
}
