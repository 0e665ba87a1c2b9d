//! The platform that runs on this machine, which says where it is in its data directory.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;
use kube::config::Kubeconfig;

use super::{Connection, Wish, kubeconfig};
use crate::failure::{Failure, Result};

/// A platform that says that it runs.
pub(super) struct Running {
    kubeconfig: PathBuf,
}

/// Finds the platform that runs with the data directory that `compute-local` would use.
pub(super) fn find() -> Option<Running> {
    let given = std::env::var_os("COMPUTE_LOCAL_DATA_DIR").filter(|dir| !dir.is_empty());
    let dir = match given {
        Some(dir) => PathBuf::from(dir),
        None => etcetera::choose_base_strategy().ok()?.data_dir().join("compute-local"),
    };
    let kubeconfig = dir.join("kubeconfig");
    (dir.join("running.json").exists() && kubeconfig.exists()).then_some(Running { kubeconfig })
}

/// The failure when its kubeconfig cannot be read.
pub(super) fn in_between() -> Failure {
    Failure::new(
        "cannot reach the platform on this machine",
        "it is just starting or stopping: what it says of itself cannot be read",
    )
    .other("compute-local status", "see how it is")
}

/// The failure when it has no such project.
pub(super) fn no_such_project(project: &str, projects: &[String]) -> Failure {
    Failure::usage(
        format!("cannot work in project {project}"),
        "the platform on this machine has no such project",
    )
    .advice(format!("use one of: {}", projects.join(", ")))
}

/// The way into a project of it.
pub(super) async fn connect(wish: &Wish, running: &Running) -> Result<Connection> {
    let config = Kubeconfig::read_from(&running.kubeconfig).map_err(|_| in_between())?;
    let projects: Vec<String> = config
        .contexts
        .iter()
        .filter_map(|context| context.name.strip_prefix("project-"))
        .map(str::to_owned)
        .collect();
    if let Some(project) = &wish.project
        && !projects.contains(project)
    {
        return Err(no_such_project(project, &projects));
    }
    kubeconfig::of(wish, config).await
}
