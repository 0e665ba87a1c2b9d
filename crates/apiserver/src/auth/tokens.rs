//! Bearer tokens that the embedder gives out.
//!
//! Guarantees: tokens are kept as SHA-256 digests and never shown; one that has expired is as good as unknown.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};

use super::{Access, Holder, Identity};

/// The bearer tokens that the server accepts beside those of service accounts.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<BTreeMap<[u8; 32], Entry>>);

#[derive(Debug)]
struct Entry {
    holder: Holder,
    expires: Option<Timestamp>,
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Tokens {
    /// Accepts `token` from now on.
    pub fn add(&self, token: &str, identity: Identity, access: Access) {
        self.insert(token, identity, access, None);
    }

    /// Accepts `token` up to a moment.
    pub fn add_until(&self, token: &str, identity: Identity, access: Access, expires: Timestamp) {
        self.insert(token, identity, access, Some(expires));
    }

    fn insert(&self, token: &str, identity: Identity, access: Access, expires: Option<Timestamp>) {
        let entry = Entry { holder: Holder::new(identity, access), expires };
        self.0.write().insert(digest(token), entry);
    }

    /// Accepts `token` no more. Says whether it was known.
    pub fn remove(&self, token: &str) -> bool {
        self.0.write().remove(&digest(token)).is_some()
    }

    /// Who holds a token at `now`. Looking its digest up tells nothing about the token by timing.
    pub(crate) fn identify(&self, token: &str, now: Timestamp) -> Option<Holder> {
        let tokens = self.0.read();
        let entry = tokens.get(&digest(token))?;
        entry.expires.is_none_or(|expires| now < expires).then(|| entry.holder.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planes::PlaneName;

    #[test]
    fn a_token_opens_only_its_planes() {
        let plane = |name: &str| PlaneName::new(name).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let tokens = Tokens::default();
        tokens.add("t", Identity::user("ann"), Access::Planes([plane("a")].into()));
        let holder = tokens.identify("t", now).unwrap();
        assert_eq!(*holder.identity, Identity::user("ann").in_group("system:authenticated"));
        assert!(holder.opens(&plane("a")) && !holder.opens(&plane("b")));
        assert_eq!(tokens.identify("u", now), None);
        assert!(tokens.remove("t") && !tokens.remove("t"));
        assert_eq!(tokens.identify("t", now), None);
    }

    #[test]
    fn a_token_ends_when_it_expires() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let tokens = Tokens::default();
        tokens.add_until("t", Identity::user("ann"), Access::AllPlanes, at(100));
        assert!(tokens.identify("t", at(99)).is_some());
        assert!(tokens.identify("t", at(100)).is_none());
    }
}
