//! The store of one plane: tables of objects, their history, and the one way to change them.
//!
//! Guarantees: revisions come from one counter for the whole server and only rise; a commit is all or nothing, takes
//! effect only if every object is still at the revision that the writer saw, and is visible to readers and watchers in revision
//! order; a list's revision is such that a watch from it misses nothing. A plane that is made from a
//! template shares the template's tables until it writes to them.

mod ahead;
pub mod backup;
mod bell;
mod disk;
mod engine;
pub(crate) mod files;
mod format;
mod journal;
mod key;
pub mod life;
mod object;
mod reclaim;
mod restore;
mod seal;
mod storage;
mod table;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch;

use ahead::{Accepted, Ahead};
use bell::Bell;
pub use disk::{Found, StorageError};
use journal::{Journal, Staged};
pub use object::{Complete, Draft, GroupResource, Meta, Object, ObjectKey, Owner};
pub use storage::{FoundObjects, Storage};
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
    /// The disk did not take it, or not what came with it and may be why it is refused. It is not shown; after a crash it may be there.
    #[error("the write could not be made durable")]
    NotDurable,
}

/// Objects that some object owns, by the owner's uid.
type Dependents = BTreeMap<Box<str>, BTreeSet<(Arc<GroupResource>, ObjectKey)>>;

#[derive(Debug, Default)]
struct State {
    tables: BTreeMap<Arc<GroupResource>, Arc<Table>>,
    dependents: Arc<Dependents>,
    /// Wakes the watchers of a resource; made when the first one comes.
    wakers: BTreeMap<Arc<GroupResource>, Bell>,
    /// The revision of the newest change that is shown. Every later one of this plane is above it.
    last: u64,
    dropped: bool,
}

impl State {
    /// Revision of an object, and whether it is being deleted, counting writes that are accepted but not shown yet.
    fn present(&self, ahead: Ahead<'_>, resource: &GroupResource, key: &ObjectKey) -> Option<(u64, bool)> {
        match ahead.newest(resource, key) {
            Some(write) if write.delete => None,
            Some(write) => Some((write.object.revision, write.object.meta.deleting)),
            None => {
                let object = self.tables.get(resource)?.get(key)?;
                Some((object.revision, object.meta.deleting))
            }
        }
    }

    fn holds(&self, ahead: Ahead<'_>, guard: &Guard) -> bool {
        let is_there =
            |resource: &GroupResource, key: &ObjectKey| self.present(ahead, resource, key).is_some();
        match guard {
            Guard::Living(resource, key) => {
                self.present(ahead, resource, key).is_some_and(|(_, deleting)| !deleting)
            }
            Guard::EmptyNamespace(namespace) => {
                let mut shown = self.tables.iter().flat_map(|(resource, table)| {
                    table.range(Some(namespace)).map(move |object| (resource, &object.meta.key))
                });
                let coming = ahead.iter().filter(|write| *write.object.meta.key.namespace == **namespace);
                let mut coming = coming.map(|write| (&write.resource, &write.object.meta.key));
                !shown.any(|(resource, key)| is_there(resource, key))
                    && !coming.any(|(resource, key)| is_there(resource, key))
            }
            Guard::EmptyTable(resource) => {
                let shown = self.tables.get(resource).into_iter().flat_map(|table| table.range(None));
                let mut shown = shown.map(|object| &object.meta.key);
                let coming = ahead.iter().filter(|write| *write.resource == *resource);
                let mut coming = coming.map(|write| &write.object.meta.key);
                !shown.any(|key| is_there(resource, key)) && !coming.any(|key| is_there(resource, key))
            }
        }
    }

    fn check(&self, ahead: Ahead<'_>, write: &Write) -> Result<(), CommitError> {
        if self.dropped {
            return Err(CommitError::PlaneGone);
        }
        let found = self.present(ahead, &write.resource, &write.draft.meta().key);
        match (write.expect, found.map(|(revision, _)| revision)) {
            (Expect::Absent, None) => {}
            (Expect::At(expected), Some(revision)) if expected == revision => {}
            _ => return Err(CommitError::Stale),
        }
        if !write.guards.iter().all(|guard| self.holds(ahead, guard)) {
            return Err(CommitError::Guarded);
        }
        Ok(())
    }

