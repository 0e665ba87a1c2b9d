//! The same way on a real Kubernetes and a real Karmada, with managers as processes of their own: how long it takes, whose time it is, and what each
//! process takes for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::Namespace;
use compute_realstack::STATE_VARIABLE;
use compute_runtime::{Plane, PlaneId, Runtime};
use compute_testkit::real::{Foundation, RealStack};
use compute_testkit::{Pace, Place, Stack as _, set_pace};
use futures::future::try_join_all;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::pipeline::{PATIENCE, Seen, readiness, workload};
use crate::process;
use crate::report::Section;
use crate::stats::{Samples, millis};
use crate::table::{Table, figure};

const FLOW: &str = "\
etcd, Kubernetes and Karmada as they ship, but for Karmada's rate limits, which are lifted; all processes on this one machine. The managers run under \
their own identities with the rights of their roles, and reach every plane over TLS and a proxy that counts. The provider is the simulated one and \
starts an instance without delay. A workload has three instances in each of two cities; it is done when the last of them is seen ready in the project. For that last one: to the hub is \
from the call to the first sight of its deployment on the hub, Karmada from there to the first sight in the cell, and the rest from there \
to its first sight as ready in the project. Of many at once, the parts are those of the last workload, whose deployments wait behind the others'.";

const PROCESSES: &str = "\
Processor time of all of the above, and what is resident at its end, with all instances there.";

const PROJECT: &str = "bench";
const REPLICAS: usize = 3;

/// How much is measured.
pub struct Extent {
    /// Workloads one after the other.
    pub singles: usize,
    /// Workloads at once.
    pub at_once: usize,
    /// Changes of an instance's status.
    pub news: usize,
}

impl Extent {
    /// What the page shows.
    pub const FULL: Self = Self { singles: 10, at_once: 100, news: 20 };
    /// Enough to see that it runs.
    pub const QUICK: Self = Self { singles: 2, at_once: 10, news: 2 };
}

/// Measures it on the stack that the environment names, and leaves nothing there.
pub async fn measure(folder: &Path, extent: &Extent) -> Result<Vec<Section>> {
    let state = std::env::var_os(STATE_VARIABLE).with_context(|| {
        format!("{STATE_VARIABLE} does not say where the stack is: cargo xtask bench realstack")
    })?;
    set_pace(Pace { deadline: PATIENCE, every: Duration::from_millis(25) });
    let stack = RealStack::start(Foundation::real(state.as_ref()), folder).await;
    stack.make_project(PROJECT).await;
    let sections = Flow::new(&stack).await?.measure(&stack, extent).await?;
    stack.clear().await;
    stack.stop().await;
    Ok(sections)
}

struct Flow {
    cities: Vec<String>,
    seen: Seen,
    workloads: Api<Workload>,
    /// The namespace of the project's own on the hub and in cells.
    namespace: String,
    _eyes: Vec<Box<dyn std::any::Any + Send>>,
}

/// How long a workload took, in parts.
#[derive(Clone, Copy)]
struct Way {
    whole: Duration,
    to_hub: Duration,
    karmada: Duration,
    rest: Duration,
}

impl Flow {
    async fn new(stack: &RealStack) -> Result<Self> {
        let (seen, runtime) = (Seen::default(), Runtime::system());
        let watched =
            |name: &str, place: &Place| Plane::new(&runtime, PlaneId::new(name), stack.client(place));
        let at_project = Place::Project(PROJECT.to_owned());
        let project = watched(PROJECT, &at_project);
        let hub = watched("hub", &Place::Hub);
        let named = |found: &WorkloadDeployment| Some(found.name_any());
        let mut eyes: Vec<Box<dyn std::any::Any + Send>> = vec![
            Box::new(seen.watch::<Instance>(&project, readiness).await?),
            Box::new(seen.watch(&hub, named).await?),
        ];
        for city in stack.cities() {
            let cell = watched(&city, &Place::Cell(city.clone()));
            eyes.push(Box::new(seen.watch(&cell, named).await?));
            eyes.push(Box::new(seen.watch::<Instance>(&cell, readiness).await?));
        }
        let namespaces: Api<Namespace> = Api::all(stack.client(&at_project));
        let uid = namespaces.get("default").await?.uid().context("a namespace without uid")?;
        Ok(Self {
            cities: stack.cities(),
            workloads: Api::default_namespaced(project.client().clone()),
            namespace: compute_api::names::hub_namespace(&uid),
            seen,
            _eyes: eyes,
        })
    }

