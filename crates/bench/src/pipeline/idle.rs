//! Projects that nothing happens in: what each costs a manager that serves them all.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result};
use compute_api::milo::Project;
use compute_apiserver::{Access, ApiServer, Authority, Identity, Options, PlaneName, Tls};
use compute_controllers::management;
use compute_local::{Platform, Settings, planes};
use compute_runtime::engage::{Connect, milo};
use compute_runtime::events::{self, Reporter};
use compute_runtime::tasks::Tasks;
use compute_runtime::transport::{self, SharedHost};
use compute_runtime::{Plane, PlaneId, Planes, Runtime};
use kube::Client;
use serde::{Deserialize, Serialize};

use super::wire::{Counted, Counts};
use crate::budget::Budget;
use crate::child::{self, Child, Role, tell};
use crate::host::Endpoint;
use crate::pipeline::Part;
use crate::process;
use crate::report::Section;
use crate::table::{Table, figure};

const TEXT: &str = "\
One manager serves every project there is: it holds two watches for each that nothing happens in. A project's cost is the growth of the manager's resident \
memory (`VmRSS`) from before its start until all watches are open, divided by the number of projects. In-process, the server is part of the same process, so the \
figure includes what the server keeps for the watches; over TLS, the manager is a process of its own.";

/// What the manager process is made of, in KiB.
#[derive(Debug, Serialize, Deserialize)]
struct Grown {
    before: f64,
    after: f64,
    seconds: f64,
}

/// Measures it both ways.
pub async fn measure(projects: usize, budgets: &mut Vec<Budget>) -> Result<Section> {
    let head = [
        "a manager and its idle projects",
        "projects",
        "before (MiB)",
        "all engaged (MiB)",
        "per project (KiB)",
        "engaged in (s)",
    ];
    let mut table = Table::new(&head);
    let mut server = None;
    for way in ["in-process", "TLS"] {
        let part = if way == "TLS" {
            let mut child = Child::start(&Role::Pipeline(Part::IdleServer { projects }))?;
            let endpoint: Endpoint = child.line().await?;
            server = Some(child);
            Part::IdleManager { projects, endpoint }
        } else {
            Part::IdleInProcess { projects }
        };
        let found: Grown = Child::start(&Role::Pipeline(part))?.line().await?;
        let each = (found.after - found.before) / projects as f64;
        table.row([
            way.to_owned(),
            projects.to_string(),
            figure(found.before / 1024.0),
            figure(found.after / 1024.0),
            figure(each),
            figure(found.seconds),
        ]);
        budgets.push(Budget::at_most(format!("idle project in a manager, {way}"), each, 32.0, "KiB"));
    }
    drop(server);
    Ok(Section { title: "Idle projects", text: TEXT, tables: vec![table] })
}

/// A platform with projects that say they are ready, and nobody at work.
async fn with_projects(projects: usize) -> Result<(ApiServer, Platform)> {
    let options = Options { routes: vec![planes::project_route()], ..Options::default() };
    let server = ApiServer::new(options);
    let platform = Platform::new(&server, Runtime::beside_planes(), Settings::default()).await?;
    for number in 0..projects {
        platform.make_idle_project(&name(number)).await?;
    }
    Ok((server, platform))
}

fn name(number: usize) -> String {
    format!("idle-{number:05}")
}

/// The child's side: server and manager in one.
pub async fn in_process(projects: usize) -> Result<()> {
    let (server, _platform) = with_projects(projects).await?;
    let opened = Arc::new(Counts::default());
    let (at, count) = (server, opened.clone());
    let to = move |plane: &PlaneName| {
        let service = at.service(plane, compute_local::Worker::Management.identity());
        Client::new(Counted { inner: service, counts: count.clone() }, "default")
    };
    let by_name = to.clone();
    let connect: Arc<Connect> = Arc::new(move |project: &str| Ok(by_name(&planes::project(project)?)));
    tell(&grow(projects, to(&planes::core()), to(&planes::hub()), connect, &opened).await?)
}

/// The child's side: the server alone, over TLS.
pub async fn serve(projects: usize) -> Result<()> {
    let (server, _platform) = with_projects(projects).await?;
    const TOKEN: &str = "token-of-the-manager";
    let identity: Identity = compute_local::Worker::Management.identity();
    server.tokens().add(TOKEN, identity, Access::AllPlanes);
    let authority = Authority::generate("bench authority")?;
    let issued = authority.issue_server(&["127.0.0.1".to_owned()])?;
    let tls = Tls::from_pem(&issued.certificate, &issued.key)?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let authority = authority.certificate().to_owned();
    tell(&Endpoint { address: listener.local_addr()?, authority, token: TOKEN.to_owned() })?;
    compute_apiserver::serve(server, listener, tls, child::orphaned()).await?;
    Ok(())
}

/// The child's side: the manager alone.
pub async fn manage(projects: usize, endpoint: Endpoint) -> Result<()> {
    let mut config = kube::Config::new(format!("https://{}", endpoint.address).parse()?);
    config.root_cert = Some(vec![endpoint.root()?.to_vec()]);
    config.auth_info.token = Some(endpoint.token.clone().into());
    let host = SharedHost::new(config, &transport::Options::default())?;
    let opened = Arc::new(Counts::default());
    let count = opened.clone();
    let to = move |path: &str| {
        Client::new(Counted { inner: host.service(path), counts: count.clone() }, "default")
    };
    let (core, hub) = (to(""), to("/planes/hub"));
    let connect: Arc<Connect> =
        Arc::new(move |project: &str| Ok(to(&compute_api::milo::project_control_plane_path(project))));
    tell(&grow(projects, core, hub, connect, &opened).await?)
}

/// Runs a manager until it watches every project.
async fn grow(
    projects: usize,
    core: Client,
    hub: Client,
    connect: Arc<Connect>,
    opened: &Counts,
) -> Result<Grown> {
    let runtime = Runtime::system();
    let before = process::resident()?;
    let began = std::time::Instant::now();
    let plane = |name: &str, client| Plane::new(&runtime, PlaneId::new(name), client);
    let (core, hub) = (plane("core", core), plane("hub", hub));
    let mut tasks = Tasks::new();
    let reporter = Reporter { component: "compute-manager".to_owned(), instance: "bench".to_owned() };
    let clock = runtime.clock().clone();
    let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
    tasks.spawn("events", |stop| publisher.run(stop));
    let all = Planes::new(&runtime);
    let (found, at) = (all.clone(), core.clone());
    tasks.spawn("discovery", |stop| async move {
        milo::<Project>(&at, &found, connect, stop.cancelled()).await;
        Ok::<(), std::convert::Infallible>(())
    });
    management::spawn(
        &mut tasks,
        management::Setup { projects: all, core: Some(core), hub: Some(hub), events },
    );
    let stop = tasks.stop_token();
    let running = tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(5)));
    while opened.watches.load(Ordering::Relaxed) < 2 * projects {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    // What the beginning took and is not needed any more goes back.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = process::resident()?;
    stop.cancel();
    running.await.context("the manager panicked")??;
    Ok(Grown { before, after, seconds })
}
