//! What becomes of the whole when one of its tasks ends, and how a stop reaches them all.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const GRACE: Duration = Duration::from_secs(8);

async fn until_stopped(stop: CancellationToken) -> Result<(), Infallible> {
    stop.cancelled().await;
    Ok(())
}

#[tokio::test]
async fn a_stop_reaches_all_and_waits_for_what_is_in_hand() {
    let done = Arc::new(AtomicUsize::new(0));
    let mut tasks = Tasks::new();
    for at in 0..3 {
        let done = done.clone();
        tasks.spawn(format!("task {at}"), |stop| async move {
            stop.cancelled().await;
            tokio::task::yield_now().await;
            done.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(())
        });
    }
    assert_eq!(tasks.run(async {}, GRACE).await, Ok(()));
    assert_eq!(done.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_cancelled_token_stops_too() {
    let mut tasks = Tasks::new();
    tasks.spawn("task", until_stopped);
    tasks.stop_token().cancel();
    assert_eq!(tasks.run(pending(), GRACE).await, Ok(()));
}

#[tokio::test]
async fn one_that_returns_ends_the_others() {
    let mut tasks = Tasks::new();
    tasks.spawn("watch", until_stopped);
    tasks.spawn("queue", |_| async { Ok::<_, Infallible>(()) });
    let ended = tasks.run(pending(), GRACE).await.unwrap_err();
    assert_eq!(ended, Ended::Early { task: "queue".into() });
    assert_eq!(ended.to_string(), "queue ended early");
}

#[tokio::test]
async fn an_error_is_told_with_its_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot serve")]
    struct Serve(#[source] io::Error);

    let mut tasks = Tasks::new();
    tasks.spawn("metrics", |_| async { Err(Serve(io::Error::other("port in use"))) });
    let ended = tasks.run(pending(), GRACE).await.unwrap_err();
    assert_eq!(ended.to_string(), "metrics failed: cannot serve: port in use");
}

#[tokio::test]
async fn a_panic_is_told_with_its_text() {
    let mut tasks = Tasks::new();
    tasks.spawn("planner", |_| async {
        if true { panic!("index {} out of range", 3) } else { Ok::<_, Infallible>(()) }
    });
    let ended = tasks.run(pending(), GRACE).await.unwrap_err();
    assert_eq!(ended.to_string(), "planner panicked: index 3 out of range");
}

#[tokio::test]
async fn a_failure_while_stopping_is_told_unless_something_went_wrong_before() {
    let fails_late = |stop: CancellationToken| async move {
        stop.cancelled().await;
        Err(io::Error::other("lease not given up"))
    };
    let mut tasks = Tasks::new();
    tasks.spawn("leader", fails_late);
    let ended = tasks.run(async {}, GRACE).await.unwrap_err();
    assert_eq!(ended.to_string(), "leader failed: lease not given up");

    let mut tasks = Tasks::new();
    tasks.spawn("leader", fails_late);
    tasks.spawn("queue", |_| async { Ok::<_, Infallible>(()) });
    assert_eq!(tasks.run(pending(), GRACE).await, Err(Ended::Early { task: "queue".into() }));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stop_is_cut_off_and_named() {
    let mut tasks = Tasks::new();
    tasks.spawn("webhook", |_| pending::<Result<(), Infallible>>());
    tasks.spawn("events", |_| pending::<Result<(), Infallible>>());
    tasks.spawn("queue", until_stopped);
    let started = Instant::now();
    let ended = tasks.run(async {}, GRACE).await.unwrap_err();
    assert_eq!(started.elapsed(), GRACE);
    assert_eq!(ended.to_string(), "did not stop in time: events, webhook");
}

#[tokio::test]
async fn without_tasks_it_runs_until_the_stop() {
    let tasks = Tasks::new();
    let stop = tasks.stop_token();
    let run = tokio::spawn(tasks.run(pending(), GRACE));
    tokio::task::yield_now().await;
    assert!(!run.is_finished());
    stop.cancel();
    assert_eq!(run.await.unwrap(), Ok(()));
}
