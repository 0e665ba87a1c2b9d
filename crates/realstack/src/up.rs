//! Bringing a stack up: credentials and command lines first, then everything that does not wait for something else at the same time.
//!
//! # Guarantees
//!
//! `stack.json` is written last, so a stack that is written down was whole. If anything fails, or the command is dropped half way, nothing of it
//! is taken for a stack: what still runs is ended here, or by the next `up` or `down`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use futures::future::{try_join, try_join_all, try_join3};

use crate::certs;
use crate::down::end_all;
use crate::join::{self, Member};
use crate::karmada::{self, Accounts, Karmada};
use crate::kubernetes::{Etcd, Names, Plane, Programs};
use crate::objects::Objects;
use crate::process::Process;
use crate::running::Running;
use crate::server::Cell;
use crate::state::{Folder, Stack};
use crate::tools::{self, Tools};
use crate::{Error, Say, files, ports};

/// The cities that have a cell.
const CITIES: [&str; 2] = ["DFW", "ORD"];
/// etcd's three, two per plane, Karmada's five.
const PORTS: usize = 3 + 2 * (2 + CITIES.len()) + 5;

/// What to bring up, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The state folder.
    pub dir: PathBuf,
    /// The folder with the Go modules that name the programs: `tools/realstack`.
    pub modules: PathBuf,
    /// Where built programs are kept.
    pub cache: PathBuf,
    /// The Kubernetes minor: `1.35`.
    pub kubernetes: String,
}

/// A stack that is up.
#[derive(Debug)]
pub struct Up {
    /// The stack.
    pub running: Running,
    /// Whether this call started it, or found it so.
    pub started: bool,
}

/// A cell that is ready to be started.
struct CellPlan {
    city: &'static str,
    cluster: String,
    plane: Plane,
    /// Karmada's tokens: its controllers' and its impersonator's.
    tokens: (String, String),
}

/// All that is to be started.
struct Plan {
    etcd: Etcd,
    management: Plane,
    hub: Plane,
    karmada: Karmada,
    cells: Vec<CellPlan>,
}

/// Brings a stack up, unless one is up. What is left of one that is not whole is taken down first.
///
/// # Errors
///
/// If a program cannot be built, or a process does not become healthy in time: the error shows the end of its log, and nothing is left running.
pub async fn up(options: &Options, say: &Say) -> Result<Up, Error> {
    let folder = Folder::create(&options.dir)?;
    let _lock = folder.lock()?;
    if let Some(running) = whole(&folder, &options.kubernetes, say)? {
        return Ok(Up { running, started: false });
    }
    let tools = {
        let (options, say) = (options.clone(), say.clone());
        let build = move || tools::ensure(&options.modules, &options.cache, &options.kubernetes, &say);
        tokio::task::spawn_blocking(build).await.map_err(|error| Error::Late {
            what: "the build of the programs".into(),
            within: std::time::Duration::ZERO,
            last: error.to_string(),
        })??
    };
    end_all(&folder).await?;
    folder.clear()?;
    folder.clear_logs()?;

    let plan = Plan::prepare(&folder, &tools)?;
    let processes: Vec<Process> = plan.processes().cloned().collect();
    if let Err(error) = plan.start(&folder, &tools, say).await {
        // What was waited for may have failed because something else ended: that is then the better error.
        let ended = processes.iter().find_map(|process| process.has_ended(&folder));
        end_all(&folder).await?;
        return Err(match error {
            Error::Unhealthy { .. } => error,
            other => ended.unwrap_or(other),
        });
    }
    files::write_json(&folder.stack(), &plan.into_stack(&tools, processes))?;
    Ok(Up { running: Running::open(folder.path())?, started: true })
}

