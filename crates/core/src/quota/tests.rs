//! Every row of the table of answers, sizes, and pauses.

use std::time::Duration;

use compute_api::{
    compute::{ContainerResources, InstanceSpec},
    k8s::Time,
    labels,
    quantity::Quantity,
    quota::{
        AllowanceBucket, AllowanceBucketSpec, AllowanceBucketStatus, ResourceClaim, ResourceClaimStatus,
    },
};
use proptest::prelude::*;

use super::{
    claim::{Claimant, Failure, Found, Release, build, failed, read, release_failed},
    size::{Size, SizeError},
    *,
};
use crate::{
    federation::Upstream,
    fixtures::{at, condition as stored_condition, deployment, instance, leaving, template},
    meta,
};

const SIZE: Size = Size { vcpu_millis: 1500, memory_mib: 2048 };

fn one() -> Instance {
    let mut one = instance(&deployment(1), 0);
    one.metadata.namespace = Some("ns-abc".to_owned());
    one
}

fn upstream() -> Upstream {
    Upstream { project: "org/p".to_owned(), namespace: "default".to_owned() }
}

fn claim_of(one: &Instance) -> ResourceClaim {
    let upstream = upstream();
    let claimant = Claimant { instance: &one.metadata, upstream: &upstream, source_cluster: "cell" };
    let mut made = build(claimant, SIZE);
    made.metadata.uid = Some("claim-uid".to_owned());
    made.metadata.creation_timestamp = Some(Time(at(100)));
    made
}

fn answered(status: Status, reason: &str) -> ResourceClaim {
    let mut made = claim_of(&one());
    made.status = Some(ResourceClaimStatus {
        observed_generation: Some(1),
        conditions: vec![stored_condition("Granted", status, reason, "said")],
        ..ResourceClaimStatus::default()
    });
    made
}

fn bucket(resource: &str, limit: i64, available: i64) -> AllowanceBucket {
    AllowanceBucket {
        spec: AllowanceBucketSpec { resource_type: resource.to_owned(), ..AllowanceBucketSpec::default() },
        status: Some(AllowanceBucketStatus { limit, available, ..AllowanceBucketStatus::default() }),
        ..AllowanceBucket::default()
    }
}

fn found(claim: &ResourceClaim, buckets: &[AllowanceBucket], second: i64) -> Found {
    let (one, upstream) = (one(), upstream());
    let claimant = Claimant { instance: &one.metadata, upstream: &upstream, source_cluster: "cell" };
    read(claim, claimant, Some(SIZE), buckets, at(second))
}

#[test]
fn a_claim_says_who_asks_for_what() {
    let made = claim_of(&one());
    let spec = serde_json::to_value(&made.spec).unwrap();
    let project =
        serde_json::json!({"apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p"});
    assert_eq!((&spec["consumerRef"], &spec["resourceRef"]), (&project, &project));
    assert_eq!(
        spec["requests"],
        serde_json::json!([
            {"resourceType": "compute.datumapis.com/instances", "amount": 1},
            {"resourceType": "compute.datumapis.com/vcpus", "amount": 1500},
            {"resourceType": "compute.datumapis.com/memory", "amount": 2048},
        ])
    );
    assert_eq!(meta::name(&made.metadata), "instance-web-main-dfw-0");
    assert_eq!(meta::namespace(&made.metadata), "default");
    assert_eq!(meta::label(&made.metadata, labels::SOURCE_CLUSTER), Some("cell"));
    let owner = &made.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((&*owner.kind, &*owner.uid, owner.controller), ("Namespace", "abc", None));
}

#[test]
fn the_ledgers_answer_is_read() {
    assert_eq!(found(&claim_of(&one()), &[], 500), Found::Own(Outcome::NotEvaluated));
    assert_eq!(found(&answered(Status::True, "QuotaAvailable"), &[], 100), Found::Own(Outcome::Granted));
    let invalid = Outcome::Invalid { message: "said".to_owned() };
    assert_eq!(found(&answered(Status::False, "ValidationFailed"), &[], 100), Found::Own(invalid));
    let undecided = answered(Status::False, "PendingEvaluation");
    assert_eq!(found(&undecided, &[], 109), Found::Own(Outcome::NotEvaluated));
    assert_eq!(found(&undecided, &[], 110), Found::Own(Outcome::NoBudget));
}

