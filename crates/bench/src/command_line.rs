//! The command line: what a person waits for it, beside kubectl doing the same.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use compute_api::compute::Instance;
use compute_api::conditions as c;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Resource as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::budget::Budget;
use crate::report::Section;
use crate::stats::Samples;
use crate::table::{Table, figure};

const START: &str = "\
From the start of the process to its end, with its output thrown away: `datumctl-compute --help`, and the size of the program as it ships \
(profile `dist`, stripped).";

const LIST: &str = "\
All instances of a project in a table, on the platform of `compute-local` in another process, over TLS on loopback. The server alone is one request \
for the same list by a client that is connected already, to the last byte of its answer, nothing of which is read. kubectl has its \
discovery cached. The three take turns; the last column is what a program takes beyond the server's median.";

/// How long instances may take to be there.
const PATIENCE: Duration = Duration::from_secs(300);

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How much is measured.
pub struct Extent {
    /// Instances in the list.
    pub instances: usize,
    /// How often each is run.
    pub runs: usize,
}

impl Extent {
    /// What the page shows.
    pub const FULL: Self = Self { instances: 1_000, runs: 40 };
    /// Enough to see that it runs.
    pub const QUICK: Self = Self { instances: 100, runs: 5 };
}

/// The programs.
pub struct Programs {
    /// `datumctl-compute`.
    pub ours: PathBuf,
    /// `compute-local`.
    pub platform: PathBuf,
    /// `kubectl`.
    pub kubectl: PathBuf,
}

/// Measures it, each part printed when it is done.
pub async fn measure(
    folder: &Path,
    extent: &Extent,
    programs: &Programs,
) -> Result<(Vec<Section>, Vec<Budget>)> {
    let mut budgets = Vec::new();
    let start = start(folder, extent.runs, &programs.ours, &mut budgets).await.context("start")?;
    println!("{}", start.render());
    let list = list(folder, extent, programs, &mut budgets).await.context("list")?;
    println!("{}", list.render());
    Ok((vec![start, list], budgets))
}

async fn start(folder: &Path, runs: usize, program: &Path, budgets: &mut Vec<Budget>) -> Result<Section> {
    let mut samples = Samples::default();
    for _ in 0..runs {
        let mut command = bare(program, folder);
        command.arg("--help");
        samples.push(timed(command).await?.0);
    }
    let bytes = std::fs::metadata(program)?.len();
    let size = bytes as f64 / f64::from(1 << 20);
    let mut table = Table::new(&["datumctl-compute", "p50", "p99"]);
    table.row(["--help (ms)".to_owned(), figure(samples.p50()), figure(samples.p99())]);
    table.row(["program (MiB)".to_owned(), figure(size), String::new()]);
    budgets.push(Budget::at_most("--help, p50", samples.p50(), 10.0, "ms"));
    budgets.push(Budget::at_most("the program, stripped", size, 15.0, "MiB"));
    Ok(Section { title: "Start", text: START, tables: vec![table] })
}

