//! The rows of the contract's table of quota answers: how the world has to be for each, what is said then, and a test for each.

use compute_api::k8s::Namespace;
use compute_api::labels;
use compute_api::quota::{RESOURCE_INSTANCES, RESOURCE_MEMORY, RESOURCE_VCPUS};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::super::faults::{Fault, Manner, Mode, Watches};
use super::super::objects::{WEB, condition, deployment, gates, summary};
use super::super::platform::{Ledger, Networks};
use super::super::world::{Shape, World, eventually, namespace};
use super::{CLAIM, FIRST};

/// A row of the table, for an instance that has not been granted anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    PendingEvaluation,
    Available,
    Exceeded,
    NoBudgetUndecided,
    NoBudgetAllLimitsZero,
    BackendUnavailable,
    ProjectIdUnresolvable,
    NamespaceNotFound,
    ProjectNotFound,
    Misconfigured,
    ValidationFailed,
}

impl Row {
    pub const ALL: [Self; 11] = [
        Self::PendingEvaluation,
        Self::Available,
        Self::Exceeded,
        Self::NoBudgetUndecided,
        Self::NoBudgetAllLimitsZero,
        Self::BackendUnavailable,
        Self::ProjectIdUnresolvable,
        Self::NamespaceNotFound,
        Self::ProjectNotFound,
        Self::Misconfigured,
        Self::ValidationFailed,
    ];

    /// Makes the world so that the next answer is this one.
    pub async fn enter(self, world: &World) {
        world.project_way.mend();
        name_project(world, (self != Self::ProjectIdUnresolvable).then_some("cluster-shop")).await;
        let ledger = match self {
            Self::Available => Ledger::Limit(1000),
            Self::Exceeded | Self::NoBudgetAllLimitsZero => Ledger::Limit(0),
            Self::NoBudgetUndecided => Ledger::Undecided,
            Self::ValidationFailed => Ledger::Invalid,
            _ => Ledger::Off,
        };
        let limit = if self == Self::NoBudgetAllLimitsZero { 0 } else { 2000 };
        for resource in [RESOURCE_INSTANCES, RESOURCE_VCPUS, RESOURCE_MEMORY] {
            world.platform.bucket(resource, limit, 0).await;
        }
        world.platform.set(|settings| settings.ledger = ledger);
        match self {
            Self::BackendUnavailable => world.project_way.set(Mode::Failing),
            Self::ProjectNotFound => world.project_way.set(Mode::Answering(404)),
            Self::Misconfigured => world.project_way.set(Mode::Answering(403)),
            Self::NamespaceNotFound => {
                world.project_way.set_watches(Watches::Broken("/resourceclaims"));
                world.project_way.set_faults(&[
                    fault("GET", CLAIM, Manner::Answer(404, "resourceclaims")),
                    fault("POST", "/resourceclaims", Manner::Answer(404, "namespaces")),
                ]);
            }
            _ => {}
        }
    }

    /// Status and reason of `QuotaGranted`.
    pub fn says(self) -> (&'static str, &'static str) {
        match self {
            Self::PendingEvaluation => ("Unknown", "PendingEvaluation"),
            Self::Available => ("True", "QuotaAvailable"),
            Self::Exceeded => ("False", "QuotaExceeded"),
            Self::NoBudgetUndecided | Self::NoBudgetAllLimitsZero => ("Unknown", "QuotaNoBudget"),
            Self::BackendUnavailable => ("Unknown", "QuotaBackendUnavailable"),
            Self::ProjectIdUnresolvable => ("Unknown", "QuotaProjectIDUnresolvable"),
            Self::NamespaceNotFound => ("Unknown", "QuotaNamespaceNotFound"),
            Self::ProjectNotFound => ("Unknown", "QuotaProjectNotFound"),
            Self::Misconfigured => ("False", "QuotaMisconfigured"),
            Self::ValidationFailed => ("False", "ValidationFailed"),
        }
    }

    /// Whether the ledger has said it of a claim: it stands until another is answered.
    pub fn is_said_of_a_claim(self) -> bool {
        matches!(
            self,
            Self::Exceeded | Self::NoBudgetUndecided | Self::NoBudgetAllLimitsZero | Self::ValidationFailed
        )
    }
}

/// A world without networks: there is less for the test's platform to look at.
pub async fn small_world() -> World {
    let world = World::with(Shape { networking: false, ..Shape::default() }).await;
    world.platform.set(|settings| settings.networks = Networks::Off);
    world
}

pub fn fault(method: &'static str, path: &'static str, manner: Manner) -> Fault {
    Fault { method, path, manner }
}

/// Says, or does not say, which project the cell's namespace belongs to.
pub async fn name_project(world: &World, label: Option<&str>) {
    let api: Api<Namespace> = Api::all(world.cell.clone());
    let named = json!({ "metadata": { "labels": { (labels::UPSTREAM_CLUSTER_NAME): label } } });
    api.patch(&namespace(), &PatchParams::default(), &Patch::Merge(named)).await.unwrap();
}

