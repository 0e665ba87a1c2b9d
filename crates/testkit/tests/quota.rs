//! Quota that is not set up right, seen by who uses it: on a stack of its own, since it is broken for everybody.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_api::quota::{
    ObjectReference, RESOURCE_VCPUS, ResourceClaim, ResourceRegistration, ResourceRequest,
};
use compute_testkit::objects::workload;
use compute_testkit::{Embedded, Place, Stack as _, View, eventually};
use kube::Api;
use kube::api::{DeleteParams, PostParams};

#[tokio::test]
async fn a_resource_that_is_not_registered_is_refused_and_named_until_it_is() {
    let stack = Embedded::start().await;
    let view = View::new(&stack, "odd").await;
    let registrations: Api<ResourceRegistration> = Api::all(stack.client(&Place::Core));
    let mut taken = registrations.get("compute-vcpus").await.unwrap();
    registrations.delete("compute-vcpus", &DeleteParams::default()).await.unwrap();
    // Who admits claims knows of it a moment later, and what passes until then the ledger calls invalid for good.
    let mut probe = ResourceClaim::default();
    probe.metadata.name = Some("probe".to_owned());
    probe.spec.consumer_ref = Some(ObjectReference::project("odd"));
    probe.spec.resource_ref = probe.spec.consumer_ref.clone();
    probe.spec.requests = vec![ResourceRequest { resource_type: RESOURCE_VCPUS.to_owned(), amount: 1 }];
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("claims are refused", async || {
        view.mine::<ResourceClaim>().create(&dry, &probe).await.map_or(Ok(()), |_| Err("it is taken"))
    })
    .await;
    view.create(&workload("web", &["DFW"], 1)).await;
    eventually("it says what is wrong", async || {
        let seen = view.mine::<Instance>().get_opt("web-main-dfw-0").await.unwrap();
        let status = seen.and_then(|seen| seen.status).unwrap_or_default();
        let said = c::find(&status.conditions, c::READY).ok_or("nothing is said".to_owned())?;
        let known = said.reason == c::QUOTA_MISCONFIGURED;
        let named = said.message.contains("compute.datumapis.com/vcpus is not registered");
        if known && named { Ok(()) } else { Err(format!("{}: {}", said.reason, said.message)) }
    })
    .await;
    taken.metadata.uid = None;
    taken.metadata.resource_version = None;
    registrations.create(&PostParams::default(), &taken).await.unwrap();
    view.until_ready("web", &[("web-main-dfw", 1)]).await;
}
