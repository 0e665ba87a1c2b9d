//! From each row of the table to each other that can follow it. What is said of quota, and of the instance, follows; the gate goes
//! with a grant, and with nothing else.

use std::time::Duration;

use kube::api::DeleteParams;

use super::super::ledger::Gates;
use super::super::objects::{WEB, deployment};
use super::super::world::{Shape, World, eventually};
use super::FIRST;
use super::rows::{Row, says, small_world};

/// Whether a row can follow another, for one instance in one process.
fn is_possible(from: Row, to: Row) -> bool {
    let same = from.says() == to.says();
    // Which project a namespace belongs to is remembered while it has instances.
    let forgets = to == Row::ProjectIdUnresolvable;
    // An answer stands until there is another.
    let stands = to == Row::PendingEvaluation && from.is_said_of_a_claim();
    !(same || forgets || stands)
}

/// The ledger does not look again at what it calls invalid: another claim is made in the end, and most of that time nothing happens.
async fn another_claim(world: &World) {
    world.platform.slow_down();
    tokio::time::sleep(Duration::from_secs(240)).await;
    world.platform.speed_up();
}

async fn from(row: Row) {
    let world = small_world().await;
    let gates = Gates::watch(&world).await;
    Row::Available.enter(&world).await;
    world.deploy(&deployment(WEB, 0)).await;
    for to in Row::ALL.into_iter().filter(|to| is_possible(row, *to)) {
        row.enter(&world).await;
        world.scale(WEB, 1).await;
        says(&world, FIRST, row.says()).await;
        to.enter(&world).await;
        if row == Row::ValidationFailed {
            another_claim(&world).await;
        }
        says(&world, FIRST, to.says()).await;
        // Whatever it was, it heals.
        Row::Available.enter(&world).await;
        if to == Row::ValidationFailed {
            another_claim(&world).await;
        }
        world.ready(WEB, 1).await;
        world.scale(WEB, 0).await;
        world.gone(FIRST).await;
    }
    gates.assert_never_opened_without_a_grant();
}

macro_rules! transitions {
    ($($test:ident: $row:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            from(Row::$row).await;
        }
    )*};
}

transitions! {
    from_pending_evaluation: PendingEvaluation,
    from_quota_exceeded: Exceeded,
    from_quota_no_budget_undecided: NoBudgetUndecided,
    from_quota_no_budget_all_limits_zero: NoBudgetAllLimitsZero,
    from_quota_backend_unavailable: BackendUnavailable,
    from_quota_project_id_unresolvable: ProjectIdUnresolvable,
    from_quota_namespace_not_found: NamespaceNotFound,
    from_quota_project_not_found: ProjectNotFound,
    from_quota_misconfigured: Misconfigured,
    from_validation_failed: ValidationFailed,
}

/// A grant stands, whatever becomes of the ledger, the claim or the namespace's labels.
#[tokio::test(start_paused = true)]
async fn from_quota_available() {
    let world = small_world().await;
    Row::Available.enter(&world).await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    for to in Row::ALL {
        to.enter(&world).await;
        // The claim is gone too, for those who could see it.
        let _ = world.claims().delete(super::CLAIM, &DeleteParams::default()).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        says(&world, FIRST, Row::Available.says()).await;
        world.ready(WEB, 1).await;
    }
}

/// Quota that is configured later is asked for what runs already; what runs runs on.
#[tokio::test(start_paused = true)]
async fn from_quota_disabled_and_back() {
    let mut world = World::with(Shape { quota: false, ..Shape::default() }).await;
    world.deploy(&deployment(WEB, 1)).await;
    world.ready(WEB, 1).await;
    says(&world, FIRST, ("True", "QuotaDisabled")).await;
    for (row, claims) in [(Row::Available, 1), (Row::Exceeded, 0)] {
        row.enter(&world).await;
        world.stop().await;
        world.configure_quota(true);
        world.start();
        let said = world.says(FIRST, "QuotaGranted", row.says().1).await;
        assert_eq!(said.status, row.says().0);
        eventually("its claims", async || {
            let found = world.claims().list(&Default::default()).await.unwrap().items.len();
            if found == claims { Ok(()) } else { Err(found.to_string()) }
        })
        .await;
        world.ready(WEB, 1).await;
        let _ = world.claims().delete(super::CLAIM, &DeleteParams::default()).await;
        world.stop().await;
        world.configure_quota(false);
        world.start();
        says(&world, FIRST, ("True", "QuotaDisabled")).await;
    }
}

/// What a namespace stands for is asked again by a new process.
#[tokio::test(start_paused = true)]
async fn to_quota_project_id_unresolvable() {
    for row in Row::ALL {
        if matches!(row, Row::Available | Row::ProjectIdUnresolvable) {
            continue;
        }
        let mut world = small_world().await;
        row.enter(&world).await;
        world.deploy(&deployment(WEB, 1)).await;
        says(&world, FIRST, row.says()).await;
        world.stop().await;
        Row::ProjectIdUnresolvable.enter(&world).await;
        world.start();
        says(&world, FIRST, Row::ProjectIdUnresolvable.says()).await;
    }
}
