//! The store of one plane: tables of objects, their history, and the one way to change them.
//!
//! Guarantees: revisions come from one counter for the whole server and only rise; a commit is all or nothing, takes
//! effect only if every object is still at the revision that the writer saw, and is visible to readers and watchers in revision
//! order; a list's revision is such that a watch from it misses nothing. A plane that is made from a
//! template shares the template's tables until it writes to them.

mod object;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch;

pub use object::{Draft, GroupResource, Meta, Object, ObjectKey, Owner};
use table::Table;
pub use table::{Change, Event, Page, TooOld};

/// The server's one revision counter.
#[derive(Debug)]
pub struct Revisions(AtomicU64);

impl Revisions {
    /// Counts on from `first`. An in-memory server starts above every revision of its former life, so that a client that
    /// comes back with one of those is told that it is too old.
    pub fn starting_at(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }

    /// The newest revision that any commit was given.
    pub fn current(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No such object.
    Absent,
    /// The object at exactly this revision.
    At(u64),
}

/// What else must hold at the instant of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// This object exists and is not being deleted (the namespace or the CRD of a new object).
    Living(GroupResource, ObjectKey),
    /// This namespace holds no object.
    EmptyNamespace(String),
    /// This resource has no object.
    EmptyTable(GroupResource),
}

/// One change to one object.
#[derive(Debug)]
pub struct Write {
    /// The table.
    pub resource: GroupResource,
    /// What must hold for the write to happen.
    pub expect: Expect,
    /// The new state or, for a deletion, the last one.
    pub draft: Draft,
    /// Whether the object goes.
    pub delete: bool,
    /// What else must hold.
    pub guards: Vec<Guard>,
}

/// Why a commit did not happen. Nothing has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The object is not as expected: read again and decide anew.
    #[error("the object is not at the expected revision")]
    Stale,
    /// A guard does not hold.
    #[error("what the write depends on has changed")]
    Guarded,
    /// The plane has been dropped.
    #[error("the control plane is gone")]
    PlaneGone,
}

/// Objects that some object owns, by the owner's uid.
type Dependents = BTreeMap<Box<str>, BTreeSet<(Arc<GroupResource>, ObjectKey)>>;

#[derive(Debug, Default)]
struct State {
    tables: BTreeMap<Arc<GroupResource>, Arc<Table>>,
    dependents: Arc<Dependents>,
    /// Wakes the watchers of a resource; made when the first one comes.
    wakers: BTreeMap<Arc<GroupResource>, watch::Sender<()>>,
    dropped: bool,
}

impl State {
    fn holds(&self, guard: &Guard) -> bool {
        match guard {
            Guard::Living(resource, key) => {
                let found = self.tables.get(resource).and_then(|table| table.get(key));
                found.is_some_and(|object| !object.meta.deleting)
            }
            Guard::EmptyNamespace(namespace) => {
                self.tables.values().all(|table| table.range(Some(namespace)).next().is_none())
            }
            Guard::EmptyTable(resource) => self.tables.get(resource).is_none_or(|table| table.len() == 0),
        }
    }
}

/// The objects of one plane.
#[derive(Debug)]
pub struct PlaneStore {
    revisions: Arc<Revisions>,
    /// The revision at which the plane was made. Earlier ones are of another plane of that name.
    born: u64,
    state: RwLock<State>,
}

impl PlaneStore {
    /// An empty store.
    pub fn new(revisions: Arc<Revisions>) -> Self {
        let born = revisions.current();
        Self { revisions, born, state: RwLock::default() }
    }

    /// A store with the objects of `template`, shared until either side writes.
    pub fn from_template(template: &Self) -> Self {
        let state = template.state.read();
        let copy =
            State { tables: state.tables.clone(), dependents: state.dependents.clone(), ..State::default() };
        drop(state);
        Self {
            born: template.revisions.current(),
            revisions: template.revisions.clone(),
            state: RwLock::new(copy),
        }
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revisions.current()
    }

    /// One object.
    pub fn get(&self, resource: &GroupResource, key: &ObjectKey) -> Option<Arc<Object>> {
        self.state.read().tables.get(resource)?.get(key).cloned()
    }

    /// The objects of a resource in a namespace (or all) that `wanted` picks, and the revision of the list.
    pub fn list(
        &self,
        resource: &GroupResource,
        namespace: Option<&str>,
        mut wanted: impl FnMut(&Object) -> bool,
    ) -> (Vec<Arc<Object>>, u64) {
        let state = self.state.read();
        let objects = state
            .tables
            .get(resource)
            .map(|table| table.range(namespace).filter(|object| wanted(object)).cloned().collect::<Vec<_>>());
        // Writers are shut out while the lock is held: every later change of this plane is above this number.
        (objects.unwrap_or_default(), self.revisions.current())
    }

    /// One page of a list, at its revision or (`revision` 0) at the present one; how many more there are; and that revision.
    pub fn page(
        &self,
        resource: &GroupResource,
        page: Page<'_>,
        wanted: impl FnMut(&Object) -> bool,
    ) -> Result<(Vec<Arc<Object>>, usize, u64), TooOld> {
        let state = self.state.read();
        let revision = if page.revision == 0 { self.revisions.current() } else { page.revision };
        self.check_born(revision)?;
        let (objects, more) = match state.tables.get(resource) {
            Some(table) => table.page(&Page { revision, ..page }, wanted)?,
            None => Default::default(),
        };
        Ok((objects, more, revision))
    }

