//! The fair queue against a model, places and turns under cancellation, and who waits for whom.

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::fair::{Caps, Fair, Flow};
use super::slots::{Pool, Refusal};
use super::turns::Turns;
use super::{Gate, Limits, yield_turn};
use crate::auth::Identity;
use crate::error::ApiError;
use crate::planes::PlaneName;

fn plane(number: usize) -> PlaneName {
    PlaneName::new(&format!("p{number}")).unwrap()
}

fn flow(number: usize, caller: usize) -> Flow {
    Flow::new(&plane(number), &Identity::user(format!("u{caller}")))
}

const PLANES: usize = 3;
const CALLERS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Come(usize, usize),
    Leave(usize),
    Cancel(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..PLANES, 0..CALLERS).prop_map(|(plane, caller)| Step::Come(plane, caller)),
        3 => any::<prop::sample::Index>().prop_map(|at| Step::Leave(at.index(1 << 20))),
        1 => any::<prop::sample::Index>().prop_map(|at| Step::Cancel(at.index(1 << 20))),
    ];
    prop::collection::vec(step, 0..400)
}

/// What the queue should know, kept in the plainest way.
#[derive(Default)]
struct Model {
    inside: Vec<(usize, usize)>,
    waiting: Vec<(u64, (usize, usize))>,
}

impl Model {
    fn of_plane(&self, plane: usize) -> usize {
        self.inside.iter().filter(|who| who.0 == plane).count()
    }

    fn of_caller(&self, who: (usize, usize)) -> usize {
        self.inside.iter().filter(|inside| **inside == who).count()
    }

    fn has_room(&self, caps: &Caps, who: (usize, usize)) -> bool {
        (self.inside.len() < caps.all || self.of_plane(who.0) < caps.floor)
            && self.of_plane(who.0) < caps.plane
            && self.of_caller(who) < caps.caller
    }
}

proptest! {
    /// No cap is exceeded, nobody waits who could enter, callers are served in their order, and nothing is left behind.
    #[test]
    fn the_queue_keeps_its_word(
        steps in steps(),
        all in 1usize..6, floor in 0usize..3, in_plane in 1usize..5, of_caller in 1usize..4, queue_plane in 0usize..6, queue_caller in 0usize..4,
    ) {
        let caps = Caps { all, floor, plane: in_plane, caller: of_caller, queue_plane, queue_caller };
        let mut fair: Fair<(usize, usize)> = Fair::new(caps);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Come(plane, caller) => {
                    let who = (plane, caller);
                    let room = model.has_room(&caps, who);
                    prop_assert_eq!(fair.try_enter(&flow(plane, caller)), room);
                    if room {
                        model.inside.push(who);
                        continue;
                    }
                    let in_line = |of: &dyn Fn((usize, usize)) -> bool| {
                        model.waiting.iter().filter(|(_, waiter)| of(*waiter)).count()
                    };
                    let may = in_line(&|waiter| waiter.0 == plane) < queue_plane
                        && in_line(&|waiter| waiter == who) < queue_caller;
                    let ticket = fair.queue(&flow(plane, caller), who);
                    prop_assert_eq!(ticket.is_some(), may);
                    model.waiting.extend(ticket.map(|ticket| (ticket, who)));
                }
                Step::Leave(at) => {
                    if model.inside.is_empty() {
                        continue;
                    }
                    let who = model.inside.swap_remove(at % model.inside.len());
                    if let Some(next) = fair.leave(&flow(who.0, who.1)) {
                        prop_assert!(model.has_room(&caps, next));
                        model.inside.push(next);
                        // The first in line of this caller.
                        let first = model.waiting.iter().position(|(_, waiter)| *waiter == next).unwrap();
                        model.waiting.remove(first);
                    }
                }
                Step::Cancel(at) => {
                    if model.waiting.is_empty() {
                        continue;
                    }
                    let (ticket, who) = model.waiting.remove(at % model.waiting.len());
                    prop_assert!(fair.cancel(&flow(who.0, who.1), ticket));
                    prop_assert!(!fair.cancel(&flow(who.0, who.1), ticket));
                }
            }
            prop_assert_eq!(fair.taken().0, model.inside.len());
            let could_enter = model.waiting.iter().find(|(_, waiter)| model.has_room(&caps, *waiter));
            prop_assert!(could_enter.is_none(), "{:?} waits for nothing", could_enter);
        }
        while let Some(who) = model.inside.pop() {
            model.inside.extend(fair.leave(&flow(who.0, who.1)));
        }
        prop_assert_eq!(fair.taken(), (0, 0), "everything is forgotten");
    }

    /// However many requests others have in line, one's own is served after at most one of each other flow.
    #[test]
    fn nobody_starves(crowd in prop::collection::vec((0..PLANES, 0..CALLERS), 1..300), all in 1usize..5) {
        let caps = Caps { all, floor: 0, plane: all, caller: all, queue_plane: usize::MAX, queue_caller: usize::MAX };
        let mut fair: Fair<(usize, usize)> = Fair::new(caps);
        let mut inside = Vec::new();
        let lone = (PLANES, 0);
        let mut come = |fair: &mut Fair<_>, who: (usize, usize)| {
            if fair.try_enter(&flow(who.0, who.1)) {
                inside.push(who);
            } else {
                fair.queue(&flow(who.0, who.1), who).unwrap();
            }
        };
        crowd.iter().for_each(|who| come(&mut fair, *who));
        come(&mut fair, lone);
        let mut others = 0;
        while !inside.contains(&lone) {
            let who = inside.remove(0);
            others += 1;
            inside.extend(fair.leave(&flow(who.0, who.1)));
        }
        prop_assert!(others <= PLANES + all, "{} others came first", others);
    }
}

