//! The pipeline: from a Workload to available instances and back, on the platform of `compute-local`.

mod change;
mod flow;
mod idle;
mod seen;
mod up;
mod wire;

pub use flow::{readiness, workload};
pub use seen::{PATIENCE, Seen};

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::report::Section;

/// What a child process does for a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Part {
    /// Workloads, from their creation to instances in the project.
    Flow(flow::Extent),
    /// One changed instance among others.
    Change {
        /// How many there are.
        instances: usize,
    },
    /// Projects that nothing happens in, and a manager in the same process.
    IdleInProcess {
        /// How many.
        projects: usize,
    },
    /// The same projects, served over TLS.
    IdleServer {
        /// How many.
        projects: usize,
    },
    /// A manager of projects that are served over TLS.
    IdleManager {
        /// How many.
        projects: usize,
        /// The server.
        endpoint: crate::host::Endpoint,
    },
}

impl Part {
    /// Does it. This is the whole of a child process.
    pub async fn play(self) -> Result<()> {
        match self {
            Self::Flow(extent) => flow::play(extent).await,
            Self::Change { instances } => change::play(instances).await,
            Self::IdleInProcess { projects } => idle::in_process(projects).await,
            Self::IdleServer { projects } => idle::serve(projects).await,
            Self::IdleManager { projects, endpoint } => idle::manage(projects, endpoint).await,
        }
    }
}

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Extent {
    starts: usize,
    flow: flow::Extent,
    instances: usize,
    projects: usize,
}

impl Extent {
    /// All of it.
    pub const FULL: Self = Self {
        starts: 5,
        flow: flow::Extent { singles: 20, at_once: 200, news: 100 },
        instances: 10_000,
        projects: 10_000,
    };
    /// Just to see that it runs.
    pub const QUICK: Self = Self {
        starts: 2,
        flow: flow::Extent { singles: 3, at_once: 20, news: 5 },
        instances: 100,
        projects: 200,
    };
}

/// Measures everything, each part printed when it is done.
pub async fn measure(
    folder: &Path,
    extent: &Extent,
    compute_local: Option<PathBuf>,
) -> Result<(Vec<Section>, Vec<Budget>)> {
    let (mut sections, mut budgets) = (Vec::new(), Vec::new());
    let mut done = |section: Section| {
        println!("{}", section.render());
        sections.push(section);
    };
    let program = match compute_local {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("compute-local"),
    };
    done(up::measure(folder, &program, extent.starts, &mut budgets).await.context("up")?);
    done(flow::measure(&extent.flow, &mut budgets).await.context("flow")?);
    done(change::measure(extent.instances, &mut budgets).await.context("one change")?);
    done(idle::measure(extent.projects, &mut budgets).await.context("idle projects")?);
    Ok((sections, budgets))
}
