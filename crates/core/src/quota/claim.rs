//! The claim of an instance: making it, reading the ledger's answer, and what failed requests mean.

use std::time::Duration;

use compute_api::{
    conditions::{self as c, Status},
    k8s::{Namespace, ObjectMeta, OwnerReference, Resource, Timestamp},
    labels, names,
    quota::{
        self as ledger, AllowanceBucket, ObjectReference, RESOURCE_INSTANCES, RESOURCE_MEMORY,
        RESOURCE_VCPUS, ResourceClaim, ResourceClaimSpec, ResourceRequest,
    },
};

use super::{Outcome, size::Size};
use crate::{federation::Upstream, meta};

/// How long a claim that the ledger has looked at may stay undecided before that means that no budget covers it.
const UNDECIDED_PATIENCE: Duration = Duration::from_secs(10);

/// How long a claim stands that the ledger calls invalid: as long as the longest pause after a denial.
const INVALID_PATIENCE: Duration = Duration::from_secs(300);

/// Whose claim it is.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// Metadata of the instance.
    pub instance: &'a ObjectMeta,
    /// The project's namespace that the claim is made in.
    pub upstream: &'a Upstream,
    /// This cell.
    pub source_cluster: &'a str,
}

/// The claim of an instance, to be created in its project.
pub fn build(claimant: Claimant<'_>, size: Size) -> ResourceClaim {
    let Claimant { instance, upstream, source_cluster } = claimant;
    let project = ObjectReference::project(names::bare_project_name(&upstream.project));
    let request =
        |resource_type: &str, amount| ResourceRequest { resource_type: resource_type.to_owned(), amount };
    // Without an owner the ledger may take the claim for abandoned. In a cell the namespace is named by the uid of
    // the project's; in direct mode it is the project's own, whatever it is called, and there is no owner to name.
    let uid = names::project_namespace_uid(meta::namespace(instance));
    let uid = uid.filter(|_| upstream.namespace != meta::namespace(instance));
    let owner = uid.map(|uid| OwnerReference {
        api_version: Namespace::api_version(&()).into_owned(),
        kind: Namespace::kind(&()).into_owned(),
        name: upstream.namespace.clone(),
        uid: uid.to_owned(),
        controller: None,
        block_owner_deletion: None,
    });
    ResourceClaim {
        metadata: ObjectMeta {
            name: Some(names::claim_name(meta::name(instance))),
            namespace: Some(upstream.namespace.clone()),
            labels: Some(meta::map([
                (labels::INSTANCE_NAMESPACE, meta::namespace(instance)),
                (labels::INSTANCE_UID, meta::uid(instance)),
                (labels::SOURCE_CLUSTER, source_cluster),
            ])),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: ResourceClaimSpec {
            consumer_ref: Some(project.clone()),
            resource_ref: Some(project),
            requests: vec![
                request(RESOURCE_INSTANCES, 1),
                request(RESOURCE_VCPUS, size.vcpu_millis),
                request(RESOURCE_MEMORY, size.memory_mib),
            ],
        },
        status: None,
    }
}

/// What a claim of an instance's name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The instance's own, and what the ledger says to it.
    Own(Outcome),
    /// Left by an earlier instance of this cell of the name, or denied and on its way out: to be deleted, if it is not
    /// already, and awaited.
    Leftover {
        /// Its uid.
        uid: String,
        /// Whether it is being deleted already.
        leaving: bool,
    },
    /// Called the instance's own, and not what the instance needs: to be deleted.
    Wrong,
    /// Not made by this cell: never deleted.
    Foreign {
        /// The cell that made it, if it says.
        source_cluster: Option<String>,
    },
}

