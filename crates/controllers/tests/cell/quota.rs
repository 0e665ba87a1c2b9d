//! Claims, answers, denials, outages. Each row of the table of answers is in `rows`, and what follows what in `transitions`; `pace` counts time,
//! `crowd` is many at once, `healing` what is lost or left over.

mod crowd;
mod healing;
mod pace;
mod rows;
mod transitions;

use std::time::Duration;

use compute_api::labels;
use compute_api::quota::{RESOURCE_INSTANCES, RESOURCE_MEMORY, RESOURCE_VCPUS};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::faults::{Mode, Watches};
use super::objects::{WEB, condition, deployment, gates, is_ready, parallel};
use super::platform::Ledger;
use super::world::{CLUSTER, World, eventually, namespace, namespace_uid};

const FIRST: &str = "web-main-dfw-0";
const CLAIM: &str = "instance-web-main-dfw-0";

/// Takes a deployment out of the cell and off the hub, if it is there, and waits until it is gone.
async fn remove(world: &World, name: &str) {
    for api in [world.deployments(), world.hub_deployments()] {
        let _ = api.delete(name, &DeleteParams::default()).await;
    }
    eventually(&format!("{name} goes"), async || {
        world.deployments().get_opt(name).await.unwrap().map_or(Ok(()), |_| Err("it is there"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_says_who_asks_for_what() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 1)).await;
    let instance = world.ready(WEB, 1).await.remove(0);
    let granted = condition(&instance, "QuotaGranted").unwrap();
    assert_eq!((granted.status.as_str(), granted.reason.as_str()), ("True", "QuotaAvailable"));
    let claim = world.claims().get(CLAIM).await.unwrap();
    assert_eq!(claim.labels()[labels::INSTANCE_UID], instance.uid().unwrap());
    assert_eq!(claim.labels()[labels::INSTANCE_NAMESPACE], namespace());
    assert_eq!(claim.labels()[labels::SOURCE_CLUSTER], CLUSTER);
    let owner = &claim.owner_references()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("Namespace", &*namespace_uid()));
    assert_eq!(claim.spec.consumer_ref.as_ref().unwrap().name, "shop");
    let asked: Vec<_> =
        claim.spec.requests.iter().map(|one| (one.resource_type.as_str(), one.amount)).collect();
    assert_eq!(asked, [(RESOURCE_INSTANCES, 1), (RESOURCE_VCPUS, 1000), (RESOURCE_MEMORY, 2048)]);
    assert_eq!(world.metric("compute_quota_enforcement_enabled"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_denied_claim_goes_and_another_follows_a_release() {
    let world = World::new().await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(2));
    world.platform.bucket(RESOURCE_INSTANCES, 2, 0).await;
    world.deploy(&parallel(deployment(WEB, 4))).await;
    let denied = eventually("two denied", async || {
        let all = world.all_instances().await;
        let denied: Vec<_> = all
            .iter()
            .filter(|one| condition(one, "QuotaGranted").is_some_and(|said| said.reason == "QuotaExceeded"))
            .map(|one| one.name_any())
            .collect();
        let ready = all.iter().filter(|one| is_ready(one)).count();
        if denied.len() == 2 && ready == 2 { Ok(denied) } else { Err(format!("{denied:?}, {ready} ready")) }
    })
    .await;
    let said = world.says(&denied[0], "QuotaGranted", "QuotaExceeded").await;
    assert!(said.message.contains("1 instance asked, 0 instances of 2 instances left"), "{}", said.message);
    world.says(&denied[0], "Ready", "QuotaExceeded").await;
    world.warned(&denied[0], "QuotaExceeded").await;
    // The ledger keeps no denied claims.
    eventually("only the granted claims", async || {
        let count = world.claims().list(&ListParams::default()).await.unwrap().items.len();
        if count == 2 { Ok(()) } else { Err(count.to_string()) }
    })
    .await;
    assert!(world.metric("compute_quota_eval_failures_total{reason=\"QuotaExceeded\"}") >= Some(2));

    // One that runs goes, and whoever waits longest gets what it had; the pause after a denial is not waited for.
    world.scale(WEB, 3).await;
    let before = tokio::time::Instant::now();
    eventually("two of three are ready", async || {
        let all = world.all_instances().await;
        let ready = all.iter().filter(|one| is_ready(one)).count();
        if all.len() == 3 && ready == 2 { Ok(()) } else { Err(format!("{ready} of {}", all.len())) }
    })
    .await;
    let running = world.all_instances().await.into_iter().find(is_ready).unwrap().name_any();
    world.delete_instance(&running).await;
    eventually("another is ready", async || {
        let all = world.all_instances().await;
        let ready: Vec<_> = all.iter().filter(|one| is_ready(one)).map(|one| one.name_any()).collect();
        if ready.len() == 2 { Ok(()) } else { Err(format!("{ready:?}")) }
    })
    .await;
    assert!(before.elapsed() < Duration::from_secs(15), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_says_nothing_is_told_apart() {
    let world = World::new().await;
    let api: kube::Api<compute_api::k8s::Namespace> = kube::Api::all(world.cell.clone());
    let bare = json!({ "metadata": { "labels": { (labels::UPSTREAM_CLUSTER_NAME): null } } });
    api.patch(&namespace(), &PatchParams::default(), &Patch::Merge(bare)).await.unwrap();
    world.deploy(&deployment(WEB, 1)).await;
    world.says(FIRST, "QuotaGranted", "QuotaProjectIDUnresolvable").await;
    // That does not keep it from being deleted.
    world.scale(WEB, 0).await;
    world.gone(FIRST).await;
    world.warned(FIRST, "QuotaClaimOrphaned").await;
    assert_eq!(world.metric("compute_quota_claim_orphaned_total"), Some(1));
    let named = json!({ "metadata": { "labels": { (labels::UPSTREAM_CLUSTER_NAME): "cluster-shop" } } });
    api.patch(&namespace(), &PatchParams::default(), &Patch::Merge(named)).await.unwrap();
    world.scale(WEB, 1).await;
    world.ready(WEB, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_predecessor_is_deleted_and_awaited() {
    let world = World::new().await;
    let old = world
        .platform
        .foreign_claim(CLAIM, json!({ (labels::SOURCE_CLUSTER): CLUSTER, (labels::INSTANCE_UID): "another" }))
        .await;
    let hold = json!({ "metadata": { "finalizers": ["test.example.com/ledger"] } });
    world.claims().patch(CLAIM, &PatchParams::default(), &Patch::Merge(hold)).await.unwrap();
    world.deploy(&deployment(WEB, 1)).await;
    let leaving = eventually("the old claim leaves", async || {
        let found = world.claims().get(CLAIM).await.unwrap();
        if found.metadata.deletion_timestamp.is_some() { Ok(found) } else { Err("it stays") }
    })
    .await;
    assert_eq!(leaving.uid(), old.uid());
    world.says(FIRST, "QuotaGranted", "PendingEvaluation").await;
    assert!(gates(&world.instances().get(FIRST).await.unwrap()).contains(&"Quota".to_owned()));
    let free = json!({ "metadata": { "finalizers": null } });
    world.claims().patch(CLAIM, &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    world.ready(WEB, 1).await;
    assert_ne!(world.claims().get(CLAIM).await.unwrap().uid(), old.uid());
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_another_cell_is_never_touched() {
    let world = World::new().await;
    let other = world
        .platform
        .foreign_claim(
            CLAIM,
            json!({ (labels::SOURCE_CLUSTER): "cell-lhr", (labels::INSTANCE_UID): "another" }),
        )
        .await;
    world.deploy(&deployment(WEB, 1)).await;
    world.warned(FIRST, "QuotaClaimHeldByOtherCell").await;
    world.scale(WEB, 0).await;
    world.gone(FIRST).await;
    assert_eq!(world.claims().get(CLAIM).await.unwrap().uid(), other.uid());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_does_not_say_who_made_it_is_never_touched() {
    let world = World::new().await;
    let unlabelled = world.platform.foreign_claim(CLAIM, json!({})).await;
    world.deploy(&deployment(WEB, 1)).await;
    world.warned(FIRST, "QuotaClaimHeldByOtherCell").await;
    world.scale(WEB, 0).await;
    world.gone(FIRST).await;
    assert_eq!(world.claims().get(CLAIM).await.unwrap().uid(), unlabelled.uid());
}

#[tokio::test(start_paused = true)]
async fn a_claim_for_less_than_the_instance_needs_opens_no_gate() {
    let world = World::new().await;
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    world.project_way.set(Mode::Failing);
    world.deploy(&deployment(WEB, 1)).await;
    world.says(FIRST, "QuotaGranted", "QuotaBackendUnavailable").await;
    let uid = world.instances().get(FIRST).await.unwrap().uid().unwrap();
    // It asks for an instance, and for nothing that runs it.
    let labels = json!({
        (labels::SOURCE_CLUSTER): CLUSTER, (labels::INSTANCE_UID): uid, (labels::INSTANCE_NAMESPACE): namespace(),
    });
    let cheap = world.platform.foreign_claim(CLAIM, labels).await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1000));
    eventually("it is granted", async || {
        let found = world.claims().get(CLAIM).await.unwrap().status.unwrap_or_default();
        if found.observed_generation.is_some() { Ok(()) } else { Err("not yet") }
    })
    .await;
    world.project_way.set(Mode::Good);
    world.warned(FIRST, "QuotaMisconfigured").await;
    world.ready(WEB, 1).await;
    let claim = world.claims().get(CLAIM).await.unwrap();
    assert_ne!(claim.uid(), cheap.uid());
    assert_eq!(claim.spec.requests.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_successor_is_not_taken_for_a_leftover() {
    let world = World::new().await;
    world.project_way.set(Mode::Failing);
    world.deploy(&deployment(WEB, 1)).await;
    world.says(FIRST, "QuotaGranted", "QuotaBackendUnavailable").await;
    // What the controllers know of the instance stays as it is, while the instance goes and another comes.
    world.cell_way.set_watches(Watches::Silent("/instances"));
    let mut instance = world.instances().get(FIRST).await.unwrap();
    let free = json!({ "metadata": { "finalizers": null } });
    world.instances().patch(FIRST, &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    world.delete_instance(FIRST).await;
    world.gone(FIRST).await;
    (instance.metadata.uid, instance.metadata.resource_version) = (None, None);
    let successor = world.instances().create(&PostParams::default(), &instance).await.unwrap();
    let labels = json!({
        (labels::SOURCE_CLUSTER): CLUSTER, (labels::INSTANCE_UID): successor.uid().unwrap(),
        (labels::INSTANCE_NAMESPACE): namespace(),
    });
    let claim = world.platform.foreign_claim(CLAIM, labels).await;
    world.project_way.set(Mode::Good);
    eventually("the claim is looked at", async || {
        let asked = world.project_way.take_asked();
        if asked.iter().any(|asked| asked.starts_with("GET") && asked.ends_with(CLAIM)) {
            Ok(())
        } else {
            Err("no")
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.claims().get(CLAIM).await.unwrap().uid(), claim.uid());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_held_on_its_way_out_does_not_keep_the_denied_waiting() {
    let world = World::new().await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(0));
    world.deploy(&parallel(deployment(WEB, 2))).await;
    for name in [FIRST, "web-main-dfw-1"] {
        world.says(name, "QuotaGranted", "QuotaExceeded").await;
    }
    // The oldest is deleted, and somebody does not let it go.
    let hold =
        json!({ "metadata": { "finalizers": ["compute.datumapis.com/instance", "test.example.com/stuck"] } });
    world.instances().patch(FIRST, &PatchParams::default(), &Patch::Merge(hold)).await.unwrap();
    world.delete_instance(FIRST).await;
    // Long enough for its own pause to be over.
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    world.says("web-main-dfw-1", "QuotaGranted", "QuotaAvailable").await;
}

#[tokio::test(start_paused = true)]
async fn deletion_releases_the_claim_and_waits_for_the_ledger() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    world.project_way.set(Mode::Failing);
    world.scale(WEB, 0).await;
    world.warned(FIRST, "QuotaReleaseFailed").await;
    let waiting = world.instances().get(FIRST).await.unwrap();
    assert_eq!(waiting.finalizers(), ["compute.datumapis.com/instance"], "it has stopped");
    world.project_way.set(Mode::Good);
    world.gone(FIRST).await;
    assert!(world.claims().get_opt(CLAIM).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_granted_claim_that_disappears_is_made_again() {
    let world = World::new().await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    world.deploy(&parallel(deployment(WEB, 2))).await;
    // One waits, so that claims are watched.
    let held = eventually("one is ready and one denied", async || {
        let all = world.all_instances().await;
        let held = all.iter().find(|one| is_ready(one)).map(|one| one.name_any()).ok_or("none ready")?;
        let denied = all
            .iter()
            .any(|one| condition(one, "QuotaGranted").is_some_and(|said| said.reason == "QuotaExceeded"));
        if denied { Ok(held) } else { Err("none denied") }
    })
    .await;
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    let name = format!("instance-{held}");
    let lost = world.claims().get(&name).await.unwrap().uid();
    world.claims().delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("another claim", async || {
        let found = world.claims().get_opt(&name).await.unwrap();
        found.filter(|found| found.uid() != lost).ok_or("none")
    })
    .await;
    assert_eq!(
        condition(&world.instances().get(&held).await.unwrap(), "QuotaGranted").unwrap().reason,
        "QuotaAvailable"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_holds_nothing_in_a_namespace_that_goes() {
    let world = World::new().await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    world.project_way.set(Mode::Answering(403));
    world.scale(WEB, 0).await;
    world.warned(FIRST, "QuotaReleaseFailed").await;
    assert!(world.instances().get_opt(FIRST).await.unwrap().is_some(), "a refusal alone lets nothing go");
    let api: kube::Api<compute_api::k8s::Namespace> = kube::Api::all(world.cell.clone());
    api.delete(&namespace(), &DeleteParams::default()).await.unwrap();
    eventually("the namespace goes", async || {
        api.get_opt(&namespace()).await.unwrap().map_or(Ok(()), |_| Err("it is there"))
    })
    .await;
    assert_eq!(world.metric("compute_quota_claim_orphaned_total"), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_disappeared_while_nobody_looked_is_made_again_and_answered() {
    let mut world = World::new().await;
    world.platform.set(|settings| settings.ledger = Ledger::Limit(1));
    world.deploy(&parallel(deployment(WEB, 1))).await;
    world.ready(WEB, 1).await;
    world.stop().await;
    world.platform.set(|settings| settings.ledger = Ledger::Off);
    let lost = world.claims().get(CLAIM).await.unwrap().uid();
    world.claims().delete(CLAIM, &DeleteParams::default()).await.unwrap();
    world.start();
    world.settled().await;
    // Claims are watched as soon as another one waits.
    world.scale(WEB, 2).await;
    let again = eventually("another claim", async || {
        let found = world.claims().get_opt(CLAIM).await.unwrap();
        found.filter(|found| found.uid() != lost).ok_or("none")
    })
    .await;
    // A denial of it is read: the claim goes, and is made again. The instance runs on.
    world.platform.set(|settings| settings.ledger = Ledger::Limit(0));
    eventually("the denied claim goes", async || {
        let found = world.claims().get_opt(CLAIM).await.unwrap();
        if found.is_some_and(|found| found.uid() == again.uid()) { Err("it is there") } else { Ok(()) }
    })
    .await;
    world.warned(FIRST, "QuotaExceeded").await;
    let said = world.says(FIRST, "QuotaGranted", "QuotaAvailable").await;
    assert_eq!(said.status, "True");
    world.platform.set(|settings| settings.ledger = Ledger::Limit(2));
    world.ready(WEB, 2).await;
    eventually("its claim is granted", async || {
        let found = world.claims().get_opt(CLAIM).await.unwrap().and_then(|found| found.status);
        let said = found.and_then(|status| status.conditions.into_iter().find(|one| one.type_ == "Granted"));
        said.filter(|said| said.status == "True").ok_or("not yet")
    })
    .await;
    world.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_hangs_does_not_delay_what_is_said_of_those_that_run() {
    let world = World::new().await;
    world.deploy(&parallel(deployment(WEB, 1))).await;
    world.ready(WEB, 1).await;
    world.project_way.set(Mode::Hanging);
    world.scale(WEB, 20).await;
    world.says("web-main-dfw-19", "QuotaGranted", "QuotaBackendUnavailable").await;
    world.platform.set(|settings| settings.provides = false);
    for round in 0..3 {
        let (status, reason) =
            if round % 2 == 0 { ("False", "InstanceCrashing") } else { ("True", "InstanceAvailable") };
        let said = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
            "status": { "conditions": [{
                "type": "Available", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            }]},
        });
        let before = tokio::time::Instant::now();
        let params = PatchParams::apply("test-provider").force();
        world.instances().patch_status(FIRST, &params, &Patch::Apply(said)).await.unwrap();
        eventually("it is said", async || {
            let found = world.instances().get(FIRST).await.unwrap();
            let ready = condition(&found, "Ready").unwrap().clone();
            if (ready.status == "True") == (status == "True") { Ok(()) } else { Err(ready.reason) }
        })
        .await;
        assert!(before.elapsed() < Duration::from_secs(8), "{:?}", before.elapsed());
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    world.project_way.set(Mode::Good);
    world.platform.set(|settings| settings.provides = true);
    eventually("all have their quota", async || {
        let all = world.all_instances().await;
        let granted = all.iter().filter(|one| gates(one).is_empty()).count();
        if granted == 20 { Ok(()) } else { Err(granted.to_string()) }
    })
    .await;
}
