//! Who may do what in a plane: role based access control as Kubernetes has it.
//!
//! Everything here is a function of values: no I/O, no clock, no lock. A plane's Roles, ClusterRoles and bindings
//! are compiled into an immutable [`Policy`] whenever one of them changes; a request is described by
//! [`Attributes`], which only borrow; [`Policy::allows`] answers. The [`defaults`] that every plane has are
//! compiled once per process and shared: a plane's own objects are layered over them ([`Policy::compile_over`]).
//!
//! Guarantees: what no rule grants is refused; an object that cannot be read grants nothing; answers do not depend
//! on the order in which objects were given; a caller's bindings are found by its names, so that the rest of the
//! policy costs nothing.
//!
//! Start reading at [`Policy`]. Beside it: `escalation` (nobody grants what they do not hold), `validate` (rules
//! beyond the schema), `review` (the `*Review` kinds), `request` and `impersonation` (from HTTP to attributes).

mod aggregate;
mod attributes;
mod binding;
mod defaults;
mod escalation;
mod impersonation;
mod json;
mod label_selector;
mod policy;
mod request;
mod review;
mod role;
mod rule;
mod validate;

#[cfg(test)]
mod tests;

pub use aggregate::aggregate;
pub use attributes::{Attributes, Caller, ResourceAttributes, Target, names, service_account};
pub use defaults::{default_policy, defaults};
pub use escalation::{Missing, Refusal, check_write, escalation, escalation_message};
pub use impersonation::{Impersonation, ImpersonationError};
pub use policy::{Compiled, Decision, Policy, Skipped};
pub use request::{ResourcePath, path_request, resource_request};
pub use review::{
    ReviewError, local_subject_access_review, self_subject_access_review, self_subject_review,
    self_subject_rules_review, subject_access_review,
};
pub use rule::Rule;
pub use validate::{set_defaults, validate};

/// API group of the RBAC kinds.
pub const RBAC: &str = "rbac.authorization.k8s.io";

/// The four kinds that a policy is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RbacKind {
    /// Rules within one namespace.
    Role,
    /// Rules for the whole plane, or for a namespace when bound there.
    ClusterRole,
    /// Gives a role's rules to subjects in one namespace.
    RoleBinding,
    /// Gives a cluster role's rules to subjects everywhere.
    ClusterRoleBinding,
}

impl RbacKind {
    /// The kind behind a resource, if it is one of the four.
    pub fn of(group: &str, resource: &str) -> Option<Self> {
        match resource {
            _ if group != RBAC => None,
            "roles" => Some(Self::Role),
            "clusterroles" => Some(Self::ClusterRole),
            "rolebindings" => Some(Self::RoleBinding),
            "clusterrolebindings" => Some(Self::ClusterRoleBinding),
            _ => None,
        }
    }

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
            Self::RoleBinding => "RoleBinding",
            Self::ClusterRoleBinding => "ClusterRoleBinding",
        }
    }
}
