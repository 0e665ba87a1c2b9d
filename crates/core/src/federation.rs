//! A project's deployments on the hub: their namespace, their copies, the policies that send these to a cell,
//! and the status that comes back.
//!
//! # Guarantees
//!
//! Everything written on the hub says which project and namespace it stands for ([`Upstream`]). A copy belongs
//! to one project object, told by its uid; the copy and the status of a predecessor are never taken for its
//! own.

use std::collections::BTreeMap;

use compute_api::{
    k8s::ObjectMeta,
    labels,
    names::{self, ProjectNameError},
};

use crate::meta;

pub mod copy;
pub mod namespace;
pub mod policy;
pub mod status;

/// Where something on the hub or in a cell comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Upstream {
    /// The project, with its path if it has one.
    pub project: String,
    /// The namespace in the project.
    pub namespace: String,
}

impl Upstream {
    /// What the labels of an object or namespace say. `None` if one is missing or cannot be read.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        let project = names::project_of_upstream(meta::label(meta, labels::UPSTREAM_CLUSTER_NAME)?)?;
        let namespace = meta::label(meta, labels::UPSTREAM_NAMESPACE).filter(|name| !name.is_empty())?;
        Some(Self { project, namespace: namespace.to_owned() })
    }

    /// The labels that say so.
    ///
    /// # Errors
    ///
    /// If the project does not fit into a label. No retry helps.
    pub fn labels(&self) -> Result<BTreeMap<String, String>, ProjectNameError> {
        let cluster = names::upstream_cluster_name(&self.project)?;
        Ok(meta::map([
            (labels::UPSTREAM_CLUSTER_NAME, &*cluster),
            (labels::UPSTREAM_NAMESPACE, &*self.namespace),
        ]))
    }
}

#[cfg(test)]
mod tests;
