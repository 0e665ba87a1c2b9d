//! What the process is to do: flags, environment and files, put together and checked before anything starts.
//!
//! [`Config::from`] is a pure function of what it is given. What it returns can be wired up without another question; what it refuses is
//! one [`Mistake`], which names the field and says what would be right.

mod bind;
mod connection;
mod files;
mod gates;
mod mistake;
mod plan;
mod section;
mod server;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use compute_core::admission::guard::Guard;
use compute_runtime::leader::Timings;

use crate::flags::{Flags, LogFormat};
pub use bind::Bind;
pub use connection::Connection;
pub(crate) use connection::Origin;
pub use files::{Disk, Files};
pub use gates::Gates;
pub use mistake::Mistake;
use plan::Plan;
use server::ServerConfig;
pub use server::{API_VERSION, CertificateFiles, KIND, MetricsServer, Provider, WebhookServer};

const FEDERATION: &str = "--federation-kubeconfig";

/// What the process is to do.
#[derive(Clone, Debug)]
pub struct Config {
    /// The process's own cluster.
    pub own: Connection,
    /// The management role, if it has it.
    pub management: Option<Management>,
    /// The cell role, if it has it.
    pub cell: Option<Cell>,
    /// The webhooks, if it answers any.
    pub webhook: Option<Webhook>,
    /// Where it says how it is; none for nowhere.
    pub health: Option<Bind>,
    /// Where it says what it counts.
    pub metrics: MetricsServer,
    /// How replicas agree on who works; none if there is but one.
    pub leader_election: Option<LeaderElection>,
    /// What is turned on.
    pub gates: Gates,
    /// What the process is called: its pod's or its machine's name.
    pub host: Option<String>,
    /// How log lines look.
    pub log_format: LogFormat,
    /// What is configured and has no effect, for operators to know.
    pub notes: Vec<String>,
}

/// The management role.
#[derive(Clone, Debug)]
pub struct Management {
    /// The projects that it serves.
    pub projects: Projects,
    /// The federation hub; none in direct mode.
    pub hub: Option<Connection>,
}

/// The projects that are served.
#[derive(Clone, Debug)]
pub enum Projects {
    /// There is one.
    Single {
        /// Its name.
        name: String,
        /// Its plane.
        plane: Connection,
    },
    /// They are those of a core plane.
    Milo {
        /// Where Projects are.
        core: Connection,
        /// The host of their planes, or, found by internal addresses, how to be known there.
        planes: Connection,
        /// Whether they are found by internal addresses.
        internal: bool,
    },
}

/// The cell role.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Where deployments come from.
    pub source: Source,
    /// The host of the planes that instances claim quota in; none if every instance may run.
    pub quota: Option<Connection>,
    /// What runs instances.
    pub provider: Provider,
}

/// Where a cell's deployments come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// From a hub.
    Hub {
        /// The hub.
        hub: Connection,
        /// What the cell is called there.
        cluster_name: String,
    },
    /// From the one project that the cell is part of: direct mode.
    Project {
        /// Its name.
        name: String,
    },
}

/// The webhooks.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Where and as whom they are answered.
    pub server: WebhookServer,
    /// Who may write Instances; without one, everybody who has the permission.
    pub guard: Option<Guard>,
}

/// How replicas agree on who works.
#[derive(Clone, Debug)]
pub struct LeaderElection {
    /// Where the Leases are.
    pub namespace: String,
    /// How long they hold.
    pub timings: Timings,
}

impl Config {
    /// Puts together what the process is to do.
    ///
    /// # Errors
    ///
    /// The first mistake that is found.
    pub fn from(flags: &Flags, env: &BTreeMap<String, String>, files: &dyn Files) -> Result<Self, Mistake> {
        if !flags.enable_management_controllers && !flags.enable_cell_controllers {
            let said = "at least one must be on, or there is nothing to run";
            return Err(Mistake::new("--enable-management-controllers, --enable-cell-controllers", said));
        }
        let health = Bind::read("--health-probe-bind-address", &flags.health_probe_bind_address)?;
        let set = |name: &str| env.get(name).filter(|value| !value.is_empty());
        let gates =
            match (flags.feature_gates.as_ref().filter(|gates| !gates.is_empty()), set("FEATURE_GATES")) {
                (Some(text), _) => Gates::read("--feature-gates", text)?,
                (None, Some(text)) => Gates::read("FEATURE_GATES", text)?,
                (None, None) => Gates::default(),
            };
        let server = match given(flags.server_config.as_deref()) {
            None => ServerConfig::empty()?,
            Some(path) => {
                const FIELD: &str = "--server-config";
                let cannot = format!("cannot read {}", path.display());
                let bytes = files.read(path).map_err(|error| Mistake::because(FIELD, &cannot, &error))?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| Mistake::new(FIELD, format!("{} is not text", path.display())))?;
                ServerConfig::read(FIELD, &text)?
            }
        };
        if let (Some(health), Some(metrics)) = (&health, &server.metrics.bind)
            && health.meets(metrics)
        {
            return Err(Mistake::new(
                metrics.field(),
                "must not be the address of --health-probe-bind-address",
            ));
        }
        let federation = match (given(flags.federation_kubeconfig.as_deref()), set("FEDERATION_KUBECONFIG")) {
            (Some(path), _) => Some(Connection::read(FEDERATION, path, files)?),
            (None, Some(path)) => Some(Connection::read("FEDERATION_KUBECONFIG", Path::new(path), files)?),
            (None, None) => None,
        };
        let own = match given(flags.kubeconfig.as_deref()) {
            Some(path) => Connection::read("--kubeconfig", path, files)?,
            None => Connection::in_cluster("--kubeconfig", env, files)?,
        };
        Plan { flags, own: &own, federation, files, notes: Vec::new() }.finish(
            server,
            health,
            gates,
            host(env),
        )
    }
}

/// What is said and not empty.
fn given(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn host(env: &BTreeMap<String, String>) -> Option<String> {
    ["POD_NAME", "HOSTNAME"].iter().find_map(|name| env.get(*name).filter(|name| !name.is_empty()).cloned())
}