/// What a claim that holds an instance's name is. `size` is what the instance takes, if that is to be compared; `buckets` are the
/// budgets that could be read.
pub fn read<'a>(
    claim: &ResourceClaim,
    claimant: Claimant<'_>,
    size: Option<Size>,
    buckets: impl IntoIterator<Item = &'a AllowanceBucket>,
    now: Timestamp,
) -> Found {
    let label = |key| meta::label(&claim.metadata, key);
    let source_cluster = label(labels::SOURCE_CLUSTER);
    let Some(instance) =
        label(labels::INSTANCE_UID).filter(|_| source_cluster == Some(claimant.source_cluster))
    else {
        return Found::Foreign { source_cluster: source_cluster.map(str::to_owned) };
    };
    let leaving = meta::is_being_deleted(&claim.metadata);
    if leaving || instance != meta::uid(claimant.instance) {
        return Found::Leftover { uid: meta::uid(&claim.metadata).to_owned(), leaving };
    }
    if size.is_some_and(|size| !asks_for(claim, &build(claimant, size))) {
        return Found::Wrong;
    }
    Found::Own(answer(claim, &buckets.into_iter().collect::<Vec<_>>(), now))
}

/// Whether a claim asks for the same, on behalf of the same, as another.
fn asks_for(claim: &ResourceClaim, wanted: &ResourceClaim) -> bool {
    let consumer = |claim: &ResourceClaim| {
        let consumer = claim.spec.consumer_ref.as_ref();
        consumer.map(|one| (one.api_group.clone(), one.kind.clone(), one.name.clone()))
    };
    let requests = |claim: &ResourceClaim| {
        let requests = claim.spec.requests.iter();
        let mut all: Vec<_> = requests.map(|one| (one.resource_type.clone(), one.amount)).collect();
        all.sort();
        all
    };
    consumer(claim) == consumer(wanted) && requests(claim) == requests(wanted)
}

/// Whether the ledger has denied a claim. That is final, and what it has granted of it still counts: the claim has to go.
pub fn is_denied(claim: &ResourceClaim) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    c::find(conditions, ledger::CONDITION_GRANTED)
        .is_some_and(|said| Status::of(said) == Status::False && said.reason == ledger::REASON_QUOTA_EXCEEDED)
}

/// Whether the ledger has granted a claim: when it goes, others can have what it took.
pub fn is_granted(claim: &ResourceClaim) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    c::is_true(conditions, ledger::CONDITION_GRANTED)
}

/// Whether the ledger has given its last word on a claim: nothing that happens changes it.
pub fn is_answered(claim: &ResourceClaim) -> bool {
    crate::ledger::is_decided(claim)
}

/// Whether a claim that the ledger calls invalid has stood for so long that another is worth a try: what made it so may have been mended,
/// and the ledger does not look at it again.
pub fn is_given_up(claim: &ResourceClaim, now: Timestamp) -> bool {
    let conditions = claim.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let invalid = c::find(conditions, ledger::CONDITION_GRANTED).is_some_and(|said| {
        Status::of(said) == Status::False && said.reason == ledger::REASON_VALIDATION_FAILED
    });
    let age = meta::created(&claim.metadata).duration_until(now);
    invalid && Duration::try_from(age).is_ok_and(|age| age >= INVALID_PATIENCE)
}

/// How long until a claim that the ledger has looked at, and not decided, means that no budget covers it. `None` if the ledger
/// has not looked, or that time is over.
pub fn undecided_for(claim: &ResourceClaim, now: Timestamp) -> Option<Duration> {
    claim.status.as_ref()?.observed_generation?;
    let age = meta::created(&claim.metadata).duration_until(now);
    UNDECIDED_PATIENCE.checked_sub(Duration::try_from(age).unwrap_or_default()).filter(|left| !left.is_zero())
}