    /// The one copy of a resource's name that this plane keeps.
    fn resource(&self, resource: GroupResource) -> Arc<GroupResource> {
        self.tables.get_key_value(&resource).map_or_else(|| Arc::new(resource), |(known, _)| known.clone())
    }

    /// Shows a change to readers and watchers, together with all from the revision `from` on.
    fn publish(
        &mut self,
        resource: &Arc<GroupResource>,
        object: Arc<Object>,
        delete: bool,
        from: u64,
    ) -> Arc<Event> {
        self.last = object.revision;
        let table = self.tables.entry(resource.clone()).or_default();
        let event = Arc::make_mut(table).record(object, delete, from);
        index_owners(&mut self.dependents, resource, &event);
        if let Some(waker) = self.wakers.get(resource) {
            if waker.is_idle() {
                self.wakers.remove(resource);
            } else {
                waker.ring();
            }
        }
        event
    }
}

/// The objects of one plane.
#[derive(Debug)]
pub struct PlaneStore {
    name: Box<str>,
    revisions: Arc<Revisions>,
    journal: Option<Journal>,
    /// The revision at which the plane was made or found again. Earlier ones are not served.
    born: u64,
    /// What the plane's template has: on disk, a plane is what it differs by.
    template: BTreeMap<Arc<GroupResource>, Arc<Table>>,
    state: RwLock<State>,
}

impl PlaneStore {
    /// An empty store that is kept in memory alone.
    pub fn new(name: &str, revisions: Arc<Revisions>) -> Self {
        let born = revisions.current();
        let state = RwLock::new(State { last: born, ..State::default() });
        Self { name: name.into(), revisions, journal: None, born, template: BTreeMap::new(), state }
    }

    /// A store with the objects of `template`, shared until either side writes; durable if there is storage.
    pub fn from_template(name: &str, template: &Self, storage: Option<&Storage>) -> Self {
        let (tables, dependents) = {
            let state = template.state.read();
            (state.tables.clone(), state.dependents.clone())
        };
        let born = template.revisions.current();
        let state = State { tables: tables.clone(), dependents, last: born, ..State::default() };
        Self {
            name: name.into(),
            born,
            revisions: template.revisions.clone(),
            journal: storage.map(|storage| storage.journal.clone()),
            template: tables,
            state: RwLock::new(state),
        }
    }

