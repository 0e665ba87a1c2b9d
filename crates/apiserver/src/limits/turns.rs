//! Turns on the processors.
//!
//! The runtime runs tasks in the order in which they become ready, so a thousand requests of one plane would all run before
//! the one of another plane that came a moment later. Here a request becomes ready only when its turn comes: the waker
//! that its work is given asks for a turn, and the task is woken when it has one. A turn lasts until the work waits for
//! something else (the disk, a webhook, the rest of the body) or yields.
//!
//! A plane that has no turn gets one at once, so the quiet ones hardly notice the busy ones; what is shared out is what
//! planes run beyond their first.
//!
//! Guarantees: at most so many requests as there are turns, and one of each plane, are running or ready to run; a turn is never held
//! by work that waits; nor by work that nobody polls, because work that does not end at the first poll goes on in a task of
//! its own. Dropping the future ends the work.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::fair::{Caps, Fair, Flow};

/// Lets others have their turns. Unlike the runtime's own way of yielding, it does not also wait for the runtime to look
/// for news from the network, which takes dozens of others' turns.
pub(crate) async fn yield_turn() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The turns of a server.
pub(super) struct Turns(Mutex<Fair<Arc<Turn>>>);

impl Turns {
    pub(super) fn new(count: usize) -> Arc<Self> {
        let count = count.max(1);
        // Only requests in flight ask for turns, and those are bounded.
        let caps = Caps {
            all: count,
            floor: 1,
            plane: count,
            caller: count,
            queue_plane: usize::MAX,
            queue_caller: usize::MAX,
        };
        Arc::new(Self(Mutex::new(Fair::new(caps))))
    }

    /// Runs `work` in turn. `None` if it came to no end: it panicked, or the runtime stops.
    pub(super) async fn run<F>(self: Arc<Self>, flow: Flow, work: F) -> Option<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let turn = Arc::new(Turn { turns: self, flow, state: Mutex::default() });
        let mut work = InTurn { turn, work: Box::pin(work) };
        // Most requests never wait: they need no task.
        match poll_fn(|cx| Poll::Ready(Pin::new(&mut work).poll(cx))).await {
            Poll::Ready(output) => Some(output),
            Poll::Pending => {
                let mut task = Task(tokio::spawn(work));
                (&mut task.0).await.ok()
            }
        }
    }

    /// Gives a turn of `flow` back, to the next in line.
    fn give_back(&self, flow: &Flow) {
        let mut next = self.0.lock().leave(flow);
        while let Some(turn) = next {
            let mut state = turn.state.lock();
            if let At::Waiting(_) = state.at {
                state.at = At::Running;
                let task = state.task.clone();
                drop(state);
                task.inspect(Waker::wake_by_ref);
                return;
            }
            // Its work was dropped while the turn was on its way.
            drop(state);
            next = self.0.lock().leave(&turn.flow);
        }
    }
}

/// A task that ends with whoever waits for it.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One request's way to its turns; the waker of its work.
struct Turn {
    turns: Arc<Turns>,
    flow: Flow,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    at: At,
    /// It was woken while it ran.
    again: bool,
    /// The task to wake when the turn comes.
    task: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// Waiting for something else.
    #[default]
    Away,
    /// In line, with a ticket.
    Waiting(u64),
    /// Its turn.
    Running,
    /// Over.
    Gone,
}

impl Turn {
    /// Asks for a turn, and says whether it is there at once.
    fn ask(self: &Arc<Self>, state: &mut State) -> bool {
        let mut fair = self.turns.0.lock();
        let queued = if fair.try_enter(&self.flow) { None } else { fair.queue(&self.flow, self.clone()) };
        state.at = queued.map_or(At::Running, At::Waiting);
        queued.is_none()
    }
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let ready = match state.at {
            At::Away => self.ask(&mut state),
            At::Running => {
                state.again = true;
                false
            }
            At::Waiting(_) | At::Gone => false,
        };
        let task = if ready { state.task.clone() } else { None };
        drop(state);
        task.inspect(Waker::wake_by_ref);
    }
}

/// Work that is polled when it has its turn.
struct InTurn<F> {
    turn: Arc<Turn>,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for InTurn<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let turn = self.turn.clone();
        let mut state = turn.state.lock();
        let former = state.task.replace(cx.waker().clone());
        let ready = match state.at {
            At::Away => turn.ask(&mut state),
            At::Running => true,
            At::Waiting(_) | At::Gone => false,
        };
        state.again = false;
        drop(state);
        drop(former);
        if !ready {
            return Poll::Pending;
        }
        let waker = Waker::from(turn.clone());
        // Should this panic, the turn is given back when the work is dropped.
        let polled = self.work.as_mut().poll(&mut Context::from_waker(&waker));
        let mut state = turn.state.lock();
        state.at = if polled.is_ready() { At::Gone } else { At::Away };
        drop(state);
        turn.turns.give_back(&turn.flow);
        if polled.is_pending() {
            let mut state = turn.state.lock();
            // Unless another wake has asked since.
            let ready = state.again && matches!(state.at, At::Away) && turn.ask(&mut state);
            drop(state);
            if ready {
                cx.waker().wake_by_ref();
            }
        }
        polled
    }
}

impl<F> Drop for InTurn<F> {
    fn drop(&mut self) {
        let State { at, .. } =
            std::mem::replace(&mut *self.turn.state.lock(), State { at: At::Gone, ..State::default() });
        match at {
            At::Running => self.turn.turns.give_back(&self.turn.flow),
            // If the ticket is not in line, the turn is on its way, and whoever brings it finds nobody.
            At::Waiting(ticket) => {
                self.turn.turns.0.lock().cancel(&self.turn.flow, ticket);
            }
            At::Away | At::Gone => {}
        }
    }
}

#[cfg(test)]
impl Turns {
    pub(super) fn taken(&self) -> (usize, usize) {
        self.0.lock().taken()
    }
}
