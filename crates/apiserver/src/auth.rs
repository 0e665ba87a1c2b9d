//! Who a caller is, and which planes a token opens.
//!
//! Guarantees: a token opens only the planes it is bound to; tokens are kept as SHA-256 digests and never
//! shown; whether a plane exists is not told to those who may not enter it.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::RwLock;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::authz::{Caller, names};
use crate::planes::PlaneName;

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

    /// As the caller of a request.
    pub fn as_caller(&self) -> Caller<'_> {
        Caller { user: &self.user, uid: &self.uid, groups: &self.groups, extra: &self.extra }
    }
}

/// Which planes a token opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every plane, present and future.
    AllPlanes,
    /// These alone.
    Planes(BTreeSet<PlaneName>),
}

/// Who holds a token, and what it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) identity: Identity,
    access: Access,
}

impl Holder {
    pub(crate) fn opens(&self, plane: &PlaneName) -> bool {
        match &self.access {
            Access::AllPlanes => true,
            Access::Planes(planes) => planes.contains(plane),
        }
    }
}

/// The bearer tokens that the server accepts.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<BTreeMap<[u8; 32], Holder>>);

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Tokens {
    /// Accepts `token` from now on.
    pub fn add(&self, token: &str, identity: Identity, access: Access) {
        self.0.write().insert(digest(token), Holder { identity, access });
    }

    /// Accepts `token` no more. Says whether it was known.
    pub fn remove(&self, token: &str) -> bool {
        self.0.write().remove(&digest(token)).is_some()
    }

    /// Who holds a token. Looking its digest up tells nothing about the token by timing.
    pub(crate) fn identify(&self, token: Option<&str>) -> Option<Holder> {
        self.0.read().get(&digest(token?)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_only_its_planes() {
        let plane = |name: &str| PlaneName::new(name).unwrap();
        let tokens = Tokens::default();
        tokens.add("t", Identity::user("ann"), Access::Planes([plane("a")].into()));
        let holder = tokens.identify(Some("t")).unwrap();
        assert_eq!(holder.identity, Identity::user("ann"));
        assert!(holder.opens(&plane("a")) && !holder.opens(&plane("b")));
        assert_eq!(tokens.identify(Some("u")), None);
        assert_eq!(tokens.identify(None), None);
        assert!(tokens.remove("t") && !tokens.remove("t"));
        assert_eq!(tokens.identify(Some("t")), None);
    }
}