/// The stack that is up, if it is whole; `None` if there is none, or one to be taken down.
fn whole(folder: &Folder, minor: &str, say: &Say) -> Result<Option<Running>, Error> {
    let stack = match folder.read() {
        Ok(Some(stack)) => stack,
        Ok(None) => return Ok(None),
        Err(error @ Error::Malformed { .. }) => {
            say(&format!("starting afresh: {error}"));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    for process in &stack.processes {
        if process.running(folder)?.is_none() {
            say(&format!("a stack was up, but {} does not run any more: starting afresh", process.name));
            return Ok(None);
        }
    }
    let running = stack.versions.kubernetes;
    if !running.starts_with(&format!("v{minor}.")) {
        return Err(Error::OtherVersion { running, wanted: minor.to_owned() });
    }
    Running::open(folder.path()).map(Some)
}

impl Plan {
    fn prepare(folder: &Folder, tools: &Tools) -> Result<Self, Error> {
        let ports = ports::free(PORTS, u16::from_le_bytes(certs::random()?))?;
        let mut ports = ports.into_iter();
        let mut port = || ports.next().unwrap_or_default();
        let etcd = Etcd::prepare(folder, &tools.etcd(), [port(), port(), port()])?;
        let (apiserver, controllers) =
            (tools.kubernetes("kube-apiserver"), tools.kubernetes("kube-controller-manager"));
        let programs = Programs { apiserver: &apiserver, controllers: &controllers };

        let names = Names {
            plane: "management",
            apiserver: "management-apiserver",
            controllers: "management-controller-manager",
        };
        let management = Plane::prepare(folder, &names, &programs, &etcd, [port(), port()], &[])?;

        let accounts = Accounts::generate()?.into_list();
        let names = Names {
            plane: "hub",
            apiserver: "karmada-apiserver",
            controllers: "karmada-kube-controller-manager",
        };
        let hub = Plane::prepare(folder, &names, &programs, &etcd, [port(), port()], &accounts)?;
        let karmada_ports = [port(), port(), port(), port(), port()];
        let karmada = Karmada::prepare(&hub, tools, &etcd, karmada_ports, &accounts)?;

        let mut cells = Vec::new();
        for city in CITIES {
            let cluster = format!("cell-{}", city.to_lowercase());
            let names = Names {
                plane: &cluster,
                apiserver: &format!("{cluster}-apiserver"),
                controllers: &format!("{cluster}-controller-manager"),
            };
            let member = Member::generate()?;
            let tokens = (member.controllers.token.clone(), member.impersonator.token.clone());
            let accounts = [member.controllers, member.impersonator];
            let plane = Plane::prepare(folder, &names, &programs, &etcd, [port(), port()], &accounts)?;
            cells.push(CellPlan { city, cluster, plane, tokens });
        }
        Ok(Self { etcd, management, hub, karmada, cells })
    }

    /// In the order in which they start.
    fn processes(&self) -> impl Iterator<Item = &Process> {
        let planes =
            [&self.management, &self.hub].into_iter().chain(self.cells.iter().map(|cell| &cell.plane));
        let karmada = &self.karmada;
        [&self.etcd.process]
            .into_iter()
            .chain(planes.flat_map(|plane| [&plane.apiserver, &plane.controllers]))
            .chain([&karmada.aggregated, &karmada.webhook, &karmada.controllers, &karmada.scheduler])
    }

    async fn start(&self, folder: &Folder, tools: &Tools, say: &Say) -> Result<(), Error> {
        self.etcd.process.start(folder).await?;
        say("etcd is up");
        let cells = try_join_all(self.cells.iter().map(|cell| plane(&cell.plane, folder, say)));
        try_join3(plane(&self.management, folder, say), cells, self.start_hub(folder, tools, say)).await?;
        Ok(())
    }

    async fn start_hub(&self, folder: &Folder, tools: &Tools, say: &Say) -> Result<(), Error> {
        let (karmada, manifests) = (&self.karmada, tools.manifests());
        self.hub.apiserver.start(folder).await?;
        say(&format!("{} is up", self.hub.apiserver.name));
        let hub = Objects::new(self.hub.server.client()?);
        karmada::create_namespaces(&hub, join::NAMESPACE).await?;
        let api = async {
            karmada.aggregated.start(folder).await?;
            karmada.install_api(&hub).await
        };
        try_join3(api, karmada.install_crds(&hub, &manifests), karmada.webhook.start(folder)).await?;
        karmada.install_webhooks(&hub, &manifests).await?;
        say("Karmada's API is installed");
        // The garbage collector looks for new kinds every 30 s: started now, it knows Karmada's from the beginning.
        let started = try_join3(
            karmada.controllers.start(folder),
            karmada.scheduler.start(folder),
            self.hub.controllers.start(folder),
        );
        let joined = try_join_all(self.cells.iter().map(async |cell| {
            let tokens = (cell.tokens.0.as_str(), cell.tokens.1.as_str());
            join::join(&hub, cell.city, &cell.cluster, &cell.plane.server, tokens).await?;
            join::ready(&hub, &cell.cluster).await?;
            say(&format!("{} has joined, for {}", cell.cluster, cell.city));
            Ok(())
        }));
        try_join(started, joined).await?;
        Ok(())
    }

    fn into_stack(self, tools: &Tools, processes: Vec<Process>) -> Stack {
        let cells: BTreeMap<_, _> = self
            .cells
            .into_iter()
            .map(|cell| (cell.city.to_owned(), Cell { server: cell.plane.server, cluster: cell.cluster }))
            .collect();
        Stack {
            versions: tools.versions.clone(),
            management: self.management.server,
            hub: self.hub.server,
            cells,
            processes,
            kubectl: tools.kubernetes("kubectl"),
        }
    }
}

/// Starts an API server, and then its controllers.
async fn plane(plane: &Plane, folder: &Folder, say: &Say) -> Result<(), Error> {
    plane.apiserver.start(folder).await?;
    say(&format!("{} is up", plane.apiserver.name));
    plane.controllers.start(folder).await
}
