//! Who may write Instances in a project: nobody but the one who shows them there, and those who clear away.
//!
//! # Guarantees
//!
//! Covered are creating, changing and deleting of `instances` and `instances/status`. Whoever is not named is refused: people, other
//! service accounts, and a projector by an identity that is not the configured one any more.

use std::{fmt, str::FromStr};

use compute_api::compute::GROUP;

use super::Refusal;

/// The resource that is guarded.
const RESOURCE: &str = "instances";
/// How an entry names a group.
const GROUP_PREFIX: &str = "group:";

/// Who is let through beside the projector, where nothing else is configured.
pub const DEFAULT_ALLOW: [&str; 4] = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:kube-controller-manager",
    "group:system:masters",
];

/// A user, or everybody in a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The user of this name.
    User(String),
    /// Every member of this group.
    Group(String),
}

/// An entry that names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the name of a user, or group: and the name of a group")]
pub struct NamesNobody;

impl FromStr for Subject {
    type Err = NamesNobody;

    fn from_str(text: &str) -> Result<Self, NamesNobody> {
        let named = |name: &str| !name.is_empty() && name.trim() == name;
        match text.strip_prefix(GROUP_PREFIX) {
            Some(group) if named(group) => Ok(Self::Group(group.to_owned())),
            None if named(text) => Ok(Self::User(text.to_owned())),
            _ => Err(NamesNobody),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => f.write_str(name),
            Self::Group(name) => write!(f, "{GROUP_PREFIX}{name}"),
        }
    }
}

impl Subject {
    fn is(&self, user: &str, groups: &[String]) -> bool {
        match self {
            Self::User(name) => name == user,
            Self::Group(name) => groups.contains(name),
        }
    }
}

/// What is done to an Instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Somebody connects to it.
    Connect,
}

/// An attempt to write.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The groups that the user is in.
    pub groups: &'a [String],
    /// API group of the resource.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The part of it; empty for the object itself.
    pub subresource: &'a str,
    /// What is done.
    pub operation: Operation,
    /// The object's name; may be empty.
    pub name: &'a str,
    /// The Workload that the Instance belongs to, if it says so.
    pub workload: Option<&'a str>,
}

/// Who may write Instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    let_through: Vec<Subject>,
}

impl Guard {
    /// Lets the projector through, and some others.
    pub fn new(projector: Subject, allow: impl IntoIterator<Item = Subject>) -> Self {
        Self { let_through: std::iter::once(projector).chain(allow).collect() }
    }

    /// Lets the projector through, and those who are let through where nothing else is configured.
    pub fn with_defaults(projector: Subject) -> Self {
        let defaults = DEFAULT_ALLOW.map(|entry| entry.parse().expect("each default names somebody"));
        Self::new(projector, defaults)
    }

    /// Decides about an attempt.
    ///
    /// # Errors
    ///
    /// The refusal, which says what to do instead.
    pub fn decide(&self, attempt: &Attempt<'_>) -> Result<(), Refusal> {
        let is_covered = attempt.group == GROUP
            && attempt.resource == RESOURCE
            && ["", "status"].contains(&attempt.subresource)
            && attempt.operation != Operation::Connect;
        let may = |subject: &Subject| subject.is(attempt.user, attempt.groups);
        if !is_covered || self.let_through.iter().any(may) {
            return Ok(());
        }
        let workload = match attempt.workload {
            Some(name) => format!("Workload {name:?}"),
            None => "the Workload that they belong to".to_owned(),
        };
        let why = format!(
            "Instances in a project are read-only: they show what runs in the cities. Change {workload} instead: \
             its template for what runs, its placements for where and how many"
        );
        Err(Refusal::forbidden(GROUP, RESOURCE, attempt.name, &why))
    }
}
