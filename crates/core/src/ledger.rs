//! The quota ledger's decisions over one project: which claims are granted, and what its budgets say.
//!
//! # Guarantees
//!
//! - What is allocated is what the claims that there are hold ([`Tally`]). What a claim was granted counts from its answer until it
//!   is gone, also if the claim as a whole was denied.
//! - Claims are answered oldest first, and an answer is final.
//! - No budget is ever granted beyond its limit. One whose limit falls below what is allocated has nothing left.
//!
//! [`admission`] says which claims are taken at all, [`Tally`] counts those that there are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use compute_api::{
    conditions::{self as c, Status, Update},
    k8s::{Condition, ObjectMeta, Time, Timestamp},
    names,
    quota::{
        self as q, AllowanceBucket, AllowanceBucketSpec, AllowanceBucketStatus, ContributingGrant,
        ObjectReference, ResourceAllocation, ResourceClaim, ResourceClaimStatus, ResourceGrant,
        ResourceGrantStatus, ResourceRegistration, ResourceRegistrationStatus,
    },
};

use self::admission::is_consumer;
use crate::meta;

pub mod admission;
mod tally;

pub use tally::Tally;

/// What is there beside claims.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// Registrations of the whole platform.
    pub registrations: Vec<&'a ResourceRegistration>,
    /// Whether those are all that there are now. Else nothing is refused: that is final, and what is registered meanwhile would not be
    /// seen.
    pub is_current: bool,
    /// Grants of the project.
    pub grants: Vec<&'a ResourceGrant>,
    /// Buckets of the project.
    pub buckets: Vec<&'a AllowanceBucket>,
    /// Uids of the project's namespaces.
    pub namespaces: BTreeSet<&'a str>,
}

/// What to do, in this order: each step is of use if it is the last one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan<'a> {
    /// Claims whose owners are all gone, to be deleted. They count until they are gone.
    pub collect: Vec<Arc<ResourceClaim>>,
    /// Grants, and what to say about them.
    pub grants: Vec<(&'a ResourceGrant, ResourceGrantStatus)>,
    /// Buckets that are missing.
    pub create: Vec<AllowanceBucket>,
    /// Claims that are granted, with the answer.
    pub granted: Vec<(Arc<ResourceClaim>, ResourceClaimStatus)>,
    /// Buckets, and what to say about them once the claims above are granted.
    pub buckets: Vec<(&'a AllowanceBucket, AllowanceBucketStatus)>,
    /// Claims that are not granted, with the answer. Whoever reads it finds buckets that say why.
    pub refused: Vec<(Arc<ResourceClaim>, ResourceClaimStatus)>,
}

/// Tells budgets apart: whose it is, and of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Account {
    group: String,
    kind: String,
    consumer: String,
    resource: String,
}

impl Account {
    fn new(consumer: &ObjectReference, resource: &str) -> Self {
        Self {
            group: consumer.api_group.clone().unwrap_or_default(),
            kind: consumer.kind.clone(),
            consumer: consumer.name.clone(),
            resource: resource.to_owned(),
        }
    }

    fn bucket_name(&self) -> String {
        names::bucket_name(&self.kind, &self.consumer, &self.resource)
    }

    fn bucket(&self, namespace: &str) -> AllowanceBucket {
        let api_group = (!self.group.is_empty()).then(|| self.group.clone());
        AllowanceBucket {
            metadata: ObjectMeta {
                name: Some(self.bucket_name()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            spec: AllowanceBucketSpec {
                consumer_ref: ObjectReference {
                    api_group,
                    kind: self.kind.clone(),
                    name: self.consumer.clone(),
                    namespace: None,
                },
                resource_type: self.resource.clone(),
            },
            status: None,
        }
    }
}

/// A budget.
#[derive(Default)]
struct Budget<'a> {
    bucket: Option<&'a AllowanceBucket>,
    grants: Vec<ContributingGrant>,
    allocated: i64,
    claims: i64,
}

impl Budget<'_> {
    fn limit(&self) -> i64 {
        self.grants.iter().fold(0, |sum: i64, grant| sum.saturating_add(grant.amount))
    }

    fn available(&self) -> i64 {
        self.limit().saturating_sub(self.allocated).max(0)
    }

    fn take(&mut self, amount: i64) {
        self.allocated = self.allocated.saturating_add(amount);
        self.claims += 1;
    }
}

/// The budgets of a project.
type Budgets<'a> = BTreeMap<Account, Budget<'a>>;

