//! Who a caller is, and which planes a token opens.
//!
//! Guarantees: a token opens only the planes it is bound to; tokens are kept as SHA-256 digests and never
//! shown; whether a plane exists is not told to those who may not enter it.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::RwLock;
use sha2::{Digest, Sha256};

use crate::planes::PlaneName;

/// The authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name.
    pub user: String,
    /// Groups.
    pub groups: Vec<String>,
}

impl Identity {
    /// A user without groups.
    pub fn user(name: impl Into<String>) -> Self {
        Self { user: name.into(), groups: Vec::new() }
    }

    /// The server itself: garbage collection and namespace lifecycle.
    pub fn server() -> Self {
        Self { user: "system:apiserver".to_owned(), groups: vec!["system:masters".to_owned()] }
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
