//! A project on its way out: what in its plane is deleted, in which order, and what is only waited for.
//!
//! # Guarantees
//!
//! Workloads go first, everywhere. What a controller made goes by that controller's hand, so that nothing is
//! cut off from what it left on other planes; what people made beside Workloads is deleted once nothing can
//! need it, and so is what a cell left that is no cell any more. A cell that is merely cut off is waited for.

use std::collections::BTreeSet;

use compute_api::{k8s::ObjectMeta, labels};

use crate::meta;

/// A kind that keeps a project's plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Workloads.
    Workload,
    /// WorkloadDeployments.
    WorkloadDeployment,
    /// Instances.
    Instance,
    /// ResourceClaims.
    ResourceClaim,
}

impl Kind {
    /// What people call several of them.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Workload => "Workloads",
            Self::WorkloadDeployment => "WorkloadDeployments",
            Self::Instance => "Instances",
            Self::ResourceClaim => "ResourceClaims",
        }
    }
}

/// What is left in a project's plane.
#[derive(Clone, Debug, Default)]
pub struct Contents<'a> {
    /// Workloads.
    pub workloads: Vec<&'a ObjectMeta>,
    /// WorkloadDeployments.
    pub deployments: Vec<&'a ObjectMeta>,
    /// Instances.
    pub instances: Vec<&'a ObjectMeta>,
    /// ResourceClaims.
    pub claims: Vec<&'a ObjectMeta>,
}

/// What to do about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clearing<'a> {
    /// What to delete now.
    pub delete: Vec<(Kind, &'a ObjectMeta)>,
    /// What must be gone before the plane may go. Empty: it may.
    pub waits_for: Vec<Kind>,
}

impl Clearing<'_> {
    /// What is waited for, for people. It names no numbers, so that it changes seldom.
    pub fn message(&self) -> String {
        let kinds: Vec<_> = self.waits_for.iter().map(|kind| kind.plural()).collect();
        match kinds.split_last() {
            None => "Removing the project's control plane".to_owned(),
            Some((last, [])) => format!("Waiting for {last} to be gone"),
            Some((last, others)) => format!("Waiting for {} and {last} to be gone", others.join(", ")),
        }
    }
}

/// What to do about what is left in the plane of a project that is being deleted. `cells` are all that there are, by name, whether they
/// answer or not.
pub fn clear<'a>(left: &Contents<'a>, cells: &BTreeSet<String>) -> Clearing<'a> {
    let kinds = [
        (Kind::Workload, &left.workloads),
        (Kind::WorkloadDeployment, &left.deployments),
        (Kind::Instance, &left.instances),
        (Kind::ResourceClaim, &left.claims),
    ];
    let waits_for: Vec<_> =
        kinds.iter().filter(|(_, objects)| !objects.is_empty()).map(|(kind, _)| *kind).collect();
    let (first, objects): (_, &[&ObjectMeta]) = match waits_for.first() {
        None => return Clearing::default(),
        Some(Kind::Workload) => (Kind::Workload, &left.workloads),
        Some(Kind::WorkloadDeployment) => (Kind::WorkloadDeployment, &left.deployments),
        Some(Kind::Instance) => (Kind::Instance, &left.instances),
        Some(Kind::ResourceClaim) => (Kind::ResourceClaim, &left.claims),
    };
    let may_go = |object: &ObjectMeta| match first {
        Kind::Workload => true,
        Kind::WorkloadDeployment => meta::controller_uid(object).is_none(),
        // They are projections.
        Kind::Instance => false,
        // A cell releases its own once the instance has stopped. One that is gone releases nothing, and runs nothing.
        Kind::ResourceClaim => {
            meta::label(object, labels::SOURCE_CLUSTER).is_none_or(|cell| !cells.contains(cell))
        }
    };
    let mut delete: Vec<_> = objects
        .iter()
        .filter(|object| !meta::is_being_deleted(object) && may_go(object))
        .map(|object| (first, *object))
        .collect();
    delete.sort_by_key(|(_, object)| (meta::namespace(object), meta::name(object)));
    Clearing { delete, waits_for }
}

#[cfg(test)]
mod tests {
    use compute_api::k8s::OwnerReference;

    use super::*;
    use crate::fixtures::stored;

    fn object(name: &str) -> ObjectMeta {
        stored("ns", name, name)
    }

    fn deleted<'a>(clearing: &Clearing<'a>) -> Vec<&'a str> {
        clearing.delete.iter().map(|(_, object)| meta::name(object)).collect()
    }

    #[test]
    fn workloads_go_first_and_controllers_clear_up_after_themselves() {
        let (a, b) = (object("a"), object("b"));
        let mut going = object("c");
        going.deletion_timestamp = Some(compute_api::k8s::Time(crate::fixtures::at(1)));
        let mut owned = object("owned");
        owned.owner_references =
            Some(vec![OwnerReference { controller: Some(true), ..OwnerReference::default() }]);
        let (stray, instance) = (object("stray"), object("instance"));
        let mut of_cell = object("of-cell");
        of_cell.labels = Some(meta::map([(labels::SOURCE_CLUSTER, "cell-dfw")]));
        let by_hand = object("by-hand");
        let mut of_gone_cell = object("of-gone-cell");
        of_gone_cell.labels = Some(meta::map([(labels::SOURCE_CLUSTER, "cell-old")]));
        let cells = BTreeSet::from(["cell-dfw".to_owned()]);
        let mut left = Contents {
            workloads: vec![&b, &going, &a],
            deployments: vec![&owned, &stray],
            instances: vec![&instance],
            claims: vec![&of_cell, &of_gone_cell, &by_hand],
        };
        let clearing = clear(&left, &cells);
        assert_eq!(deleted(&clearing), ["a", "b"]);
        assert_eq!(
            clearing.message(),
            "Waiting for Workloads, WorkloadDeployments, Instances and ResourceClaims to be gone"
        );
        left.workloads.clear();
        assert_eq!(deleted(&clear(&left, &cells)), ["stray"]);
        left.deployments.clear();
        assert_eq!(clear(&left, &cells).delete, []);
        left.instances.clear();
        let clearing = clear(&left, &cells);
        assert_eq!(
            (deleted(&clearing), &*clearing.message()),
            (vec!["by-hand", "of-gone-cell"], "Waiting for ResourceClaims to be gone")
        );
        left.claims.clear();
        assert_eq!(clear(&left, &cells), Clearing::default());
    }
}