    /// The plane's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn template_has(&self, resource: &GroupResource, key: &ObjectKey) -> bool {
        self.template.get(resource).is_some_and(|table| table.get(key).is_some())
    }

    fn is_of_template(&self, resource: &GroupResource, object: &Arc<Object>) -> bool {
        let found = self.template.get(resource).and_then(|table| table.get(&object.meta.key));
        found.is_some_and(|of_template| Arc::ptr_eq(of_template, object))
    }

    /// The objects of a resource that are not the template's; none if one of the template's is gone.
    pub fn beyond_template(&self, resource: &GroupResource) -> Option<Vec<Arc<Object>>> {
        let (objects, _) = self.list(resource, None, |_| true);
        let mut of_template = self.template.get(resource).into_iter().flat_map(|table| table.range(None));
        let complete = of_template.all(|object| self.get(resource, &object.meta.key).is_some());
        let own = objects.into_iter().filter(|object| !self.is_of_template(resource, object));
        complete.then(|| own.collect())
    }

    /// Takes over objects of a resource that were found on disk. `fields` are the resource's selectable fields; `complete`
    /// makes an object what its definition now says.
    pub fn restore(
        &self,
        resource: GroupResource,
        found: Vec<Found>,
        fields: &[String],
        complete: Option<&Complete<'_>>,
    ) -> Result<(), serde_json::Error> {
        let restored = restore::all(found, |(key, object)| {
            let object = object.map(|(revision, bytes)| Object::restored(revision, bytes, fields, complete));
            Ok((key, object.transpose()?))
        })?;
        let mut state = self.state.write();
        let state = &mut *state;
        let resource = state.resource(resource);
        let table = Arc::make_mut(state.tables.entry(resource.clone()).or_default());
        for (key, object) in restored {
            if let Some(object) = &object {
                add_owners(&mut state.dependents, &resource, object);
            }
            table.restore(&key, object);
        }
        Ok(())
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.state.read().last
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
        (objects.unwrap_or_default(), state.last)
    }

    /// One page of a list, at its revision or (`revision` 0) at the present one; how many more there are; and that revision.
    pub fn page(
        &self,
        resource: &GroupResource,
        page: Page<'_>,
        wanted: impl FnMut(&Object) -> bool,
    ) -> Result<(Vec<Arc<Object>>, usize, u64), TooOld> {
        let state = self.state.read();
        let revision = if page.revision == 0 { state.last } else { page.revision };
        self.check_known(revision)?;
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
        self.check_known(revision)?;
        let state = self.state.read();
        let events = match state.tables.get(resource) {
            Some(table) => table.changes_after(revision, limit)?,
            None => Vec::new(),
        };
        let complete_to = match events.last() {
            Some(last) if events.len() == limit => last.revision(),
            _ => state.last.max(revision),
        };
        Ok((events, complete_to))
    }

    /// Refuses revisions of which this life of the server knows nothing: earlier ones, and those that it has not come to, which
    /// are of another history (data that was lost and restored from a backup).
    fn check_known(&self, asked: u64) -> Result<(), TooOld> {
        if asked < self.born || asked > self.revisions.current() {
            return Err(TooOld { asked, oldest: self.born });
        }
        Ok(())
    }

    /// Tells when a resource changes. The receiver ends when the plane is dropped.
    pub fn subscribe(&self, resource: &GroupResource) -> watch::Receiver<()> {
        let mut state = self.state.write();
        if state.dropped {
            return watch::channel(()).1;
        }
        state.wakers.entry(Arc::new(resource.clone())).or_default().subscribe()
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

    /// Writes one object if it is as expected, and returns the change. It is durable then, if the store is.
    pub async fn commit(self: &Arc<Self>, write: Write) -> Result<Arc<Event>, CommitError> {
        if let Some(journal) = &self.journal {
            return journal.commit(self.clone(), write).await;
        }
        let mut state = self.state.write();
        state.check(Ahead::NOTHING, &write)?;
        let resource = state.resource(write.resource);
        let revision = self.revisions.next();
        Ok(state.publish(&resource, write.draft.at(revision), write.delete, revision))
    }

    /// Accepts a write, given those that were accepted before it and are not shown yet.
    fn stage(self: &Arc<Self>, write: Write, accepted: &Accepted) -> Result<Staged, CommitError> {
        let state = self.state.read();
        state.check(accepted.of(self), &write)?;
        let resource = state.resource(write.resource);
        let (object, value) = write.draft.for_disk(self.revisions.next());
        Ok(Staged { store: self.clone(), resource, object, value, delete: write.delete })
    }

    /// Shows writes of this plane that are durable.
    fn publish(&self, writes: &[Staged]) -> Vec<Arc<Event>> {
        let mut state = self.state.write();
        let from = writes.first().map_or(0, |write| write.object.revision);
        let show = |write: &Staged| state.publish(&write.resource, write.object.clone(), write.delete, from);
        writes.iter().map(show).collect()
    }

    /// Whether writes are kept on disk.
    pub fn is_durable(&self) -> bool {
        self.journal.is_some()
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
        Arc::make_mut(table).rewrite(state.last, |object| {
            let mut value = object.value();
            change(&mut value);
            Draft::new(&value, fields).at(object.revision)
        });
        if let Some(waker) = state.wakers.get(resource) {
            waker.ring();
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

fn add_owners(dependents: &mut Arc<Dependents>, resource: &Arc<GroupResource>, object: &Object) {
    if object.meta.owners.is_empty() {
        return;
    }
    let dependents = Arc::make_mut(dependents);
    for owner in &object.meta.owners {
        let entry = (resource.clone(), object.meta.key.clone());
        dependents.entry(owner.uid.clone()).or_default().insert(entry);
    }
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod tests;
