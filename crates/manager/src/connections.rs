//! The API servers that the process talks to: one shared host for each origin, however many planes are reached through it.
//!
//! Nothing is sent here; but what is configured is read to its end, so that it fails before anything starts.

use std::collections::BTreeMap;
use std::sync::Arc;

use compute_api::milo::{project_control_plane_path, project_internal_address};
use compute_runtime::engage::Connect;
use compute_runtime::transport::{Options, SharedHost};
use kube::Client;
use parking_lot::Mutex;

use crate::config::{Connection, Mistake, Origin};

/// Clients of projects that webhooks keep. Beyond it, all are made anew: they are cheap.
const KEPT: usize = 1024;

/// The API servers, by where they are configured.
pub(crate) struct Connections {
    hosts: BTreeMap<Origin, SharedHost>,
    options: Options,
}

impl Connections {
    pub(crate) fn new() -> Self {
        let user_agent = concat!("compute-manager/", env!("CARGO_PKG_VERSION")).to_owned();
        Self { hosts: BTreeMap::new(), options: Options { user_agent, ..Options::default() } }
    }

    async fn host(&mut self, connection: &Connection) -> Result<SharedHost, Mistake> {
        let origin = connection.origin();
        if let Some(host) = self.hosts.get(&origin) {
            return Ok(host.clone());
        }
        let config = connection.config().await?;
        let host = SharedHost::new(config, &self.options)
            .map_err(|error| Mistake::because(connection.field(), "cannot be used", &error))?;
        self.hosts.insert(origin, host.clone());
        Ok(host)
    }

    /// A client for the API server itself.
    pub(crate) async fn client(&mut self, connection: &Connection) -> Result<Client, Mistake> {
        Ok(self.host(connection).await?.client(""))
    }

    /// The way to projects on a host, by name.
    pub(crate) async fn projects(&mut self, connection: &Connection) -> Result<Arc<Connect>, Mistake> {
        let host = self.host(connection).await?;
        Ok(Arc::new(move |project| Ok(host.client(&project_control_plane_path(project)))))
    }

    /// The way to projects that each have an address of their own, by name.
    pub(crate) async fn internal_projects(
        &mut self,
        connection: &Connection,
    ) -> Result<Arc<Connect>, Mistake> {
        // Once, so that a mistake shows now.
        self.host(connection).await?;
        let (config, options) = (connection.config().await?, self.options.clone());
        Ok(Arc::new(move |project| {
            let mut config = config.clone();
            config.cluster_url = project_internal_address(project).parse()?;
            Ok(SharedHost::new(config, &options)?.client(""))
        }))
    }
}

/// The same way, with the clients kept for another time.
pub(crate) fn kept(connect: Arc<Connect>) -> Arc<Connect> {
    let kept: Mutex<BTreeMap<String, Client>> = Mutex::default();
    Arc::new(move |project| {
        if let Some(client) = kept.lock().get(project) {
            return Ok(client.clone());
        }
        let client = connect(project)?;
        let mut kept = kept.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(project.to_owned(), client.clone());
        Ok(client)
    })
}
