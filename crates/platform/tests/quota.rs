//! The quota ledger over project planes, against an embedded server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod planes;

use std::time::Duration;

use compute_api::conditions;
use compute_api::k8s::{Namespace, OwnerReference};
use compute_api::kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use compute_api::kube::{Client, ResourceExt as _};
use compute_api::quota::{
    AllowanceBucket, AllowanceBucketStatus, ObjectReference, RESOURCE_INSTANCES, RESOURCE_MEMORY,
    RESOURCE_VCPUS, ResourceClaim, ResourceGrant, ResourceRegistration, ResourceRequest,
};
use compute_platform::quota::{self, NAMESPACE, Setup};
use compute_runtime::Planes;
use compute_runtime::tasks::Tasks;
use futures::future::join_all;
use serde_json::json;

use planes::{Running, TestPlane, Watches, World, eventually};

/// A platform with a seeded core plane and a seeded project.
struct Platform {
    world: World,
    core: TestPlane,
    projects: Planes,
}

impl Platform {
    async fn new() -> Self {
        let world = World::new().await;
        let core = world.plane("core", "core").await;
        quota::seed_core(&core.plane).await.unwrap();
        let projects = Planes::new(&world.runtime);
        Self { world, core, projects }
    }

    async fn project(&self, name: &str, instances: Option<i64>) -> TestPlane {
        let project = self.world.plane(&format!("project-{name}"), name).await;
        quota::seed_project(&project.plane).await.unwrap();
        if let Some(amount) = instances {
            let grants: Api<ResourceGrant> = Api::namespaced(project.client.clone(), NAMESPACE);
            let mut grant = quota::defaults(name).1;
            for allowance in &mut grant.spec.allowances {
                if allowance.resource_type == RESOURCE_INSTANCES {
                    allowance.buckets[0].amount = amount;
                }
            }
            let patch = Patch::Merge(json!({ "spec": grant.spec }));
            grants.patch("compute-default", &PatchParams::default(), &patch).await.unwrap();
        }
        self.projects.engage(&project.plane);
        project
    }

    fn serve(&self) -> Running {
        let mut tasks = Tasks::new();
        quota::spawn(&mut tasks, Setup { projects: self.projects.clone(), core: self.core.plane.clone() });
        Running::start(tasks)
    }
}

fn claims(project: &TestPlane) -> Api<ResourceClaim> {
    Api::namespaced(project.client.clone(), "default")
}

fn claim(name: &str, project: &str, requests: &[(&str, i64)]) -> ResourceClaim {
    let mut claim = ResourceClaim::default();
    claim.metadata.name = Some(name.to_owned());
    claim.spec.consumer_ref = Some(ObjectReference::project(project));
    claim.spec.resource_ref = Some(ObjectReference::project(project));
    claim.spec.requests = requests
        .iter()
        .map(|(resource, amount)| ResourceRequest { resource_type: (*resource).to_owned(), amount: *amount })
        .collect();
    claim
}

const ONE: [(&str, i64); 3] = [(RESOURCE_INSTANCES, 1), (RESOURCE_VCPUS, 1000), (RESOURCE_MEMORY, 2048)];

async fn create(project: &TestPlane, claim: &ResourceClaim) {
    claims(project).create(&PostParams::default(), claim).await.unwrap();
}

async fn delete(project: &TestPlane, name: &str) {
    claims(project).delete(name, &DeleteParams::default()).await.unwrap();
}

/// The reason with which a claim was answered.
async fn answer(project: &TestPlane, name: &str) -> String {
    eventually(name, async || {
        let found = claims(project).get(name).await.map_err(|error| error.to_string())?;
        let status = found.status.clone().unwrap_or_default();
        let said = conditions::find(&status.conditions, "Granted").unwrap();
        match status.observed_generation {
            Some(generation) if Some(generation) == found.metadata.generation => Ok(said.reason.clone()),
            _ => Err(said.reason.clone()),
        }
    })
    .await
}

async fn bucket(project: &Client, resource: &str) -> Option<AllowanceBucketStatus> {
    let buckets: Api<AllowanceBucket> = Api::all(project.clone());
    let found = buckets.list(&ListParams::default()).await.unwrap().items;
    found.into_iter().find(|one| one.spec.resource_type == resource).and_then(|one| one.status)
}