async fn list(
    folder: &Path,
    extent: &Extent,
    programs: &Programs,
    budgets: &mut Vec<Budget>,
) -> Result<Section> {
    let data = folder.join("platform");
    let _platform = up(&programs.platform, &data).await?;
    let kubeconfig = data.join("kubeconfig");
    let client = client(&kubeconfig).await?;
    let namespace = "default";
    deploy(folder, programs, &kubeconfig, extent.instances).await?;
    all_there(&Api::namespaced(client.clone(), namespace), extent.instances).await?;

    let path = Instance::url_path(&(), Some(namespace));
    let (mut server, mut ours, mut kubectl) = (Samples::default(), Samples::default(), Samples::default());
    let mut bytes = 0;
    // The first of each is not counted: caches are filled by it.
    for run in 0..=extent.runs {
        let request = http::Request::get(&path).body(Vec::new())?;
        let began = Instant::now();
        bytes = client.request_text(request).await?.len();
        let alone = began.elapsed();
        let mut command = bare(&programs.ours, folder);
        command.env("KUBECONFIG", &kubeconfig).arg("instances");
        let (by_ours, lines) = timed(command).await?;
        ensure!(lines > extent.instances, "datumctl-compute lists {lines} lines");
        let mut command = bare(&programs.kubectl, folder);
        command.env("KUBECONFIG", &kubeconfig).args(["get", "instances"]);
        let (by_kubectl, lines) = timed(command).await?;
        ensure!(lines > extent.instances, "kubectl lists {lines} lines");
        if run > 0 {
            server.push(alone);
            ours.push(by_ours);
            kubectl.push(by_kubectl);
        }
    }
    let head = format!("{} instances, {:.1} MiB", extent.instances, bytes as f64 / f64::from(1 << 20));
    let mut table = Table::new(&[&head, "p50 (ms)", "p99 (ms)", "beyond the server (ms)"]);
    for (what, samples) in [
        ("the server alone", &server),
        ("datumctl-compute instances", &ours),
        ("kubectl get instances", &kubectl),
    ] {
        let beyond = samples.p50() - server.p50();
        table.row([what.to_owned(), figure(samples.p50()), figure(samples.p99()), figure(beyond)]);
    }
    let what = format!("instances on {} instances, beyond the server, p50", extent.instances);
    budgets.push(Budget::at_most(what, ours.p50() - server.p50(), 100.0, "ms"));
    Ok(Section { title: "A long list", text: LIST, tables: vec![table] })
}

/// A platform of its own, gone when this is dropped.
async fn up(program: &Path, data: &Path) -> Result<Child> {
    let mut process = Command::new(program)
        .args(["up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut lines = BufReader::new(process.stdout.take().context("no output")?).lines();
    let said = lines.next_line().await?.unwrap_or_default();
    ensure!(said.starts_with("The platform is up"), "it said: {said}");
    // What else it says is nobody's concern, but must go somewhere.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(process)
}

async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

/// Has the program itself deploy as many instances, and follow until they are there.
async fn deploy(folder: &Path, programs: &Programs, kubeconfig: &Path, instances: usize) -> Result<()> {
    let manifest = folder.join("many.yaml");
    std::fs::write(&manifest, many(instances))?;
    let mut command = bare(&programs.ours, folder);
    command.env("KUBECONFIG", kubeconfig).args(["deploy", "-y", "-f"]).arg(&manifest);
    command.args(["--request-timeout", "60s", "--timeout"]).arg(format!("{}s", PATIENCE.as_secs()));
    timed(command).await.map(drop)
}

/// Waits until the project has a picture of each instance: those may come after the counts that are followed.
async fn all_there(api: &Api<Instance>, instances: usize) -> Result<()> {
    let began = Instant::now();
    loop {
        let there = api.list(&ListParams::default()).await?.items;
        let ready = there.iter().filter(|one| {
            let conditions = one.status.as_ref().map_or(&[][..], |status| &status.conditions);
            c::is_true(conditions, c::READY)
        });
        let ready = ready.count();
        if ready == instances {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "{ready} instances are ready instead of {instances}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A workload of so many instances in two cities, made at once and without delay.
fn many(instances: usize) -> String {
    format!(
        "apiVersion: compute.datumapis.com/v1alpha
kind: Workload
metadata: {{name: many}}
spec:
  template:
    metadata: {{annotations: {{simulated.datumapis.com/start-delay: 0s}}}}
    spec:
      runtime:
        resources: {{instanceType: datumcloud/d1-standard-2}}
        sandbox: {{containers: [{{name: app, image: ghcr.io/example/web:1.0}}]}}
      networkInterfaces: [{{network: {{name: default}}}}]
  placements:
  - name: main
    cityCodes: [DFW, IAD]
    scaleSettings: {{minReplicas: {}, instanceManagementPolicy: Parallel}}
",
        instances / 2
    )
}

/// A program with nothing of this machine's in its environment.
fn bare(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// From the start of a program to its end, which has to be a good one; and how many lines it printed.
async fn timed(mut command: Command) -> Result<(Duration, usize)> {
    let began = Instant::now();
    let output = tokio::time::timeout(PATIENCE, command.output()).await.context("it does not end")??;
    let took = began.elapsed();
    if !output.status.success() {
        bail!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok((took, output.stdout.iter().filter(|byte| **byte == b'\n').count()))
}
