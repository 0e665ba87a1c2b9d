//! What one changed instance costs, among few and among many.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use compute_api::compute::{Instance, Workload};
use compute_api::conditions as c;
use compute_api::k8s::Namespace;
use compute_api::names::hub_namespace;
use compute_apiserver::{ApiServer, Options};
use compute_local::{Platform, Settings, planes};
use compute_runtime::Runtime;
use compute_runtime::tasks::Tasks;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::flow::workload;
use super::wire::{Counts, to_planes};
use crate::budget::Budget;
use crate::child::{Child, Role, tell};
use crate::process;
use crate::report::Section;
use crate::stats::millis;
use crate::table::{Table, figure};

const TEXT: &str = "\
A platform with so many instances, all ready, in projects of up to 500. One of them crashes, and is well again, several times. Requests are all that every controller, provider and stand-in sends to \
any plane from a crash on until nobody has asked anything for two seconds; watches that are open are not requests, and neither are the probes of cells. How many there are \
varies a little: what changes twice in a moment is written once.";

/// Instances of a project.
const OF_A_PROJECT: usize = 500;
/// Instances of a workload in each of its two cities.
const OF_A_CITY: usize = 5;
/// How long nobody may ask anything before nothing more is expected.
const QUIET: Duration = Duration::from_secs(2);
/// How often it crashes.
const CRASHES: usize = 7;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What came out.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    requests: Vec<usize>,
    cpu_millis: f64,
    memory: f64,
}

/// Measures it among few and among many.
pub async fn measure(many: usize, budgets: &mut Vec<Budget>) -> Result<Section> {
    let few = 2 * OF_A_CITY;
    let mut table = Table::new(&[
        "one changed instance",
        "requests, p50",
        "most",
        "CPU until quiet (ms)",
        "memory of all (MiB)",
    ]);
    let mut requests = Vec::new();
    for instances in [few, many] {
        let part = super::Part::Change { instances };
        let mut found: Found = Child::start(&Role::Pipeline(part))?.line().await?;
        found.requests.sort_unstable();
        let (half, most) = (found.requests[CRASHES / 2], found.requests[CRASHES - 1]);
        table.row([
            format!("among {instances}"),
            half.to_string(),
            most.to_string(),
            figure(found.cpu_millis),
            figure(found.memory),
        ]);
        requests.push(half as f64);
    }
    let what = format!("requests of a change among {many}, p50, beside those among {few}");
    budgets.push(Budget::at_most(what, requests[1], requests[0], "requests"));
    Ok(Section { title: "One change", text: TEXT, tables: vec![table] })
}

/// The child's side.
pub async fn play(instances: usize) -> Result<()> {
    let server = ApiServer::new(Options { routes: vec![planes::project_route()], ..Options::default() });
    let counts = Arc::new(Counts::default());
    let settings = Settings { cities: ["DFW", "ORD"].map(str::to_owned).to_vec(), ..Settings::default() };
    let platform =
        Platform::with(&server, Runtime::beside_planes(), settings, to_planes(&server, &counts)).await?;
    let mut tasks = Tasks::new();
    platform.spawn_all(&mut tasks);
    let stop = tasks.stop_token();
    let running = tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));

    for (number, first) in (0..instances).step_by(OF_A_PROJECT).enumerate() {
        let project = format!("change-{number}");
        fill(&platform, &project, OF_A_PROJECT.min(instances - first)).await?;
    }
    until_quiet(&counts).await?;
    let found = change(&platform, &counts).await?;
    stop.cancel();
    running.await??;
    tell(&found)
}

/// Makes a project with so many instances, and waits until all are ready.
async fn fill(platform: &Platform, project: &str, instances: usize) -> Result<()> {
    platform.make_project(project).await?;
    let client = platform.client(&planes::project(project)?);
    let workloads: Api<Workload> = Api::default_namespaced(client);
    let count = instances / (2 * OF_A_CITY);
    for number in 0..count {
        let mut wanted = workload(&format!("web-{number}"), platform.cities(), OF_A_CITY)?;
        wanted.spec.placements[0].scale_settings.instance_management_policy = "Parallel".to_owned();
        workloads.create(&PostParams::default(), &wanted).await?;
    }
    let began = Instant::now();
    loop {
        let all = workloads.list(&ListParams::default()).await?;
        let ready: i64 =
            all.iter().filter_map(|one| one.status.as_ref()).filter_map(|status| status.ready_replicas).sum();
        if usize::try_from(ready).is_ok_and(|ready| ready == count * 2 * OF_A_CITY) {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            bail!("only {ready} of {instances} instances of {project} are ready after {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until nobody has asked anything for a while.
async fn until_quiet(counts: &Counts) -> Result<()> {
    let began = Instant::now();
    loop {
        let before = counts.requests.load(Ordering::Relaxed);
        tokio::time::sleep(QUIET).await;
        if counts.requests.load(Ordering::Relaxed) == before {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            bail!("requests go on after {PATIENCE:?} though nothing changes");
        }
    }
}

/// Lets one instance crash again and again, and sees what that costs.
async fn change(platform: &Platform, counts: &Counts) -> Result<Found> {
    let city = &platform.cities()[0];
    let client = platform.client(&planes::project("change-0")?);
    let default = Api::<Namespace>::all(client.clone()).get("default").await?;
    let there = hub_namespace(&default.uid().unwrap_or_default());
    let real: Api<Instance> = Api::namespaced(platform.client(&planes::cell(city)?), &there);
    let seen: Api<Instance> = Api::default_namespaced(client);
    let name = format!("web-0-main-{}-0", city.to_lowercase());
    let memory = process::resident()? / 1024.0;
    let (mut requests, mut cpu_millis) = (Vec::new(), 0.0);
    for _ in 0..CRASHES {
        let (before, cpu) = (counts.requests.load(Ordering::Relaxed), process::cpu()?);
        set_crash(&real, &name, Some("true")).await?;
        until_quiet(counts).await?;
        requests.push(counts.requests.load(Ordering::Relaxed) - before);
        cpu_millis += millis(process::cpu()? - cpu) / CRASHES as f64;
        let status = seen.get(&name).await?.status.unwrap_or_default();
        match c::find(&status.conditions, c::READY) {
            Some(ready) if ready.reason == c::INSTANCE_CRASHING => {}
            other => bail!("the project does not show the crash but {other:?}"),
        }
        set_crash(&real, &name, None).await?;
        until_quiet(counts).await?;
    }
    Ok(Found { requests, cpu_millis, memory })
}

async fn set_crash(real: &Api<Instance>, name: &str, crash: Option<&str>) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { "simulated.datumapis.com/crash": crash } } });
    real.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