#[test]
fn a_denial_says_what_is_left() {
    let denied = answered(Status::False, "QuotaExceeded");
    let buckets = [
        bucket("compute.datumapis.com/vcpus", 4000, 1000),
        bucket("compute.datumapis.com/memory", 8192, 0),
        bucket("other", 0, 0),
    ];
    let Found::Own(Outcome::Denied { message }) = found(&denied, &buckets, 100) else { panic!() };
    assert_eq!(
        message,
        "The project's quota does not cover the instance: 1500m vCPU asked, 1 vCPU of 4 vCPU left; \
         2048 MiB memory asked, 0 MiB memory of 8192 MiB memory left"
    );
    let empty = [bucket("compute.datumapis.com/vcpus", 0, 0), bucket("compute.datumapis.com/memory", 0, 0)];
    assert_eq!(found(&denied, &empty, 100), Found::Own(Outcome::NoBudget));
    assert!(matches!(found(&denied, &[], 100), Found::Own(Outcome::Denied { .. })));
}

#[test]
fn claims_of_others_are_told_apart() {
    let mut of_predecessor = answered(Status::True, "QuotaAvailable");
    of_predecessor
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert(labels::INSTANCE_UID.to_owned(), "old".to_owned());
    let left = |leaving| Found::Leftover { uid: "claim-uid".to_owned(), leaving };
    assert_eq!(found(&of_predecessor, &[], 100), left(false));
    assert_eq!(found(&leaving(of_predecessor.clone()), &[], 100), left(true));
    of_predecessor
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert(labels::SOURCE_CLUSTER.to_owned(), "x".to_owned());
    let other = |cell: Option<&str>| Found::Foreign { source_cluster: cell.map(str::to_owned) };
    assert_eq!(found(&of_predecessor, &[], 100), other(Some("x")));
    // What does not say that this cell made it for an instance is not for us to delete.
    for (missing, says) in [(labels::SOURCE_CLUSTER, None), (labels::INSTANCE_UID, Some("cell"))] {
        let mut unlabelled = answered(Status::True, "QuotaAvailable");
        unlabelled.metadata.labels.as_mut().unwrap().remove(missing);
        assert_eq!(found(&unlabelled, &[], 100), other(says), "{missing}");
        assert_eq!(found(&leaving(unlabelled), &[], 100), other(says), "{missing}");
    }
}

#[test]
fn a_claim_for_something_else_is_not_the_instances_own() {
    let granted = answered(Status::True, "QuotaAvailable");
    let changed = |change: fn(&mut compute_api::quota::ResourceClaimSpec)| {
        let mut changed = granted.clone();
        change(&mut changed.spec);
        found(&changed, &[], 100)
    };
    assert_eq!(
        changed(|spec| spec.requests.reverse()),
        Found::Own(Outcome::Granted),
        "the order says nothing"
    );
    assert_eq!(changed(|spec| spec.requests.truncate(1)), Found::Wrong);
    assert_eq!(changed(|spec| spec.requests[1].amount = 1), Found::Wrong);
    assert_eq!(changed(|spec| spec.consumer_ref.as_mut().unwrap().name = "other".to_owned()), Found::Wrong);
    assert_eq!(changed(|spec| spec.consumer_ref = None), Found::Wrong);
}

#[test]
fn every_outcome_is_one_condition() {
    let said = String::new;
    let table = [
        (Outcome::Disabled, Status::True, c::QUOTA_DISABLED),
        (Outcome::NotClaimed, Status::Unknown, c::PENDING_EVALUATION),
        (Outcome::NotEvaluated, Status::Unknown, c::PENDING_EVALUATION),
        (Outcome::Granted, Status::True, c::QUOTA_AVAILABLE),
        (Outcome::Denied { message: said() }, Status::False, c::QUOTA_EXCEEDED),
        (Outcome::NoBudget, Status::Unknown, c::QUOTA_NO_BUDGET),
        (Outcome::Unreachable { message: said() }, Status::Unknown, c::QUOTA_BACKEND_UNAVAILABLE),
        (Outcome::ProjectUnresolvable { message: said() }, Status::Unknown, c::QUOTA_PROJECT_ID_UNRESOLVABLE),
        (Outcome::NamespaceNotFound, Status::Unknown, c::QUOTA_NAMESPACE_NOT_FOUND),
        (Outcome::ProjectNotFound, Status::Unknown, c::QUOTA_PROJECT_NOT_FOUND),
        (Outcome::Refused { message: said() }, Status::False, c::QUOTA_MISCONFIGURED),
        (Outcome::Invalid { message: said() }, Status::False, c::VALIDATION_FAILED),
        (Outcome::HeldByOtherCell { source_cluster: None }, Status::Unknown, c::PENDING_EVALUATION),
        (Outcome::PredecessorLeaving, Status::Unknown, c::PENDING_EVALUATION),
    ];
    for (outcome, status, reason) in table {
        let update = condition(&outcome, None);
        assert_eq!((update.status, &*update.reason), (status, reason), "{outcome:?}");
        assert!(!update.message.is_empty());
        assert_eq!(
            is_failure(&outcome),
            crate::reasons::is_problem(reason) || matches!(outcome, Outcome::HeldByOtherCell { .. }),
            "{outcome:?}"
        );
    }
}

