//! The objects of one resource in one plane, and the recent history of their changes.
//!
//! Guarantees: objects are sorted by namespace and name; history is in revision order and bounded in entries
//! and bytes; a past revision inside the window can be rebuilt exactly, so that paged lists are consistent.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

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
    /// The change as watchers get it.
    line: Mutex<Option<Bytes>>,
}

impl Event {
    /// The change as most watchers get it, made by `encode` for the first of them. All watchers of a resource are told of the newest changes,
    /// those that are shown together, and few of older ones: when the next are shown, it is forgotten.
    pub fn line(&self, encode: impl FnOnce() -> Bytes) -> Bytes {
        self.line.lock().get_or_insert_with(encode).clone()
    }

    /// The revision of the change.
    pub fn revision(&self) -> u64 {
        self.object.revision
    }
}

/// The asked revision is older than the history window, or of another history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} resource version: {asked} ({oldest})", if asked < oldest { "too old" } else { "unknown" })]
pub struct TooOld {
    /// What was asked.
    pub asked: u64,
    /// The oldest revision that can still be served.
    pub oldest: u64,
}

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// One namespace, or all.
    pub namespace: Option<&'a str>,
    /// The revision of the list.
    pub revision: u64,
    /// Where the page before ended.
    pub after: Option<&'a ObjectKey>,
    /// How many objects; 0 is no limit.
    pub limit: usize,
}

/// An object in its place among others: an object has its own key, so a table keeps no second one.
#[derive(Clone, Debug)]
struct Keyed(Arc<Object>);

impl Borrow<ObjectKey> for Keyed {
    fn borrow(&self) -> &ObjectKey {
        &self.0.meta.key
    }
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Keyed {}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.meta.key.cmp(&other.0.meta.key)
    }
}

/// The objects of one resource in one plane. Cloning shares the objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    objects: BTreeSet<Keyed>,
    history: VecDeque<Arc<Event>>,
    history_bytes: usize,
    /// Changes up to and including this revision are no longer in `history`.
    trimmed_to: u64,
    /// The first revision of the changes that were shown last, together.
    shown_from: u64,
}

impl Table {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(key).map(|Keyed(object)| object)
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Objects in a namespace (or all), in order.
    pub(super) fn range<'a>(&'a self, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Arc<Object>> {
        self.range_after(namespace, None)
    }

    fn range_after<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let from = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included(ObjectKey::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range((from, Bound::Unbounded))
            .map(|Keyed(object)| object)
            .take_while(move |object| namespace.is_none_or(|ns| *object.meta.key.namespace == *ns))
    }

    /// One page of the objects as they were at a revision: at most `limit` (0 is no limit) of those that `wanted` picks,
    /// and how many more there are.
    pub(super) fn page(
        &self,
        page: &Page<'_>,
        mut wanted: impl FnMut(&Object) -> bool,
    ) -> Result<(Vec<Arc<Object>>, usize), TooOld> {
        self.check_window(page.revision)?;
        let changed = self.changed_since(page);
        let mut then = changed.into_iter().peekable();
        let mut now = self.range_after(page.namespace, page.after).peekable();
        let mut objects = Vec::new();
        let mut more = 0;
        loop {
            // Both sides are sorted; an object that has changed since is taken as it was.
            let object = match (now.peek(), then.peek()) {
                (None, None) => break,
                (Some(object), Some((key, _))) if object.meta.key < **key => now.next(),
                (Some(object), Some((key, _))) if object.meta.key == **key => {
                    now.next();
                    then.next().and_then(|(_, before)| before)
                }
                (_, Some(_)) => then.next().and_then(|(_, before)| before),
                (Some(_), None) => now.next(),
            };
            let Some(object) = object.filter(|object| wanted(object)) else { continue };
            if page.limit == 0 || objects.len() < page.limit {
                objects.push(object.clone());
            } else {
                more += 1;
            }
        }
        Ok((objects, more))
    }

    /// Objects of a page that have changed after its revision, each as it was then (`None`: it was not there).
    fn changed_since(&self, page: &Page<'_>) -> BTreeMap<&ObjectKey, Option<&Arc<Object>>> {
        let newer = self.history.iter().rev().take_while(|event| event.revision() > page.revision);
        let on_page = newer.filter(|event| {
            let key = &event.object.meta.key;
            page.namespace.is_none_or(|ns| *key.namespace == *ns)
                && page.after.is_none_or(|after| key > after)
        });
        // Walking back in time, the earliest change after the revision says what the object was then.
        on_page.map(|event| (&event.object.meta.key, event.before.as_ref())).collect()
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

    /// Puts back an object that was found on disk, or (`None`) takes away the template's. There is no history of it.
    pub(super) fn restore(&mut self, key: &ObjectKey, object: Option<Arc<Object>>) {
        match object {
            Some(object) => self.objects.replace(Keyed(object)).is_some(),
            None => self.objects.remove(key),
        };
    }

    /// Replaces every object, and forgets the history up to `revision`.
    pub(super) fn rewrite(&mut self, revision: u64, change: impl Fn(&Object) -> Arc<Object>) {
        let before = std::mem::take(&mut self.objects);
        self.objects = before.iter().map(|Keyed(object)| Keyed(change(object))).collect();
        self.history = VecDeque::new();
        self.history_bytes = 0;
        self.trimmed_to = revision;
    }

    /// Puts (or, with `deleted`, removes) an object and records the change, which is shown together with all from the revision
    /// `shown_from` on.
    pub(super) fn record(&mut self, object: Arc<Object>, deleted: bool, shown_from: u64) -> Arc<Event> {
        if shown_from != self.shown_from {
            let former = std::mem::replace(&mut self.shown_from, shown_from);
            let newest = self.history.iter().rev().take_while(|event| event.revision() >= former);
            newest.for_each(|event| *event.line.lock() = None);
        }
        let before = if deleted {
            self.objects.take(&object.meta.key)
        } else {
            self.objects.replace(Keyed(object.clone()))
        };
        let before = before.map(|Keyed(object)| object);
        let change = match (deleted, &before) {
            (true, _) => Change::Deleted,
            (false, None) => Change::Added,
            (false, Some(_)) => Change::Modified,
        };
        self.history_bytes += object.bytes.len();
        let event = Arc::new(Event { change, object, before, line: Mutex::default() });
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
