//! Writes that are accepted and not shown yet: what a write that comes after them must be checked against.
//!
//! Guarantees: looking one object up takes a time that does not grow with the batch, so that a large batch costs no more per write than a
//! small one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::journal::Staged;
use super::{GroupResource, ObjectKey, PlaneStore};

/// The accepted writes of one batch, in order.
#[derive(Default)]
pub(super) struct Accepted {
    writes: Vec<Staged>,
    /// The newest write to an object, by the hash of what tells it apart.
    newest: BTreeMap<u64, usize>,
}

impl Accepted {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self { writes: Vec::with_capacity(count), newest: BTreeMap::new() }
    }

    pub(super) fn push(&mut self, write: Staged) {
        let place = place(&write.store, &write.resource, &write.object.meta.key);
        self.newest.insert(place, self.writes.len());
        self.writes.push(write);
    }

    /// Those of one plane.
    pub(super) fn of<'a>(&'a self, store: &'a PlaneStore) -> Ahead<'a> {
        Ahead(Some((self, store)))
    }

    pub(super) fn into_writes(self) -> Vec<Staged> {
        self.writes
    }
}

fn place(store: &PlaneStore, resource: &GroupResource, key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (std::ptr::from_ref(store), resource, key).hash(&mut hasher);
    hasher.finish()
}

/// What is ahead of a write to a plane.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'a>(Option<(&'a Accepted, &'a PlaneStore)>);

impl<'a> Ahead<'a> {
    /// Nothing: the plane shows all that it has accepted.
    pub(super) const NOTHING: Self = Self(None);

    /// The newest write to an object.
    pub(super) fn newest(self, resource: &GroupResource, key: &ObjectKey) -> Option<&'a Staged> {
        let (accepted, store) = self.0?;
        let is_it = |write: &&Staged| {
            std::ptr::eq(Arc::as_ptr(&write.store), store)
                && write.object.meta.key == *key
                && *write.resource == *resource
        };
        let newest = &accepted.writes[*accepted.newest.get(&place(store, resource, key))?];
        // Two objects of one hash: the other one came later.
        if is_it(&newest) { Some(newest) } else { accepted.writes.iter().rev().find(is_it) }
    }

    /// All of them, in order.
    pub(super) fn iter(self) -> impl Iterator<Item = &'a Staged> {
        let own = move |(accepted, store): (&'a Accepted, &'a PlaneStore)| {
            accepted.writes.iter().filter(move |write| std::ptr::eq(Arc::as_ptr(&write.store), store))
        };
        self.0.into_iter().flat_map(own)
    }
}
