//! How many instances there are.

use compute_api::compute::WorkloadDeployment;
use compute_api::conditions as c;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::objects::{placement, workload};
use crate::stack::Stack;
use crate::view::View;

/// Instances are added and taken away at the top; those below are not touched.
pub async fn up_and_down_by_ordinal(stack: &impl Stack) {
    let view = View::new(stack, "scale").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    let before = view.instances_in(city).await;
    for count in [4, 3, 1, 2] {
        view.set_placements("web", &[placement("main", &[city], i64::try_from(count).unwrap())]).await;
        view.until_ready("web", &[(&name, count)]).await;
        let now: Vec<String> = view.instances_in(city).await.into_keys().collect();
        assert_eq!(now, (0..count).map(|ordinal| format!("{name}-{ordinal}")).collect::<Vec<_>>());
    }
    let after = view.instances_in(city).await;
    let first = format!("{name}-0");
    assert_eq!(before[&first].uid(), after[&first].uid(), "the lowest was never to go");
}

/// Scaled to zero, a workload has no instances and is well; it comes back.
pub async fn to_zero_and_back(stack: &impl Stack) {
    let view = View::new(stack, "zero").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    view.set_placements("web", &[placement("main", &[city], 0)]).await;
    view.until_ready("web", &[(&name, 0)]).await;
    let said = view.until_deployment_says(&name, c::AVAILABLE, c::SCALED_TO_ZERO).await;
    assert_eq!(said.status, "True");
    view.set_placements("web", &[placement("main", &[city], 1)]).await;
    view.until_ready("web", &[(&name, 1)]).await;
}

/// One city is scaled by its deployment's own scale; the workload's numbers follow and nobody sets it back.
pub async fn one_city_by_its_own_scale(stack: &impl Stack) {
    let view = View::new(stack, "one-city").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.create(&workload("web", &[here, there], 1)).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;
    let deployments = view.mine::<WorkloadDeployment>();
    let scale = async |replicas: serde_json::Value| {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        deployments.patch_scale(&names[0], &PatchParams::default(), &patch).await.unwrap();
    };
    scale(json!(3)).await;
    view.until_ready("web", &[(&names[0], 3), (&names[1], 1)]).await;
    assert_eq!(deployments.get_scale(&names[0]).await.unwrap().status.unwrap().replicas, 3);
    // A change of the workload leaves it alone.
    view.change("web", &json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    view.set_image("web", crate::objects::NEXT_IMAGE).await;
    view.until_ready("web", &[(&names[0], 3), (&names[1], 1)]).await;
    scale(json!(1)).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;
}
