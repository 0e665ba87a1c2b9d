use compute_api::quota::{Allowance, AllowanceAmount, ClaimingResource, ConsumerType, ResourceRequest};
use proptest::prelude::*;

use super::{admission::Problem, tally::granted_parts, *};
use crate::fixtures::{at, leaving, stored as stored_meta};

const INSTANCES: &str = q::RESOURCE_INSTANCES;
const VCPUS: &str = q::RESOURCE_VCPUS;

fn registration(resource: &str) -> ResourceRegistration {
    let mut registration =
        ResourceRegistration { metadata: stored_meta("", resource, resource), ..Default::default() };
    registration.spec.resource_type = resource.to_owned();
    registration.spec.consumer_type =
        ConsumerType { api_group: "resourcemanager.miloapis.com".to_owned(), kind: "Project".to_owned() };
    registration.spec.claiming_resources = vec![ClaimingResource {
        api_group: Some("resourcemanager.miloapis.com".to_owned()),
        kind: "Project".to_owned(),
    }];
    registration
}

fn grant(name: &str, resource: &str, amount: i64) -> ResourceGrant {
    let mut grant = ResourceGrant { metadata: stored_meta("milo-system", name, name), ..Default::default() };
    grant.spec.consumer_ref = ObjectReference::project("p");
    grant.spec.allowances =
        vec![Allowance { resource_type: resource.to_owned(), buckets: vec![AllowanceAmount { amount }] }];
    grant
}

fn claim(name: &str, requests: &[(&str, i64)]) -> ResourceClaim {
    let mut claim = ResourceClaim { metadata: stored_meta("default", name, name), ..Default::default() };
    claim.spec.consumer_ref = Some(ObjectReference::project("p"));
    claim.spec.resource_ref = Some(ObjectReference::project("p"));
    claim.spec.requests = requests
        .iter()
        .map(|(resource, amount)| ResourceRequest { resource_type: (*resource).to_owned(), amount: *amount })
        .collect();
    claim
}

/// A project's books as they are stored.
#[derive(Clone, Default)]
struct Books {
    registrations: Vec<ResourceRegistration>,
    grants: Vec<ResourceGrant>,
    claims: Vec<ResourceClaim>,
    buckets: Vec<AllowanceBucket>,
    namespaces: Vec<String>,
    core_is_away: bool,
}

impl Books {
    fn new(limits: &[(&str, i64)]) -> Self {
        Self {
            registrations: vec![registration(INSTANCES), registration(VCPUS)],
            grants: limits.iter().map(|(resource, amount)| grant(resource, resource, *amount)).collect(),
            ..Self::default()
        }
    }

    fn observed(&self) -> Observed<'_> {
        Observed {
            registrations: self.registrations.iter().collect(),
            is_current: !self.core_is_away,
            grants: self.grants.iter().collect(),
            buckets: self.buckets.iter().collect(),
            namespaces: self.namespaces.iter().map(String::as_str).collect(),
        }
    }

    /// All claims, counted from the beginning.
    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for claim in &self.claims {
            let (namespace, name) = (meta::namespace(&claim.metadata), meta::name(&claim.metadata));
            tally.update(namespace, name, Some(&Arc::new(claim.clone())));
        }
        tally
    }

    fn decide(&self, second: i64) -> Plan<'_> {
        decide(&self.observed(), &self.tally(), "milo-system", at(second))
    }

    /// Does what the ledger decides, until it decides nothing more.
    fn settle(&mut self) {
        for pass in 0.. {
            let before = self.clone();
            let plan = before.decide(pass);
            if plan == Plan::default() {
                return;
            }
            assert!(pass < 5, "it does not settle: {plan:?}");
            self.claims.retain(|one| !plan.collect.iter().any(|gone| **gone == *one));
            for (grant, status) in plan.grants {
                let found = self.grants.iter_mut().find(|one| one.metadata == grant.metadata).unwrap();
                found.status = Some(status);
            }
            for (claim, status) in plan.granted.into_iter().chain(plan.refused) {
                let found = self.claims.iter_mut().find(|one| one.metadata == claim.metadata).unwrap();
                found.status = Some(status);
            }
            for (bucket, status) in plan.buckets {
                let found = self.buckets.iter_mut().find(|one| one.metadata == bucket.metadata).unwrap();
                found.status = Some(status);
            }
            self.buckets.extend(plan.create);
        }
    }

    fn reason(&self, name: &str) -> &str {
        let claim = self.claims.iter().find(|one| meta::name(&one.metadata) == name).unwrap();
        &c::find(stored(claim), q::CONDITION_GRANTED).unwrap().reason
    }

    fn bucket(&self, resource: &str) -> &AllowanceBucketStatus {
        let found = self.buckets.iter().find(|one| one.spec.resource_type == resource).unwrap();
        found.status.as_ref().unwrap()
    }
}

