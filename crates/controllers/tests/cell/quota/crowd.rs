//! More instances than there is room for, with the platform's own ledger: exactly as many as there is room for are granted, whatever fails,
//! and the others follow one by one.

use std::collections::BTreeSet;
use std::time::Duration;

use compute_api::compute::Instance;
use futures::future::join_all;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::super::faults::{Manner, Watches};
use super::super::ledger::{Gates, Inspector};
use super::super::objects::{condition, deployment, is_ready};
use super::super::world::{Shape, World, eventually};
use super::rows::fault;

const ROOM: i64 = 20;
const CROWD: usize = 50;

fn name(n: usize) -> String {
    format!("w{n:02}-main-dfw")
}

fn says(instance: &Instance) -> &str {
    condition(instance, "QuotaGranted").map_or("", |said| said.reason.as_str())
}

/// Waits until so many are ready and the others are denied; names of the ready, and of the denied in the order of their turns.
async fn sorted(world: &World, ready: usize, denied: usize) -> (BTreeSet<String>, Vec<String>) {
    eventually(&format!("{ready} ready and {denied} denied"), async || {
        let all = world.all_instances().await;
        let is_denied = |one: &&Instance| says(one) == "QuotaExceeded";
        let mut waiting: Vec<_> = all.iter().filter(is_denied).collect();
        waiting.sort_by_key(|one| (one.creation_timestamp(), one.name_any()));
        let waiting: Vec<_> = waiting.iter().map(|one| one.name_any()).collect();
        let running: BTreeSet<_> = all.iter().filter(|one| is_ready(one)).map(|one| one.name_any()).collect();
        match (running.len(), waiting.len()) == (ready, denied) && all.len() == ready + denied {
            true => Ok((running, waiting)),
            false => Err(format!("{} ready, {} denied, of {}", running.len(), waiting.len(), all.len())),
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn fifty_instances_at_once_with_room_for_twenty() {
    let world = World::with(Shape { networking: false, ..Shape::default() }).await;
    let _ledger = world.serve_ledger(ROOM).await;
    let (inspector, gates) = (Inspector::watch(&world, ROOM).await, Gates::watch(&world).await);
    let wanted: Vec<_> = (0..CROWD).map(|n| deployment(&name(n), 1)).collect();
    join_all(wanted.iter().map(|wanted| world.deploy(wanted))).await;
    let (mut running, mut waiting) = sorted(&world, 20, 30).await;
    for denied in &waiting {
        let said = world.says(denied, "QuotaGranted", "QuotaExceeded").await;
        assert_eq!(said.status, "False");
        let missing = "1 instance asked, 0 instances of 20 instances left";
        assert!(said.message.contains(missing), "{}", said.message);
        world.says(denied, "Ready", "QuotaExceeded").await;
    }
    // One goes, and the oldest of those that wait has its room at once: no pause is waited for.
    for _ in 0..6 {
        let gone = running.pop_first().unwrap();
        let before = tokio::time::Instant::now();
        super::remove(&world, gone.strip_suffix("-0").unwrap()).await;
        let (now, left) = sorted(&world, 20, waiting.len() - 1).await;
        assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
        let started: Vec<_> = now.difference(&running).cloned().collect();
        assert_eq!(started, [waiting.remove(0)]);
        (running, waiting) = (now, left);
    }
    // All of them go, and all that wait follow.
    for gone in &running {
        super::remove(&world, gone.strip_suffix("-0").unwrap()).await;
    }
    let (last, _) = sorted(&world, 20, 4).await;
    assert!(running.is_disjoint(&last));
    assert_eq!(inspector.assert_never_too_much(), ROOM);
    gates.assert_never_opened_without_a_grant();
    // Everything goes, and nothing is left.
    for n in 0..CROWD {
        super::remove(&world, &name(n)).await;
    }
    eventually("no claims", async || {
        let left = world.claims().list(&ListParams::default()).await.unwrap().items.len();
        if left == 0 { Ok(()) } else { Err(left.to_string()) }
    })
    .await;
}

/// Answers get lost after they took effect, in both directions, watches break and lose what they tell: it comes to the same.
#[tokio::test(start_paused = true)]
async fn a_crowd_with_everything_failing_now_and_then() {
    let world = World::with(Shape { networking: false, ..Shape::default() }).await;
    let ledger = world.serve_ledger(8).await;
    let (inspector, gates) = (Inspector::watch(&world, 8).await, Gates::watch(&world).await);
    let wanted: Vec<_> = (0..20).map(|n| deployment(&name(n), 1)).collect();
    let cell = &world.project_way;
    cell.set_faults(&[fault("POST", "/resourceclaims", Manner::Break)]);
    ledger.way.set_faults(&[fault("PATCH", "/status", Manner::Break)]);
    join_all(wanted.iter().map(|wanted| world.deploy(wanted))).await;
    let pause = || tokio::time::sleep(Duration::from_secs(7));
    for round in 0..4 {
        pause().await;
        cell.set_faults(&[
            fault("DELETE", "", [Manner::Break, Manner::Lose, Manner::Hang][round % 3]),
            fault("POST", "/resourceclaims", [Manner::Lose, Manner::Answer(503, "x")][round % 2]),
        ]);
        cell.set_watches(Watches::Losing("/resourceclaims"));
        ledger.way.set_watches(Watches::Broken("/resourceclaims"));
        ledger.core_way.set_watches(Watches::Broken("/resourceregistrations"));
        ledger.way.set_faults(&[fault("PATCH", "/status", Manner::Lose)]);
        pause().await;
        cell.set_watches(Watches::Broken("/resourceclaims"));
        ledger.way.mend();
        ledger.core_way.mend();
        pause().await;
        cell.mend();
    }
    let (running, _) = sorted(&world, 8, 12).await;
    for gone in running.iter().take(4) {
        super::remove(&world, gone.strip_suffix("-0").unwrap()).await;
    }
    sorted(&world, 8, 8).await;
    assert_eq!(inspector.assert_never_too_much(), 8);
    gates.assert_never_opened_without_a_grant();
    let claims = world.claims().list(&ListParams::default()).await.unwrap().items;
    let claimed: BTreeSet<_> = claims.iter().map(|claim| claim.name_any()).collect();
    let ready = world.all_instances().await.into_iter().filter(is_ready);
    let held: BTreeSet<_> = ready.map(|one| format!("instance-{}", one.name_any())).collect();
    assert!(claimed.is_superset(&held) && claimed.len() <= held.len() + 1, "{claimed:?}");
}
