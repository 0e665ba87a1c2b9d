//! A counter of places with a queue that is fair: planes take turns, callers take turns within their plane, and each
//! caller is served first come, first served. No clock, no tasks: a value that changes by four functions.
//!
//! Guarantees: no cap is exceeded; nobody waits who could have a place; entries, exits and grants take a time that does not
//! grow with those who wait (only who leaves the queue, or is the last of its plane in it, is looked for); what has neither places nor waiters is forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::auth::Identity;
use crate::planes::PlaneName;

/// Whose a request is: a caller in a plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    plane: PlaneName,
    caller: Arc<str>,
}

impl Flow {
    pub(super) fn new(plane: &PlaneName, caller: &Identity) -> Self {
        Self { plane: plane.clone(), caller: caller.user.as_str().into() }
    }
}

/// How many places and waiters there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caps {
    pub(super) all: usize,
    /// Each plane may have so many even if all are taken. It counts all the same.
    pub(super) floor: usize,
    pub(super) plane: usize,
    pub(super) caller: usize,
    pub(super) queue_plane: usize,
    pub(super) queue_caller: usize,
}

impl Caps {
    /// Places that nobody waits for.
    pub(super) fn without_queue(all: usize, plane: usize, caller: usize) -> Self {
        Self { all, floor: 0, plane, caller, queue_plane: 0, queue_caller: 0 }
    }
}

/// Places, and those who wait for one. `T` is how a waiter is told.
#[derive(Debug)]
pub(super) struct Fair<T> {
    caps: Caps,
    busy: usize,
    planes: BTreeMap<PlaneName, Plane<T>>,
    /// Planes that have someone who could enter if there were a place in all, each once, in the order of their turns.
    ring: VecDeque<PlaneName>,
    tickets: u64,
}

#[derive(Debug)]
struct Plane<T> {
    busy: usize,
    queued: usize,
    callers: BTreeMap<Arc<str>, Caller<T>>,
    /// Callers with waiters who may have one place more, each once, in the order of their turns.
    ring: VecDeque<Arc<str>>,
}

#[derive(Debug)]
struct Caller<T> {
    busy: usize,
    queue: VecDeque<(u64, T)>,
}

impl<T> Default for Plane<T> {
    fn default() -> Self {
        Self { busy: 0, queued: 0, callers: BTreeMap::new(), ring: VecDeque::new() }
    }
}

impl<T> Default for Caller<T> {
    fn default() -> Self {
        Self { busy: 0, queue: VecDeque::new() }
    }
}

impl<T> Fair<T> {
    pub(super) fn new(caps: Caps) -> Self {
        Self { caps, busy: 0, planes: BTreeMap::new(), ring: VecDeque::new(), tickets: 0 }
    }

    /// Takes a place, if there is one. Nobody is overtaken: whoever waits cannot use it.
    pub(super) fn try_enter(&mut self, flow: &Flow) -> bool {
        let plane = self.planes.get(&flow.plane);
        let in_plane = plane.map_or(0, |plane| plane.busy);
        let of_caller =
            plane.and_then(|plane| plane.callers.get(&flow.caller)).map_or(0, |caller| caller.busy);
        let room = (self.busy < self.caps.all || in_plane < self.caps.floor)
            && in_plane < self.caps.plane
            && of_caller < self.caps.caller;
        if room {
            let plane = self.planes.entry(flow.plane.clone()).or_default();
            plane.callers.entry(flow.caller.clone()).or_default().busy += 1;
            plane.busy += 1;
            self.busy += 1;
        }
        room
    }

    /// Joins the queue after [`Fair::try_enter`] has found no place; `None` if it is full.
    pub(super) fn queue(&mut self, flow: &Flow, waiter: T) -> Option<u64> {
        let known = self.planes.get(&flow.plane);
        let queued = known.map_or(0, |plane| plane.queued);
        let of_caller =
            known.and_then(|plane| plane.callers.get(&flow.caller)).map_or(0, |caller| caller.queue.len());
        if queued >= self.caps.queue_plane || of_caller >= self.caps.queue_caller {
            return None;
        }
        self.tickets += 1;
        let plane = self.planes.entry(flow.plane.clone()).or_default();
        let caller = plane.callers.entry(flow.caller.clone()).or_default();
        caller.queue.push_back((self.tickets, waiter));
        plane.queued += 1;
        if caller.queue.len() == 1 && caller.busy < self.caps.caller {
            plane.ring.push_back(flow.caller.clone());
            if plane.ring.len() == 1 && plane.busy < self.caps.plane {
                self.ring.push_back(flow.plane.clone());
            }
        }
        Some(self.tickets)
    }

