//! Somebody at a terminal.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use compute_api::{compute, networking, quota};
use compute_apiserver::Identity;
use compute_local::planes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::real::manager::{Files, program};
use crate::real::proxy::{Host, Listener};
use crate::real::{RealStack, install};
use crate::stack::{Stack as _, Worker};
use crate::view::View;

const IMAGE: &str = "ghcr.io/example/web:1.0";

const PROJECT: &str = "terminal";

const ANN: &str = "ann";

/// Deploy, look, change, go back, scale, destroy: with nothing but the program and a kubeconfig.
pub async fn works_with_the_command_line(stack: &RealStack) {
    let view = View::new(stack, PROJECT).await;
    let city = &stack.cities()[0];
    install::person(&view.client(), ANN, &rights()).await;
    let terminal = Terminal::of_ann(stack).await;

    terminal.shows("cities -o name", city).await;
    terminal.shows("quota", "instances").await;
    let deploy = format!("deploy web --image {IMAGE} --city {city} --min 2");
    terminal.shows(&format!("{deploy} --dry-run"), "Nothing was written").await;
    terminal.shows(&deploy, "2 Available").await;
    terminal.shows("status web", "all 2 instances ready").await;
    terminal.shows("explain web", "Nothing is in the way").await;
    terminal.shows("instances --workload web -o name", &format!("web-main-{}-1", city.to_lowercase())).await;
    terminal.shows("deploy web --env MODE=fast", "env MODE added").await;
    terminal.shows("rollout undo web", "env MODE removed").await;
    terminal.shows("scale web --min 1", "1 instance: 1 Available").await;
    let history: Vec<Value> =
        serde_json::from_str(&terminal.prints("rollout history web -o json").await).unwrap();
    let actions: Vec<_> = history.iter().map(|one| one["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["deploy", "deploy", "undo to revision 1", "scale"]);
    assert!(history.iter().all(|one| one["by"].as_str().is_some_and(|by| by == ANN)), "{history:#?}");
    terminal.shows("destroy web -y", "web is destroyed").await;
    assert_eq!(terminal.prints("workloads -o name").await, "");
    view.until_gone("web").await;
}

struct Terminal {
    kubeconfig: PathBuf,
    _way: Listener,
}

impl Terminal {
    /// The project is reached where people reach theirs: under its path at the platform's front.
    async fn of_ann(stack: &RealStack) -> Self {
        let token = "token-of-ann";
        let tokens = Arc::new(Mutex::new(BTreeSet::from([token.to_owned()])));
        let host = Host::Milo { milo: stack.milo.clone(), identity: Identity::user(ANN), tokens };
        let way = Listener::start(&stack.authority, &stack.wires, &Worker::Surroundings, host).await;
        let route = planes::project_route();
        let url = format!("{}{}{PROJECT}{}", way.url(), route.before, route.after);
        let files = Files::new(stack.dir.join(ANN));
        Self { kubeconfig: files.kubeconfig(ANN, &url, stack.authority_pem(), token), _way: way }
    }

    /// Types a command that has to go well: what it says, and what it prints.
    async fn typed(&self, line: &str) -> (String, String) {
        let output = Command::new(program("datumctl-compute"))
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", self.kubeconfig.parent().unwrap())
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{line}: {}\n{said}{printed}", output.status);
        (said, printed)
    }

    async fn prints(&self, line: &str) -> String {
        self.typed(line).await.1
    }

    async fn shows(&self, line: &str, part: &str) {
        let (said, printed) = self.typed(line).await;
        assert!(said.contains(part) || printed.contains(part), "{line}: no {part:?} in:\n{said}{printed}");
    }
}

/// What somebody needs who deploys.
fn rights() -> Value {
    let look = ["get", "list", "watch"];
    json!([
        { "apiGroups": [compute::GROUP], "resources": ["workloads"],
          "verbs": ["get", "list", "watch", "create", "patch", "delete"] },
        { "apiGroups": [compute::GROUP], "resources": ["workloaddeployments", "instances"], "verbs": look },
        { "apiGroups": [networking::GROUP], "resources": ["locationbindings"], "verbs": look },
        { "apiGroups": [networking::GROUP], "resources": ["networks"], "verbs": ["get", "list", "watch", "use"] },
        { "apiGroups": [quota::GROUP], "resources": ["allowancebuckets", "resourceclaims"], "verbs": look },
        { "apiGroups": [""], "resources": ["namespaces", "events"], "verbs": look },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch"] },
    ])
}
