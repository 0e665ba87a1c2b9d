//! The planes of projects, made and dropped as their Projects come and go.

use std::sync::Arc;

use compute_apiserver::{ApiServer, PlaneError, PlaneName, PlaneTemplate};
use compute_platform::projects::Host;
use compute_runtime::engage::Connect;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;

use crate::planes;

/// The planes of projects.
pub struct Projects {
    server: ApiServer,
    template: PlaneTemplate,
    /// Goes on by one whenever a plane has been made or dropped.
    changes: watch::Sender<u64>,
}

impl Projects {
    pub(crate) fn new(server: &ApiServer, template: PlaneTemplate) -> Self {
        Self { server: server.clone(), template, changes: watch::Sender::new(0) }
    }

    /// Changes whenever a plane has been made or dropped.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The names of the planes that there are.
    pub fn planes(&self) -> Vec<PlaneName> {
        self.server.plane_names().into_iter().filter(planes::is_project).collect()
    }

    /// Makes the plane of a project, if there is none.
    pub(crate) async fn make(&self, project: &str) -> anyhow::Result<()> {
        match self.server.create_plane(planes::project(project)?, &self.template).await {
            Ok(_) => self.changes.send_modify(|changes| *changes += 1),
            Err(PlaneError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// What makes and drops them, and reaches them in this way.
    pub(crate) fn host(self: &Arc<Self>, connect: Arc<Connect>) -> ProjectHost {
        ProjectHost { projects: self.clone(), connect }
    }
}

pub(crate) struct ProjectHost {
    projects: Arc<Projects>,
    connect: Arc<Connect>,
}

impl Host for ProjectHost {
    fn ensure<'a>(&'a self, project: &'a str) -> BoxFuture<'a, anyhow::Result<Client>> {
        Box::pin(async move {
            self.projects.make(project).await?;
            (self.connect)(project)
        })
    }

    fn remove<'a>(&'a self, project: &'a str) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            if self.projects.server.drop_plane(&planes::project(project)?).await? {
                self.projects.changes.send_modify(|changes| *changes += 1);
            }
            Ok(())
        })
    }
}
