//! An engine that runs nothing and says so in every status: for tests, demos and scale runs.
//!
//! It keeps nothing outside the process. After a restart it takes an instance that was running for one that is, with its addresses; any
//! other starts anew, with the addresses that it had. What an instance does is told by annotations on it ([`annotations`]), which come from its template or are put on
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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::k8s::Timestamp;
use compute_core::provider::{self, Observation, State as InstanceState, Trouble};
use compute_runtime::cache::ObjectName;
use compute_runtime::{Clock, Subscription};
use futures::future::{self, BoxFuture};
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use crate::engine::{
    Command, Engine, Error, Id, Inputs, LogQuery, Logs, Output, Outputs, Result, Seen, Stop, Usage,
};
use crate::subnets::Subnets;
use addresses::{Addresses, Assigned, Missing};
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
    subnets: Subnets,
    /// Wakes those who follow a log: the instance of that name has told something.
    told: broadcast::Sender<ObjectName>,
    /// Wakes who looks at instances again: some that wait for an address may get one.
    due: Notify,
    /// Held for as long as subnets are to be heard of.
    heard: Mutex<Vec<Subscription>>,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<ObjectName, Entry>,
    addresses: Addresses,
    /// Instances that wait for a subnet, or for an address of one.
    waiting: BTreeSet<ObjectName>,
    /// Those of them that are to be looked at again.
    due: BTreeSet<ObjectName>,
}

impl State {
    /// Has all that wait in a namespace looked at again; whether there are any.
    fn wake(&mut self, namespace: &str) -> bool {
        let due: Vec<_> = self.waiting.iter().filter(|name| name.namespace == namespace).cloned().collect();
        for name in &due {
            self.waiting.remove(name);
        }
        let any = !due.is_empty();
        self.due.extend(due);
        any
    }
}

/// Wake-ups that wait for a follower. One that misses some looks at what there is, and so misses no line.
const WAKE_UPS: usize = 64;

impl Simulated {
    /// An engine that runs nothing yet, in a cell without networks.
    pub fn new(clock: Arc<dyn Clock>, options: Options) -> Self {
        Self::on(&Subnets::none(), clock, options)
    }

    /// An engine that runs nothing yet, and takes addresses from these subnets.
    pub fn on(subnets: &Subnets, clock: Arc<dyn Clock>, options: Options) -> Self {
        let (told, _) = broadcast::channel(WAKE_UPS);
        let inner = Arc::new(Inner {
            options,
            clock,
            state: Mutex::default(),
            told,
            due: Notify::new(),
            heard: Mutex::default(),
            subnets: subnets.clone(),
        });
        let weak = Arc::downgrade(&inner);
        let heard = subnets.on_change(move |namespace| {
            if let Some(inner) = weak.upgrade() {
                inner.wake(namespace);
            }
        });
        *inner.heard.lock() = heard;
        Self(inner)
    }

    fn now(&self) -> (Instant, Timestamp) {
        (Instant::now(), self.0.clock.now())
    }

    /// The entry of an instance, or else a new one.
    fn entry<'a>(&self, state: &'a mut State, instance: &Instance) -> &'a mut Entry {
        let id = Id::of(instance);
        if state.entries.get(&id.name).is_some_and(|entry| entry.uid != id.uid)
            && let Some(old) = state.entries.remove(&id.name)
        {
            self.free(state, &id.name, &old.addresses);
        }
        let State { entries, addresses, .. } = state;
        entries.entry(id.name).or_insert_with(|| {
            let kept = addresses.keep(instance);
            Entry::new(id.uid, kept, provider::is_running(instance), self.now())
        })
    }

    /// Gives addresses of an instance back, for others who wait.
    fn free(&self, state: &mut State, name: &ObjectName, given: &[Assigned]) {
        state.waiting.remove(name);
        state.addresses.release(given);
        if state.wake(&name.namespace) {
            self.0.due.notify_one();
        }
    }

    /// Sees to the addresses of an instance, or says what it is like without.
    fn address(&self, state: &mut State, instance: &Instance) -> Result<(), Observation> {
        let name = ObjectName::of(instance);
        let State { entries, addresses, waiting, .. } = state;
        let Some(entry) = entries.get_mut(&name) else { return Ok(()) };
        let has_all = entry.addresses.len() == instance.spec.network_interfaces.len();
        if has_all || entry.is_on_its_way_out() {
            return Ok(());
        }
        match addresses.assign(instance, &entry.uid, &self.0.subnets) {
            Ok(given) => {
                waiting.remove(&name);
                entry.addresses = given;
                Ok(())
            }
            Err(missing) => {
                waiting.insert(name);
                Err(Observation::of(match missing {
                    Missing::Subnet => InstanceState::Preparing,
                    Missing::Address(said) => InstanceState::Trouble(Trouble::Network(said)),
                }))
            }
        }
    }

    fn ensure_now(&self, instance: &Instance) -> Seen {
        let wishes = Wishes::read(instance, &self.0.options);
        let mut state = self.0.state.lock();
        self.entry(&mut state, instance);
        if let Err(observation) = self.address(&mut state, instance) {
            return Seen { observation, again: None };
        }
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
        let Some(entry) = state.entries.get_mut(&id.name).filter(|entry| entry.uid == id.uid) else {
            return Stop::Gone;
        };
        let delay = instance.map(|instance| Wishes::stop_delay(instance, &self.0.options));
        let stop = entry.stop(delay.unwrap_or(self.0.options.stop_delay), self.now());
        if stop == Stop::Gone {
            let given = std::mem::take(&mut entry.addresses);
            self.free(&mut state, &id.name, &given);
            if instance.is_none() {
                state.entries.remove(&id.name);
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

impl Inner {
    fn wake(&self, namespace: &str) {
        if self.state.lock().wake(namespace) {
            self.due.notify_one();
        }
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
        for instance in instances {
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
        // What changes with time is looked at again; else there are only those that wait for an address.
        let held: Vec<_> = self.0.state.lock().entries.keys().cloned().collect();
        let inner = self.0.clone();
        let due = stream::repeat(()).then(move |()| {
            let inner = inner.clone();
            async move {
                inner.due.notified().await;
                stream::iter(std::mem::take(&mut inner.state.lock().due))
            }
        });
        stream::iter(held).chain(due.flatten()).boxed()
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
