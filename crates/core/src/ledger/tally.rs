//! A project's claims as the ledger counts them: what they hold of each budget, who waits for an answer, whose owner is gone.
//!
//! Claims are put in one by one, as they change, so that a decision costs what has changed and what waits, and not what there is.
//!
//! # Guarantees
//!
//! What it says is what it would say if all claims were put into a new one, in any order: a claim that is put in again replaces what was
//! counted of it, whatever happened in between.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use compute_api::{
    conditions as c,
    k8s::{ObjectMeta, Timestamp},
    quota::{self as q, ResourceClaim, ResourceRequest},
};

use super::{Account, is_decided};
use crate::meta;

/// Namespace and name of a claim.
type Name = (String, String);

/// When it is a claim's turn: the oldest first.
type Turn = (Timestamp, Name);

/// What is counted of a project's claims.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    counted: BTreeMap<Name, Counted>,
    used: BTreeMap<Arc<Account>, Used>,
    waiting: BTreeMap<Turn, Arc<ResourceClaim>>,
    /// Decided claims by uid of the namespaces that own them and nothing else.
    owned: BTreeMap<String, BTreeMap<Name, Arc<ResourceClaim>>>,
}

/// What one claim adds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted {
    parts: Vec<(Arc<Account>, i64)>,
    turn: Option<Turn>,
    owners: Vec<String>,
}

/// How much of a budget claims hold. Wider than one amount: what is added can be taken off again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Used {
    amount: i128,
    pub(super) claims: i64,
}

impl Used {
    pub(super) fn amount(&self) -> i64 {
        i64::try_from(self.amount).unwrap_or(i64::MAX)
    }
}

impl Tally {
    /// A claim is as it is given, or is not there.
    pub fn update(&mut self, namespace: &str, name: &str, claim: Option<&Arc<ResourceClaim>>) {
        let name = (namespace.to_owned(), name.to_owned());
        self.forget(&name);
        if let Some(claim) = claim {
            self.count(name, claim);
        }
    }

    /// How many claims it knows.
    pub fn len(&self) -> usize {
        self.counted.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Claims that wait for an answer, the oldest first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.waiting.values()
    }

    /// Every budget that claims hold something of.
    pub(super) fn used(&self) -> impl Iterator<Item = (&Account, Used)> {
        self.used.iter().map(|(account, used)| (&**account, *used))
    }

    /// Decided claims whose owners are all gone, and which are not on their way out.
    pub(super) fn abandoned(&self, namespaces: &BTreeSet<&str>) -> Vec<Arc<ResourceClaim>> {
        let gone = self.owned.iter().filter(|(owner, _)| !namespaces.contains(owner.as_str()));
        let mut found = BTreeMap::new();
        for (name, claim) in gone.flat_map(|(_, claims)| claims) {
            let owners = self.counted.get(name).map_or(&[][..], |counted| &counted.owners);
            if owners.iter().all(|owner| !namespaces.contains(owner.as_str())) {
                found.insert(name, claim.clone());
            }
        }
        found.into_values().collect()
    }

    fn count(&mut self, name: Name, claim: &Arc<ResourceClaim>) {
        let mut counted = Counted::default();
        if is_decided(claim) {
            for (account, amount) in granted_parts(claim) {
                counted.parts.push((self.take(account, amount), amount));
            }
            counted.owners = owners(&claim.metadata);
            for owner in &counted.owners {
                self.owned.entry(owner.clone()).or_default().insert(name.clone(), claim.clone());
            }
        } else if !meta::is_being_deleted(&claim.metadata) {
            let turn = (meta::created(&claim.metadata), name.clone());
            self.waiting.insert(turn.clone(), claim.clone());
            counted.turn = Some(turn);
        }
        self.counted.insert(name, counted);
    }

    fn take(&mut self, account: Account, amount: i64) -> Arc<Account> {
        let shared = self.used.get_key_value(&account).map(|(shared, _)| shared.clone());
        let shared = shared.unwrap_or_else(|| Arc::new(account));
        let used = self.used.entry(shared.clone()).or_default();
        used.amount += i128::from(amount);
        used.claims += 1;
        shared
    }

    fn forget(&mut self, name: &Name) {
        let Some(Counted { parts, turn, owners }) = self.counted.remove(name) else { return };
        for (account, amount) in parts {
            if let Some(used) = self.used.get_mut(&account) {
                used.amount -= i128::from(amount);
                used.claims -= 1;
                if used.claims == 0 {
                    self.used.remove(&account);
                }
            }
        }
        if let Some(turn) = turn {
            self.waiting.remove(&turn);
        }
        for owner in owners {
            if let Some(claims) = self.owned.get_mut(&owner) {
                claims.remove(name);
                if claims.is_empty() {
                    self.owned.remove(&owner);
                }
            }
        }
    }
}

/// Uids of the namespaces that a claim is for, if it is for nothing else. Owners of other kinds are the business of the plane's own
/// garbage collection, and one that is on its way out is waited for.
fn owners(claim: &ObjectMeta) -> Vec<String> {
    let owners = claim.owner_references.as_deref().unwrap_or_default();
    let are_namespaces = owners.iter().all(|owner| owner.api_version == "v1" && owner.kind == "Namespace");
    match are_namespaces && !meta::is_being_deleted(claim) {
        true => owners.iter().map(|owner| owner.uid.clone()).collect(),
        false => Vec::new(),
    }
}

/// What of a decided claim was granted.
pub(super) fn granted_parts(claim: &ResourceClaim) -> Vec<(Account, i64)> {
    let (Some(status), Some(consumer)) = (&claim.status, &claim.spec.consumer_ref) else { return Vec::new() };
    let asked = |resource: &str| {
        let same = |request: &&ResourceRequest| request.resource_type == resource;
        claim.spec.requests.iter().find(same).map_or(0, |request| request.amount)
    };
    if status.allocations.is_empty() && c::is_true(&status.conditions, q::CONDITION_GRANTED) {
        let all = claim.spec.requests.iter();
        return all.map(|one| (Account::new(consumer, &one.resource_type), one.amount.max(0))).collect();
    }
    let granted = status.allocations.iter().filter(|one| one.status == q::ALLOCATION_GRANTED);
    granted
        .map(|one| {
            let amount = one.allocated_amount.unwrap_or_else(|| asked(&one.resource_type));
            (Account::new(consumer, &one.resource_type), amount.max(0))
        })
        .collect()
}
