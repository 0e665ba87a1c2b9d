//! What we have written and a cache does not show yet.
//!
//! A cache is behind our own writes for a moment. A pass that falls into that moment must not do again what the one before it did, nor
//! decide by what is no longer so.
//!
//! # Guarantees
//!
//! While the cache holds a version that a write of ours was made on top of, the version that came of it is given instead. As soon as the
//! cache shows anything else, the cache is believed.

use std::collections::BTreeMap;
use std::sync::Arc;

use compute_runtime::Key;
use kube::Resource;
use parking_lot::Mutex;

/// The newest versions of objects of one kind, where a cache may be behind.
pub(super) struct Latest<K>(Mutex<BTreeMap<Key, Written<K>>>);

struct Written<K> {
    /// The versions that came before the newest.
    older: Vec<String>,
    newest: Arc<K>,
}

impl<K: Resource> Latest<K> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    /// The newest version that is known of an object which the cache shows as `cached`.
    pub(super) fn of(&self, key: &Key, cached: Arc<K>) -> Arc<K> {
        let mut all = self.0.lock();
        let Some(written) = all.get(key) else { return cached };
        let same = written.newest.meta().uid == cached.meta().uid;
        let behind = cached.meta().resource_version.as_ref().is_some_and(|at| written.older.contains(at));
        if same && behind {
            return written.newest.clone();
        }
        all.remove(key);
        cached
    }

    /// Takes over what came of writing to `before`.
    pub(super) fn wrote(&self, key: &Key, before: &K, after: K) -> Arc<K> {
        let after = Arc::new(after);
        let (Some(old), Some(new)) = (&before.meta().resource_version, &after.meta().resource_version) else {
            return after;
        };
        if old != new {
            let mut all = self.0.lock();
            let mut older = match all.remove(key) {
                Some(known) if known.newest.meta().resource_version.as_ref() == Some(old) => known.older,
                _ => Vec::new(),
            };
            older.push(old.clone());
            all.insert(key.clone(), Written { older, newest: after.clone() });
        }
        after
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::super::keys;
    use super::*;

    fn version(uid: &str, version: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    #[test]
    fn the_write_is_newer_than_what_it_was_made_from() {
        let (latest, key) = (Latest::new(), keys::key("ns", "a"));
        let given =
            |cached: ConfigMap| latest.of(&key, Arc::new(cached)).metadata.resource_version.clone().unwrap();
        latest.wrote(&key, &version("u", "1"), version("u", "2"));
        latest.wrote(&key, &version("u", "2"), version("u", "3"));
        assert_eq!(given(version("u", "1")), "3");
        assert_eq!(given(version("u", "2")), "3");
        assert_eq!(given(version("u", "4")), "4", "somebody else wrote");
        assert_eq!(given(version("u", "1")), "1", "and nothing is kept");
        latest.wrote(&key, &version("u", "1"), version("u", "2"));
        assert_eq!(given(version("other", "1")), "1", "another object is another object");
    }
}
