//! Nothing happens, nothing is asked: requests are counted on every wire, on a clock that stands still until all wait.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_apiserver::{Options, Random as ServerRandom};
use compute_local::Settings;
use compute_runtime::clock::{Clock, TimerClock};
use compute_runtime::{Random, Runtime};
use compute_testkit::objects::{placement, workload};
use compute_testkit::{Embedded, View, Worker, eventually};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// The server's clock and the runtime's are one.
struct Shared(TimerClock);

impl compute_apiserver::Clock for Shared {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

async fn stack() -> Embedded {
    let clock = TimerClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let options =
        Options { clock: Arc::new(Shared(clock)), random: ServerRandom::seeded(1), ..Options::default() };
    let settings = Settings { cities: ["DFW", "ORD"].map(str::to_owned).to_vec(), ..Settings::default() };
    Embedded::with(options, Runtime::new(clock, Random::seeded(1)), settings).await
}

/// A project with so many instances, all ready, and nothing left to do.
async fn with_instances<'a>(
    stack: &'a Embedded,
    project: &str,
    workloads: usize,
    each: i64,
) -> View<'a, Embedded> {
    let view = View::new(stack, project).await;
    for number in 0..workloads {
        let name = format!("web-{number}");
        let mut wanted = workload(&name, &["DFW", "ORD"], each);
        let mut all = placement("main", &["DFW", "ORD"], each);
        all.scale_settings.instance_management_policy = "Parallel".to_owned();
        wanted.spec.placements = vec![all];
        view.create(&wanted).await;
    }
    for number in 0..workloads {
        let name = format!("web-{number}");
        let names = ["dfw", "ord"].map(|city| format!("{name}-main-{city}"));
        let each = usize::try_from(each).unwrap();
        view.until_ready(&name, &[(&names[0], each), (&names[1], each)]).await;
    }
    settle(stack).await;
    view
}

/// Waits until a simulated minute passes without a write.
async fn settle(stack: &Embedded) {
    eventually("a minute passes without a write", async || {
        stack.wires.take_counts();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let counts = stack.wires.take_counts();
        if counts.writes == 0 { Ok(()) } else { Err(counts.log.join("\n")) }
    })
    .await;
}

/// What was asked, but for the questions whether a cell still answers.
fn asked(log: &[String]) -> Vec<&String> {
    let probe = |line: &str| {
        line.starts_with(&format!("{:?} cell-", Worker::Surroundings)) && line.ends_with("/readyz")
    };
    log.iter().filter(|line| !probe(line)).collect()
}

#[tokio::test(start_paused = true)]
async fn thirty_minutes_with_a_thousand_instances_and_nothing_changing() {
    let stack = stack().await;
    let _view = with_instances(&stack, "quiet", 10, 50).await;
    stack.wires.take_counts();
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    let counts = stack.wires.take_counts();
    assert_eq!(counts.writes, 0, "{:#?}", counts.log);
    assert!(asked(&counts.log).is_empty(), "{:#?}", asked(&counts.log));
}

/// What one changed instance costs, among so many.
async fn cost_of_one_change(workloads: usize, each: i64) -> Vec<String> {
    let stack = stack().await;
    let view = with_instances(&stack, "change", workloads, each).await;
    let name = "web-0-main-dfw-0";
    let real = view.in_cell::<Instance>("DFW");
    stack.wires.take_counts();
    let crash = json!({ "metadata": { "annotations": { "simulated.datumapis.com/crash": "true" } } });
    real.patch(name, &PatchParams::default(), &Patch::Merge(crash)).await.unwrap();
    eventually("the project shows it", async || {
        let seen = view.mine::<Instance>().get(name).await.unwrap().status.unwrap();
        let said = c::find(&seen.conditions, c::READY).unwrap().clone();
        if said.reason == c::INSTANCE_CRASHING { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let counts = stack.wires.take_counts();
    let mut log: Vec<String> = asked(&counts.log).into_iter().cloned().collect();
    log.sort();
    log
}

#[tokio::test(start_paused = true)]
async fn one_change_costs_the_same_among_ten_and_among_a_thousand() {
    let few = cost_of_one_change(5, 1).await;
    let many = cost_of_one_change(10, 50).await;
    assert_eq!(few.len(), many.len(), "{few:#?}\n{many:#?}");
}
