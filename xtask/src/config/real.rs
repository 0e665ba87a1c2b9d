//! Everything that is deployed, on real API servers.

use std::path::Path;

use anyhow::{Context as _, Result};
use compute_realstack::Running;

use super::{Cluster, Plane, TARGETS};
use crate::clients::tools;

/// Applies every kustomization twice, each to a server of its kind; the second time changes nothing that the first has not.
///
/// Webhooks go away again: nobody serves them, and the next who works with the servers would be refused.
pub(crate) fn apply_all(running: &Running) -> Result<()> {
    let kubectl = tools::kubectl()?;
    for target in TARGETS {
        let objects = target.build(&kubectl)?;
        let (name, kubeconfig) = server(running, target.plane)?;
        let cluster = Cluster { kubectl: &kubectl, kubeconfig: kubeconfig.to_owned(), context: None };
        cluster.apply_stand_ins(&objects).with_context(|| target.folder.to_owned())?;
        for _ in 0..2 {
            cluster.apply(&objects).with_context(|| target.folder.to_owned())?;
        }
        cluster.delete_webhooks(&objects).with_context(|| target.folder.to_owned())?;
        println!("overlay {} ... ok ({} objects applied to {name})", target.folder, objects.len());
    }
    Ok(())
}

/// The server that stands for a kind of plane: its name, and how it is reached.
fn server(running: &Running, plane: Plane) -> Result<(&str, &Path)> {
    let cell = |index| running.cells().values().nth(index).context("the stack has two cells");
    Ok(match plane {
        Plane::Management | Plane::Core | Plane::Project => ("management", &running.management().kubeconfig),
        Plane::Hub => ("hub", &running.hub().kubeconfig),
        Plane::Cell => {
            let cell = cell(0)?;
            (&cell.cluster, &cell.server.kubeconfig)
        }
        Plane::Single => {
            let cell = cell(1)?;
            (&cell.cluster, &cell.server.kubeconfig)
        }
    })
}
