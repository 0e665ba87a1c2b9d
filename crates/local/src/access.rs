//! How people get in: a token per plane, and the kubeconfig that has them all.
//!
//! Guarantees: every plane that the platform serves has a context, also one that comes later, and no context leads to a plane that is gone.

use std::collections::BTreeMap;

use anyhow::Result;
use compute_apiserver::{Access as Opens, ApiServer, Identity, PlaneName, Random};
use compute_local::{planes, workers};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::data_dir::{Lock, Running};
use crate::kubeconfig::{self, Context};

/// The context that kubectl starts with, if there is such a project.
const FIRST: &str = "project-demo";

/// Hands out tokens and writes the kubeconfig.
pub(crate) struct Access {
    pub(crate) server: ApiServer,
    pub(crate) random: Random,
    pub(crate) lock: Lock,
    pub(crate) url: String,
    /// The authority that the server's certificate is from, as PEM.
    pub(crate) authority: String,
    pub(crate) cities: Vec<String>,
    /// Whether projects have rules that must hold for those who use them, too.
    pub(crate) has_rules: bool,
    pub(crate) tokens: BTreeMap<PlaneName, String>,
}

impl Access {
    /// Writes the kubeconfig, and says that the platform is up; the names of the contexts.
    pub(crate) fn write(&mut self) -> Result<Vec<String>> {
        let mut contexts = Vec::new();
        for plane in self.planes() {
            let token = self.tokens.entry(plane.clone()).or_insert_with(|| {
                let token = self.random.secret();
                let name = format!("{}-admin", plane.as_str());
                let identity = match self.has_rules && planes::is_project(&plane) {
                    true => Identity::user(name).in_group(workers::PROJECT_ADMINS),
                    false => Identity::superuser(name),
                };
                self.server.tokens().add(&token, identity, Opens::Planes([plane.clone()].into()));
                token
            });
            contexts.push(Context {
                name: plane.as_str().to_owned(),
                url: planes::url(&self.url, &plane),
                token: token.clone(),
            });
        }
        let first = contexts.iter().find(|context| context.name == FIRST).or(contexts.first());
        let first = first.map(|context| context.name.clone()).unwrap_or_default();
        let config = kubeconfig::render(&contexts, &first, &self.authority)?;
        let dir = self.lock.dir();
        dir.write_private(&dir.kubeconfig(), config.as_bytes())?;
        let contexts: Vec<String> = contexts.into_iter().map(|context| context.name).collect();
        let running = Running { pid: std::process::id(), url: self.url.clone(), contexts: contexts.clone() };
        self.lock.announce(&running)?;
        Ok(contexts)
    }

    /// Core, hub, the cells that this platform runs, and projects, in this order.
    fn planes(&self) -> Vec<PlaneName> {
        let mut found = vec![planes::core(), planes::hub()];
        found.extend(self.cities.iter().filter_map(|city| planes::cell(city).ok()));
        found.extend(self.server.plane_names().into_iter().filter(planes::is_project));
        found
    }

    /// Writes it again whenever a project comes or goes.
    pub(crate) async fn follow(
        mut self,
        mut changes: watch::Receiver<u64>,
        stop: CancellationToken,
    ) -> Result<(), std::convert::Infallible> {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_err() {
                        stop.cancelled().await;
                    } else if let Err(error) = self.write() {
                        tracing::error!(error = format!("{error:#}"), "cannot write the kubeconfig");
                    }
                }
            }
        }
    }
}
