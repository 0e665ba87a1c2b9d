//! The queue's promises: as properties of random histories under paused time, and one by one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tokio::time::{advance, timeout};

use super::*;
use crate::clock::TimerClock;

const PLANES: [&str; 3] = ["a", "b", "c"];

fn runtime() -> Runtime {
    Runtime::new(TimerClock::starting_at(jiff::Timestamp::UNIX_EPOCH), Random::seeded(7))
}

fn queue(limits: Limits) -> Queue {
    Queue::new(&runtime(), "test", limits)
}

fn key(plane: &str, name: &str) -> Key {
    Key::new(&plane.into(), "ns", name)
}

/// What can be taken now.
async fn take(queue: &Queue) -> Option<Work> {
    timeout(Duration::ZERO, queue.next()).await.ok()
}

async fn take_all(queue: &Queue) -> Vec<Work> {
    let mut all = Vec::new();
    while let Some(work) = take(queue).await {
        all.push(work);
    }
    all
}

fn names(works: &[Work]) -> Vec<String> {
    works.iter().map(|work| format!("{}{}", work.key().plane, work.key().name)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_key_added_many_times_runs_once() {
    let queue = queue(Limits::default());
    for _ in 0..5 {
        queue.add(key("a", "1"));
    }
    let works = take_all(&queue).await;
    assert_eq!(names(&works), ["a1"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_in_hand_runs_once_more() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    let work = take(&queue).await.unwrap();
    queue.add(key("a", "1"));
    queue.add(key("a", "1"));
    assert!(take(&queue).await.is_none());
    work.done();
    take(&queue).await.unwrap().done();
    assert!(take(&queue).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_added_before_a_reserved_key_begins_is_seen_by_its_pass() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    let work = queue.reserve().await;
    queue.add(key("a", "1"));
    work.begins();
    work.done();
    assert!(take(&queue).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn to_wait_for_a_turn_is_not_to_stall() {
    let limits = Limits::with_concurrency(1);
    let queue = queue(limits);
    queue.add_all([key("a", "1"), key("b", "1")]);
    let work = queue.reserve().await;
    tokio::time::advance(limits.stalled * 2).await;
    assert!(take(&queue).await.is_none(), "the one worker is taken");
    work.begins();
    tokio::time::advance(limits.stalled).await;
    take(&queue).await.unwrap().done();
    work.done();
}

#[tokio::test(start_paused = true)]
async fn planes_take_turns() {
    let queue = queue(Limits::with_concurrency(100));
    for n in 0..4 {
        queue.add(key("a", &n.to_string()));
    }
    queue.add(key("b", "0"));
    queue.add(key("c", "0"));
    queue.add(key("b", "1"));
    let works = take_all(&queue).await;
    assert_eq!(names(&works), ["a0", "b0", "c0", "a1", "b1", "a2", "a3"]);
}

#[tokio::test(start_paused = true)]
async fn the_soonest_timer_counts() {
    let queue = queue(Limits::default());
    queue.add_after(key("a", "1"), Duration::from_secs(30));
    queue.add_after(key("a", "1"), Duration::from_secs(10));
    queue.add_after(key("a", "1"), Duration::from_secs(20));
    let began = Instant::now();
    queue.next().await.done();
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(timeout(Duration::from_secs(60), queue.next()).await.is_err(), "the others are gone");
}

#[tokio::test(start_paused = true)]
async fn a_timer_set_while_in_hand_stays() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    let work = queue.next().await;
    queue.add_after(key("a", "1"), Duration::from_secs(10));
    work.again_after(Duration::from_secs(30));
    let began = Instant::now();
    queue.next().await.done();
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_before_a_timer() {
    let queue = queue(Limits::default());
    queue.add_after(key("a", "1"), Duration::from_secs(10));
    queue.add(key("a", "1"));
    take(&queue).await.unwrap().done();
    assert!(timeout(Duration::from_secs(60), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn backoff_grows_and_a_success_ends_it() {
    let queue = queue(Limits::default());
    let Backoff { base, max } = queue.limits().backoff;
    queue.add(key("a", "1"));
    let mut waits = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        queue.next().await.failed();
        waits.push(began.elapsed());
    }
    let slack = Duration::from_millis(1);
    assert!(waits[1] <= base + slack);
    assert!(waits.is_sorted_by(|one, next| *one <= *next + slack || *next > max / 2), "{waits:?}");
    assert!(waits[19] > max / 2 - slack && waits[19] <= max + slack, "{waits:?}");
    queue.next().await.done();
    queue.add(key("a", "1"));
    queue.next().await.failed();
    let began = Instant::now();
    queue.next().await.done();
    assert!(began.elapsed() <= base + slack);
}

#[tokio::test(start_paused = true)]
async fn an_event_during_backoff_waits_a_second_at_most() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    for _ in 0..12 {
        queue.next().await.failed();
    }
    let failed = Instant::now();
    queue.add(key("a", "1"));
    assert!(take(&queue).await.is_none(), "not at once");
    queue.next().await.failed();
    assert_eq!(failed.elapsed().as_secs(), 1);
    advance(Duration::from_secs(2)).await;
    queue.add(key("a", "1"));
    assert!(take(&queue).await.is_some(), "at once, since the failure was a while ago");
}

#[tokio::test(start_paused = true)]
async fn what_was_added_during_a_failing_pass_is_not_lost() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    for _ in 0..12 {
        queue.next().await.failed();
    }
    let work = queue.next().await;
    queue.add(key("a", "1"));
    let failed = Instant::now();
    drop(work);
    queue.next().await.done();
    assert_eq!(failed.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removed_plane_takes_its_keys_and_timers_with_it() {
    let queue = queue(Limits::default());
    for plane in PLANES {
        queue.add(key(plane, "due"));
        queue.add_after(key(plane, "later"), Duration::from_secs(5));
        queue.add(key(plane, "hand"));
    }
    let mut works = take_all(&queue).await;
    works.retain(|work| &*work.key().name == "hand");
    queue.remove_plane(&"b".into());
    queue.add(key("c", "due"));
    for work in works {
        queue.add(work.key().clone());
        queue.remove_plane(&"b".into());
        work.failed();
    }
    let mut seen = BTreeSet::new();
    while let Ok(work) = timeout(Duration::from_secs(600), queue.next()).await {
        assert_ne!(work.key().plane, "b".into());
        seen.insert(work.key().to_string());
        work.done();
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
    assert_eq!(queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_a_plane_that_is_back_waits_for_the_pass_in_hand() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    let work = queue.next().await;
    queue.remove_plane(&"a".into());
    queue.add(key("a", "1"));
    assert!(take(&queue).await.is_none());
    work.again_after(Duration::from_secs(1000));
    take(&queue).await.unwrap().done();
    assert!(timeout(Duration::from_secs(2000), queue.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_plane_that_hangs_gives_its_workers_to_the_others() {
    let queue = queue(Limits::with_concurrency(4));
    for n in 0..10 {
        queue.add(key("a", &n.to_string()));
    }
    let mut hanging = take_all(&queue).await;
    assert_eq!(hanging.len(), 4);
    queue.add(key("b", "1"));
    let began = Instant::now();
    let good = queue.next().await;
    assert_eq!(*good.key(), key("b", "1"));
    assert_eq!(began.elapsed().as_secs(), 2);
    assert!(take(&queue).await.is_none(), "no further key of the plane that hangs");
    for n in 2..5 {
        queue.add(key("b", &n.to_string()));
    }
    let others = take_all(&queue).await;
    assert_eq!(names(&others), ["b2", "b3", "b4"]);
    others.into_iter().chain([good]).for_each(Work::done);
    hanging.drain(..).for_each(Work::failed);
    let probes: Vec<Work> = take_all(&queue).await;
    assert_eq!(probes.len(), 1, "one at a time until it answers");
    probes.into_iter().for_each(Work::done);
    assert_eq!(take_all(&queue).await.len(), 4, "it answers");
}

#[tokio::test(start_paused = true)]
async fn the_gauge_shows_what_is_due() {
    let queue = queue(Limits::default());
    queue.add(key("a", "1"));
    queue.add(key("a", "2"));
    queue.next().await.done();
    assert!(queue.runtime().metrics().encode().contains("compute_queue_depth{controller=\"test\"} 1"));
}

/// What can happen to a queue.
#[derive(Clone, Debug)]
enum Step {
    Add(usize, u8),
    AddAfter(usize, u8, u16),
    Take,
    Finish(usize, u8),
    Remove(usize),
    Advance(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PLANES.len(), 0..4u8).prop_map(|(plane, name)| Step::Add(plane, name)),
        2 => (0..PLANES.len(), 0..4u8, 0..3000u16).prop_map(|(plane, name, ms)| Step::AddAfter(plane, name, ms)),
        5 => Just(Step::Take),
        4 => (any::<usize>(), 0..3u8).prop_map(|(which, how)| Step::Finish(which, how)),
        1 => (0..PLANES.len()).prop_map(Step::Remove),
        2 => (0..4000u16).prop_map(Step::Advance),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens: a key is in one pair of hands at most, no more are in hand than there are workers and slow planes, and what was
    /// added after its last pass began, and whose plane was not removed since, runs.
    #[test]
    fn nothing_is_lost_and_no_key_is_in_two_hands(steps in proptest::collection::vec(step(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(history(steps));
    }
}

proptest! {
    /// However the keys are spread over planes, the n-th key of no plane comes before the m-th of another that is due too, if m < n.
    #[test]
    fn planes_take_turns_however_much_each_has(counts in proptest::collection::vec(0..8usize, 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let queue = queue(Limits::with_concurrency(100));
            for (plane, count) in counts.iter().enumerate() {
                (0..*count).for_each(|n| queue.add(key(&plane.to_string(), &n.to_string())));
            }
            let works = take_all(&queue).await;
            assert_eq!(works.len(), counts.iter().sum::<usize>());
            assert!(works.is_sorted_by_key(|work| work.key().name.parse::<usize>().unwrap()), "{works:?}");
        });
    }
}

async fn history(steps: Vec<Step>) {
    let limits = Limits::with_concurrency(3);
    let queue = queue(limits);
    let mut in_hand: Vec<Work> = Vec::new();
    let mut wanted: BTreeSet<Key> = BTreeSet::new();
    let take_one = async |in_hand: &mut Vec<Work>, wanted: &mut BTreeSet<Key>| {
        let Some(work) = take(&queue).await else { return false };
        assert!(in_hand.iter().all(|held| held.key() != work.key()), "{} is in two hands", work.key());
        wanted.remove(work.key());
        in_hand.push(work);
        assert!(in_hand.len() <= limits.concurrency * PLANES.len() + PLANES.len());
        true
    };
    for step in steps {
        match step {
            Step::Add(plane, name) => {
                let key = key(PLANES[plane], &name.to_string());
                wanted.insert(key.clone());
                queue.add(key);
            }
            Step::AddAfter(plane, name, ms) => {
                let key = key(PLANES[plane], &name.to_string());
                wanted.insert(key.clone());
                queue.add_after(key, Duration::from_millis(ms.into()));
            }
            Step::Take => {
                take_one(&mut in_hand, &mut wanted).await;
            }
            Step::Finish(which, how) if !in_hand.is_empty() => {
                let work = in_hand.remove(which % in_hand.len());
                match how {
                    0 => work.done(),
                    1 => work.again_after(Duration::from_millis(700)),
                    _ => work.failed(),
                }
            }
            Step::Finish(..) => {}
            Step::Remove(plane) => {
                let plane = PLANES[plane].into();
                wanted.retain(|key| key.plane != plane);
                queue.remove_plane(&plane);
            }
            Step::Advance(ms) => advance(Duration::from_millis(ms.into())).await,
        }
    }
    // Everything that is wanted runs, and then there is nothing left.
    in_hand.drain(..).for_each(Work::done);
    let mut runs: BTreeMap<Key, usize> = BTreeMap::new();
    while let Ok(work) = timeout(Duration::from_secs(3600), queue.next()).await {
        wanted.remove(work.key());
        *runs.entry(work.key().clone()).or_default() += 1;
        work.done();
    }
    assert!(wanted.is_empty(), "lost: {wanted:?}");
    assert!(runs.values().all(|runs| *runs <= 2), "too often: {runs:?}");
    assert!(queue.0.state.lock().is_empty(), "something is left");
}

const MOMENT: Duration = Duration::from_millis(200);

#[tokio::test(start_paused = true)]
async fn what_is_held_back_comes_again_by_itself_and_is_not_held_back_twice() {
    let queue = queue(Limits::default());
    let (key, began) = (key("a", "1"), Instant::now());
    queue.add(key.clone());
    let work = take(&queue).await.unwrap();
    assert!(queue.hold(&key, MOMENT));
    work.done();
    advance(MOMENT / 2).await;
    // Other news comes meanwhile: the moment is still the first one's.
    queue.add(key.clone());
    let work = take(&queue).await.unwrap();
    assert!(queue.hold(&key, MOMENT));
    work.done();
    let work = queue.next().await;
    assert_eq!(began.elapsed(), MOMENT);
    assert!(!queue.hold(&key, MOMENT));
    work.done();
    assert!(queue.0.state.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_holds_nothing_back_ends_the_wait() {
    let queue = queue(Limits::default());
    let key = key("a", "1");
    queue.add(key.clone());
    let work = take(&queue).await.unwrap();
    assert!(queue.hold(&key, MOMENT));
    work.done();
    queue.add(key.clone());
    take(&queue).await.unwrap().done();
    assert!(queue.0.state.lock().is_empty(), "nothing is left to come again for");
    advance(MOMENT).await;
    queue.add(key.clone());
    let work = take(&queue).await.unwrap();
    assert!(queue.hold(&key, MOMENT), "what comes next waits anew");
    work.done();
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_goes_with_its_plane() {
    let queue = queue(Limits::default());
    let key = key("a", "1");
    queue.add(key.clone());
    let work = take(&queue).await.unwrap();
    assert!(queue.hold(&key, MOMENT));
    queue.remove_plane(&key.plane);
    work.done();
    assert!(queue.0.state.lock().is_empty());
    assert!(!queue.hold(&key, MOMENT), "no pass is in hand");
}