#[test]
fn a_claim_is_granted_while_there_is_room_and_denied_after_that() {
    let mut books = Books::new(&[(INSTANCES, 2), (VCPUS, 3000)]);
    books.claims = ["a", "b", "c"].map(|name| claim(name, &[(INSTANCES, 1), (VCPUS, 1000)])).to_vec();
    books.settle();
    assert_eq!(
        ["a", "b", "c"].map(|name| books.reason(name)),
        ["QuotaAvailable", "QuotaAvailable", "QuotaExceeded"]
    );
    let bucket = books.bucket(INSTANCES);
    assert_eq!((bucket.limit, bucket.allocated, bucket.available, bucket.claim_count), (2, 2, 0, 2));
    assert_eq!((bucket.grant_count, bucket.contributing_grant_refs[0].amount), (1, 2));
    let bucket = books.bucket(VCPUS);
    assert_eq!((bucket.allocated, bucket.available), (3000, 0), "a denied claim's granted parts count");
    let denied = books.claims[2].status.clone().unwrap();
    assert_eq!(denied.observed_generation, Some(1));
    assert!(denied.conditions[0].message.contains("1 asked, 0 of 2 left"), "{denied:?}");
    let said: Vec<_> = denied.allocations.iter().map(|one| one.status.as_str()).collect();
    assert_eq!(said, ["Denied", "Granted"]);

    // Room that comes back does not change a denial; the next claim has it.
    books.claims.remove(0);
    books.settle();
    assert_eq!(books.reason("c"), "QuotaExceeded");
    books.claims.push(claim("d", &[(INSTANCES, 1)]));
    books.settle();
    assert_eq!(books.reason("d"), "QuotaAvailable");
}

#[test]
fn a_claim_that_makes_no_sense_is_refused_for_good() {
    let mut books = Books::new(&[(INSTANCES, 10)]);
    let mut other = claim("other", &[(INSTANCES, 1)]);
    other.spec.resource_ref = Some(ObjectReference { kind: "Pod".to_owned(), ..Default::default() });
    let mut nobody = claim("nobody", &[(INSTANCES, 1)]);
    nobody.spec.consumer_ref = None;
    books.claims = vec![
        other,
        nobody,
        claim("unknown", &[(INSTANCES, 1), ("example.com/gpus", 1)]),
        claim("twice", &[(INSTANCES, 1), (INSTANCES, 1)]),
        claim("nothing", &[]),
    ];
    books.settle();
    for name in ["other", "nobody", "unknown", "twice", "nothing"] {
        assert_eq!(books.reason(name), "ValidationFailed", "{name}");
    }
    assert_eq!(books.bucket(INSTANCES).allocated, 0);
    books.registrations.push(registration("example.com/gpus"));
    books.settle();
    assert_eq!(books.reason("unknown"), "ValidationFailed");
}

#[test]
fn what_is_registered_is_known_or_nothing_is_refused() {
    let mut books = Books::new(&[(INSTANCES, 1), (VCPUS, 5)]);
    books.core_is_away = true;
    books.claims = vec![
        claim("a", &[(INSTANCES, 1), (VCPUS, 1)]),
        claim("b", &[(INSTANCES, 1), (VCPUS, 1)]),
        claim("c", &[("example.com/gpus", 1)]),
    ];
    books.settle();
    assert_eq!(books.reason("a"), "QuotaAvailable");
    assert!(books.claims[1..].iter().all(|claim| !is_decided(claim)));
    assert_eq!((books.bucket(INSTANCES).allocated, books.bucket(VCPUS).allocated), (1, 1));
    books.core_is_away = false;
    books.settle();
    assert_eq!((books.reason("b"), books.reason("c")), ("QuotaExceeded", "ValidationFailed"));
}

#[test]
fn a_project_without_a_grant_has_a_budget_of_nothing() {
    let mut books = Books::new(&[]);
    books.claims = vec![claim("a", &[(INSTANCES, 1)])];
    books.settle();
    assert_eq!(books.reason("a"), "QuotaExceeded");
    assert_eq!(books.bucket(INSTANCES).limit, 0);
    // A grant for what is not registered does not count, and says so.
    books.grants.push(grant("odd", "example.com/gpus", 5));
    books.settle();
    assert_eq!(books.grants[0].status.as_ref().unwrap().conditions[0].reason, "ValidationFailed");
    assert!(books.buckets.iter().all(|one| one.spec.resource_type != "example.com/gpus"));
}