    async fn measure(&self, stack: &RealStack, extent: &Extent) -> Result<Vec<Section>> {
        let before = usage(stack)?;
        let mut singles = Vec::new();
        for number in 0..extent.singles {
            singles.push(self.deploy(&format!("single-{number}")).await?);
        }
        let news = self.news(stack, extent.news).await?;
        let began = Instant::now();
        let all =
            (0..extent.at_once).map(|number| async move { self.deploy(&format!("many-{number}")).await });
        let many = try_join_all(all).await?;
        let all_there = began.elapsed();
        let after = usage(stack)?;
        self.take_away().await?;

        let mut times = Table::new(&[
            "workload created to all ready in the project",
            "to the hub (ms)",
            "Karmada (ms)",
            "rest (ms)",
            "in all (ms)",
        ]);
        for (what, quantile) in [("one, p50", 0), ("one, p99", 1)] {
            let of = |part: fn(&Way) -> Duration| {
                let mut samples = Samples::default();
                singles.iter().for_each(|way| samples.push(part(way)));
                figure([samples.p50(), samples.p99()][quantile])
            };
            times.row([
                what.to_owned(),
                of(|way| way.to_hub),
                of(|way| way.karmada),
                of(|way| way.rest),
                of(|way| way.whole),
            ]);
        }
        let last = many.iter().max_by_key(|way| way.whole).context("nothing was measured")?;
        let parts = [last.to_hub, last.karmada, last.rest, all_there].map(|part| figure(millis(part)));
        times.row([format!("{} at once, the last", extent.at_once)].into_iter().chain(parts));
        let mut back = Table::new(&["change of an instance in its cell", "times", "p50 (ms)", "p99 (ms)"]);
        back.row([
            "seen in the project".to_owned(),
            extent.news.to_string(),
            figure(news.p50()),
            figure(news.p99()),
        ]);
        let mut processes = Table::new(&["process", "CPU (s)", "memory (MiB)"]);
        for (name, now) in &after {
            let earlier = before.get(name).map_or(0.0, |before| before.cpu);
            processes.row([name.clone(), figure(now.cpu - earlier), figure(now.memory)]);
        }
        Ok(vec![
            Section { title: "Flow", text: FLOW, tables: vec![times, back] },
            Section { title: "Processes", text: PROCESSES, tables: vec![processes] },
        ])
    }

    /// Makes a workload and waits for its last instance.
    async fn deploy(&self, name: &str) -> Result<Way> {
        let began = Instant::now();
        self.workloads.create(&PostParams::default(), &workload(name, &self.cities, REPLICAS)?).await?;
        let mut last = (began, &self.cities[0]);
        for city in &self.cities {
            for ordinal in 0..REPLICAS {
                let what = format!("{}-{ordinal} ready", deployment(name, city));
                last = last.max((self.seen.when(PROJECT, &what).await?, city));
            }
        }
        let (done, city) = last;
        let on_hub = self.seen.when("hub", &deployment(name, city)).await?;
        let in_cell = self.seen.when(city, &deployment(name, city)).await?;
        Ok(Way {
            whole: done - began,
            to_hub: on_hub.saturating_duration_since(began),
            karmada: in_cell.saturating_duration_since(on_hub),
            rest: done.saturating_duration_since(in_cell),
        })
    }

    /// Breaks and mends an instance of the first workload again and again: from its cell to the project.
    async fn news(&self, stack: &RealStack, times: usize) -> Result<Samples> {
        let (mut news, city) = (Samples::default(), &self.cities[0]);
        let cell: Api<Instance> = Api::namespaced(stack.client(&Place::Cell(city.clone())), &self.namespace);
        let name = format!("{}-0", deployment("single-0", city));
        for crash in [json!("true"), Value::Null].iter().cycle().take(times) {
            let what = format!("{name} {}", if crash.is_null() { "ready" } else { "broken" });
            self.seen.forget(&what);
            let patch = json!({ "metadata": { "annotations": { "simulated.datumapis.com/crash": crash } } });
            cell.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            let there = self.seen.when(city, &what).await?;
            news.push(self.seen.when(PROJECT, &what).await?.saturating_duration_since(there));
        }
        Ok(news)
    }

    async fn take_away(&self) -> Result<()> {
        let all = self.workloads.list_metadata(&kube::api::ListParams::default()).await?;
        let deletions = all.items.iter().map(|found| {
            let name = found.name_any();
            async move { self.workloads.delete(&name, &DeleteParams::default()).await }
        });
        try_join_all(deletions).await?;
        Ok(())
    }
}

fn deployment(workload: &str, city: &str) -> String {
    format!("{workload}-main-{}", city.to_lowercase())
}

/// What a process takes: processor time in seconds, resident memory in MiB.
struct Usage {
    cpu: f64,
    memory: f64,
}

/// What every process takes.
fn usage(stack: &RealStack) -> Result<BTreeMap<String, Usage>> {
    let managers = stack.managers().into_iter().map(|(name, pid)| {
        let pid = pid.to_string();
        let (cpu, memory) = (process::cpu_of(&pid)?.as_secs_f64(), process::resident_of(&pid)? / 1024.0);
        Ok((format!("**{name}**"), Usage { cpu, memory }))
    });
    let running = stack.foundation.running().context("the stack is not a real one")?;
    let others = running.process_names().into_iter().map(|name| {
        let usage = running.usage(&name)?;
        let memory = usage.resident_bytes as f64 / f64::from(1 << 20);
        Ok((name, Usage { cpu: usage.cpu_seconds, memory }))
    });
    managers.chain(others).collect()
}