/// Waits until an instance says this of quota, and so of itself; the gate is there unless it is a grant.
pub async fn says(world: &World, name: &str, (status, reason): (&str, &str)) -> String {
    let said = world.says(name, "QuotaGranted", reason).await;
    assert_eq!(said.status, status, "{reason}");
    if status == "True" {
        eventually("the gate goes", async || {
            let held = gates(&world.instances().get(name).await.unwrap());
            if held.contains(&"Quota".to_owned()) { Err("it is there") } else { Ok(()) }
        })
        .await;
    } else {
        let ready = if reason == "PendingEvaluation" { "PendingQuota" } else { reason };
        eventually(&format!("{name} sums up {reason}"), async || {
            let instance = world.instances().get(name).await.unwrap();
            assert!(gates(&instance).contains(&"Quota".to_owned()), "{reason}");
            let (quota, sum) = (condition(&instance, "QuotaGranted"), condition(&instance, "Ready"));
            let (quota, sum) = (quota.unwrap(), sum.unwrap());
            // With the reason goes its own message.
            match (sum.status.as_str(), sum.reason.as_str(), &sum.message) == ("False", ready, &quota.message)
            {
                true => Ok(()),
                false => Err(summary(&instance)),
            }
        })
        .await;
    }
    said.message
}

/// A failure is also an event, and is counted; and it heals.
async fn is_a_failure(world: &World, reason: &str) {
    world.warned(FIRST, reason).await;
    let counted = world.metric(&format!("compute_quota_eval_failures_total{{reason=\"{reason}\"}}"));
    assert!(counted >= Some(1), "{reason}: {counted:?}");
    Row::Available.enter(world).await;
    world.ready(WEB, 1).await;
}

async fn shows(row: Row) -> (World, String) {
    let world = small_world().await;
    row.enter(&world).await;
    world.deploy(&deployment(WEB, 1)).await;
    let message = says(&world, FIRST, row.says()).await;
    (world, message)
}

async fn fails(row: Row) -> String {
    let (world, message) = shows(row).await;
    is_a_failure(&world, row.says().1).await;
    message
}