#[test]
fn grants_add_up_and_may_fall_below_what_is_allocated() {
    let mut books = Books::new(&[(INSTANCES, 2)]);
    books.grants.push(grant("more", INSTANCES, 3));
    books.claims = vec![claim("a", &[(INSTANCES, 5)])];
    books.settle();
    assert_eq!(books.reason("a"), "QuotaAvailable");
    books.grants.pop();
    books.settle();
    let bucket = books.bucket(INSTANCES);
    assert_eq!((bucket.limit, bucket.allocated, bucket.available), (2, 5, 0));
}

#[test]
fn a_claim_whose_namespace_is_gone_is_collected_and_counts_until_then() {
    let mut books = Books::new(&[(INSTANCES, 1)]);
    let mut owned = claim("a", &[(INSTANCES, 1)]);
    owned.metadata.owner_references = Some(vec![compute_api::k8s::OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        name: "default".to_owned(),
        uid: "ns-uid".to_owned(),
        ..Default::default()
    }]);
    books.claims = vec![owned];
    books.namespaces = vec!["ns-uid".to_owned()];
    books.settle();
    assert_eq!(books.bucket(INSTANCES).allocated, 1);
    books.namespaces.clear();
    let before = books.clone();
    assert_eq!(before.decide(9).collect.len(), 1);
    books.settle();
    assert_eq!((books.claims.len(), books.bucket(INSTANCES).allocated), (0, 0));
    // One that is on its way out by itself is waited for.
    let gone = Books { claims: vec![leaving(before.claims[0].clone())], ..before };
    assert!(gone.decide(9).collect.is_empty());
}

proptest! {
    #[test]
    fn no_budget_is_exceeded_and_the_order_of_input_does_not_matter(
        limit in 0i64..20,
        steps in proptest::collection::vec((0usize..12, 1i64..6, any::<bool>()), 1..40),
    ) {
        let mut books = Books::new(&[(INSTANCES, limit), (VCPUS, limit / 2)]);
        for (n, amount, both) in steps {
            let name = format!("c{n}");
            match books.claims.iter().position(|one| meta::name(&one.metadata) == name) {
                Some(held) => drop(books.claims.remove(held)),
                None if both => books.claims.push(claim(&name, &[(INSTANCES, amount), (VCPUS, amount)])),
                None => books.claims.push(claim(&name, &[(INSTANCES, amount)])),
            }
            let mut shuffled = books.clone();
            shuffled.claims.reverse();
            shuffled.grants.reverse();
            prop_assert_eq!(shuffled.decide(0), books.decide(0));
            books.settle();
            for resource in [INSTANCES, VCPUS] {
                let project = ObjectReference::project("p");
                let account = Account::new(&project, resource);
                let held: i64 = books
                    .claims
                    .iter()
                    .flat_map(granted_parts)
                    .filter(|(of, _)| *of == account)
                    .map(|(_, amount)| amount)
                    .sum();
                let bucket = books.bucket(resource);
                prop_assert_eq!(bucket.allocated, held);
                prop_assert!(held <= bucket.limit);
                prop_assert_eq!(bucket.available, bucket.limit - held);
            }
        }
    }
}

#[test]
fn a_claim_is_taken_only_if_it_fits_what_is_registered() {
    let registered = [registration(INSTANCES), registration(VCPUS)];
    let registered: Vec<_> = registered.iter().collect();
    type Change = fn(&mut q::ResourceClaimSpec);
    let check = |change: Change| {
        let mut spec = claim("a", &[(INSTANCES, 1), (VCPUS, 1000)]).spec;
        change(&mut spec);
        admission::check(&spec, &registered).map(|consumer| consumer.name.clone())
    };
    assert_eq!(check(|_| {}), Ok("p".to_owned()));
    let malformed: [(Change, &str); 5] = [
        (|spec| spec.consumer_ref = None, "it names no consumer"),
        (|spec| spec.resource_ref = None, "it names no resource"),
        (|spec| spec.requests.clear(), "it asks for nothing"),
        (
            |spec| spec.requests[1].resource_type = INSTANCES.to_owned(),
            "it asks for compute.datumapis.com/instances twice",
        ),
        (
            |spec| spec.requests[0].amount = -1,
            "it asks for less than nothing of compute.datumapis.com/instances",
        ),
    ];
    for (change, why) in malformed {
        assert_eq!(check(change), Err(Problem::Malformed(why.to_owned())));
    }
    let unfit: [(Change, &str); 4] = [
        (
            |spec| spec.requests[1].resource_type = "example.com/gpus".to_owned(),
            "example.com/gpus is not registered",
        ),
        (
            |spec| spec.consumer_ref.as_mut().unwrap().kind = "Organization".to_owned(),
            "compute.datumapis.com/instances cannot be claimed by a Organization for a Project",
        ),
        (
            |spec| spec.consumer_ref.as_mut().unwrap().api_group = None,
            "compute.datumapis.com/instances cannot be claimed by a Project for a Project",
        ),
        (
            |spec| spec.resource_ref.as_mut().unwrap().kind = "Pod".to_owned(),
            "compute.datumapis.com/instances cannot be claimed by a Project for a Pod",
        ),
    ];
    for (change, why) in unfit {
        assert_eq!(check(change), Err(Problem::NotRegistered(why.to_owned())));
    }
}