    /// Leaves the queue. `false` if the ticket is not in it: then its place has been granted.
    pub(super) fn cancel(&mut self, flow: &Flow, ticket: u64) -> bool {
        let Some(plane) = self.planes.get_mut(&flow.plane) else { return false };
        let Some(caller) = plane.callers.get_mut(&flow.caller) else { return false };
        let Ok(at) = caller.queue.binary_search_by_key(&ticket, |(ticket, _)| *ticket) else { return false };
        caller.queue.remove(at);
        plane.queued -= 1;
        if caller.queue.is_empty() {
            plane.ring.retain(|waiting| *waiting != flow.caller);
            if plane.ring.is_empty() {
                self.ring.retain(|waiting| *waiting != flow.plane);
            }
        }
        self.forget(flow);
        true
    }

    /// Gives a place back, and says who has it now.
    pub(super) fn leave(&mut self, flow: &Flow) -> Option<T> {
        let plane = self.planes.get_mut(&flow.plane)?;
        let caller = plane.callers.get_mut(&flow.caller)?;
        let in_ring = !plane.ring.is_empty() && plane.busy < self.caps.plane;
        if caller.busy >= self.caps.caller && !caller.queue.is_empty() {
            plane.ring.push_back(flow.caller.clone());
        }
        caller.busy -= 1;
        plane.busy -= 1;
        self.busy -= 1;
        if !plane.ring.is_empty() && plane.busy < self.caps.floor {
            let next = self.grant(&flow.plane);
            self.settle(&flow.plane, in_ring);
            self.forget(flow);
            return next;
        }
        self.settle(&flow.plane, in_ring);
        self.forget(flow);
        if self.busy >= self.caps.all {
            return None;
        }
        let name = self.ring.pop_front()?;
        let next = self.grant(&name);
        self.settle(&name, false);
        next
    }

    /// Gives a place to the caller whose turn it is in a plane.
    fn grant(&mut self, name: &PlaneName) -> Option<T> {
        let plane = self.planes.get_mut(name)?;
        let user = plane.ring.pop_front()?;
        let caller = plane.callers.get_mut(&user).expect("a caller in the ring is known");
        let (_, waiter) = caller.queue.pop_front().expect("a caller in the ring has waiters");
        caller.busy += 1;
        plane.busy += 1;
        plane.queued -= 1;
        self.busy += 1;
        if !caller.queue.is_empty() && caller.busy < self.caps.caller {
            plane.ring.push_back(user);
        }
        Some(waiter)
    }

    /// Puts a plane into the ring or takes it out, as it should be; `in_ring` is whether it is there.
    fn settle(&mut self, name: &PlaneName, in_ring: bool) {
        let Some(plane) = self.planes.get(name) else { return };
        let belongs = !plane.ring.is_empty() && plane.busy < self.caps.plane;
        if belongs && !in_ring {
            self.ring.push_back(name.clone());
        } else if in_ring && !belongs {
            self.ring.retain(|waiting| waiting != name);
        }
    }

    fn forget(&mut self, flow: &Flow) {
        let Some(plane) = self.planes.get_mut(&flow.plane) else { return };
        if plane.callers.get(&flow.caller).is_some_and(|caller| caller.busy == 0 && caller.queue.is_empty()) {
            plane.callers.remove(&flow.caller);
        }
        if plane.callers.is_empty() {
            self.planes.remove(&flow.plane);
        }
    }

    /// How many places a flow has.
    pub(super) fn held(&self, flow: &Flow) -> usize {
        let plane = self.planes.get(&flow.plane);
        plane.and_then(|plane| plane.callers.get(&flow.caller)).map_or(0, |caller| caller.busy)
    }

    /// How many places are taken, and how many planes are known.
    #[cfg(test)]
    pub(super) fn taken(&self) -> (usize, usize) {
        (self.busy, self.planes.len())
    }
}