/// What to do about a project's quota. Missing buckets are made in `namespace`.
pub fn decide<'a>(observed: &Observed<'a>, claims: &Tally, namespace: &str, now: Timestamp) -> Plan<'a> {
    let mut plan = Plan { collect: claims.abandoned(&observed.namespaces), ..Plan::default() };
    let mut budgets = Budgets::new();
    let mut buckets = observed.buckets.clone();
    buckets.sort_by_key(|bucket| (meta::namespace(&bucket.metadata), meta::name(&bucket.metadata)));
    for bucket in buckets {
        let account = Account::new(&bucket.spec.consumer_ref, &bucket.spec.resource_type);
        budgets.entry(account).or_default().bucket.get_or_insert(bucket);
    }
    add_grants(observed, &mut budgets, &mut plan, now);
    for (account, used) in claims.used() {
        let budget = budgets.entry(account.clone()).or_default();
        (budget.allocated, budget.claims) = (used.amount(), used.claims);
    }
    for claim in claims.waiting() {
        let status = match admission::check(&claim.spec, &observed.registrations) {
            Ok(consumer) if observed.is_current || fits(claim, consumer, &budgets) => {
                answer(claim, consumer, &mut budgets, now)
            }
            Err(problem) if observed.is_current => refuse(claim, &problem, now),
            Ok(_) | Err(_) => continue,
        };
        let is_granted = c::is_true(&status.conditions, q::CONDITION_GRANTED);
        if is_granted { &mut plan.granted } else { &mut plan.refused }.push((claim.clone(), status));
    }
    for (account, budget) in &budgets {
        match budget.bucket {
            None => plan.create.push(account.bucket(namespace)),
            Some(bucket) => plan.buckets.extend(sum_up(bucket, budget, now).map(|status| (bucket, status))),
        }
    }
    plan
}

fn add_grants<'a>(observed: &Observed<'a>, budgets: &mut Budgets<'a>, plan: &mut Plan<'a>, now: Timestamp) {
    let mut grants = observed.grants.clone();
    grants.sort_by_key(|grant| (meta::namespace(&grant.metadata), meta::name(&grant.metadata)));
    for grant in grants {
        let unknown = grant.spec.allowances.iter().find(|allowance| {
            let matches = |one: &&ResourceRegistration| {
                one.spec.resource_type == allowance.resource_type
                    && is_consumer(one, &grant.spec.consumer_ref)
            };
            !observed.registrations.iter().any(matches)
        });
        let update = match unknown {
            None => {
                Update::new(q::CONDITION_ACTIVE, Status::True, q::REASON_GRANT_ACTIVE, "The grant counts")
            }
            Some(unknown) => Update::new(
                q::CONDITION_ACTIVE,
                Status::False,
                q::REASON_VALIDATION_FAILED,
                format!("{} is not registered for such a consumer", unknown.resource_type),
            ),
        };
        let is_active = update.status == Status::True;
        let stored = grant.status.as_ref();
        let before = stored.map_or(&[][..], |status| &status.conditions);
        let wanted = ResourceGrantStatus {
            observed_generation: grant.metadata.generation,
            conditions: said(before, update, &grant.metadata, now),
        };
        if stored != Some(&wanted) {
            plan.grants.push((grant, wanted));
        }
        if !is_active || meta::is_being_deleted(&grant.metadata) {
            continue;
        }
        for allowance in &grant.spec.allowances {
            let amounts = allowance.buckets.iter().map(|bucket| bucket.amount.max(0));
            let account = Account::new(&grant.spec.consumer_ref, &allowance.resource_type);
            budgets.entry(account).or_default().grants.push(ContributingGrant {
                name: meta::name(&grant.metadata).to_owned(),
                last_observed_generation: grant.metadata.generation.unwrap_or_default(),
                amount: amounts.fold(0, i64::saturating_add),
            });
        }
    }
}

/// Whether a registration says what it is of, and for whom. One that does not would match whatever says as little.
pub fn makes_sense(registration: &ResourceRegistration) -> bool {
    !registration.spec.resource_type.is_empty() && !registration.spec.consumer_type.kind.is_empty()
}

/// What to say about a registration, if that is not what it says: all that make sense count.
pub fn activate(registration: &ResourceRegistration, now: Timestamp) -> Option<ResourceRegistrationStatus> {
    let stored = registration.status.as_ref();
    let (status, reason, message) = match makes_sense(registration) {
        true => (Status::True, q::REASON_REGISTRATION_ACTIVE, "The registration counts"),
        false => (Status::False, q::REASON_VALIDATION_FAILED, "It names no resource, or no kind of consumer"),
    };
    let update = Update::new(q::CONDITION_ACTIVE, status, reason, message);
    let before = stored.map_or(&[][..], |status| &status.conditions);
    let wanted = ResourceRegistrationStatus {
        observed_generation: registration.metadata.generation,
        conditions: said(before, update, &registration.metadata, now),
    };
    (stored != Some(&wanted)).then_some(wanted)
}