#[test]
fn an_answer_stands_until_the_next() {
    for (status, reason) in [
        (Status::True, c::QUOTA_AVAILABLE),
        (Status::False, c::QUOTA_EXCEEDED),
        (Status::Unknown, c::QUOTA_NO_BUDGET),
        (Status::False, c::VALIDATION_FAILED),
    ] {
        let stored = stored_condition(c::QUOTA_GRANTED, status, reason, "said");
        for outcome in [Outcome::NotClaimed, Outcome::NotEvaluated, Outcome::PredecessorLeaving] {
            let update = condition(&outcome, Some(&stored));
            assert_eq!((update.status, &*update.reason, &*update.message), (status, reason, "said"));
        }
        let answer = condition(&Outcome::NoBudget, Some(&stored)).reason;
        assert_eq!(answer, if status == Status::True { c::QUOTA_AVAILABLE } else { c::QUOTA_NO_BUDGET });
    }
    let unsure = stored_condition(c::QUOTA_GRANTED, Status::Unknown, c::QUOTA_BACKEND_UNAVAILABLE, "");
    assert_eq!(condition(&Outcome::NotEvaluated, Some(&unsure)).reason, c::PENDING_EVALUATION);
    // Who waits for its turn has asked nothing since.
    assert_eq!(condition(&Outcome::NotClaimed, Some(&unsure)).reason, c::QUOTA_BACKEND_UNAVAILABLE);
    let disabled = stored_condition(c::QUOTA_GRANTED, Status::True, c::QUOTA_DISABLED, "");
    assert_eq!(condition(&Outcome::NotClaimed, Some(&disabled)).reason, c::PENDING_EVALUATION);
}

#[test]
fn a_grant_stands_whatever_becomes_of_its_claim() {
    let said = String::new;
    let granted = stored_condition(c::QUOTA_GRANTED, Status::True, c::QUOTA_AVAILABLE, "said");
    for outcome in [
        Outcome::Denied { message: said() },
        Outcome::NoBudget,
        Outcome::Unreachable { message: said() },
        Outcome::Refused { message: said() },
        Outcome::Invalid { message: said() },
        Outcome::NamespaceNotFound,
        Outcome::ProjectNotFound,
        Outcome::ProjectUnresolvable { message: said() },
        Outcome::HeldByOtherCell { source_cluster: None },
    ] {
        let update = condition(&outcome, Some(&granted));
        assert_eq!((update.status, &*update.reason), (Status::True, c::QUOTA_AVAILABLE), "{outcome:?}");
    }
    assert_eq!(condition(&Outcome::Disabled, Some(&granted)).reason, c::QUOTA_DISABLED);
}

#[test]
fn the_gate_goes_with_a_grant_that_is_told() {
    let mut held = one();
    assert!(!gate_may_go(&held, &Outcome::Granted));
    let mut told = stored_condition(c::QUOTA_GRANTED, Status::True, c::QUOTA_AVAILABLE, "");
    told.observed_generation = Some(1);
    held.status.get_or_insert_default().conditions.push(told);
    assert!(gate_may_go(&held, &Outcome::Granted) && !gate_may_go(&held, &Outcome::NotEvaluated));
    held.metadata.generation = Some(2);
    assert!(!gate_may_go(&held, &Outcome::Granted));
}

#[test]
fn failed_requests_have_a_meaning() {
    let failure = |code: Option<u16>, kind: Option<&str>| Failure {
        code,
        kind: kind.map(str::to_owned),
        message: "said".to_owned(),
    };
    for code in [None, Some(401), Some(429), Some(500), Some(503)] {
        assert!(matches!(failed(&failure(code, None)), Outcome::Unreachable { .. }), "{code:?}");
    }
    for code in [403, 422] {
        assert!(matches!(failed(&failure(Some(code), None)), Outcome::Refused { .. }));
    }
    assert_eq!(failed(&failure(Some(404), Some("namespaces"))), Outcome::NamespaceNotFound);
    assert_eq!(failed(&failure(Some(404), None)), Outcome::ProjectNotFound);
    assert_eq!(release_failed(&failure(Some(404), None), false), Release::Released);
    assert_eq!(release_failed(&failure(Some(403), None), true), Release::Orphaned);
    for code in [None, Some(401), Some(403), Some(500)] {
        assert_eq!(release_failed(&failure(code, None), false), Release::Held);
    }
    assert_eq!(release_failed(&failure(None, None), true), Release::Held);
}