#[tokio::test(start_paused = true)]
async fn quota_disabled() {
    let world = World::with(Shape { quota: false, ..Shape::default() }).await;
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, ("True", "QuotaDisabled")).await;
    world.ready(WEB, 1).await;
    assert_eq!(world.metric("compute_quota_enforcement_enabled"), Some(0));
    assert!(world.project_way.take_asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn pending_evaluation() {
    let (world, _) = shows(Row::PendingEvaluation).await;
    assert_eq!(world.metric("compute_quota_enforcement_enabled"), Some(1));
    assert!(world.claims().get_opt(CLAIM).await.unwrap().is_some());
    assert!(world.warnings(FIRST).await.is_empty(), "nothing is wrong");
    // However long it takes, it is not taken for undecided: nobody has looked.
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    says(&world, FIRST, Row::PendingEvaluation.says()).await;
    Row::Available.enter(&world).await;
    world.ready(WEB, 1).await;
}

#[tokio::test(start_paused = true)]
async fn quota_available() {
    let (world, _) = shows(Row::Available).await;
    world.ready(WEB, 1).await;
    let instance = world.instances().get(FIRST).await.unwrap();
    let said = condition(&instance, "QuotaGranted").unwrap();
    // The gate went with the generation that the grant was told for.
    assert_eq!(said.observed_generation, instance.metadata.generation);
    assert!(world.warnings(FIRST).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn quota_exceeded() {
    let message = fails(Row::Exceeded).await;
    for part in
        ["1 instance asked, 0 instances of 2000 instances left", "1 vCPU asked, 0 vCPU of 2 vCPU left"]
    {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn quota_no_budget_undecided() {
    let before = tokio::time::Instant::now();
    let (world, _) = shows(Row::NoBudgetUndecided).await;
    assert!(before.elapsed() >= std::time::Duration::from_secs(10), "{:?}", before.elapsed());
    assert!(world.claims().get_opt(CLAIM).await.unwrap().is_some(), "it may still be decided");
    is_a_failure(&world, "QuotaNoBudget").await;
}

#[tokio::test(start_paused = true)]
async fn quota_no_budget_all_limits_zero() {
    let (world, _) = shows(Row::NoBudgetAllLimitsZero).await;
    eventually("the denied claim is gone", async || {
        world.claims().get_opt(CLAIM).await.unwrap().map_or(Ok(()), |_| Err("it is there"))
    })
    .await;
    is_a_failure(&world, "QuotaNoBudget").await;
}

/// The ledger fails in one way, from the beginning.
async fn backend_fails(fail: impl FnOnce(&World)) -> World {
    let world = small_world().await;
    fail(&world);
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::BackendUnavailable.says()).await;
    world
}

async fn backend_answers(code: u16) {
    let world = backend_fails(|world| world.project_way.set(Mode::Answering(code))).await;
    is_a_failure(&world, "QuotaBackendUnavailable").await;
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_401() {
    backend_answers(401).await;
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_429() {
    backend_answers(429).await;
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_5xx() {
    for code in [500, 503, 504] {
        backend_answers(code).await;
    }
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_timeout() {
    let hang = [fault("POST", "/resourceclaims", Manner::Hang)];
    let world = backend_fails(|world| world.project_way.set_faults(&hang)).await;
    assert!(world.claims().get_opt(CLAIM).await.unwrap().is_none());
    is_a_failure(&world, "QuotaBackendUnavailable").await;
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_timeout_after_effect() {
    for manner in [Manner::Lose, Manner::Break] {
        let lose = [fault("POST", "/resourceclaims", manner)];
        let world = backend_fails(|world| {
            world.project_way.set_faults(&lose);
            // Nor does a watch tell.
            world.project_way.set_watches(Watches::Broken("/resourceclaims"));
        })
        .await;
        let made = world.claims().get(CLAIM).await.unwrap();
        is_a_failure(&world, "QuotaBackendUnavailable").await;
        let all = world.claims().list(&ListParams::default()).await.unwrap().items;
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0].metadata.uid, made.metadata.uid,
            "the claim that was made is the one that is granted"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_unreachable() {
    fails(Row::BackendUnavailable).await;
}

#[tokio::test(start_paused = true)]
async fn quota_backend_unavailable_no_client() {
    let world = small_world().await;
    name_project(&world, Some("cluster-nowhere")).await;
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::BackendUnavailable.says()).await;
    world.warned(FIRST, "QuotaBackendUnavailable").await;
    assert!(world.project_way.take_asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn quota_project_id_unresolvable() {
    fails(Row::ProjectIdUnresolvable).await;
    // The other half.
    let world = small_world().await;
    let api: Api<Namespace> = Api::all(world.cell.clone());
    let bare = json!({ "metadata": { "labels": { (labels::UPSTREAM_NAMESPACE): null } } });
    api.patch(&namespace(), &PatchParams::default(), &Patch::Merge(bare)).await.unwrap();
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::ProjectIdUnresolvable.says()).await;
    assert_eq!(
        world.runtime.metrics().reconciles("instance", "error"),
        0,
        "it is looked at again, not failed"
    );
}

/// The way to the cell's own server: a read that fails says nothing about labels.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_cannot_be_read_is_an_error_with_backoff() {
    let world = small_world().await;
    for manner in [Manner::Answer(500, "namespaces"), Manner::Hang] {
        let name: &'static str = namespace().leak();
        world.cell_way.set_faults(&[fault("GET", name, manner)]);
        world.deploy(&deployment(WEB, 1)).await;
        says(&world, FIRST, Row::PendingEvaluation.says()).await;
        eventually("it fails", async || {
            let failed = world.runtime.metrics().reconciles("instance", "error");
            if failed > 0 { Ok(()) } else { Err("not yet") }
        })
        .await;
        world.cell_way.mend();
        world.ready(WEB, 1).await;
        super::remove(&world, WEB).await;
        world.gone(FIRST).await;
    }
}

#[tokio::test(start_paused = true)]
async fn quota_namespace_not_found() {
    fails(Row::NamespaceNotFound).await;
    // The same from a server that has none.
    let world = small_world().await;
    let api: Api<Namespace> = Api::all(world.cell.clone());
    let other = json!({ "metadata": { "labels": { (labels::UPSTREAM_NAMESPACE): "nowhere" } } });
    api.patch(&namespace(), &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::NamespaceNotFound.says()).await;
}

#[tokio::test(start_paused = true)]
async fn quota_project_not_found() {
    fails(Row::ProjectNotFound).await;
}

#[tokio::test(start_paused = true)]
async fn quota_misconfigured_403() {
    let message = fails(Row::Misconfigured).await;
    assert_eq!(message, "made up by a test", "what the ledger says");
}

#[tokio::test(start_paused = true)]
async fn quota_misconfigured_422() {
    let world = small_world().await;
    let refuse = [fault("POST", "/resourceclaims", Manner::Answer(422, "resourceclaims"))];
    world.project_way.set_faults(&refuse);
    world.deploy(&deployment(WEB, 1)).await;
    says(&world, FIRST, Row::Misconfigured.says()).await;
    is_a_failure(&world, "QuotaMisconfigured").await;
}

#[tokio::test(start_paused = true)]
async fn validation_failed() {
    let message = fails(Row::ValidationFailed).await;
    assert_eq!(message, "said", "what the ledger says");
}
