//! From a Workload to instances in the project, and from a cell's status back to it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions as c;
use compute_apiserver::{ApiServer, Options};
use compute_local::{Platform, Settings, planes};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Runtime};
use futures::future::try_join_all;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::seen::Seen;
use super::wire::{Counts, to_planes};
use crate::budget::Budget;
use crate::child::{Child, Role, tell};
use crate::process;
use crate::report::Section;
use crate::stats::{Samples, millis};
use crate::table::{Table, figure};

const TEXT: &str = "\
The whole platform in one process, in memory, with the simulated provider, which starts an instance without delay: what is measured is ours \
alone. A workload is live when its status says that everything wanted is ready and up to date and its last instance is seen ready in \
the project. Hub to cell is from the first sight of a deployment on the hub to its first sight in the cell; cell to project is from the first sight of an \
instance's new `Ready` in the cell to its first sight in the project. Sights are those of watches in the same process. \
For comparison: Karmada with its default flags takes 298 ms from hub to cell, and 48 s for 200 at once, on this machine.";

const PROJECT: &str = "bench";

/// How much is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Extent {
    /// Workloads one after the other.
    pub singles: usize,
    /// Workloads at once.
    pub at_once: usize,
    /// Changes of an instance's status.
    pub news: usize,
}

/// What came out. Times in milliseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Figures {
    live: [f64; 2],
    hub_to_cell: [f64; 2],
    cell_to_project: [f64; 2],
    in_every_cell: f64,
    all_live: f64,
    all_gone: f64,
    memory: f64,
    cpu: f64,
    requests: f64,
    idle_cpu: f64,
}

/// Measures it in a process of its own.
pub async fn measure(extent: &Extent, budgets: &mut Vec<Budget>) -> Result<Section> {
    let found: Figures = Child::start(&Role::Pipeline(super::Part::Flow(extent.clone())))?.line().await?;
    let mut times = Table::new(&["one after the other", "times", "p50 (ms)", "p99 (ms)"]);
    for (what, count, [p50, p99]) in [
        ("created to live: 3 cities × 2 instances", extent.singles, found.live),
        ("hub to cell", extent.singles * 3, found.hub_to_cell),
        ("cell's status to project", extent.news, found.cell_to_project),
    ] {
        times.row([what.to_owned(), count.to_string(), figure(p50), figure(p99)]);
    }
    let mut many = Table::new(&[
        "at once",
        "workloads",
        "in every cell (ms)",
        "all live (ms)",
        "requests each",
        "all gone (ms)",
    ]);
    many.row([
        "2 cities × 1 instance".to_owned(),
        extent.at_once.to_string(),
        figure(found.in_every_cell),
        figure(found.all_live),
        figure(found.requests),
        figure(found.all_gone),
    ]);
    let mut process =
        Table::new(&["process", "memory (MiB)", "CPU of all that (s)", "CPU of an idle second (ms)"]);
    process.row([
        "with all workloads live".to_owned(),
        figure(found.memory),
        figure(found.cpu),
        figure(found.idle_cpu),
    ]);
    budgets.push(Budget::at_most(
        "one workload live beyond the provider's delay, p50",
        found.live[0],
        100.0,
        "ms",
    ));
    budgets.push(Budget::at_most("hub to cell, p50", found.hub_to_cell[0], 10.0, "ms"));
    let what = format!("{} workloads at once in every cell", extent.at_once);
    budgets.push(Budget::at_most(what, found.in_every_cell, 1000.0, "ms"));
    Ok(Section { title: "Flow", text: TEXT, tables: vec![times, many, process] })
}

/// The child's side.
pub async fn play(extent: Extent) -> Result<()> {
    let server = ApiServer::new(Options { routes: vec![planes::project_route()], ..Options::default() });
    let runtime = Runtime::beside_planes();
    let counts = Arc::new(Counts::default());
    let ways = to_planes(&server, &counts);
    let platform = Platform::with(&server, runtime.clone(), Settings::default(), ways).await?;
    let mut tasks = Tasks::new();
    platform.spawn_all(&mut tasks);
    let stop = tasks.stop_token();
    let running = tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));
    platform.make_project(PROJECT).await?;
    let figures = Flow::new(&platform, &runtime, counts).await?.measure(&extent).await?;
    stop.cancel();
    running.await??;
    tell(&figures)
}

struct Flow {
    cities: Vec<String>,
    seen: Seen,
    workloads: Api<Workload>,
    cell: Api<Instance>,
    project: String,
    hub: String,
    cells: Vec<String>,
    counts: Arc<Counts>,
    _eyes: Vec<Box<dyn std::any::Any + Send>>,
}

impl Flow {
    async fn new(platform: &Platform, runtime: &Runtime, counts: Arc<Counts>) -> Result<Self> {
        let seen = Seen::default();
        let watched = |name: &compute_apiserver::PlaneName| {
            Plane::new(runtime, PlaneId::new(name.as_str()), platform.client(name))
        };
        let project = watched(&planes::project(PROJECT)?);
        let hub = watched(&planes::hub());
        let mut eyes: Vec<Box<dyn std::any::Any + Send>> = Vec::new();
        eyes.push(Box::new(seen.watch::<Workload>(&project, live).await?));
        eyes.push(Box::new(seen.watch::<Instance>(&project, readiness).await?));
        eyes.push(Box::new(seen.watch(&hub, |found: &WorkloadDeployment| Some(found.name_any())).await?));
        let mut cells = Vec::new();
        for city in platform.cities() {
            let cell = watched(&planes::cell(city)?);
            cells.push(cell.id().as_str().to_owned());
            eyes.push(Box::new(
                seen.watch(&cell, |found: &WorkloadDeployment| Some(found.name_any())).await?,
            ));
            eyes.push(Box::new(seen.watch::<Instance>(&cell, readiness).await?));
        }
        let first = planes::cell(&platform.cities()[0])?;
        let namespaces: Api<compute_api::k8s::Namespace> =
            Api::all(platform.client(&planes::project(PROJECT)?));
        let uid = namespaces.get("default").await?.uid().context("a namespace without uid")?;
        Ok(Self {
            cities: platform.cities().to_vec(),
            workloads: Api::default_namespaced(project.client().clone()),
            cell: Api::namespaced(platform.client(&first), &compute_api::names::hub_namespace(&uid)),
            project: project.id().as_str().to_owned(),
            hub: hub.id().as_str().to_owned(),
            cells,
            counts,
            seen,
            _eyes: eyes,
        })
    }