fn answer(claim: &ResourceClaim, buckets: &[&AllowanceBucket], now: Timestamp) -> Outcome {
    let Some(status) = &claim.status else { return Outcome::NotEvaluated };
    let granted = c::find(&status.conditions, ledger::CONDITION_GRANTED);
    if let Some(said) = granted {
        match (Status::of(said), said.reason.as_str()) {
            (Status::True, _) => return Outcome::Granted,
            (Status::False, ledger::REASON_QUOTA_EXCEEDED) => return denial(claim, buckets),
            (Status::False, ledger::REASON_VALIDATION_FAILED) => {
                return Outcome::Invalid { message: said.message.clone() };
            }
            (Status::False | Status::Unknown, _) => {}
        }
    }
    let age = meta::created(&claim.metadata).duration_until(now);
    let old = Duration::try_from(age).is_ok_and(|age| age >= UNDECIDED_PATIENCE);
    if status.observed_generation.is_some() && old { Outcome::NoBudget } else { Outcome::NotEvaluated }
}

fn denial(claim: &ResourceClaim, buckets: &[&AllowanceBucket]) -> Outcome {
    let about = |request: &ResourceRequest| {
        let of_resource = |bucket: &&&AllowanceBucket| bucket.spec.resource_type == request.resource_type;
        let statuses = buckets.iter().filter(of_resource).filter_map(|bucket| bucket.status.as_ref());
        statuses.map(|status| (status.limit, status.available)).reduce(|a, b| (a.0 + b.0, a.1 + b.1))
    };
    let requests = &claim.spec.requests;
    let readable: Vec<_> = requests.iter().filter_map(about).collect();
    if !readable.is_empty() && readable.iter().all(|(limit, _)| *limit == 0) {
        return Outcome::NoBudget;
    }
    // What there is enough of is of no interest, unless nobody knows what there is too little of.
    let lacks = |request: &&ResourceRequest| about(request).is_some_and(|(_, left)| left < request.amount);
    let lacking = requests.iter().any(|request| lacks(&request));
    let parts: Vec<_> = requests
        .iter()
        .filter(|request| !lacking || lacks(request))
        .map(|request| {
            let asked = amount(&request.resource_type, request.amount);
            match about(request) {
                Some((limit, left)) => format!(
                    "{asked} asked, {} of {} left",
                    amount(&request.resource_type, left),
                    amount(&request.resource_type, limit)
                ),
                None => format!("{asked} asked"),
            }
        })
        .collect();
    Outcome::Denied {
        message: format!("The project's quota does not cover the instance: {}", parts.join("; ")),
    }
}

/// An amount in the words of people.
fn amount(resource_type: &str, amount: i64) -> String {
    match resource_type {
        RESOURCE_INSTANCES => format!("{amount} instance{}", if amount == 1 { "" } else { "s" }),
        RESOURCE_VCPUS if amount % 1000 == 0 => format!("{} vCPU", amount / 1000),
        RESOURCE_VCPUS => format!("{amount}m vCPU"),
        RESOURCE_MEMORY => format!("{amount} MiB memory"),
        other => format!("{amount} {other}"),
    }
}

/// A request to the ledger that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status. `None`: there was no answer at all.
    pub code: Option<u16>,
    /// The kind of resource that the answer is about, as its details name it.
    pub kind: Option<String>,
    /// What the answer says.
    pub message: String,
}

/// What it means that the ledger could not be asked, or did not take a claim.
pub fn failed(failure: &Failure) -> Outcome {
    let message = failure.message.clone();
    match failure.code {
        Some(404) if failure.kind.as_deref() == Some("namespaces") => Outcome::NamespaceNotFound,
        Some(404) => Outcome::ProjectNotFound,
        None | Some(401 | 408 | 409 | 429 | 500..) => Outcome::Unreachable { message },
        Some(_) => Outcome::Refused { message },
    }
}

/// What became of releasing a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It is gone.
    Released,
    /// It is not known to be gone: the instance's object waits.
    Held,
    /// It cannot be asked for any more: told loudly, and let go.
    Orphaned,
}

/// What a failed delete of a claim means.
pub fn release_failed(failure: &Failure, namespace_is_being_deleted: bool) -> Release {
    match failure.code {
        Some(404) => Release::Released,
        Some(403) if namespace_is_being_deleted => Release::Orphaned,
        None | Some(_) => Release::Held,
    }
}
