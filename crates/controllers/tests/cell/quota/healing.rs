//! What is lost, left over or cannot be given back: nothing runs on another's claim, nothing is leaked, and nothing that runs is stopped.

use std::sync::atomic::Ordering;
use std::time::Duration;

use compute_api::labels;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::super::faults::{Manner, Mode, Watches};
use super::super::objects::{WEB, condition, deployment, gates, parallel};
use super::super::platform::{Ledger, PROVIDER};
use super::super::world::{World, eventually};
use super::rows::{Row, fault, name_project, says, small_world};
use super::{CLAIM, FIRST};

async fn no_claims(world: &World) {
    eventually("no claims", async || {
        let left = world.claims().list(&ListParams::default()).await.unwrap().items;
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{:?}", left.iter().map(|one| one.name_any()).collect::<Vec<_>>()))
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_recreated_instance_never_runs_on_its_predecessors_claim() {
    let mut world = small_world().await;
    world.deploy(&deployment(WEB, 1)).await;
    let old = world.ready(WEB, 1).await.remove(0);
    // It goes while nobody is there to give its claim back.
    world.stop().await;
    world.platform.set(|settings| (settings.ledger, settings.provides) = (Ledger::Off, false));
    let free = json!({ "metadata": { "finalizers": null } });
    world.instances().patch(FIRST, &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    world.delete_instance(FIRST).await;
    let left = world.claims().get(CLAIM).await.unwrap();
    assert_eq!(left.labels()[labels::INSTANCE_UID], old.uid().unwrap());
    // The ledger holds on to it for a while.
    let hold = json!({ "metadata": { "finalizers": ["test.example.com/ledger"] } });
    world.claims().patch(CLAIM, &PatchParams::default(), &Patch::Merge(hold)).await.unwrap();
    world.start();
    let new = eventually("another instance", async || {
        let found = world.instances().get_opt(FIRST).await.unwrap();
        found.filter(|found| found.uid() != old.uid()).ok_or("none")
    })
    .await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let found = world.instances().get(FIRST).await.unwrap();
        assert!(gates(&found).contains(&"Quota".to_owned()), "the old claim is granted, and not its own");
        assert_eq!(condition(&found, "QuotaGranted").unwrap().reason, "PendingEvaluation");
    }
    world.claims().patch(CLAIM, &PatchParams::default(), &Patch::Merge(free_of_finalizers())).await.unwrap();
    let claim = eventually("a claim of its own", async || {
        let found = world.claims().get_opt(CLAIM).await.unwrap();
        found.filter(|found| found.uid() != left.uid()).ok_or("none")
    })
    .await;
    assert_eq!(claim.labels()[labels::INSTANCE_UID], new.uid().unwrap());
    world.platform.set(|settings| (settings.ledger, settings.provides) = (Ledger::Limit(1), true));
    world.ready(WEB, 1).await;
}

fn free_of_finalizers() -> serde_json::Value {
    json!({ "metadata": { "finalizers": null } })
}

#[tokio::test(start_paused = true)]
async fn deletion_with_the_ledger_down_stops_the_instance_and_leaks_no_claim() {
    let manners = [
        Manner::Answer(401, "x"),
        Manner::Answer(403, "x"),
        Manner::Answer(429, "x"),
        Manner::Answer(500, "x"),
        Manner::Hang,
        Manner::Lose,
        Manner::Break,
    ];
    // Whether it is the read or the delete that fails.
    let world = small_world().await;
    world.deploy(&deployment(WEB, 0)).await;
    for (method, manner) in ["GET", "DELETE"].into_iter().flat_map(|method| manners.map(|one| (method, one)))
    {
        world.scale(WEB, 1).await;
        world.ready(WEB, 1).await;
        world.project_way.set_faults(&[fault(method, CLAIM, manner)]);
        let uid = world.instances().get(FIRST).await.unwrap().uid();
        world.scale(WEB, 0).await;
        eventually("it is told", async || {
            let told = world.warned_of(&uid).await;
            if told.contains(&"QuotaReleaseFailed".to_owned()) { Ok(()) } else { Err(format!("{told:?}")) }
        })
        .await;
        if let Some(waiting) = world.instances().get_opt(FIRST).await.unwrap() {
            assert!(
                !waiting.finalizers().contains(&PROVIDER.to_owned()),
                "{method} {manner:?}: it has stopped"
            );
            assert!(waiting.finalizers().contains(&"compute.datumapis.com/instance".to_owned()));
        }
        world.project_way.mend();
        world.gone(FIRST).await;
        no_claims(&world).await;
        assert_eq!(world.metric("compute_quota_claim_orphaned_total"), Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn any_404_is_a_release() {
    for kind in ["resourceclaims", "namespaces", ""] {
        let world = small_world().await;
        world.deploy(&deployment(WEB, 1)).await;
        world.ready(WEB, 1).await;
        let gone = Manner::Answer(404, kind);
        world.project_way.set_faults(&[fault("GET", CLAIM, gone), fault("DELETE", CLAIM, gone)]);
        world.scale(WEB, 0).await;
        world.gone(FIRST).await;
        assert!(world.warnings(FIRST).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_made_without_an_answer_goes_with_its_instance() {
    let world = small_world().await;
    world.project_way.set_faults(&[fault("POST", "/resourceclaims", Manner::Lose)]);
    world.project_way.set_watches(Watches::Broken("/resourceclaims"));
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::BackendUnavailable.says()).await;
    assert!(world.claims().get_opt(CLAIM).await.unwrap().is_some(), "nobody knows of it");
    world.scale(WEB, 0).await;
    world.gone(FIRST).await;
    no_claims(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_project_that_is_not_known_does_not_hold_an_instance() {
    let mut world = small_world().await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    // A process that has not seen the labels while they were there.
    world.stop().await;
    name_project(&world, None).await;
    world.start();
    world.scale(WEB, 0).await;
    world.gone(FIRST).await;
    world.warned(FIRST, "QuotaClaimOrphaned").await;
    assert_eq!(world.metric("compute_quota_claim_orphaned_total"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_granted_claim_lost_while_nobody_waits_is_made_again_within_the_hour() {
    let mut world = small_world().await;
    world.deploy(&parallel(deployment(WEB, 3))).await;
    world.ready(WEB, 3).await;
    world.settled().await;
    for restart in [false, true] {
        if restart {
            // One that knows of no project yet.
            world.stop().await;
            world.start();
            world.settled().await;
        }
        let lost = world.claims().get(CLAIM).await.unwrap().uid();
        world.claims().delete(CLAIM, &DeleteParams::default()).await.unwrap();
        world.forget_requests();
        world.platform.slow_down();
        tokio::time::sleep(Duration::from_secs(1800)).await;
        assert_eq!(world.requests(), Vec::<String>::new(), "nobody looks all the time");
        tokio::time::sleep(Duration::from_secs(2400)).await;
        let made = world.claims().get(CLAIM).await.unwrap();
        assert_ne!(made.uid(), lost);
        let said = world.says(FIRST, "QuotaGranted", "QuotaAvailable").await;
        assert_eq!(said.status, "True");
        // One list told of all three, and nobody watches any more.
        let asked = world.project_way.take_asked();
        let lists =
            asked.iter().filter(|asked| asked.ends_with("/resourceclaims") && asked.starts_with("GET"));
        assert!(lists.count() <= 3, "{asked:?}");
        world.settled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn looking_for_claims_waits_for_a_ledger_that_is_down() {
    let world = small_world().await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    world.settled().await;
    let lost = world.claims().get(CLAIM).await.unwrap().uid();
    world.claims().delete(CLAIM, &DeleteParams::default()).await.unwrap();
    world.project_way.set(Mode::Failing);
    world.platform.slow_down();
    tokio::time::sleep(Duration::from_secs(5000)).await;
    assert!(world.warnings(FIRST).await.is_empty(), "it runs, and nothing is known to be wrong");
    world.project_way.mend();
    eventually("it is made again", async || {
        let found = world.claims().get_opt(CLAIM).await.unwrap();
        found.filter(|found| found.uid() != lost).ok_or("none")
    })
    .await;
    world.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_is_made_once_for_a_project_and_goes_with_its_last_instance() {
    let world = small_world().await;
    world.deploy(&parallel(deployment(WEB, 12))).await;
    world.deploy(&parallel(deployment("api-main-dfw", 3))).await;
    eventually("all are ready", async || {
        let ready =
            world.all_instances().await.iter().filter(|one| super::super::objects::is_ready(one)).count();
        if ready == 15 { Ok(()) } else { Err(ready.to_string()) }
    })
    .await;
    assert_eq!(world.connects.load(Ordering::SeqCst), 1);
    super::remove(&world, WEB).await;
    world.scale("api-main-dfw", 1).await;
    world.scale("api-main-dfw", 2).await;
    eventually("two are left", async || {
        let left = world.all_instances().await.len();
        if left == 2 { Ok(()) } else { Err(left.to_string()) }
    })
    .await;
    assert_eq!(world.connects.load(Ordering::SeqCst), 1);
    super::remove(&world, "api-main-dfw").await;
    no_claims(&world).await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    assert_eq!(world.connects.load(Ordering::SeqCst), 2);
}

/// Each way to fail is told, and each only once.
#[tokio::test(start_paused = true)]
async fn failures_that_follow_each_other_are_all_told() {
    let world = small_world().await;
    let rows = [Row::BackendUnavailable, Row::Misconfigured, Row::ProjectNotFound, Row::NamespaceNotFound];
    rows[0].enter(&world).await;
    world.deploy(&deployment(WEB, 1)).await;
    for row in rows {
        row.enter(&world).await;
        says(&world, FIRST, row.says()).await;
        world.warned(FIRST, row.says().1).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    let told: Vec<_> = world.warnings(FIRST).await.into_iter().map(|(reason, _)| reason).collect();
    for row in rows {
        assert_eq!(told.iter().filter(|reason| *reason == row.says().1).count(), 1, "{told:?}");
    }
}

/// A conflict is not an error: the pass comes again at the pace of the instance's age.
#[tokio::test(start_paused = true)]
async fn a_write_that_loses_a_race_is_tried_again_at_the_same_pace() {
    let world = small_world().await;
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::PendingEvaluation.says()).await;
    // The gate's patch is refused as if somebody had been faster; the instance does not change, and no watch tells of it.
    let lose = Manner::Answer(409, "instances");
    let path: &'static str = format!("/instances/{FIRST}").leak();
    world.cell_way.set_faults(&[fault("PATCH", path, lose)]);
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    let said = world.says(FIRST, "QuotaGranted", "QuotaAvailable").await;
    assert_eq!(said.status, "True");
    world.cell_way.take_asked();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let tries = world.cell_way.count("PATCH", path);
    assert!((15..=25).contains(&tries), "{tries}");
    assert_eq!(world.runtime.metrics().reconciles("instance", "error"), 0);
    world.cell_way.mend();
    world.ready(WEB, 1).await;
}
