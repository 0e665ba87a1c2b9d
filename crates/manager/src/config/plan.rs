//! What flags and server config mean together: roles, planes, and what contradicts each other.

use std::path::PathBuf;

use compute_api::names;
use compute_core::admission::guard::{DEFAULT_ALLOW, Guard, Subject};
use compute_runtime::leader::Timings;

use super::connection::own_namespace;
use super::server::{CertificateFiles, Discovery, Mode, Provider, ServerConfig, WebhookServer};
use super::{
    Bind, Cell, Config, Connection, FEDERATION, Files, Gates, LeaderElection, Management, Mistake, Projects,
    Source, Webhook,
};
use crate::flags::Flags;

/// What a project is called where there is one and nobody says how.
const SINGLE: &str = "single";

/// What is known while the rest is being decided.
pub(super) struct Plan<'a> {
    pub(super) flags: &'a Flags,
    pub(super) own: &'a Connection,
    pub(super) federation: Option<Connection>,
    pub(super) files: &'a dyn Files,
    pub(super) notes: Vec<String>,
}

/// The kubeconfigs of the server config.
struct Others {
    discovery: Option<Connection>,
    project: Option<Connection>,
    quota: Option<Connection>,
}

impl Plan<'_> {
    /// What the process is to do.
    pub(super) fn finish(
        mut self,
        server: ServerConfig,
        health: Option<Bind>,
        gates: Gates,
        host: Option<String>,
    ) -> Result<Config, Mistake> {
        let ServerConfig { metrics, webhook, discovery, provider, projector_identity, guard_allow } = server;
        let read = |name: &str, path: &Option<PathBuf>| {
            let field = format!("discovery.{name}");
            path.as_ref().map(|path| Connection::read(&field, path, self.files)).transpose()
        };
        let others = Others {
            discovery: read("discoveryKubeconfigPath", &discovery.discovery_kubeconfig)?,
            project: read("projectKubeconfigPath", &discovery.project_kubeconfig)?,
            quota: read("quotaKubeconfigPath", &discovery.quota_kubeconfig)?,
        };
        self.check_mode(&discovery)?;
        let project = self.project_name(&discovery)?;
        let management = self.management(&discovery, &others, &project)?;
        let cell = self.cell(&discovery, others, provider, &project)?;
        let webhook = self.webhook(webhook, projector_identity, guard_allow)?;
        for certificates in metrics.certificates.iter().chain(webhook.iter().map(|w| &w.server.certificates))
        {
            self.check_certificates(certificates)?;
        }
        let leader_election = self.leader_election()?;
        Ok(Config {
            own: self.own.clone(),
            management,
            cell,
            webhook,
            health,
            metrics,
            leader_election,
            gates,
            host,
            log_format: self.flags.log_format,
            notes: self.notes,
        })
    }

    fn has_management(&self) -> bool {
        self.flags.enable_management_controllers
    }

    fn has_cell(&self) -> bool {
        self.flags.enable_cell_controllers
    }

    /// Both roles on the plane of one project, and no hub.
    fn is_direct(&self) -> bool {
        self.has_management() && self.has_cell() && self.federation.is_none()
    }

    fn note(&mut self, is_useless: bool, field: &str, why: &str) {
        if is_useless {
            self.notes.push(format!("{field} has no effect: {why}"));
        }
    }

    fn check_mode(&mut self, discovery: &Discovery) -> Result<(), Mistake> {
        let is_milo = discovery.mode == Mode::Milo;
        if is_milo && self.has_cell() {
            return Err(Mistake::new(
                "discovery.mode",
                "must be single with --enable-cell-controllers: a cell is one cluster; run the roles as two processes",
            ));
        }
        if !is_milo && discovery.internal_service_discovery {
            let said = "must be left out in mode single: it says how the projects of mode milo are found";
            return Err(Mistake::new("discovery.internalServiceDiscovery", said));
        }
        if !is_milo && discovery.discovery_kubeconfig.is_some() {
            let said = "must be left out in mode single: it says where the projects of mode milo are found";
            return Err(Mistake::new("discovery.discoveryKubeconfigPath", said));
        }
        if self.federation.is_none() && !self.is_direct() {
            let why = match self.has_management() {
                true => {
                    "--enable-management-controllers needs the federation hub; only both roles together, in mode single, do without"
                }
                false => {
                    "--enable-cell-controllers alone needs the federation hub, from which its deployments come"
                }
            };
            return Err(Mistake::new(FEDERATION, format!("is missing: {why}")));
        }
        let is_single = "mode milo finds projects by itself";
        self.note(is_milo && discovery.project_name.is_some(), "discovery.projectName", is_single);
        let no_cell = "only the cell role uses it";
        self.note(!self.has_cell() && discovery.cluster_name.is_some(), "discovery.clusterName", no_cell);
        self.note(
            !self.has_cell() && discovery.quota_kubeconfig.is_some(),
            "discovery.quotaKubeconfigPath",
            no_cell,
        );
        let is_direct = self.is_direct();
        self.note(is_direct && discovery.cluster_name.is_some(), "discovery.clusterName", "there is no hub");
        Ok(())
    }

    fn project_name(&self, discovery: &Discovery) -> Result<String, Mistake> {
        let name = discovery.project_name.clone().unwrap_or_else(|| SINGLE.to_owned());
        const FIELD: &str = "discovery.projectName";
        if !is_dns_label(&name) {
            let said =
                format!("{name:?} is not the name of a project: lower-case letters, digits and dashes");
            return Err(Mistake::new(FIELD, said));
        }
        names::upstream_cluster_name(&name).map_err(|error| Mistake::new(FIELD, error.to_string()))?;
        Ok(name)
    }

    fn management(
        &self,
        discovery: &Discovery,
        others: &Others,
        project: &str,
    ) -> Result<Option<Management>, Mistake> {
        if !self.has_management() {
            return Ok(None);
        }
        let own = || self.own.clone();
        let projects = match discovery.mode {
            Mode::Milo => {
                let core = others.discovery.clone().unwrap_or_else(own);
                Projects::Milo {
                    planes: others.project.clone().unwrap_or_else(|| core.clone()),
                    core,
                    internal: discovery.internal_service_discovery,
                }
            }
            Mode::Single if self.is_direct() => Projects::Single { name: project.to_owned(), plane: own() },
            Mode::Single => {
                let plane = others.project.clone();
                if self.has_cell() && plane.as_ref().is_none_or(|plane| plane.origin() == self.own.origin()) {
                    return Err(Mistake::new(
                        "discovery.projectKubeconfigPath",
                        "must name the project's own plane when both roles run with a hub, or one plane would be project \
                         and cell; for that, leave the federation kubeconfig out (direct mode)",
                    ));
                }
                Projects::Single { name: project.to_owned(), plane: plane.unwrap_or_else(own) }
            }
        };
        Ok(Some(Management { projects, hub: self.federation.clone() }))
    }

    fn cell(
        &mut self,
        discovery: &Discovery,
        others: Others,
        provider: Option<Provider>,
        project: &str,
    ) -> Result<Option<Cell>, Mistake> {
        if !self.has_cell() {
            self.note(provider.is_some(), "provider", "only the cell role runs instances");
            return Ok(None);
        }
        let source = match &self.federation {
            None => Source::Project { name: project.to_owned() },
            Some(hub) => {
                const FIELD: &str = "discovery.clusterName";
                let Some(name) = discovery.cluster_name.clone() else {
                    let said = "is missing: the cell role needs the name of its Cluster on the hub";
                    return Err(Mistake::new(FIELD, said));
                };
                if !is_dns_label(&name) {
                    let said = format!(
                        "{name:?} is not the name of a Cluster: lower-case letters, digits and dashes"
                    );
                    return Err(Mistake::new(FIELD, said));
                }
                Source::Hub { hub: hub.clone(), cluster_name: name }
            }
        };
        let provider = provider.ok_or_else(|| {
            let said = "is missing: the cell role must know what runs instances: simulated, or none if another process does";
            Mistake::new("provider", said)
        })?;
        Ok(Some(Cell { source, quota: others.quota.or(others.project), provider }))
    }

    fn webhook(
        &mut self,
        server: Option<WebhookServer>,
        projector: Option<Subject>,
        allow: Option<Vec<Subject>>,
    ) -> Result<Option<Webhook>, Mistake> {
        let is_guarded = server.is_some() && !self.is_direct();
        let why = "without webhooks, and in direct mode, Instances are not guarded";
        self.note(!is_guarded && projector.is_some(), "projectorIdentity", why);
        self.note(!is_guarded && allow.is_some(), "instanceGuard", why);
        let Some(server) = server else { return Ok(None) };
        if !self.has_management() {
            let said = "must be left out without --enable-management-controllers: webhooks judge what projects accept";
            return Err(Mistake::new("webhookServer", said));
        }
        if !is_guarded {
            return Ok(Some(Webhook { server, guard: None }));
        }
        let projector = projector.ok_or_else(|| {
            let said = "is missing: with webhooks, Instances are read-only but for the user that this process is in projects";
            Mistake::new("projectorIdentity", said)
        })?;
        let usual =
            || DEFAULT_ALLOW.map(|entry| entry.parse().expect("each default names somebody")).to_vec();
        let guard = Guard::new(projector, allow.unwrap_or_else(usual));
        Ok(Some(Webhook { server, guard: Some(guard) }))
    }

    fn check_certificates(&self, certificates: &CertificateFiles) -> Result<(), Mistake> {
        for path in [&certificates.certificate, &certificates.key] {
            let cannot = format!("cannot read {}", path.display());
            self.files.read(path).map_err(|error| Mistake::because(&certificates.field, &cannot, &error))?;
        }
        Ok(())
    }

    fn leader_election(&mut self) -> Result<Option<LeaderElection>, Mistake> {
        const FIELD: &str = "--leader-election-namespace";
        let given = self.flags.leader_election_namespace.clone().filter(|namespace| !namespace.is_empty());
        if !self.flags.leader_elect {
            self.note(given.is_some(), FIELD, "--leader-elect is off");
            return Ok(None);
        }
        let namespace = given.or_else(|| own_namespace(self.files)).ok_or_else(|| {
            let said = "is missing: --leader-elect needs to know where its Leases are, and the process does not run in a cluster";
            Mistake::new(FIELD, said)
        })?;
        if !is_dns_label(&namespace) {
            return Err(Mistake::new(FIELD, format!("{namespace:?} is not the name of a namespace")));
        }
        Ok(Some(LeaderElection { namespace, timings: Timings::default() }))
    }
}

fn is_dns_label(name: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let ends_well = !name.starts_with('-') && !name.ends_with('-');
    (1..=63).contains(&name.len()) && ends_well && name.bytes().all(is_inner)
}
