//! Two replicas of the management role, of which one leads.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use crate::objects::{placement, workload};
use crate::real::{RealStack, install};
use crate::stack::{Stack as _, Worker};
use crate::view::View;
use crate::wait::eventually;

const LEASE: &str = "compute-manager-management";

async fn holder(stack: &RealStack) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(stack.foundation.management.admin(), install::NAMESPACE);
    let found = leases.get_opt(LEASE).await.unwrap();
    found.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty())
}

async fn until_another_leads(stack: &RealStack, before: Option<&str>) -> String {
    eventually("another one leads", async || match holder(stack).await {
        Some(holder) if Some(holder.as_str()) != before => Ok(holder),
        other => Err(format!("{other:?}")),
    })
    .await
}

/// A leader that is killed in the middle of its work is followed by the other replica, which goes on with it; one that is told to stop hands over.
/// Writes are judged all the time.
pub async fn leader_killed(stack: &RealStack) {
    let view = View::new(stack, "leaders").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    stack.crash(&Worker::Management).await;
    let before = holder(stack).await;
    let mut leader = stack.start_replica(0).await;
    let mut known = until_another_leads(stack, before.as_deref()).await;
    let mut other = stack.start_replica(1).await;
    view.create(&workload("web", &[here, there], 1)).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;
    for round in 0..3 {
        let count = round + 2;
        view.set_placements("web", &[placement("main", &[here, there], count)]).await;
        let replica = usize::try_from(round % 2).unwrap();
        if round < 2 {
            leader.kill().await;
        } else {
            leader.stop().await;
        }
        // The one that is left judges, also before it leads.
        view.change("web", &serde_json::json!({ "metadata": { "labels": { "round": round.to_string() } } }))
            .await;
        known = until_another_leads(stack, Some(&known)).await;
        let count = usize::try_from(count).unwrap();
        view.until_ready("web", &[(&names[0], count), (&names[1], count)]).await;
        leader = std::mem::replace(&mut other, stack.start_replica(replica).await);
    }
    leader.assert_runs();
    other.stop().await;
    leader.stop().await;
    stack.start(&Worker::Management).await;
    view.delete("web").await;
    view.until_gone("web").await;
}
