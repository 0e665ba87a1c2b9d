//! When is asked again: by the age of an instance, after a denial, and one at a time. Time is counted by the requests that are made.

use std::time::Duration;

use compute_api::labels;
use kube::api::ListParams;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::super::faults::{Mode, Watches};
use super::super::objects::{WEB, deployment, gates, parallel};
use super::super::platform::Ledger;
use super::super::world::{CLUSTER, World, eventually, namespace};
use super::rows::{Row, says, small_world};
use super::{CLAIM, FIRST};

/// Seconds.
const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Counts requests in each of the four tiers of an instance's age.
async fn in_tiers(world: &World, method: &str, path: &str) -> [usize; 4] {
    world.platform.slow_down();
    let mut counts = [0; 4];
    // A little into the age of the instance already; the windows are inside of the tiers.
    for (window, count) in [s(50), s(240), s(300), s(1200)].into_iter().zip(&mut counts) {
        world.project_way.take_asked();
        sleep(window).await;
        *count = world.project_way.count(method, path);
    }
    world.platform.speed_up();
    counts
}

fn assert_tiers(counts: [usize; 4]) {
    // Every second; every 15 seconds; every minute; every five minutes.
    for (count, (least, most)) in counts.into_iter().zip([(45, 56), (15, 28), (4, 7), (3, 5)]) {
        assert!((least..=most).contains(&count), "{counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_is_down_is_asked_by_the_age_of_the_instance() {
    let world = small_world().await;
    world.project_way.set(Mode::Failing);
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::BackendUnavailable.says()).await;
    assert_tiers(in_tiers(&world, "POST", "/resourceclaims").await);
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_the_claim_is_read_by_the_age_of_the_instance() {
    let world = small_world().await;
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    world.project_way.set_watches(Watches::Broken("/resourceclaims"));
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::PendingEvaluation.says()).await;
    let asked = in_tiers(&world, "GET", CLAIM).await;
    assert_tiers(asked);
    // Each re-check is one request, also for a process that has not made the claim itself.
    let mut world = world;
    world.stop().await;
    world.start();
    sleep(s(30)).await;
    world.project_way.take_asked();
    world.platform.slow_down();
    sleep(s(1500)).await;
    let again = world.project_way.take_asked();
    let posts = again.iter().filter(|asked| asked.starts_with("POST")).count();
    assert_eq!(posts, 0, "{again:?}");
    // And the last of them finds the grant.
    world.platform.speed_up();
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    world.ready(WEB, 1).await;
}

#[tokio::test(start_paused = true)]
async fn with_a_watch_nothing_is_asked_at_first_and_little_later() {
    let world = small_world().await;
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::PendingEvaluation.says()).await;
    sleep(s(5)).await;
    let [first, second, third, last] = in_tiers(&world, "GET", CLAIM).await;
    assert_eq!(first, 0, "the watch tells");
    for (count, (least, most)) in [second, third, last].into_iter().zip([(14, 20), (4, 6), (3, 5)]) {
        assert!((least..=most).contains(&count), "{second} {third} {last}");
    }
    // What the watch tells counts at once, whatever the age.
    let before = Instant::now();
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    world.ready(WEB, 1).await;
    assert!(before.elapsed() < s(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lost_grant_heals_by_a_re_check() {
    for watches in [Watches::Losing("/resourceclaims"), Watches::Broken("/resourceclaims")] {
        let world = small_world().await;
        world.platform.set(|settings| settings.ledger = Ledger::Off);
        world.deploy(&deployment(WEB, 1)).await;
        says(&world, FIRST, Row::PendingEvaluation.says()).await;
        sleep(s(3)).await;
        world.project_way.set_watches(watches);
        world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
        eventually("it is granted", async || {
            let claim = world.claims().get(CLAIM).await.unwrap();
            let status = claim.status.unwrap_or_default();
            if status.observed_generation.is_some() { Ok(()) } else { Err("not yet") }
        })
        .await;
        sleep(s(2)).await;
        if matches!(watches, Watches::Losing(_)) {
            let held = gates(&world.instances().get(FIRST).await.unwrap());
            assert!(held.contains(&"Quota".to_owned()), "the grant was not heard");
            world.project_way.set_watches(Watches::Good);
        }
        let before = Instant::now();
        world.ready(WEB, 1).await;
        assert!(before.elapsed() < s(100), "{:?}", before.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_denied_claim_is_made_again_after_15_seconds_doubling_to_300() {
    let world = small_world().await;
    Row::Exceeded.enter(&world).await;
    world.project_way.take_asked();
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::Exceeded.says()).await;
    world.platform.set(|settings| settings.every = s(1));
    sleep(s(2400)).await;
    let asked = world.project_way.take_asked_at();
    let posts: Vec<_> =
        asked.iter().filter(|(_, asked)| asked.starts_with("POST")).map(|(at, _)| *at).collect();
    let deletes = asked.iter().filter(|(_, asked)| asked.starts_with("DELETE")).count();
    assert_eq!(deletes, posts.len(), "each was deleted in the pass that saw the denial");
    let pauses: Vec<_> = posts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    assert!(pauses.len() >= 9, "{pauses:?}");
    for (pause, doubled) in pauses.iter().zip(0..) {
        let wanted = f64::min(15.0 * f64::from(1 << doubled.min(10)), 300.0);
        // An answer takes a moment.
        assert!(*pause >= wanted * 0.8 && *pause <= wanted * 1.2 + 2.0, "{pauses:?}");
    }
    assert!(pauses.iter().any(|pause| (pause / 15.0).fract() > 0.01), "they are spread: {pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn the_denied_claim_one_at_a_time() {
    let world = small_world().await;
    Row::Exceeded.enter(&world).await;
    world.deploy(&parallel(deployment(WEB, 6))).await;
    for n in 0..6 {
        says(&world, &format!("{WEB}-{n}"), Row::Exceeded.says()).await;
    }
    // Nobody answers: the first whose pause is over keeps its turn, and the others wait for it.
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    world.project_way.take_asked();
    world.platform.slow_down();
    sleep(s(300)).await;
    world.platform.speed_up();
    assert_eq!(world.project_way.count("POST", "/resourceclaims"), 1);
    let claims = world.claims().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(claims.len(), 1, "its turn lasts until it is answered");
    // Each answer is followed by the next one's turn.
    world.platform.set(|settings| settings.ledger = Ledger::Limit(6));
    world.ready(WEB, 6).await;
}

/// Whoever made it, a claim of this cell that is granted and goes makes room.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_seen_ends_the_pause() {
    let world = small_world().await;
    let labels = json!({
        (labels::SOURCE_CLUSTER): CLUSTER, (labels::INSTANCE_UID): "another", (labels::INSTANCE_NAMESPACE): namespace(),
    });
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    world.platform.foreign_claim("instance-other-main-dfw-0", labels).await;
    eventually("it is granted", async || {
        let claim = world.claims().get("instance-other-main-dfw-0").await.unwrap();
        if claim.status.unwrap_or_default().observed_generation.is_some() { Ok(()) } else { Err("not yet") }
    })
    .await;
    world.platform.bucket(compute_api::quota::RESOURCE_INSTANCES, 1, 0).await;
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::Exceeded.says()).await;
    // Denied often enough for the next pause to be a long one.
    world.platform.set(|settings| settings.every = s(1));
    sleep(s(400)).await;
    world.platform.speed_up();
    let before = Instant::now();
    world.claims().delete("instance-other-main-dfw-0", &Default::default()).await.unwrap();
    world.ready(WEB, 1).await;
    assert!(before.elapsed() < s(10), "{:?}", before.elapsed());
}