/// Waits until the bucket says so much of limit, allocated, available, and claims.
async fn bucket_says(project: &TestPlane, resource: &str, expected: (i64, i64, i64, i64)) {
    eventually(resource, async || {
        let found = bucket(&project.client, resource).await.ok_or("no bucket")?;
        let says = (found.limit, found.allocated, found.available, found.claim_count);
        if says == expected { Ok(()) } else { Err(format!("{says:?}")) }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_new_project_has_buckets_and_its_claims_are_granted_and_released() {
    let platform = Platform::new().await;
    let project = platform.project("p", Some(10)).await;
    let running = platform.serve();
    bucket_says(&project, RESOURCE_INSTANCES, (10, 0, 10, 0)).await;
    create(&project, &claim("a", "p", &ONE)).await;
    assert_eq!(answer(&project, "a").await, "QuotaAvailable");
    let granted = claims(&project).get("a").await.unwrap().status.unwrap();
    assert_eq!(granted.allocations.len(), 3);
    let bucket = granted.allocations[0].allocating_bucket.clone().unwrap();
    let buckets: Api<AllowanceBucket> = Api::namespaced(project.client.clone(), NAMESPACE);
    assert_eq!(buckets.get(&bucket).await.unwrap().spec.resource_type, RESOURCE_INSTANCES);
    bucket_says(&project, RESOURCE_INSTANCES, (10, 1, 9, 1)).await;
    delete(&project, "a").await;
    bucket_says(&project, RESOURCE_INSTANCES, (10, 0, 10, 0)).await;
    let grants: Api<ResourceGrant> = Api::namespaced(project.client.clone(), NAMESPACE);
    let grant = grants.get("compute-default").await.unwrap().status.unwrap();
    assert!(conditions::is_true(&grant.conditions, "Active"));
    let registrations: Api<ResourceRegistration> = Api::all(platform.core.client.clone());
    for registration in registrations.list(&ListParams::default()).await.unwrap() {
        assert!(conditions::is_true(&registration.status.unwrap().conditions, "Active"));
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_fifty_claims_at_once_exactly_twenty_are_granted_and_room_comes_back() {
    let platform = Platform::new().await;
    let project = platform.project("p", Some(20)).await;
    let running = platform.serve();
    let new: Vec<_> = (0..50).map(|n| claim(&format!("c{n}"), "p", &ONE)).collect();
    join_all(new.iter().map(|claim| create(&project, claim))).await;
    let mut granted = Vec::new();
    for claim in &new {
        match answer(&project, &claim.name_any()).await.as_str() {
            "QuotaAvailable" => granted.push(claim.name_any()),
            reason => assert_eq!(reason, "QuotaExceeded"),
        }
    }
    assert_eq!(granted.len(), 20);
    bucket_says(&project, RESOURCE_INSTANCES, (20, 20, 0, 20)).await;

    // A denial is final, whatever comes back; a new claim of the same name is another claim.
    delete(&project, &granted[0]).await;
    let denied = new.iter().map(|one| one.name_any()).find(|name| !granted.contains(name)).unwrap();
    bucket_says(&project, RESOURCE_INSTANCES, (20, 19, 1, 19)).await;
    assert_eq!(answer(&project, &denied).await, "QuotaExceeded");
    delete(&project, &denied).await;
    create(&project, &claim(&denied, "p", &ONE)).await;
    assert_eq!(answer(&project, &denied).await, "QuotaAvailable");

    // Over a restart nothing is forgotten, and nothing is written.
    bucket_says(&project, RESOURCE_INSTANCES, (20, 20, 0, 20)).await;
    running.stop().await;
    let asked = project.requests().len();
    let running = platform.serve();
    create(&project, &claim("late", "p", &ONE)).await;
    assert_eq!(answer(&project, "late").await, "QuotaExceeded");
    assert_eq!(bucket(&project.client, RESOURCE_INSTANCES).await.unwrap().allocated, 20);
    // Its answer, and the two budgets that its granted parts come from.
    assert_eq!(project.requests().len() - asked, 3, "{:?}", &project.requests()[asked..]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lost_answers_never_grant_more_than_there_is() {
    let platform = Platform::new().await;
    let project = platform.project("p", Some(15)).await;
    let running = platform.serve();
    bucket_says(&project, RESOURCE_INSTANCES, (15, 0, 15, 0)).await;
    let name = |round: usize, n: usize| format!("c{:02}", 99 - (round * 5 + n));
    let mut granted = 0;
    for round in 0..6 {
        project.lose_answers(4);
        // Later ones come first in the order of names.
        let new: Vec<_> = (0..5).map(|n| claim(&name(round, n), "p", &ONE)).collect();
        join_all(new.iter().map(|claim| create(&project, claim))).await;
        for n in 0..5 {
            granted += usize::from(answer(&project, &name(round, n)).await == "QuotaAvailable");
        }
    }
    assert_eq!(granted, 15);
    bucket_says(&project, RESOURCE_INSTANCES, (15, 15, 0, 15)).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_registration_or_a_budget_is_not_granted() {
    let platform = Platform::new().await;
    let project = platform.project("p", None).await;
    let running = platform.serve();
    create(&project, &claim("unknown", "p", &[("example.com/gpus", 1)])).await;
    assert_eq!(answer(&project, "unknown").await, "ValidationFailed");
    create(&project, &claim("workload", "p", &[("compute.datumapis.com/workloads", 1)])).await;
    assert_eq!(
        answer(&project, "workload").await,
        "QuotaExceeded",
        "registered, but nothing is granted of it"
    );
    bucket_says(&project, "compute.datumapis.com/workloads", (0, 0, 0, 0)).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_before_everything_is_known() {
    let world = World::new().await;
    let core = world.plane("core", "core").await;
    let projects = Planes::new(&world.runtime);
    let platform = Platform { world, core, projects };
    // A ledger whose core plane has no registrations yet refuses; so they are seeded before it is started.
    let project = platform.project("p", Some(5)).await;
    create(&project, &claim("early", "p", &ONE)).await;
    quota::seed_core(&platform.core.plane).await.unwrap();
    let running = platform.serve();
    assert_eq!(answer(&project, "early").await, "QuotaAvailable");
    // A grant that is raised counts for the next claim.
    create(&project, &claim("large", "p", &[(RESOURCE_INSTANCES, 10)])).await;
    assert_eq!(answer(&project, "large").await, "QuotaExceeded");
    let mut more = quota::defaults("p").1;
    more.metadata.name = Some("more".to_owned());
    let grants: Api<ResourceGrant> = Api::namespaced(project.client.clone(), NAMESPACE);
    grants.create(&PostParams::default(), &more).await.unwrap();
    bucket_says(&project, RESOURCE_INSTANCES, (100_005, 1, 100_004, 1)).await;
    create(&project, &claim("larger", "p", &[(RESOURCE_INSTANCES, 10)])).await;
    assert_eq!(answer(&project, "larger").await, "QuotaAvailable");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_granted_claim_whose_owner_is_gone_is_collected() {
    let platform = Platform::new().await;
    let project = platform.project("p", Some(5)).await;
    let running = platform.serve();
    let namespaces: Api<Namespace> = Api::all(project.client.clone());
    let uid = namespaces.get("default").await.unwrap().uid().unwrap();
    let owned = |name: &str, uid: &str| {
        let mut owned = claim(name, "p", &ONE);
        owned.metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            name: "default".to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        }]);
        owned
    };
    create(&project, &owned("kept", &uid)).await;
    create(&project, &owned("left", "8c5b1f0e-0000-4000-8000-000000000000")).await;
    eventually("collected", async || match claims(&project).get_opt("left").await.unwrap() {
        None => Ok(()),
        Some(_) => Err("there"),
    })
    .await;
    bucket_says(&project, RESOURCE_INSTANCES, (5, 1, 4, 1)).await;
    assert_eq!(answer(&project, "kept").await, "QuotaAvailable");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_while_a_watch_is_broken() {
    for broken in ["/resourcegrants", "/allowancebuckets", "/namespaces", "/resourceclaims"] {
        let platform = Platform::new().await;
        let project = platform.project("p", Some(5)).await;
        let running = platform.serve();
        create(&project, &claim("first", "p", &ONE)).await;
        assert_eq!(answer(&project, "first").await, "QuotaAvailable");
        project.set_watches(Watches::Broken(broken));
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The budget falls below what is asked for next, and nobody may have seen it.
        let grants: Api<ResourceGrant> = Api::namespaced(project.client.clone(), NAMESPACE);
        grants.delete("compute-default", &DeleteParams::default()).await.unwrap();
        create(&project, &claim("second", "p", &ONE)).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        let status = claims(&project).get("second").await.unwrap().status.unwrap_or_default();
        assert_eq!(status.observed_generation, None, "{broken}");
        project.set_watches(Watches::Good);
        assert_eq!(answer(&project, "second").await, "QuotaExceeded", "{broken}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_owner_only_the_server_knows_is_kept() {
    let platform = Platform::new().await;
    let project = platform.project("p", Some(5)).await;
    let running = platform.serve();
    create(&project, &claim("first", "p", &ONE)).await;
    assert_eq!(answer(&project, "first").await, "QuotaAvailable");
    // The watch of namespaces hangs, and nobody can know.
    project.set_watches(Watches::Silent("/namespaces"));
    let namespaces: Api<Namespace> = Api::all(project.client.clone());
    let mut new = Namespace::default();
    new.metadata.name = Some("new".to_owned());
    let new = namespaces.create(&PostParams::default(), &new).await.unwrap();
    let mut owned = claim("kept", "p", &ONE);
    owned.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: "new".to_owned(),
        uid: new.uid().unwrap(),
        ..OwnerReference::default()
    }]);
    create(&project, &owned).await;
    assert_eq!(answer(&project, "kept").await, "QuotaAvailable");
    bucket_says(&project, RESOURCE_INSTANCES, (5, 2, 3, 2)).await;
    create(&project, &claim("another", "p", &ONE)).await;
    assert_eq!(answer(&project, "another").await, "QuotaAvailable");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(claims(&project).get_opt("kept").await.unwrap().is_some());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_project_holds_one_watch_and_asks_for_nothing() {
    let platform = Platform::new().await;
    let running = platform.serve();
    let project = platform.project("p", Some(5)).await;
    let other = platform.project("q", Some(1)).await;
    bucket_says(&project, RESOURCE_INSTANCES, (5, 0, 5, 0)).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let (asked, watches) = (project.requests().len(), project.watches().len());
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(project.requests().len(), asked);
    let after = project.watches().split_off(watches);
    assert!(after.iter().all(|line| line.contains("/resourceclaims")), "{after:?}");
    // It wakes with the first claim, and its numbers are its own.
    create(&project, &claim("a", "p", &ONE)).await;
    create(&other, &claim("a", "q", &ONE)).await;
    assert_eq!(answer(&project, "a").await, "QuotaAvailable");
    assert_eq!(answer(&other, "a").await, "QuotaAvailable");
    bucket_says(&other, RESOURCE_INSTANCES, (1, 1, 0, 1)).await;
    bucket_says(&project, RESOURCE_INSTANCES, (5, 1, 4, 1)).await;
    // One that goes leaves nothing that is asked.
    platform.projects.disengage(project.plane.id());
    let asked = (project.requests().len(), project.watches().len());
    create(&project, &claim("b", "p", &ONE)).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((project.requests().len(), project.watches().len()), asked);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn while_core_is_away_claims_are_granted_from_what_was_registered_and_none_is_refused() {
    let platform = Platform::new().await;
    let project = platform.project("p", Some(2)).await;
    let running = platform.serve();
    create(&project, &claim("before", "p", &ONE)).await;
    assert_eq!(answer(&project, "before").await, "QuotaAvailable");
    platform.core.set_watches(Watches::Broken("/resourceregistrations"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    create(&project, &claim("fits", "p", &ONE)).await;
    assert_eq!(answer(&project, "fits").await, "QuotaAvailable");
    // What may be registered by now, and what there may be room for: nobody can know.
    create(&project, &claim("unknown", "p", &[("example.com/gpus", 1)])).await;
    create(&project, &claim("large", "p", &ONE)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    for name in ["unknown", "large"] {
        let status = claims(&project).get(name).await.unwrap().status.unwrap_or_default();
        assert_eq!((status.observed_generation, status.allocations.len()), (None, 0), "{name}");
    }
    bucket_says(&project, RESOURCE_INSTANCES, (2, 2, 0, 2)).await;
    let vcpus = bucket(&project.client, RESOURCE_VCPUS).await.unwrap();
    assert_eq!(vcpus.allocated, 2000, "what is not answered takes nothing");
    let registrations: Api<ResourceRegistration> = Api::all(platform.core.client.clone());
    let mut gpus = quota::registrations().remove(0);
    gpus.metadata.name = Some("gpus".to_owned());
    gpus.spec.resource_type = "example.com/gpus".to_owned();
    registrations.create(&PostParams::default(), &gpus).await.unwrap();
    platform.core.set_watches(Watches::Good);
    assert_eq!(answer(&project, "unknown").await, "QuotaExceeded", "it is registered, and there are none");
    assert_eq!(answer(&project, "large").await, "QuotaExceeded");
    running.stop().await;
}

/// What claims hold of a resource, by what they say.
async fn held(project: &TestPlane, resource: &str) -> (i64, i64) {
    let all = claims(project).list(&ListParams::default()).await.unwrap().items;
    let parts = all.iter().filter_map(|claim| claim.status.as_ref()).flat_map(|status| &status.allocations);
    let granted = parts.filter(|part| part.status == "Granted" && part.resource_type == resource);
    granted.fold((0, 0), |(sum, count), part| (sum + part.allocated_amount.unwrap(), count + 1))
}

#[tokio::test(start_paused = true)]
async fn many_writers_and_every_fault_never_come_to_more_than_there_is() {
    const LIMIT: i64 = 12;
    let platform = Platform::new().await;
    let project = platform.project("p", Some(LIMIT)).await;
    let mut running = platform.serve();
    bucket_says(&project, RESOURCE_INSTANCES, (LIMIT, 0, LIMIT, 0)).await;
    let writer = async |writer: i64| {
        for round in 0..12_i64 {
            let name = format!("w{writer}-{}", round % 3);
            let one =
                claim(&name, "p", &[(RESOURCE_INSTANCES, 1 + (writer + round) % 4), (RESOURCE_VCPUS, 10)]);
            match claims(&project).create(&PostParams::default(), &one).await {
                Ok(_) => {}
                // It is there from before, and goes now.
                Err(_) => delete(&project, &name).await,
            }
            tokio::time::sleep(Duration::from_millis(37 * u64::try_from(writer % 5).unwrap())).await;
            let (sum, _) = held(&project, RESOURCE_INSTANCES).await;
            assert!(sum <= LIMIT, "{sum} of {LIMIT}");
        }
    };
    let trouble = async || {
        for round in 0..12 {
            project.lose_answers(round % 4);
            let watches = ["/resourceclaims", "/allowancebuckets", "/resourcegrants"][round % 3];
            project.set_watches(match round % 4 {
                0 => Watches::Broken(watches),
                1 => Watches::Silent(watches),
                _ => Watches::Good,
            });
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        project.set_watches(Watches::Good);
    };
    futures::join!(join_all((0..10).map(writer)), trouble());
    // A new ledger comes to the same.
    for restart in [false, true] {
        if restart {
            running.stop().await;
            running = platform.serve();
        }
        eventually("all are answered, and the buckets say so", async || {
            let all = claims(&project).list(&ListParams::default()).await.unwrap().items;
            let open = all
                .iter()
                .filter(|claim| claim.status.as_ref().is_none_or(|s| s.observed_generation.is_none()));
            let open = open.count();
            let mut wrong = Vec::new();
            for resource in [RESOURCE_INSTANCES, RESOURCE_VCPUS] {
                let (sum, count) = held(&project, resource).await;
                let says = bucket(&project.client, resource).await.unwrap();
                if (says.allocated, says.claim_count) != (sum, count) {
                    wrong.push(format!("{resource}: {says:?}, and claims hold {sum} in {count}"));
                }
            }
            if open == 0 && wrong.is_empty() { Ok(()) } else { Err(format!("{open} open, {wrong:?}")) }
        })
        .await;
    }
    running.stop().await;
}