/// Whether the ledger has given its last word.
pub fn is_decided(claim: &ResourceClaim) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    c::find(conditions, q::CONDITION_GRANTED).is_some_and(|said| {
        Status::of(said) == Status::True
            || [q::REASON_QUOTA_EXCEEDED, q::REASON_VALIDATION_FAILED].contains(&said.reason.as_str())
    })
}

fn refuse(claim: &ResourceClaim, problem: &admission::Problem, now: Timestamp) -> ResourceClaimStatus {
    let message = format!("The claim is not valid: {problem}");
    let update = Update::new(q::CONDITION_GRANTED, Status::False, q::REASON_VALIDATION_FAILED, message);
    ResourceClaimStatus {
        observed_generation: claim.metadata.generation,
        conditions: said(stored(claim), update, &claim.metadata, now),
        allocations: Vec::new(),
    }
}

/// Whether budgets have all that a claim asks for.
fn fits(claim: &ResourceClaim, consumer: &ObjectReference, budgets: &Budgets<'_>) -> bool {
    claim.spec.requests.iter().all(|request| {
        let budget = budgets.get(&Account::new(consumer, &request.resource_type));
        request.amount <= budget.map_or(0, Budget::available)
    })
}

/// The answer to a claim that makes sense. What is granted is taken from its budget at once.
fn answer(
    claim: &ResourceClaim,
    consumer: &ObjectReference,
    budgets: &mut Budgets<'_>,
    now: Timestamp,
) -> ResourceClaimStatus {
    let mut missing = Vec::new();
    let allocations = claim.spec.requests.iter().map(|request| {
        let account = Account::new(consumer, &request.resource_type);
        let name = account.bucket_name();
        let budget = budgets.entry(account).or_default();
        let bucket = budget.bucket.map_or(name, |bucket| meta::name(&bucket.metadata).to_owned());
        let (asked, left) = (request.amount, budget.available());
        let is_granted = asked <= left;
        let message = if is_granted {
            budget.take(asked);
            format!("{asked} granted")
        } else {
            let message = format!("{asked} asked, {left} of {} left", budget.limit());
            missing.push(format!("{}: {message}", request.resource_type));
            message
        };
        let (status, reason) = match is_granted {
            true => (q::ALLOCATION_GRANTED, q::REASON_QUOTA_AVAILABLE),
            false => (q::ALLOCATION_DENIED, q::REASON_QUOTA_EXCEEDED),
        };
        ResourceAllocation {
            resource_type: request.resource_type.clone(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            allocated_amount: is_granted.then_some(asked),
            allocating_bucket: is_granted.then_some(bucket),
            last_transition_time: Some(Time(now)),
        }
    });
    let allocations = allocations.collect();
    let update = if missing.is_empty() {
        Update::new(q::CONDITION_GRANTED, Status::True, q::REASON_QUOTA_AVAILABLE, "The claim is granted")
    } else {
        let message = format!("The claim is denied: {}", missing.join("; "));
        Update::new(q::CONDITION_GRANTED, Status::False, q::REASON_QUOTA_EXCEEDED, message)
    };
    ResourceClaimStatus {
        observed_generation: claim.metadata.generation,
        conditions: said(stored(claim), update, &claim.metadata, now),
        allocations,
    }
}

/// What to say about a bucket, if that is not what it says.
fn sum_up(bucket: &AllowanceBucket, budget: &Budget<'_>, now: Timestamp) -> Option<AllowanceBucketStatus> {
    let stored = bucket.status.as_ref();
    let wanted = AllowanceBucketStatus {
        observed_generation: bucket.metadata.generation,
        limit: budget.limit(),
        allocated: budget.allocated,
        available: budget.available(),
        claim_count: budget.claims,
        grant_count: i64::try_from(budget.grants.len()).unwrap_or(i64::MAX),
        contributing_grant_refs: budget.grants.clone(),
        last_reconciliation: stored.and_then(|status| status.last_reconciliation.clone()),
    };
    let is_new = stored != Some(&wanted);
    is_new.then_some(AllowanceBucketStatus { last_reconciliation: Some(Time(now)), ..wanted })
}

fn stored(claim: &ResourceClaim) -> &[Condition] {
    claim.status.as_ref().map_or(&[], |status| &status.conditions)
}

fn said(before: &[Condition], update: Update, meta: &ObjectMeta, now: Timestamp) -> Vec<Condition> {
    vec![c::next(c::find(before, &update.type_), update.of_generation(meta.generation), now)]
}

#[cfg(test)]
mod tests;
