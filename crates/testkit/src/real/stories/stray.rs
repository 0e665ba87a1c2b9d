//! Objects on the hub that nobody of ours has put there.

use compute_api::compute::Instance;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};

use crate::objects::workload;
use crate::real::RealStack;
use crate::stack::Stack as _;
use crate::view::{View, list};
use crate::wait::eventually;

/// An instance that does not say whose it is is shown in no project; who looks at the hub is told why.
pub async fn instance_without_a_project(stack: &RealStack) {
    let view = View::new(stack, "stray").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;

    let copies = view.on_hub::<Instance>();
    let mut stray = copies.get(&format!("{name}-0")).await.unwrap();
    stray.metadata = ObjectMeta { name: Some("stray-0".to_owned()), ..ObjectMeta::default() };
    stray.status = None;
    copies.create(&PostParams::default(), &stray).await.unwrap();
    eventually("the hub says what is wrong with it", async || {
        let events = list(&view.on_hub::<Event>(), &ListParams::default()).await;
        let told = events.values().any(|event| {
            event.reason.as_deref() == Some("ProjectionFailed")
                && event.involved_object.name.as_deref() == Some("stray-0")
        });
        if told { Ok(()) } else { Err(format!("{} other events", events.len())) }
    })
    .await;
    assert!(!view.instances_of("web").await.contains_key("stray-0"));
    copies.delete("stray-0", &DeleteParams::default()).await.unwrap();
}
