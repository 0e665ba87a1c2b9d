use compute_api::quota::{Allowance, AllowanceAmount, ClaimingResource, ConsumerType};
use proptest::prelude::*;

use super::*;
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
            grants: self.grants.iter().collect(),
            claims: self.claims.iter().collect(),
            buckets: self.buckets.iter().collect(),
            namespaces: self.namespaces.iter().map(String::as_str).collect(),
        }
    }

    /// Does what the ledger decides, until it decides nothing more.
    fn settle(&mut self) {
        for pass in 0.. {
            let before = self.clone();
            let plan = decide(&before.observed(), "milo-system", at(pass));
            if plan == Plan::default() {
                return;
            }
            assert!(pass < 5, "it does not settle: {plan:?}");
            self.claims.retain(|one| !plan.collect.contains(&one));
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
    let observed = before.observed();
    assert_eq!(decide(&observed, "milo-system", at(9)).collect.len(), 1);
    books.settle();
    assert_eq!((books.claims.len(), books.bucket(INSTANCES).allocated), (0, 0));
    // One that is on its way out by itself is waited for.
    let gone = Books { claims: vec![leaving(before.claims[0].clone())], ..before };
    assert!(decide(&gone.observed(), "milo-system", at(9)).collect.is_empty());
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
            prop_assert_eq!(
                decide(&shuffled.observed(), "milo-system", at(0)),
                decide(&books.observed(), "milo-system", at(0))
            );
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
