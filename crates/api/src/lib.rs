//! What every part of the compute service agrees on: its kinds and the parts of others' kinds that it uses,
//! names, labels, annotations, finalizers, conditions, quantities and the template hash, and the resource
//! definitions that are generated from these types.
//!
//! This crate must never do I/O, hold a client, read a clock or decide anything: it is values and the rules
//! that make two of them equal. It is the only door to `kube` and `k8s-openapi`: other crates take the types
//! of both from here, so that there is one version of them and one place to change it.
//!
//! Start reading at [`compute`], the three kinds of our own. What another plane sees of them is in [`names`],
//! [`labels`] and [`annotations`]; what they report is in [`conditions`]; [`crds`] turns types into
//! definitions.

#![allow(clippy::duplicated_attributes, reason = "the printer columns of one kind have types in common")]

pub mod annotations;
pub mod compute;
pub mod conditions;
pub mod crds;
pub mod finalizers;
pub mod karmada;
pub mod labels;
pub mod milo;
pub mod names;
pub mod networking;
pub mod quantity;
pub mod quota;
pub mod rbac;
pub mod template_hash;

mod lenient;
mod schema;

pub use jiff;
pub use k8s_openapi;
pub use kube;

/// The Kubernetes types that most code needs, under one roof.
pub mod k8s {
    pub use jiff::Timestamp;
    pub use k8s_openapi::{
        api::{
            authentication::v1::UserInfo,
            authorization::v1::{
                ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
                SubjectAccessReview, SubjectAccessReviewSpec,
            },
            coordination::v1::{Lease, LeaseSpec},
            core::v1::{ConfigMap, Event, Namespace, ObjectReference, Pod, Secret, Taint, Toleration},
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        apimachinery::pkg::apis::meta::v1::{
            Condition, LabelSelector, ManagedFieldsEntry, MicroTime, ObjectMeta, OwnerReference, Status, Time,
        },
    };
    pub use kube::{
        Resource, ResourceExt,
        core::{
            CustomResourceExt, PartialObjectMeta,
            object::{HasSpec, HasStatus},
        },
    };
}

#[cfg(test)]
mod tests;
