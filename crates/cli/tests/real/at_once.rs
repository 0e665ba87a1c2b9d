//! Two people at the same workload at once: neither change is lost without a word, and the history has both.

use crate::story::DEPLOY;
use crate::support::{Local, Ran};
use crate::terminal::Terminal;
use compute_api::compute::Workload;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

/// The workload's spec as it is stored.
async fn stored(local: &Local, name: &str) -> Value {
    let workloads: Api<Workload> = Api::default_namespaced(local.client());
    serde_json::to_value(&workloads.get(name).await.unwrap().spec).unwrap()
}

/// Its revisions: number, and by whom.
async fn history(local: &Local, name: &str) -> Vec<(i64, String)> {
    let history = local.run(&format!("rollout history {name} -o json")).await.ends(0);
    let history: Vec<Value> = serde_json::from_str(&history.out).unwrap();
    let by = |one: &Value| one["by"].as_str().unwrap_or("nobody").to_owned();
    history.iter().map(|one| (one["revision"].as_i64().unwrap(), by(one))).collect()
}

fn container(spec: &Value) -> &Value {
    &spec["template"]["spec"]["runtime"]["sandbox"]["containers"][0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_deploys_and_one_scales() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    for round in 0..3 {
        let image = format!("deploy web --image ghcr.io/example/web:2.{round} --no-wait");
        let scale = format!("scale web --min {} --no-wait", 3 + round);
        let (first, second) = tokio::join!(local.run_as("ann", &image), local.run_as("bob", &scale));
        let (first, second) = (first.ends(0), second.ends(0));
        let workloads: Api<Workload> = Api::default_namespaced(local.client());
        let stored = workloads.get("web").await.unwrap();
        let container = &stored.spec.template.spec.runtime.sandbox.as_ref().unwrap().containers[0];
        assert_eq!(container.image, format!("ghcr.io/example/web:2.{round}"), "{first:?} {second:?}");
        assert_eq!(stored.spec.placements[0].scale_settings.min_replicas, 3 + round);
    }
    let history = local.run("rollout history web -o json").await.ends(0);
    let history: Vec<Value> = serde_json::from_str(&history.out).unwrap();
    assert_eq!(history.len(), 7, "{history:#?}");
    let by: Vec<_> = history.iter().map(|one| one["by"].as_str().unwrap()).collect();
    assert_eq!(by.iter().filter(|by| **by == "bob").count(), 3);
    let numbers: Vec<_> = history.iter().map(|one| one["revision"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (1..=7).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_deploy() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    for round in 0..3 {
        let image = format!("deploy web --image ghcr.io/example/web:2.{round} --no-wait");
        let variable = format!("deploy web --env ROUND={round} --no-wait");
        let (ann, bob) = tokio::join!(local.run_as("ann", &image), local.run_as("bob", &variable));
        let (ann, bob) = (ann.ends(0), bob.ends(0));
        let spec = stored(&local, "web").await;
        assert_eq!(container(&spec)["image"], format!("ghcr.io/example/web:2.{round}"), "{ann:?} {bob:?}");
        assert_eq!(container(&spec)["env"][0]["value"], round.to_string(), "{ann:?} {bob:?}");
        // Each has its own revision, and says its own change alone.
        for (ran, own, other) in [(&ann, "image", "env ROUND"), (&bob, "env ROUND", "image 2.")] {
            let done = ran.out.lines().find(|line| line.starts_with("web is changed (revision")).unwrap();
            assert!(done.contains(own) && !done.contains(other), "{ran:?}");
        }
    }
    let found = history(&local, "web").await;
    let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=7).collect::<Vec<_>>(), "{found:?}");
    assert_eq!(found.iter().filter(|(_, by)| by == "bob").count(), 3, "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_make_the_same() {
    let local = Local::start().await;
    let line = |image: &str| format!("deploy shop --image ghcr.io/example/{image} --city DFW --no-wait");
    let (ann, bob) = (line("shop:1.0"), line("shop:2.0"));
    let (ann, bob) = tokio::join!(local.run_as("ann", &ann), local.run_as("bob", &bob));
    let both: [Ran; 2] = [ann.ends(0), bob.ends(0)];
    let (made, changed) = match both[0].out.contains("shop is created (revision 1)") {
        true => (&both[0], &both[1]),
        false => (&both[1], &both[0]),
    };
    assert!(made.out.contains("shop is created (revision 1)"), "{both:?}");
    // Whoever comes second knows what was there.
    assert!(changed.out.contains("shop is changed (revision 2): image"), "{both:?}");
    let mut people: Vec<String> = history(&local, "shop").await.into_iter().map(|(_, by)| by).collect();
    people.sort();
    assert_eq!(people, ["ann", "bob"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_does_not_undo_what_somebody_else_does_meanwhile() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    let yaml = local.run("workloads describe web -o yaml").await.ends(0).out;
    let path = local.dir.path().join("web.yaml");
    std::fs::write(path, yaml.replace("web:1.0", "web:3.0")).unwrap();

    // Ann is shown what her file changes, and thinks about it; bob scales.
    let terminal = Terminal::open(&local, 120, 50).await;
    terminal.type_line("datumctl-compute deploy -f web.yaml --no-wait").await;
    terminal.until("the question", |text| text.lines().any(|line| line.starts_with('?'))).await;
    local.run_as("bob", "scale web --min 3 --no-wait").await.ends(0);
    let shown = terminal.answer("y").await;
    for part in
        ["changed meanwhile by bob", "min 2 → 3", "nothing of yours was written", "rollout history web"]
    {
        assert!(shown.contains(part), "no {part:?} in:\n{shown}");
    }
    assert!(shown.contains("(exit code 1)"), "{shown}");
    let spec = stored(&local, "web").await;
    assert_eq!(container(&spec)["image"], "ghcr.io/example/web:1.0");
    assert_eq!(spec["placements"][0]["scaleSettings"]["minReplicas"], 3);

    // She looks again, and now knows what her file would undo.
    let shown = terminal.run("datumctl-compute deploy -f web.yaml --no-wait", &[("", "y")]).await;
    assert!(shown.contains("min 3 → 2") && shown.contains("image 1.0 → 3.0"), "{shown}");
    let people: Vec<String> = history(&local, "web").await.into_iter().map(|(_, by)| by).collect();
    assert_eq!(people, ["ann", "bob", "ann"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_overtaken_is_told() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    let workloads: Api<Workload> = Api::default_namespaced(local.client());
    let slow = serde_json::json!({ "spec": { "template": { "metadata": { "annotations": {
        "simulated.datumapis.com/start-delay": "60s" } } } } });
    workloads.patch("web", &PatchParams::default(), &Patch::Merge(&slow)).await.unwrap();
    let generation = workloads.get("web").await.unwrap().metadata.generation;
    let bob = async {
        while workloads.get("web").await.unwrap().metadata.generation == generation {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        local.run_as("bob", "deploy web --env BY=bob --no-wait").await.ends(0)
    };
    let (ann, _) = tokio::join!(local.run_as("ann", "deploy web --image ghcr.io/example/web:2.0"), bob);
    ann.ends(1).says("the rollout of web was overtaken").says("rollout history web");
    assert_eq!(container(&stored(&local, "web").await)["image"], "ghcr.io/example/web:2.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_to_what_goes_away() {
    let local = Local::start().await;
    local.run(DEPLOY).await.ends(0);
    let workloads: Api<Workload> = Api::default_namespaced(local.client());
    let held = serde_json::json!({ "metadata": { "finalizers": ["example.com/held"] } });
    workloads.patch("web", &PatchParams::default(), &Patch::Merge(&held)).await.unwrap();
    local.run("destroy web -y --no-wait").await.ends(0);
    for line in [
        "deploy web --image ghcr.io/example/web:2.0 --no-wait",
        "scale web --min 1 --no-wait",
        "rollout pause web",
    ] {
        local.run(line).await.ends(1).says("it is being destroyed");
    }
    assert_eq!(container(&stored(&local, "web").await)["image"], "ghcr.io/example/web:1.0");
}
