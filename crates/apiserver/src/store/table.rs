//! The objects of one resource in one plane, and the recent history of their changes.
//!
//! Guarantees: objects are sorted by namespace and name; history is in revision order and bounded in entries
//! and bytes; a past revision inside the window can be rebuilt exactly, so that paged lists are consistent.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use super::object::{Object, ObjectKey};

/// History kept per resource and plane. A watch that was away for fewer changes resumes; beyond that it
/// lists anew. 1,024 changes cover a client's reconnect under load; the byte bound keeps a
/// plane with large objects from holding more than a few MiB.
const HISTORY_EVENTS: usize = 1024;
const HISTORY_BYTES: usize = 2 << 20;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has changed.
    Modified,
    /// It is gone; the event's object is its last state, at the revision of the deletion.
    Deleted,
}

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The object after the change.
    pub object: Arc<Object>,
    /// The object before the change.
    pub before: Option<Arc<Object>>,
}

impl Event {
    /// The revision of the change.
    pub fn revision(&self) -> u64 {
        self.object.revision
    }
}

/// The asked revision is older than the history window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct TooOld {
    /// What was asked.
    pub asked: u64,
    /// The oldest revision that can still be served.
    pub oldest: u64,
}

/// The objects of one resource in one plane. Cloning shares the objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    history: VecDeque<Arc<Event>>,
    history_bytes: usize,
    /// Changes up to and including this revision are no longer in `history`.
    trimmed_to: u64,
}

impl Table {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Objects in a namespace (or all), in order.
    pub(super) fn range<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Arc<Object>> {
        let from = match namespace {
            Some(namespace) => Bound::Included(ObjectKey::new(namespace, "")),
            None => Bound::Unbounded,
        };
        self.objects
            .range((from, Bound::Unbounded))
            .map(|(_, object)| object)
            .take_while(move |object| namespace.is_none_or(|ns| *object.meta.key.namespace == *ns))
    }

    /// The objects as they were at `revision`, in order.
    pub(super) fn at(&self, namespace: Option<&str>, revision: u64) -> Result<Vec<Arc<Object>>, TooOld> {
        self.check_window(revision)?;
        let newer = self.history.iter().rev().take_while(|event| event.revision() > revision);
        // Walking back in time, the earliest change after `revision` says what the object was then.
        let mut changed: BTreeMap<&ObjectKey, Option<&Arc<Object>>> = BTreeMap::new();
        for event in newer.filter(|e| namespace.is_none_or(|ns| *e.object.meta.key.namespace == *ns)) {
            changed.insert(&event.object.meta.key, event.before.as_ref());
        }
        if changed.is_empty() {
            return Ok(self.range(namespace).cloned().collect());
        }
        let mut objects: BTreeMap<&ObjectKey, &Arc<Object>> =
            self.range(namespace).map(|object| (&object.meta.key, object)).collect();
        for (key, before) in changed {
            match before {
                Some(object) => objects.insert(key, object),
                None => objects.remove(key),
            };
        }
        Ok(objects.into_values().cloned().collect())
    }

    fn check_window(&self, revision: u64) -> Result<(), TooOld> {
        if revision < self.trimmed_to {
            return Err(TooOld { asked: revision, oldest: self.trimmed_to });
        }
        Ok(())
    }

    /// At most `limit` changes after `revision`, oldest first.
    pub(super) fn changes_after(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        self.check_window(revision)?;
        let start = self.history.partition_point(|event| event.revision() <= revision);
        Ok(self.history.iter().skip(start).take(limit).cloned().collect())
    }

    /// Puts (or, with `deleted`, removes) an object and records the change.
    pub(super) fn record(&mut self, object: Arc<Object>, deleted: bool) -> Arc<Event> {
        let key = &object.meta.key;
        let before =
            if deleted { self.objects.remove(key) } else { self.objects.insert(key.clone(), object.clone()) };
        let change = match (deleted, &before) {
            (true, _) => Change::Deleted,
            (false, None) => Change::Added,
            (false, Some(_)) => Change::Modified,
        };
        self.history_bytes += object.bytes.len();
        let event = Arc::new(Event { change, object, before });
        self.history.push_back(event.clone());
        while self.history.len() > HISTORY_EVENTS
            || (self.history_bytes > HISTORY_BYTES && self.history.len() > 1)
        {
            let Some(oldest) = self.history.pop_front() else { break };
            self.history_bytes -= oldest.object.bytes.len();
            self.trimmed_to = oldest.revision();
        }
        event
    }
}