#[test]
fn what_a_claim_asks_for_stays() {
    let before = claim("a", &[(INSTANCES, 1)]).spec;
    assert_eq!(admission::check_update(&before, &before), Ok(()));
    let after = claim("a", &[(INSTANCES, 2)]).spec;
    assert!(matches!(admission::check_update(&before, &after), Err(Problem::Malformed(_))));
}

/// A claim in one of the forms that it can have, or none.
fn any_claim(name: &str, form: u8, amount: i64) -> Option<ResourceClaim> {
    let mut claim = claim(name, &[(INSTANCES, amount), (VCPUS, amount * 10)]);
    let answer =
        |status, reason: &str| vec![crate::fixtures::condition(q::CONDITION_GRANTED, status, reason, "")];
    let part = |resource: &str, status: &str| ResourceAllocation {
        resource_type: resource.to_owned(),
        status: status.to_owned(),
        ..ResourceAllocation::default()
    };
    let status = claim.status.get_or_insert_default();
    match form {
        0 => return None,
        1 => {}
        2 => status.conditions = answer(Status::True, q::REASON_QUOTA_AVAILABLE),
        3 => {
            status.conditions = answer(Status::False, q::REASON_QUOTA_EXCEEDED);
            status.allocations =
                vec![part(INSTANCES, q::ALLOCATION_DENIED), part(VCPUS, q::ALLOCATION_GRANTED)];
        }
        4 => status.conditions = answer(Status::False, q::REASON_VALIDATION_FAILED),
        5 => return Some(leaving(claim)),
        _ => {
            status.conditions = answer(Status::True, q::REASON_QUOTA_AVAILABLE);
            claim.metadata.owner_references = Some(
                ["kept", "gone"][..usize::from(form % 2) + 1]
                    .iter()
                    .map(|uid| compute_api::k8s::OwnerReference {
                        api_version: "v1".to_owned(),
                        kind: "Namespace".to_owned(),
                        uid: (*uid).to_owned(),
                        ..Default::default()
                    })
                    .collect(),
            );
        }
    }
    Some(claim)
}

proptest! {
    #[test]
    fn counting_what_changes_comes_to_the_same_as_counting_everything(
        steps in proptest::collection::vec((0usize..6, 0u8..8, 0i64..i64::MAX / 10), 1..60),
        seen in 0usize..60,
    ) {
        let mut books = Books::default();
        let mut kept = Tally::default();
        for (step, (n, form, amount)) in steps.into_iter().enumerate() {
            let name = format!("c{n}");
            let claim = any_claim(&name, form, amount % 1000 + if step == seen { i64::MAX / 20 } else { 0 });
            books.claims.retain(|one| meta::name(&one.metadata) != name);
            kept.update("default", &name, claim.clone().map(Arc::new).as_ref());
            books.claims.extend(claim);
            prop_assert_eq!(&kept, &books.tally());
        }
        prop_assert_eq!(kept.len(), books.claims.len());
        for claim in &books.claims {
            kept.update("default", meta::name(&claim.metadata), None);
        }
        prop_assert!(kept.is_empty());
        prop_assert_eq!(kept, Tally::default());
    }
}

#[test]
fn a_registration_of_nothing_does_not_count() {
    let said =
        |registration: &ResourceRegistration| activate(registration, at(1)).unwrap().conditions[0].clone();
    assert_eq!(said(&registration(INSTANCES)).status, "True");
    let mut of_nobody = registration(INSTANCES);
    of_nobody.spec.consumer_type = ConsumerType::default();
    for odd in [registration(""), of_nobody, ResourceRegistration::default()] {
        assert!(!makes_sense(&odd));
        assert_eq!(
            (said(&odd).status.as_str(), said(&odd).reason.as_str()),
            ("False", q::REASON_VALIDATION_FAILED)
        );
    }
}