    /// At most `limit` changes of a resource after `revision`, and the revision up to which they are complete.
    pub fn changes_after(
        &self,
        resource: &GroupResource,
        revision: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, u64), TooOld> {
        self.check_born(revision)?;
        let state = self.state.read();
        let events = match state.tables.get(resource) {
            Some(table) => table.changes_after(revision, limit)?,
            None => Vec::new(),
        };
        let complete_to = match events.last() {
            Some(last) if events.len() == limit => last.revision(),
            _ => self.revisions.current().max(revision),
        };
        Ok((events, complete_to))
    }

    fn check_born(&self, asked: u64) -> Result<(), TooOld> {
        if asked < self.born { Err(TooOld { asked, oldest: self.born }) } else { Ok(()) }
    }

    /// Tells when a resource changes. The receiver ends when the plane is dropped.
    pub fn subscribe(&self, resource: &GroupResource) -> watch::Receiver<()> {
        let mut state = self.state.write();
        if state.dropped {
            return watch::channel(()).1;
        }
        let waker = state.wakers.entry(Arc::new(resource.clone())).or_insert_with(|| watch::channel(()).0);
        waker.subscribe()
    }

    /// Objects that name `uid` as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<(Arc<GroupResource>, ObjectKey)> {
        let state = self.state.read();
        state.dependents.get(uid).map(|found| found.iter().cloned().collect()).unwrap_or_default()
    }

    /// Which resources have objects in `namespace`.
    pub fn resources_in(&self, namespace: &str) -> Vec<Arc<GroupResource>> {
        let state = self.state.read();
        let with_any = state.tables.iter().filter(|(_, table)| table.range(Some(namespace)).next().is_some());
        with_any.map(|(resource, _)| resource.clone()).collect()
    }

    /// How many objects each resource has, for those that have any.
    pub fn counts(&self) -> BTreeMap<GroupResource, usize> {
        let state = self.state.read();
        let counts = state.tables.iter().map(|(resource, table)| ((**resource).clone(), table.len()));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Writes one object if it is as expected, and returns the change.
    pub async fn commit(&self, write: Write) -> Result<Arc<Event>, CommitError> {
        let mut state = self.state.write();
        let state = &mut *state;
        if state.dropped {
            return Err(CommitError::PlaneGone);
        }
        let found = state.tables.get(&write.resource).and_then(|table| table.get(&write.draft.meta().key));
        match (write.expect, found.map(|object| object.revision)) {
            (Expect::Absent, None) => {}
            (Expect::At(expected), Some(revision)) if expected == revision => {}
            _ => return Err(CommitError::Stale),
        }
        if !write.guards.iter().all(|guard| state.holds(guard)) {
            return Err(CommitError::Guarded);
        }
        let resource = match state.tables.get_key_value(&write.resource) {
            Some((resource, _)) => resource.clone(),
            None => Arc::new(write.resource),
        };
        let table = state.tables.entry(resource.clone()).or_default();
        let event = Arc::make_mut(table).record(write.draft.at(self.revisions.next()), write.delete);
        index_owners(&mut state.dependents, &resource, &event);
        if let Some(waker) = state.wakers.get(&resource) {
            if waker.receiver_count() == 0 {
                state.wakers.remove(&resource);
            } else {
                waker.send_replace(());
            }
        }
        Ok(event)
    }

    /// Passes every object of a resource through `change` without a new revision, and forgets the resource's history, so
    /// that its watches start anew. For definitions that have changed: what is stored follows what is served.
    pub fn rewrite(
        &self,
        resource: &GroupResource,
        fields: &[String],
        change: impl Fn(&mut serde_json::Value),
    ) {
        let mut state = self.state.write();
        let state = &mut *state;
        let Some(table) = state.tables.get_mut(resource) else { return };
        Arc::make_mut(table).rewrite(self.revisions.current(), |object| {
            let mut value = object.value();
            change(&mut value);
            Draft::new(&value, fields).at(object.revision)
        });
        if let Some(waker) = state.wakers.get(resource) {
            waker.send_replace(());
        }
    }

    /// Frees everything and ends every watch.
    pub fn clear(&self) {
        *self.state.write() = State { dropped: true, ..State::default() };
    }
}

fn index_owners(dependents: &mut Arc<Dependents>, resource: &Arc<GroupResource>, event: &Event) {
    let before = event.before.as_ref().map_or(&[][..], |object| &object.meta.owners);
    let after = if event.change == Change::Deleted { &[][..] } else { &event.object.meta.owners };
    if before.is_empty() && after.is_empty() {
        return;
    }
    let same = before.len() == after.len() && before.iter().zip(after).all(|(b, a)| b.uid == a.uid);
    if same {
        return;
    }
    let dependents = Arc::make_mut(dependents);
    let entry = (resource.clone(), event.object.meta.key.clone());
    for owner in before {
        if let Some(found) = dependents.get_mut(&owner.uid) {
            found.remove(&entry);
            if found.is_empty() {
                dependents.remove(&owner.uid);
            }
        }
    }
    for owner in after {
        dependents.entry(owner.uid.clone()).or_default().insert(entry.clone());
    }
}

#[cfg(test)]
mod tests;