#[test]
fn planes_take_turns_and_callers_within_them() {
    let caps = Caps { all: 1, floor: 0, plane: 1, caller: 1, queue_plane: 9, queue_caller: 9 };
    let mut fair = Fair::new(caps);
    assert!(fair.try_enter(&flow(9, 0)));
    for (plane, caller) in [(0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (2, 0)] {
        fair.queue(&flow(plane, caller), (plane, caller)).unwrap();
    }
    let mut order = Vec::new();
    let mut inside = (9, 0);
    while let Some(next) = fair.leave(&flow(inside.0, inside.1)) {
        order.push(next);
        inside = next;
    }
    assert_eq!(order, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 0), (0, 0), (0, 0)]);
}

fn one_place(queue: usize) -> Arc<Pool> {
    Pool::new(Caps { all: 1, floor: 0, plane: 1, caller: 1, queue_plane: queue, queue_caller: queue })
}

#[tokio::test(start_paused = true)]
async fn a_place_is_waited_for_but_not_for_long() {
    let pool = one_place(1);
    let first = pool.try_take(&flow(0, 0)).unwrap();
    let limit = Duration::from_secs(5);
    let second = tokio::spawn(pool.clone().wait(flow(0, 1), limit));
    tokio::task::yield_now().await;
    assert_eq!(pool.clone().wait(flow(0, 2), limit).await.err(), Some(Refusal::QueueFull));
    let before = Instant::now();
    assert_eq!(second.await.unwrap().err(), Some(Refusal::TooLong));
    assert_eq!(before.elapsed(), limit);

    let third = tokio::spawn(pool.clone().wait(flow(0, 1), limit));
    tokio::task::yield_now().await;
    drop(first);
    drop(third.await.unwrap().unwrap());
    assert_eq!(pool.taken(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_goes_leaves_nothing_behind() {
    let limit = Duration::from_secs(5);
    // Before and after its place was granted.
    for granted in [false, true] {
        let pool = one_place(8);
        let first = pool.try_take(&flow(0, 0)).unwrap();
        let mut gone = Box::pin(pool.clone().wait(flow(0, 1), limit));
        assert!(gone.as_mut().now_or_never().is_none());
        let stays = tokio::spawn(pool.clone().wait(flow(0, 2), limit));
        tokio::task::yield_now().await;
        if granted {
            drop(first);
            drop(gone);
        } else {
            drop(gone);
            drop(first);
        }
        drop(stays.await.unwrap().unwrap());
        assert_eq!(pool.taken(), (0, 0), "{granted}");
    }
}

/// Work that notes when it runs, and yields `times` times.
async fn work(log: Arc<Mutex<Vec<usize>>>, who: usize, times: usize) {
    for _ in 0..times {
        log.lock().push(who);
        yield_turn().await;
    }
}

#[tokio::test]
async fn a_flood_delays_others_by_a_few_turns() {
    let turns = Turns::new(2);
    let log = Arc::new(Mutex::new(Vec::new()));
    let flood: Vec<_> =
        (0..200).map(|_| tokio::spawn(turns.clone().run(flow(0, 0), work(log.clone(), 0, 3)))).collect();
    while log.lock().len() < 100 {
        tokio::task::yield_now().await;
    }
    tokio::spawn(turns.clone().run(flow(1, 0), work(log.clone(), 1, 10))).await.unwrap().unwrap();
    for task in flood {
        task.await.unwrap().unwrap();
    }
    let log = log.lock();
    assert_eq!(log.len(), 610);
    let first = log.iter().position(|who| *who == 1).unwrap();
    let last = log.iter().rposition(|who| *who == 1).unwrap();
    // Before each of its turns, those that have theirs already and one of the other plane's.
    let between = last - first - 9;
    assert!(between <= 9 * 3, "{between} of the flood came in between");
    assert_eq!(turns.taken(), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_than_the_turns_run_at_once_and_all_are_given_back() {
    let turns = Turns::new(2);
    let running = Arc::new(AtomicUsize::new(0));
    let bell = Arc::new(Notify::new());
    let tasks: Vec<_> = (0..300)
        .map(|number| {
            let (running, bell) = (running.clone(), bell.clone());
            let mut polls = 0;
            let work = poll_fn(move |cx| {
                assert!(running.fetch_add(1, Ordering::SeqCst) < 2 + 7);
                polls += 1;
                // Woken by itself, by others, twice at once, or never.
                let ended = match (polls, number % 4) {
                    (5, _) => true,
                    (_, 0) => {
                        cx.waker().wake_by_ref();
                        false
                    }
                    (_, 1) => {
                        cx.waker().wake_by_ref();
                        cx.waker().wake_by_ref();
                        false
                    }
                    (_, 2) => {
                        let waker = cx.waker().clone();
                        tokio::spawn(async move { waker.wake() });
                        false
                    }
                    _ => bell.notified().boxed().poll_unpin(cx).is_ready(),
                };
                running.fetch_sub(1, Ordering::SeqCst);
                if ended { Poll::Ready(()) } else { Poll::Pending }
            });
            tokio::spawn(turns.clone().run(flow(number % 7, number % 3), work))
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        if number % 4 == 3 {
            task.abort();
            let _ = task.await;
        } else {
            task.await.unwrap().unwrap();
        }
    }
    // What was cut off ends in a task of its own.
    let deadline = Instant::now() + Duration::from_secs(10);
    while turns.taken() != (0, 0) {
        assert!(Instant::now() < deadline, "{:?}", turns.taken());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn work_that_waits_holds_no_turn() {
    let turns = Turns::new(1);
    let waiting = tokio::spawn(turns.clone().run(flow(0, 0), pending::<()>()));
    tokio::task::yield_now().await;
    assert_eq!(turns.clone().run(flow(0, 0), async { 7 }).await, Some(7));
    // Work that others wait for, within a turn and beside it.
    let inner = turns.clone();
    let nested = turns.clone().run(flow(0, 0), async move {
        let beside = tokio::spawn(inner.clone().run(flow(0, 0), tokio::task::yield_now()));
        inner.run(flow(0, 0), tokio::task::yield_now()).await.unwrap();
        beside.await.unwrap()
    });
    tokio::time::timeout(Duration::from_secs(10), nested).await.unwrap().unwrap().unwrap();
    waiting.abort();
    let _ = waiting.await;
    while turns.taken() != (0, 0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn work_that_panics_gives_its_turn_back() {
    let turns = Turns::new(1);
    let panics = turns.clone().run(flow(0, 0), async {
        tokio::task::yield_now().await;
        assert_eq!(1, 2);
    });
    assert_eq!(panics.await, None);
    assert_eq!(turns.taken(), (0, 0));
}

fn gate() -> Gate {
    Gate::new(&Limits {
        requests: 4,
        requests_per_plane: 3,
        requests_per_caller: 2,
        kept_per_caller: 1,
        queue_per_caller: 1,
        queue_per_plane: 2,
        queue_time: Duration::from_secs(1),
        watchers: 4,
        watchers_per_plane: 3,
        watchers_per_caller: 2,
        running: 1,
        ..Limits::default()
    })
}

/// A request that lasts until it is dropped.
fn hanging(gate: &Arc<Gate>, plane: PlaneName, caller: Identity) -> tokio::task::JoinHandle<()> {
    let gate = gate.clone();
    tokio::spawn(async move {
        let _ = gate.request::<_, ()>(&plane, &caller, pending()).await;
    })
}

async fn is_refused(gate: &Gate, number: usize, caller: &Identity) -> bool {
    let answer = gate.request(&plane(number), caller, async { Ok(()) }).await;
    matches!(answer, Err(ApiError::TooManyRequests { retry_after: 1, .. }))
}

#[tokio::test(start_paused = true)]
async fn each_limit_holds_and_those_with_few_requests_pass() {
    let gate = Arc::new(gate());
    let user = |name: &str| Identity::user(name);
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(hanging(&gate, plane(0), user("a")));
    }
    tokio::task::yield_now().await;
    assert!(is_refused(&gate, 0, &user("a")).await, "two of a caller");
    assert!(!is_refused(&gate, 0, &user("b")).await);
    held.push(hanging(&gate, plane(0), user("b")));
    tokio::task::yield_now().await;
    // The plane is full: whoever has nothing yet passes, whoever has something waits.
    assert!(is_refused(&gate, 0, &user("b")).await);
    assert!(!is_refused(&gate, 0, &user("c")).await);
    held.push(hanging(&gate, plane(1), user("a")));
    tokio::task::yield_now().await;
    // Now all are taken.
    assert!(is_refused(&gate, 1, &user("a")).await);
    assert!(!is_refused(&gate, 2, &user("a")).await);
    assert!(!is_refused(&gate, 0, &Identity::superuser("root")).await);
    for task in held {
        task.abort();
        let _ = task.await;
    }
    while gate.ordinary.taken() != (0, 0) {
        tokio::task::yield_now().await;
    }
    assert!(!is_refused(&gate, 0, &user("a")).await);
    for pool in [&gate.ordinary, &gate.kept, &gate.privileged] {
        assert_eq!(pool.taken(), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn who_had_to_wait_is_let_in_at_a_measured_pace() {
    let gate = Arc::new(gate());
    let begin = Instant::now();
    let held: Vec<_> = (0..2).map(|_| hanging(&gate, plane(0), Identity::user("a"))).collect();
    tokio::task::yield_now().await;
    let waits = tokio::spawn({
        let gate = gate.clone();
        async move { gate.request(&plane(0), &Identity::user("a"), async { Ok(Instant::now()) }).await }
    });
    tokio::task::yield_now().await;
    for task in held {
        task.abort();
        let _ = task.await;
    }
    let let_in = waits.await.unwrap().unwrap();
    assert!(let_in - begin >= Limits::default().pause);
    let at_once = gate.request(&plane(0), &Identity::user("a"), async { Ok(Instant::now()) }).await.unwrap();
    assert_eq!(at_once, let_in, "whoever finds a place does not wait");
}

#[test]
fn watches_are_counted_while_they_are_open() {
    let gate = gate();
    let mut open = Vec::new();
    for (plane_number, user, opens) in [
        (0, "a", true),
        (0, "a", true),
        (0, "a", false),
        (0, "b", true),
        (0, "b", false),
        (1, "a", true),
        (1, "b", false),
    ] {
        let watcher = gate.watcher(&plane(plane_number), &Identity::user(user));
        assert_eq!(watcher.is_ok(), opens, "{plane_number} {user}");
        open.extend(watcher.ok());
    }
    drop(open);
    assert_eq!(gate.watchers.taken(), (0, 0));
}
