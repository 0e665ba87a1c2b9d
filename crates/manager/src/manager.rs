//! The whole: everything that is configured is opened first, then all of it runs until it is told to stop.
//!
//! # Guarantees
//!
//! - [`Manager::prepare`] starts nothing and sends nothing. What is wrong with certificates, credentials and sockets shows there, as a mistake
//!   that names the field.
//! - Health, metrics and webhooks are served whether the process leads or not.
//! - A part that ends by itself ends the process with its reason. A stop takes less than [`GRACE`], whatever planes do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use compute_admission::{Admission, Certificates, Settings, Webhooks};
use compute_controllers::{cell as cell_controllers, management as management_controllers};
use compute_runtime::events::{self, Events, Reporter};
use compute_runtime::leader::Candidate;
use compute_runtime::tasks::{Ended, Tasks};
use compute_runtime::{Plane, PlaneId, Runtime};
use http::StatusCode;
use kube::Client;
use tokio::net::TcpListener;

use crate::cell::{self, Cell};
use crate::config::{self, CertificateFiles, Config, LeaderElection, Mistake};
use crate::connections::{Connections, kept};
use crate::management::{self, Management, Projects};
use crate::pages::{self, Page, Pages};
use crate::process::{self, Leading};
use crate::readiness::{Readiness, State};
use crate::role::Role;

/// How long a stop may take.
const GRACE: Duration = Duration::from_millis(9000);
/// What planes that are no project's are called: no project can have such a name.
const HUB: &str = "@hub";
const CORE: &str = "@core";

/// Who the process is, for those who act in its name. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    /// Its pod's or its machine's name.
    host: Arc<str>,
}

impl Process {
    /// Where a role's events go.
    pub(crate) fn events(&self, role: &str, tasks: &mut Tasks) -> Events {
        let component = format!("compute-manager-{role}");
        let reporter = Reporter { component, instance: self.host.to_string() };
        let clock = self.runtime.clock().clone();
        let (events, publisher) = events::events(reporter, events::Limits::default(), move || clock.now());
        tasks.spawn(format!("events of {role}"), |stop| publisher.run(stop));
        events
    }
}

/// Something that is served.
struct Served {
    listener: TcpListener,
    certificates: Option<Certificates>,
}

/// A process that is about to run.
pub struct Manager {
    process: Process,
    readiness: Readiness,
    roles: Vec<Role>,
    health: Option<Served>,
    metrics: Option<Served>,
    webhook: Option<(TcpListener, Certificates, Webhooks)>,
    notes: Vec<String>,
}

impl Manager {
    /// Opens what is configured.
    ///
    /// # Errors
    ///
    /// If something of it cannot be used.
    pub async fn prepare(config: Config) -> Result<Self, Mistake> {
        let runtime = Runtime::system();
        let leading = process::register(&runtime);
        let host = config.host.clone().unwrap_or_else(machine_name);
        let process = Process { runtime, host: host.into() };
        let mut manager = Self {
            readiness: Readiness::default(),
            roles: Vec::new(),
            health: served(config.health.as_ref(), None).await?,
            metrics: served(config.metrics.bind.as_ref(), config.metrics.certificates.as_ref()).await?,
            webhook: None,
            notes: config.notes.clone(),
            process,
        };
        manager.wire(config, &leading).await?;
        Ok(manager)
    }

    async fn wire(&mut self, config: Config, leading: &Leading) -> Result<(), Mistake> {
        let mut connections = Connections::new();
        let own = connections.client(&config.own).await?;
        let election = config.leader_election.as_ref();
        let networking = config.gates.networking_integration;
        let runtime = self.process.runtime.clone();
        let plane = |id: &str, client: Client| Plane::new(&runtime, PlaneId::new(id), client);

        let hub = config.management.as_ref().and_then(|management| management.hub.as_ref());
        let of_cell = config.cell.as_ref().and_then(|cell| match &cell.source {
            config::Source::Hub { hub, .. } => Some(hub),
            config::Source::Project { .. } => None,
        });
        let hub = match hub.or(of_cell) {
            Some(hub) => Some(plane(HUB, connections.client(hub).await?)),
            None => None,
        };
        // In direct mode both roles work on one plane, and share what is known of it.
        let mut direct = None;
        if let Some(config::Cell { source, quota, provider }) = config.cell {
            let (source, here) = match source {
                config::Source::Hub { cluster_name, .. } => {
                    let hub = hub.clone().expect("a cell that has a hub names it");
                    let here = plane(&format!("@{cluster_name}"), own.clone());
                    (cell_controllers::Source::Hub { hub, cluster_name }, here)
                }
                config::Source::Project { name } => {
                    let here = plane(&name, own.clone());
                    direct = Some(here.clone());
                    (cell_controllers::Source::Project { name }, here)
                }
            };
            let quota = match &quota {
                Some(host) => Some(connections.projects(host).await?),
                None => None,
            };
            let (process, readiness) = (self.process.clone(), self.readiness.clone());
            let cell = Cell { plane: here, source, quota, provider, networking, process, readiness };
            self.add(cell::NAME, cell_controllers::LEASE, election, &own, leading, |tasks| cell.start(tasks));
        }
        let Some(config::Management { projects, .. }) = config.management else { return Ok(()) };
        let (projects, judged) = match projects {
            config::Projects::Single { name, plane: at } => {
                let client = connections.client(&at).await?;
                let plane = direct.unwrap_or_else(|| plane(&name, client.clone()));
                (Projects::Single(plane), compute_admission::Projects::Single(client))
            }
            config::Projects::Milo { core, planes, internal } => {
                let core = plane(CORE, connections.client(&core).await?);
                let connect = match internal {
                    false => connections.projects(&planes).await?,
                    true => connections.internal_projects(&planes).await?,
                };
                let of_webhooks = kept(connect.clone());
                let judged = move |project: &str| of_webhooks(project).map_err(Into::into);
                (
                    Projects::Milo { core, connect, internal },
                    compute_admission::Projects::Milo(Arc::new(judged)),
                )
            }
        };
        if let Some(config::Webhook { server, guard }) = config.webhook {
            let certificates = open(&server.certificates).await?;
            let admission = Admission { networking, ..Admission::new(guard) };
            let webhooks = Webhooks { admission, projects: judged };
            self.webhook = Some((server.bind.listen().await?, certificates, webhooks));
        }
        let (process, readiness) = (self.process.clone(), self.readiness.clone());
        let role = Management { projects, hub, process, readiness };
        self.add(management::NAME, management_controllers::LEASE, election, &own, leading, |tasks| {
            role.start(tasks)
        });
        Ok(())
    }

