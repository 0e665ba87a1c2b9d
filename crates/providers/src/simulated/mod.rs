//! An engine that runs nothing and says so in every status: for tests, demos and scale runs.
//!
//! It keeps nothing outside the process. After a restart it takes an instance that was running for one that is, with its addresses; any
//! other starts anew. What an instance does is told by annotations on it ([`annotations`]), which come from its template or are put on
//! by hand; they count as soon as they are there.
//!
//! # Guarantees
//!
//! - No task and no timer for an instance: each says when it wants to be looked at again.
//! - No randomness, and no time but tokio's (the clock's only in logs): the same calls at the same times give the same answers.

mod addresses;
mod entry;
mod logs;
mod wishes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::k8s::Timestamp;
use compute_core::provider;
use compute_runtime::Clock;
use compute_runtime::cache::ObjectName;
use futures::future::{self, BoxFuture};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::engine::{
    Command, Engine, Error, Id, Inputs, LogQuery, Logs, Output, Outputs, Result, Seen, Stop, Usage,
};
use addresses::Addresses;
use entry::Entry;
use wishes::Wishes;
pub use wishes::annotations;

/// What instances do unless an annotation says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How long one takes to start.
    pub start_delay: Duration,
    /// How long one takes to stop.
    pub stop_delay: Duration,
}

/// The engine. Cheap to clone.
#[derive(Clone)]
pub struct Simulated(Arc<Inner>);

struct Inner {
    options: Options,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Wakes those who follow a log: the instance of that name has told something.
    told: broadcast::Sender<ObjectName>,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<ObjectName, Entry>,
    addresses: Addresses,
}

/// Wake-ups that wait for a follower. One that misses some looks at what there is, and so misses no line.
const WAKE_UPS: usize = 64;

impl Simulated {
    /// An engine that runs nothing yet.
    pub fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        let (told, _) = broadcast::channel(WAKE_UPS);
        Self(Arc::new(Inner { options, clock, state: Mutex::default(), told }))
    }

    fn now(&self) -> (Instant, Timestamp) {
        (Instant::now(), self.0.clock.now())
    }

    /// The entry of an instance, or else a new one.
    fn entry<'a>(&self, state: &'a mut State, instance: &Instance) -> &'a mut Entry {
        let id = Id::of(instance);
        let State { entries, addresses } = state;
        if entries.get(&id.name).is_some_and(|entry| entry.uid != id.uid)
            && let Some(old) = entries.remove(&id.name)
        {
            addresses.release(&old.addresses);
        }
        entries.entry(id.name).or_insert_with(|| {
            let is_running = provider::is_running(instance);
            let given = addresses.assign(instance, &id.uid);
            Entry::new(id.uid, given, is_running, self.now())
        })
    }

    fn ensure_now(&self, instance: &Instance) -> Seen {
        let wishes = Wishes::read(instance, &self.0.options);
        let mut state = self.0.state.lock();
        let entry = self.entry(&mut state, instance);
        let lines = entry.lines();
        let seen = entry.ensure(wishes, self.now());
        self.tell(instance, entry, lines);
        seen
    }

    fn stop_now(&self, id: &Id, instance: Option<&Instance>) -> Stop {
        let mut state = self.0.state.lock();
        if let Some(instance) = instance {
            self.entry(&mut state, instance);
        }
        let State { entries, addresses } = &mut *state;
        let Some(entry) = entries.get_mut(&id.name).filter(|entry| entry.uid == id.uid) else {
            return Stop::Gone;
        };
        let delay = instance.map(|instance| Wishes::stop_delay(instance, &self.0.options));
        let stop = entry.stop(delay.unwrap_or(self.0.options.stop_delay), self.now());
        if stop == Stop::Gone {
            addresses.release(&std::mem::take(&mut entry.addresses));
            if instance.is_none() {
                entries.remove(&id.name);
            }
        }
        // Who follows the log sees that it ends.
        let _ = self.0.told.send(id.name.clone());
        stop
    }

    fn tell(&self, instance: &Instance, entry: &Entry, lines_before: u64) {
        if entry.lines() != lines_before {
            // Nobody who follows is no error.
            let _ = self.0.told.send(ObjectName::of(instance));
        }
    }

    /// Looks at the entry of an instance.
    fn look<T>(&self, id: &Id, look: impl FnOnce(&Entry) -> Result<T>) -> Result<T> {
        let state = self.0.state.lock();
        let entry = state.entries.get(&id.name).filter(|entry| entry.uid == id.uid && !entry.has_stopped());
        look(entry.ok_or(Error::NotFound)?)
    }
}

impl Engine for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn note(&self) -> Option<&'static str> {
        Some("simulated")
    }

    fn resume(&self, instances: &[Arc<Instance>]) {
        let mut state = self.0.state.lock();
        // Before any other: nobody else may get their addresses.
        for instance in instances.iter().filter(|instance| provider::is_running(instance)) {
            self.entry(&mut state, instance);
        }
    }

    fn ensure<'a>(&'a self, instance: &'a Instance) -> BoxFuture<'a, Result<Seen>> {
        async move { Ok(self.ensure_now(instance)) }.boxed()
    }

    fn observe<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Result<Option<Seen>>> {
        let seen = match self.look(id, |entry| Ok(entry.seen(Instant::now()))) {
            Err(Error::NotFound) => Ok(None),
            seen => seen.map(Some),
        };
        future::ready(seen).boxed()
    }

    fn stop<'a>(&'a self, id: &'a Id, instance: Option<&'a Instance>) -> BoxFuture<'a, Result<Stop>> {
        async move { Ok(self.stop_now(id, instance)) }.boxed()
    }

    fn held(&self, name: &ObjectName) -> Vec<Id> {
        let state = self.0.state.lock();
        let entry = state.entries.get(name);
        entry.map(|entry| Id { name: name.clone(), uid: entry.uid.clone() }).into_iter().collect()
    }

    fn changes(&self) -> BoxStream<'static, ObjectName> {
        // What changes with time is looked at again; there is nothing else to tell of.
        let held: Vec<_> = self.0.state.lock().entries.keys().cloned().collect();
        stream::iter(held).chain(stream::pending()).boxed()
    }

    fn logs<'a>(&'a self, id: &'a Id, query: &'a LogQuery) -> BoxFuture<'a, Result<Logs>> {
        future::ready(logs::open(self, id, query)).boxed()
    }

    fn exec<'a>(&'a self, id: &'a Id, command: Command, _: Inputs) -> BoxFuture<'a, Result<Outputs>> {
        let answer = self.look(id, |entry| {
            entry.check_container(command.container.as_deref())?;
            if !entry.is_running() {
                return Err(Error::NotRunning);
            }
            let text = format!(
                "{} is simulated: nothing runs in it, so this was not run: {}\n",
                id.name.name,
                command.argv.join(" ")
            );
            Ok(stream::iter([Ok(Output::Stdout(text.into_bytes())), Ok(Output::Exit(0))]).boxed())
        });
        future::ready(answer).boxed()
    }

    fn usage<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Result<Usage>> {
        let usage =
            self.look(id, |entry| if entry.is_running() { Ok(entry.usage) } else { Err(Error::NotRunning) });
        future::ready(usage).boxed()
    }
}

impl std::fmt::Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulated({} instances)", self.0.state.lock().entries.len())
    }
}