fn sized(limits: &[Option<(&str, &str)>], requests: &[(&str, &str)], instance_type: &str) -> InstanceSpec {
    let mut spec = template("app").spec;
    let containers = &mut spec.runtime.sandbox.as_mut().unwrap().containers;
    let plain = containers.remove(0);
    for limit in limits {
        let mut container = plain.clone();
        container.resources = limit.map(|(cpu, memory)| ContainerResources {
            limits: [("cpu", cpu), ("memory", memory)]
                .into_iter()
                .filter(|(_, amount)| !amount.is_empty())
                .map(|(name, amount)| (name.to_owned(), Quantity::from(amount)))
                .collect(),
            ..ContainerResources::default()
        });
        containers.push(container);
    }
    let resources = &mut spec.runtime.resources;
    resources.instance_type = instance_type.to_owned();
    resources.requests =
        requests.iter().map(|(name, amount)| ((*name).to_owned(), Quantity::from(*amount))).collect();
    spec
}

#[test]
fn sizes_come_from_limits_else_requests_else_the_type() {
    let size = |spec: &InstanceSpec| size::of(spec).map(|size| (size.vcpu_millis, size.memory_mib));
    let standard = "datumcloud/d1-standard-2";
    assert_eq!(size(&sized(&[None], &[], standard)), Ok((1000, 2048)));
    assert_eq!(size(&sized(&[None], &[("cpu", "3")], standard)), Ok((3000, 2048)));
    let both = [Some(("250m", "1")), Some(("0.0001", "1Mi"))];
    assert_eq!(size(&sized(&both, &[("cpu", "3")], standard)), Ok((251, 2)));
    // One container without a limit leaves the sum open, for that resource.
    let half = [Some(("250m", "1Mi")), Some(("", "1Mi"))];
    assert_eq!(size(&sized(&half, &[], standard)), Ok((1000, 2)));
    assert_eq!(size(&sized(&[], &[], "")), Err(SizeError::UnknownType(String::new())));
    assert!(matches!(size(&sized(&[Some(("x", "1"))], &[], standard)), Err(SizeError::Quantity { .. })));
    assert_eq!(size(&sized(&[Some(("-1", "1"))], &[], standard)), Err(SizeError::OutOfRange("cpu")));
}

#[test]
fn new_instances_are_looked_at_closely() {
    let seconds = |age| pace::recheck(Duration::from_secs(age)).as_secs();
    assert_eq!([0, 59, 60, 299, 300, 599, 600, 9999].map(seconds), [1, 1, 15, 15, 60, 60, 300, 300]);
}

proptest! {
    #[test]
    fn pauses_grow_and_stay_within_bounds(denials in 0..u32::MAX, chance in 0.0..=1.0_f64) {
        let pause = pace::after_denial(denials, chance);
        prop_assert!(pause >= Duration::from_secs(12) && pause <= Duration::from_secs(360));
        prop_assert!(pace::after_denial(denials.saturating_add(1), chance) >= pause);
    }
}

#[test]
fn a_denial_is_told_from_what_is_undecided() {
    use compute_api::quota::{REASON_PENDING_EVALUATION, REASON_QUOTA_AVAILABLE, REASON_QUOTA_EXCEEDED};

    use super::claim::{is_answered, is_denied, is_given_up, is_granted, undecided_for};

    assert!(is_denied(&answered(Status::False, REASON_QUOTA_EXCEEDED)));
    assert!(!is_denied(&answered(Status::False, REASON_PENDING_EVALUATION)));
    assert!(!is_denied(&answered(Status::True, REASON_QUOTA_AVAILABLE)));
    assert!(!is_denied(&claim_of(&one())));
    assert!(is_granted(&answered(Status::True, REASON_QUOTA_AVAILABLE)));
    assert!(!is_granted(&answered(Status::False, REASON_QUOTA_EXCEEDED)));

    let undecided = answered(Status::False, REASON_PENDING_EVALUATION);
    assert_eq!(undecided_for(&undecided, at(103)), Some(Duration::from_secs(7)));
    assert_eq!(undecided_for(&undecided, at(90)), Some(Duration::from_secs(10)));
    assert_eq!(undecided_for(&undecided, at(110)), None);
    assert_eq!(undecided_for(&claim_of(&one()), at(103)), None);

    for (status, reason, answered_) in [
        (Status::True, REASON_QUOTA_AVAILABLE, true),
        (Status::False, REASON_QUOTA_EXCEEDED, true),
        (Status::False, "ValidationFailed", true),
        (Status::False, REASON_PENDING_EVALUATION, false),
        (Status::Unknown, "Whatever", false),
    ] {
        assert_eq!(is_answered(&answered(status, reason)), answered_, "{reason}");
    }
    assert!(!is_answered(&claim_of(&one())));
    let invalid = answered(Status::False, "ValidationFailed");
    assert!(
        !is_given_up(&invalid, at(100)) && !is_given_up(&invalid, at(399)) && is_given_up(&invalid, at(400))
    );
    assert!(!is_given_up(&undecided, at(9999)));
}