    fn add(
        &mut self,
        name: &'static str,
        lease: &str,
        election: Option<&LeaderElection>,
        own: &Client,
        leading: &Leading,
        start: impl FnOnce(&mut Tasks) + Send + 'static,
    ) {
        let runtime = &self.process.runtime;
        let candidate = election.map(|election| {
            // A process of the same name that was killed is another one.
            let identity = format!("{}_{:016x}", self.process.host, runtime.random().next_u64());
            let clock = runtime.clock().clone();
            let (namespace, timings) = (&election.namespace, election.timings);
            Candidate::new(own.clone(), namespace, lease, identity, timings, move || clock.now())
        });
        self.readiness.set(name, State::Starting);
        let (readiness, leading) = (self.readiness.clone(), leading.clone());
        self.roles.push(Role { name, candidate, start: Box::new(start), readiness, leading });
    }

    /// Where health is served.
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health.as_ref()?.listener.local_addr().ok()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.listener.local_addr().ok()
    }

    /// Where webhooks are served.
    pub fn webhook_address(&self) -> Option<SocketAddr> {
        self.webhook.as_ref()?.0.local_addr().ok()
    }

    /// Runs until `shutdown`, and then until what is in hand has ended.
    ///
    /// # Errors
    ///
    /// Why it ended by itself: among others, a Lease was lost.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Ended> {
        let (health, metrics, webhook) =
            (self.health_address(), self.metrics_address(), self.webhook_address());
        let text =
            |address: Option<SocketAddr>| address.map_or("off".to_owned(), |address| address.to_string());
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            health = text(health),
            metrics = text(metrics),
            webhooks = text(webhook),
            "starting"
        );
        for note in &self.notes {
            tracing::warn!(note, "configured without effect");
        }
        let mut tasks = Tasks::new();
        if let Some(Served { listener, certificates }) = self.health {
            let pages = health_pages(self.readiness);
            tasks.spawn("the health server", |stop| pages::serve(listener, certificates, pages, stop));
        }
        if let Some(Served { listener, certificates }) = self.metrics {
            let pages = metrics_pages(self.process.runtime.clone());
            tasks.spawn("the metrics server", |stop| pages::serve(listener, certificates, pages, stop));
        }
        if let Some((listener, certificates, webhooks)) = self.webhook {
            tasks.spawn("the webhook server", |stop| {
                let stopped = stop.cancelled_owned();
                compute_admission::serve(listener, certificates, webhooks, Settings::default(), stopped)
            });
        }
        for role in self.roles {
            tasks.spawn(format!("the {} role", role.name), |stop| role.run(stop));
        }
        let shutdown = async {
            shutdown.await;
            tracing::info!("stopping");
        };
        match tasks.run(shutdown, GRACE).await {
            Err(Ended::Stuck { tasks }) => {
                tracing::warn!(tasks = tasks.join(", "), "cut off what did not end in time");
                Ok(())
            }
            ended => ended,
        }
    }
}

/// Where the process says how it is.
fn health_pages(readiness: Readiness) -> Pages {
    Arc::new(move |path| match path {
        "/healthz" => Some(Page::text(StatusCode::OK, "ok\n")),
        "/readyz" => {
            let (is_ready, text) = readiness.report();
            let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            Some(Page::text(code, text))
        }
        _ => None,
    })
}

/// Where the process says what it counts.
fn metrics_pages(runtime: Runtime) -> Pages {
    Arc::new(move |path| {
        (path == "/metrics").then(|| Page {
            code: StatusCode::OK,
            content_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            text: runtime.metrics().encode(),
        })
    })
}

async fn served(
    bind: Option<&config::Bind>,
    certificates: Option<&CertificateFiles>,
) -> Result<Option<Served>, Mistake> {
    let Some(bind) = bind else { return Ok(None) };
    let certificates = match certificates {
        Some(files) => Some(open(files).await?),
        None => None,
    };
    Ok(Some(Served { listener: bind.listen().await?, certificates }))
}

async fn open(files: &CertificateFiles) -> Result<Certificates, Mistake> {
    let opened = Certificates::open(files.certificate.clone(), files.key.clone()).await;
    opened.map_err(|error| Mistake::because(&files.field, "cannot be used", &error))
}

fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