    async fn measure(&self, extent: &Extent) -> Result<Figures> {
        let (mut lives, mut hops, mut news) = (Samples::default(), Samples::default(), Samples::default());
        for number in 0..extent.singles {
            let name = format!("single-{number}");
            let began = Instant::now();
            self.workloads.create(&PostParams::default(), &workload(&name, &self.cities, 2)?).await?;
            let mut last = self.seen.when(&self.project, &format!("{name} live")).await?;
            for (city, cell) in self.cities.iter().zip(&self.cells) {
                let deployment = format!("{name}-main-{}", city.to_lowercase());
                for ordinal in 0..2 {
                    let what = format!("{deployment}-{ordinal} ready");
                    last = last.max(self.seen.when(&self.project, &what).await?);
                }
                let hub = self.seen.when(&self.hub, &deployment).await?;
                hops.push(self.seen.when(cell, &deployment).await?.saturating_duration_since(hub));
            }
            lives.push(last - began);
        }
        let name = format!("single-0-main-{}-0", self.cities[0].to_lowercase());
        for crash in [json!("true"), Value::Null].iter().cycle().take(extent.news) {
            let what = format!("{name} {}", if crash.is_null() { "ready" } else { "broken" });
            self.seen.forget(&what);
            let patch = json!({ "metadata": { "annotations": { "simulated.datumapis.com/crash": crash } } });
            self.cell.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            let there = self.seen.when(&self.cells[0], &what).await?;
            news.push(self.seen.when(&self.project, &what).await?.saturating_duration_since(there));
        }
        let asked = self.counts.requests.load(Ordering::Relaxed);
        let cpu = process::cpu()?;
        let began = Instant::now();
        let two = &self.cities[..2];
        let made = (0..extent.at_once).map(|number| async move {
            let name = format!("many-{number}");
            self.workloads.create(&PostParams::default(), &workload(&name, two, 1)?).await?;
            anyhow::Ok(())
        });
        try_join_all(made).await?;
        let (mut in_cells, mut live) = (began, began);
        for number in 0..extent.at_once {
            for (city, cell) in two.iter().zip(&self.cells) {
                let deployment = format!("many-{number}-main-{}", city.to_lowercase());
                in_cells = in_cells.max(self.seen.when(cell, &deployment).await?);
                live = live.max(self.seen.when(&self.project, &format!("{deployment}-0 ready")).await?);
            }
            live = live.max(self.seen.when(&self.project, &format!("many-{number} live")).await?);
        }
        let spent = process::cpu()? - cpu;
        let asked = self.counts.requests.load(Ordering::Relaxed) - asked;
        let memory = process::resident()? / 1024.0;
        let idle = process::cpu()?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let idle_cpu = millis(process::cpu()? - idle) / 5.0;

        let deleted = Instant::now();
        let all = (0..extent.at_once).map(|number| async move {
            self.workloads.delete(&format!("many-{number}"), &DeleteParams::default()).await
        });
        try_join_all(all).await?;
        while self.workloads.list_metadata(&kube::api::ListParams::default()).await?.items.len()
            > extent.singles
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(Figures {
            live: [lives.p50(), lives.p99()],
            hub_to_cell: [hops.p50(), hops.p99()],
            cell_to_project: [news.p50(), news.p99()],
            in_every_cell: millis(in_cells - began),
            all_live: millis(live - began),
            all_gone: millis(deleted.elapsed()),
            memory,
            cpu: spent.as_secs_f64(),
            requests: asked as f64 / extent.at_once as f64,
            idle_cpu,
        })
    }
}

/// Whether a workload is live, as something to be seen.
fn live(workload: &Workload) -> Option<String> {
    let status = workload.status.as_ref()?;
    let desired = status.desired_replicas.filter(|desired| *desired > 0)?;
    let done = status.observed_generation == workload.metadata.generation
        && [status.replicas, status.ready_replicas, status.updated_replicas] == [Some(desired); 3];
    done.then(|| format!("{} live", workload.name_any()))
}

/// Whether an instance is ready, as something to be seen.
pub fn readiness(instance: &Instance) -> Option<String> {
    let ready = c::find(&instance.status.as_ref()?.conditions, c::READY)?;
    let word = if ready.status == "True" { "ready" } else { "broken" };
    Some(format!("{} {word}", instance.name_any()))
}

/// A workload with so many instances in each city.
pub fn workload(name: &str, cities: &[String], replicas: usize) -> Result<Workload> {
    let object = json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Workload",
        "metadata": { "name": name },
        "spec": {
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "app", "image": "ghcr.io/example/app:1.0" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
            "placements": [{
                "name": "main", "cityCodes": cities, "scaleSettings": { "minReplicas": replicas },
            }],
        },
    });
    Ok(serde_json::from_value(object)?)
}
