//! `cargo xtask config`: what is deployed. kustomize builds it, checks that need no server look at it, and kubectl applies it, server-side and
//! strictly.
//!
//! Each kustomization that people apply is a [`Target`]: a folder of `config/` and the plane it is for. Kinds of others that a plane may lack
//! are in `xtask/stand-ins`: minimal definitions of our own with the fields that `config/` uses.

mod apply;
mod build;
mod check;
mod embedded;
mod real;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use serde_json::Value;

use crate::clients::tools;

pub(crate) use apply::Cluster;
pub(crate) use real::apply_all;

#[derive(Subcommand)]
pub(crate) enum Chore {
    /// Print what a kustomization builds to: an overlay such as cell or management-plane/projects, or base/federation.
    Build {
        /// Which.
        target: String,
    },
    /// Apply a kustomization to an API server, server-side and strictly.
    Apply {
        /// How the server is reached.
        #[arg(long, value_name = "FILE")]
        kubeconfig: PathBuf,
        /// Which context of it [default: its current one].
        #[arg(long)]
        context: Option<String>,
        /// An overlay such as cell or management-plane/projects, or base/federation.
        #[arg(long)]
        overlay: String,
        /// First apply stand-ins for the kinds of others that the overlay uses.
        #[arg(long)]
        stand_ins: bool,
    },
    /// Build everything, look at it, and apply it to the planes of an embedded server.
    Test,
}

/// What kind of plane a kustomization is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// The cluster that a manager of the management plane runs in.
    Management,
    /// The core plane.
    Core,
    /// The plane of a project.
    Project,
    /// The hub.
    Hub,
    /// A cell.
    Cell,
    /// A cluster that is project and cell in one.
    Single,
}

/// A kustomization that people apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Its folder in `config/`.
    pub(crate) folder: &'static str,
    /// The plane it is for.
    pub(crate) plane: Plane,
}

/// Every kustomization that people apply.
pub(crate) const TARGETS: &[Target] = &[
    Target { folder: "base/federation", plane: Plane::Hub },
    Target { folder: "overlays/management-plane", plane: Plane::Management },
    Target { folder: "overlays/management-plane/core", plane: Plane::Core },
    Target { folder: "overlays/management-plane/projects", plane: Plane::Project },
    Target { folder: "overlays/cell", plane: Plane::Cell },
    Target { folder: "overlays/cell/projects", plane: Plane::Project },
    Target { folder: "overlays/single-cluster", plane: Plane::Single },
    Target { folder: "overlays/dev", plane: Plane::Single },
];

impl Target {
    /// Finds one by its folder, with or without `overlays/`.
    pub(crate) fn find(name: &str) -> Result<&'static Self> {
        let name = name.trim_matches('/');
        let found = TARGETS
            .iter()
            .find(|target| target.folder == name || target.folder.strip_prefix("overlays/") == Some(name));
        found.with_context(|| {
            let known: Vec<_> = TARGETS
                .iter()
                .map(|target| target.folder.strip_prefix("overlays/").unwrap_or(target.folder))
                .collect();
            format!("there is no kustomization {name:?} to apply; there are {}", known.join(", "))
        })
    }

    /// The objects that it builds to.
    pub(crate) fn build(&self, kubectl: &tools::Kubectl) -> Result<Vec<Value>> {
        build::objects(&kubectl.program, &crate::root().join("config").join(self.folder))
    }
}

/// Does a chore.
pub(crate) fn run(chore: Chore) -> Result<()> {
    let kubectl = tools::kubectl()?;
    match chore {
        Chore::Build { target } => {
            let folder = crate::root().join("config").join(Target::find(&target)?.folder);
            print!("{}", build::text(&kubectl.program, &folder)?);
            Ok(())
        }
        Chore::Apply { kubeconfig, context, overlay, stand_ins } => {
            let target = Target::find(&overlay)?;
            let cluster = Cluster { kubectl: &kubectl, kubeconfig, context };
            let objects = target.build(&kubectl)?;
            if stand_ins {
                cluster.apply_stand_ins(&objects)?;
            }
            cluster.apply(&objects)?;
            println!("applied {} objects of {}", objects.len(), target.folder);
            Ok(())
        }
        Chore::Test => embedded::test(&kubectl),
    }
}
