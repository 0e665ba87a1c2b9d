//! What nothing happens to costs nothing, and what happens to one object costs the same however many there are.

use std::collections::BTreeMap;
use std::time::Duration;

use compute_api::compute::{Instance, Workload};
use compute_api::conditions as c;
use serde_json::json;

use crate::support::*;

const WELL: (&str, &str) = ("True", c::INSTANCE_AVAILABLE);

/// Workloads with deployments that have reported, and two instances each.
async fn fill(world: &World, project: &str, workloads: usize) {
    for n in 0..workloads {
        world.create::<Workload>(project, &workload(&format!("w{n}"), &[("main", &["DFW", "IAD"])])).await;
    }
    for n in 0..workloads {
        for city in ["dfw", "iad"] {
            let name = format!("w{n}-main-{city}");
            world.report(project, &name, 2).await;
            world.write_back(project, &name, 0, WELL).await;
            world.write_back(project, &name, 1, WELL).await;
        }
    }
    for n in 0..workloads {
        let done = |workload: &Workload| workload.status.as_ref().unwrap().ready_replicas == Some(4);
        world.becomes(project, NS, &format!("w{n}"), done).await;
    }
    eventually("all instances", async || match world.list::<Instance>(project).await.len() {
        found if found == workloads * 4 => Ok(()),
        found => Err(format!("{found}")),
    })
    .await;
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_while_nothing_happens() {
    let world = World::new().await;
    let manager = world.start().await;
    fill(&world, "a", 5).await;
    fill(&world, "b", 2).await;
    let before = world.requests();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.requests(), before);

    // A manager that starts looks at everything, and finds nothing to do; nor does one whose watches broke.
    manager.stop().await;
    let _manager = world.start().await;
    world.settle().await;
    for plane in ["a", "b", "hub"] {
        world.wire(plane).down();
        world.wire(plane).good();
    }
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.requests(), before);
}

/// What is asked of each plane, by verb and kind.
fn asked(world: &World, since: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut asked = Vec::new();
    for (plane, seen) in since {
        for request in &world.wire(plane).requests()[*seen..] {
            let (verb, path) = request.split_once(' ').unwrap();
            let kind =
                path.split('/').find(|part| part.ends_with('s') && *part != "apis" && *part != "namespaces");
            asked.push(format!("{plane} {verb} {}", kind.unwrap_or(path)));
        }
    }
    asked.sort();
    asked
}

fn seen(world: &World) -> BTreeMap<&'static str, usize> {
    ["a", "b", "core", "hub"].map(|plane| (plane, world.wire(plane).requests().len())).into()
}

#[tokio::test(start_paused = true)]
async fn one_change_costs_the_same_among_few_and_many() {
    let mut costs = Vec::new();
    for workloads in [1, 12] {
        let world = World::new().await;
        let _manager = world.start().await;
        fill(&world, "a", workloads).await;
        let mut cost = Vec::new();

        let before = seen(&world);
        world.write_back("a", "w0-main-dfw", 1, ("False", c::STARTING)).await;
        world.settle().await;
        cost.push(asked(&world, &before));

        let before = seen(&world);
        world.report("a", "w0-main-dfw", 1).await;
        world.settle().await;
        cost.push(asked(&world, &before));

        let before = seen(&world);
        world.patch::<Workload>("a", NS, "w0", json!({ "spec": { "paused": true } })).await;
        world.settle().await;
        cost.push(asked(&world, &before));

        let before = seen(&world);
        world.create::<Workload>("a", &workload("new", &[("main", &["DFW"])])).await;
        world.settle().await;
        world.delete::<Workload>("a", NS, "new").await;
        world.settle().await;
        cost.push(asked(&world, &before));
        costs.push(cost);
    }
    assert_eq!(costs[0][0], ["a PATCH instances"]);
    assert_eq!(costs[0][1], ["a PATCH workloaddeployments", "a PATCH workloads"]);
    let writes =
        |cost: &[String]| cost.iter().filter(|asked| !asked.contains("GET")).cloned().collect::<Vec<_>>();
    for (few, many) in costs[0].iter().zip(&costs[1]) {
        assert_eq!(writes(few), writes(many));
        assert!(many.len() <= few.len() + 2, "{few:?} {many:?}");
    }
    assert_eq!(
        costs[0][2].iter().filter(|asked| asked.starts_with("hub PATCH")).count(),
        2,
        "one copy for each city"
    );
}
