//! Who a caller is, and which planes its credentials open: bearer tokens that the embedder gave out ([`Tokens`]), client
//! certificates ([`certificate`]) and tokens of service accounts ([`service_accounts`]).
//!
//! Guarantees: credentials open only the planes they are bound to, and only until they expire; whether a plane
//! exists is not told to those who may not enter it. What a caller may do within a plane is said by `authz`.

pub(crate) mod certificate;
pub(crate) mod service_accounts;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::authz::{Caller, names};
use crate::planes::PlaneName;
pub use tokens::Tokens;

/// Further facts about a caller that whoever identified it vouches for.
pub type Extra = BTreeMap<String, Vec<String>>;

/// Who a caller is. On the wire it is a `userInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// User name.
    #[serde(rename = "username", skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What tells this user from others of the same name at other times; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Further facts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: Extra,
}

impl Identity {
    /// A user without groups.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: name.into(), ..Self::default() }
    }

    /// The same user as a member of `group`, too.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// A user whom no rule holds back, in the planes that its credentials open.
    pub fn superuser(name: impl Into<String>) -> Self {
        Self::user(name).in_group(names::MASTERS)
    }

    /// The server itself: garbage collection and namespace lifecycle.
    pub fn server() -> Self {
        Self::superuser("system:apiserver")
    }

    /// The same user as one who has proved who they are.
    #[must_use]
    pub(crate) fn authenticated(self) -> Self {
        let is = self.groups.iter().any(|group| group == names::AUTHENTICATED);
        if is { self } else { self.in_group(names::AUTHENTICATED) }
    }

    /// As the caller of a request.
    pub fn as_caller(&self) -> Caller<'_> {
        Caller { user: &self.user, uid: &self.uid, groups: &self.groups, extra: &self.extra }
    }
}

/// Which planes credentials open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every plane, present and future.
    AllPlanes,
    /// These alone.
    Planes(BTreeSet<PlaneName>),
}

impl Access {
    fn opens(&self, plane: &PlaneName) -> bool {
        match self {
            Self::AllPlanes => true,
            Self::Planes(planes) => planes.contains(plane),
        }
    }
}

/// Who holds credentials, and what they open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) identity: Arc<Identity>,
    access: Access,
}

impl Holder {
    fn new(identity: Identity, access: Access) -> Self {
        Self { identity: Arc::new(identity.authenticated()), access }
    }

    pub(crate) fn opens(&self, plane: &PlaneName) -> bool {
        self.access.opens(plane)
    }
}
