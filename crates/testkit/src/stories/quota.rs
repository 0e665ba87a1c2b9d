//! A budget that is used up, and comes back.

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::quota::{AllowanceBucket, RESOURCE_INSTANCES, ResourceClaim, ResourceGrant};
use compute_platform::quota::{NAMESPACE, defaults};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::objects::workload;
use crate::stack::Stack;
use crate::view::View;
use crate::wait::eventually;

/// An instance that the project's quota does not cover says so in the project, with what is missing; it starts when another goes.
pub async fn used_up_and_freed(stack: &impl Stack) {
    let view = View::new(stack, "small").await;
    let city = &stack.cities()[0];
    let mut grant = defaults(&view.project).1;
    for allowance in &mut grant.spec.allowances {
        if allowance.resource_type == RESOURCE_INSTANCES {
            allowance.buckets[0].amount = 2;
        }
    }
    let grants: Api<ResourceGrant> = Api::namespaced(view.client(), NAMESPACE);
    let patch = Patch::Merge(json!({ "spec": grant.spec }));
    grants.patch(&grant.name_any(), &PatchParams::default(), &patch).await.unwrap();
    let buckets: Api<AllowanceBucket> = Api::namespaced(view.client(), NAMESPACE);
    eventually("the budget is what it is", async || {
        let all = buckets.list(&ListParams::default()).await.unwrap().items;
        let found = all.into_iter().find(|bucket| bucket.spec.resource_type == RESOURCE_INSTANCES);
        let limit = found.and_then(|bucket| bucket.status).unwrap_or_default().limit;
        if limit == 2 { Ok(()) } else { Err(limit.to_string()) }
    })
    .await;
    let name = |workload: &str| format!("{workload}-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name("web"), 2)]).await;

    view.create(&workload("more", &[city], 1)).await;
    let denied = format!("{}-0", name("more"));
    eventually("it says what is missing", async || {
        let Some(seen) = view.mine::<Instance>().get_opt(&denied).await.unwrap() else {
            return Err("not there".to_owned());
        };
        let status = seen.status.unwrap_or_default();
        let said = |type_| c::find(&status.conditions, type_).map_or("", |said| said.reason.as_str());
        let missing = "1 instance asked, 0 instances of 2 instances left";
        let message = c::find(&status.conditions, c::READY).map_or("", |ready| ready.message.as_str());
        match (said(c::QUOTA_GRANTED), said(c::READY)) == (c::QUOTA_EXCEEDED, c::QUOTA_EXCEEDED)
            && message.contains(missing)
        {
            true => Ok(()),
            false => Err(format!("{status:?}")),
        }
    })
    .await;
    eventually("its deployment says so", async || {
        let found = view.mine::<WorkloadDeployment>().get(&name("more")).await.unwrap();
        let status = found.status.unwrap_or_default();
        let said = c::find(&status.conditions, c::AVAILABLE).map_or("", |said| said.reason.as_str());
        if said == c::QUOTA_NOT_GRANTED { Ok(()) } else { Err(said.to_owned()) }
    })
    .await;

    view.delete("web").await;
    view.until_ready("more", &[(&name("more"), 1)]).await;
    let claims = view.mine::<ResourceClaim>().list(&ListParams::default()).await.unwrap().items;
    let names: Vec<_> = claims.iter().map(|claim| claim.name_any()).collect();
    assert!(names.contains(&format!("instance-{denied}")), "{names:?}");
}
