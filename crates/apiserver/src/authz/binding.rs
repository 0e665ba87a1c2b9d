//! Role bindings and cluster role bindings as the policy keeps them.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::json::{Metadata, nullable};
use super::rule::Rule;

/// Which binding. Cluster role bindings have an empty namespace; they come first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BindingKey {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum RoleKind {
    Role,
    ClusterRole,
}

impl fmt::Display for RoleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
        })
    }
}

/// The role that a binding gives away.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct RoleRef {
    pub(super) kind: RoleKind,
    pub(super) name: Box<str>,
}

impl RoleRef {
    /// What is said when there is no such role.
    pub(super) fn not_found(&self) -> String {
        let resource = self.kind.to_string().to_lowercase();
        format!("{resource}.{} {:?} not found", super::RBAC, self.name)
    }
}

/// Whom a binding names.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Subject {
    /// `User`, `Group` or `ServiceAccount`; a subject of any other kind is nobody.
    kind: Box<str>,
    name: Box<str>,
    /// Of a service account; none for the binding's own.
    #[serde(default, deserialize_with = "nullable")]
    namespace: Box<str>,
}

/// How a subject is found from a caller's names.
pub(super) enum SubjectName {
    User(Box<str>),
    Group(Box<str>),
}

impl Subject {
    /// Who it is in a binding of `namespace`; `None` for nobody.
    pub(super) fn resolve(&self, namespace: &str) -> Option<SubjectName> {
        match &*self.kind {
            "User" => Some(SubjectName::User(self.name.clone())),
            "Group" => Some(SubjectName::Group(self.name.clone())),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { namespace } else { &self.namespace };
                let user = || format!("system:serviceaccount:{namespace}:{}", self.name);
                (!namespace.is_empty()).then(|| SubjectName::User(user().into()))
            }
            _ => None,
        }
    }
}

/// A binding with the rules that it gives away.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) key: Arc<BindingKey>,
    pub(super) role: RoleRef,
    pub(super) subjects: Arc<[Subject]>,
    /// `None`: there is no such role.
    pub(super) rules: Option<Arc<[Rule]>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BindingObject {
    metadata: Metadata,
    role_ref: RoleRef,
    #[serde(default, deserialize_with = "nullable")]
    subjects: Vec<Subject>,
}

impl Binding {
    /// Reads a binding; its rules are not yet looked up.
    pub(super) fn read(value: &Value) -> Result<Self, serde_json::Error> {
        let BindingObject { metadata, role_ref: role, subjects } = BindingObject::deserialize(value)?;
        let key = BindingKey { namespace: metadata.namespace.into(), name: metadata.name.into() };
        Ok(Self { key: Arc::new(key), role, subjects: subjects.into(), rules: None })
    }

    /// In words, with the subject at `index` as the receiver.
    pub(super) fn describe(&self, index: usize) -> String {
        let BindingKey { namespace, name } = &*self.key;
        let binding = match &**namespace {
            "" => format!("ClusterRoleBinding {name:?}"),
            namespace => format!("RoleBinding {:?}", format!("{name}/{namespace}")),
        };
        let subject = &self.subjects[index];
        let receiver = match &*subject.kind {
            "ServiceAccount" => {
                let namespace = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                format!("{}/{namespace}", subject.name)
            }
            _ => subject.name.to_string(),
        };
        format!("{binding} of {} {:?} to {} {receiver:?}", self.role.kind, self.role.name, subject.kind)
    }
}
