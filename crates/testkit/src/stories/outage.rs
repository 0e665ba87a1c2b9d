//! Planes that cannot be reached for a while.

use std::time::Duration;

use compute_api::compute::{Instance, Workload};
use compute_api::conditions as c;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams};

use crate::objects::{NEXT_IMAGE, placement, workload};
use crate::stack::{Place, Stack};
use crate::view::{View, list};
use crate::wait::{eventually, stays};

/// While the hub is down instances run on and lost ones are replaced; what was asked meanwhile is done when it is back.
pub async fn hub_down_for_a_while(stack: &impl Stack) {
    let view = View::new(stack, "no-hub").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    stack.cut(&Place::Hub).await;
    view.set_placements("web", &[placement("main", &[city], 3)]).await;
    view.create(&workload("new", &[city], 1)).await;
    // The cell heals by itself.
    let real = view.in_cell::<Instance>(city);
    let lost = format!("{name}-1");
    let uid = real.get(&lost).await.unwrap().uid();
    real.delete(&lost, &DeleteParams::default()).await.unwrap();
    eventually("the cell replaces a lost instance", async || match real.get_opt(&lost).await.unwrap() {
        Some(found) if found.uid() != uid => {
            let status = found.status.unwrap_or_default();
            if c::is_true(&status.conditions, c::READY) { Ok(()) } else { Err(format!("{status:?}")) }
        }
        found => Err(format!("{:?}", found.map(|found| found.metadata))),
    })
    .await;
    stack.mend(&Place::Hub).await;
    view.until_ready("web", &[(&name, 3)]).await;
    view.until_ready("new", &[(&format!("new-main-{}", city.to_lowercase()), 1)]).await;
}

/// Core tells which projects there are; those that are known are served without it.
pub async fn core_down_for_a_while(stack: &impl Stack) {
    let view = View::new(stack, "no-core").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    stack.cut(&Place::Core).await;
    view.set_placements("web", &[placement("main", &[city], 2)]).await;
    view.set_image("web", NEXT_IMAGE).await;
    view.until_ready("web", &[(&name, 2)]).await;
    view.create(&workload("new", &[city], 1)).await;
    view.until_ready("new", &[(&format!("new-main-{}", city.to_lowercase()), 1)]).await;
    stack.mend(&Place::Core).await;
    let later = View::new(stack, "after-core").await;
    later.create(&workload("web", &[city], 1)).await;
    later.until_ready("web", &[(&name, 1)]).await;
}

/// A project that does not answer holds up no other, and is caught up with when it is back.
pub async fn one_project_down_while_others_work(stack: &impl Stack) {
    let (dead, live) = (View::new(stack, "dead").await, View::new(stack, "live").await);
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    dead.create(&workload("web", &[city], 1)).await;
    dead.until_ready("web", &[(&name, 1)]).await;
    stack.cut(&dead.place()).await;
    dead.set_placements("web", &[placement("main", &[city], 3)]).await;
    for round in 0..3 {
        let workload_name = format!("web-{round}");
        live.create(&workload(&workload_name, &[city], 1)).await;
        let deployment = format!("{workload_name}-main-{}", city.to_lowercase());
        live.until_ready(&workload_name, &[(&deployment, 1)]).await;
    }
    stack.mend(&dead.place()).await;
    dead.until_ready("web", &[(&name, 3)]).await;
}

/// A cell that is cut off is said to be; the other city goes on; when it is back it catches up.
pub async fn cell_down_for_a_while(stack: &impl Stack) {
    let view = View::new(stack, "no-cell").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.create(&workload("web", &[here, there], 1)).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;
    let before = view.instances_in(here).await;
    stack.cut(&Place::Cell(here.to_owned())).await;
    view.until_deployment_says(&names[0], c::AVAILABLE, c::CELL_NOT_READY).await;
    view.set_placements("web", &[placement("main", &[here, there], 2)]).await;
    eventually("the other city follows", async || {
        let found = view.instances_in(there).await;
        let ready = found.values().filter(|found| {
            found.status.as_ref().is_some_and(|status| c::is_true(&status.conditions, c::READY))
        });
        let ready = ready.count();
        if ready == 2 { Ok(()) } else { Err(format!("{ready} ready")) }
    })
    .await;
    stack.mend(&Place::Cell(here.to_owned())).await;
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    let after = view.instances_in(here).await;
    let first = format!("{}-0", names[0]);
    assert_eq!(before[&first].uid(), after[&first].uid(), "nothing was to be evicted");
}

/// A workload deleted while its cell is cut off does not come back with it.
pub async fn cell_back_after_its_workload_was_deleted(stack: &impl Stack) {
    let view = View::new(stack, "ghost").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    stack.cut(&Place::Cell(city.clone())).await;
    view.delete("web").await;
    eventually("the project is rid of it", async || {
        let workload = view.mine::<Workload>().get_opt("web").await.unwrap();
        let pictures = view.instances_of("web").await.len();
        if workload.is_none() && pictures == 0 { Ok(()) } else { Err(format!("{pictures} pictures left")) }
    })
    .await;
    stack.mend(&Place::Cell(city.clone())).await;
    view.until_gone("web").await;
    stays("nothing comes back", Duration::from_millis(300), async || {
        let copies = list(&view.on_hub::<Instance>(), &ListParams::default()).await.len();
        let pictures = view.instances_of("web").await.len();
        let real = view.instances_in(city).await.len();
        if copies + pictures + real == 0 { Ok(()) } else { Err(format!("{copies}, {pictures}, {real}")) }
    })
    .await;
}

/// Instances that go while the hub is down leave no picture behind.
pub async fn scale_down_while_the_hub_is_down(stack: &impl Stack) {
    let view = View::new(stack, "stale").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    // Scaling set in the cell is kept as long as nobody sets it elsewhere.
    let cell = view.in_cell::<compute_api::compute::WorkloadDeployment>(city);
    let scale = async |replicas: i64| {
        let patch = kube::api::Patch::Merge(serde_json::json!({ "spec": { "replicas": replicas } }));
        cell.patch_scale(&name, &kube::api::PatchParams::default(), &patch).await.unwrap();
    };
    scale(3).await;
    eventually("the project shows three", async || match view.instances_of("web").await.len() {
        3 => Ok(()),
        count => Err(format!("{count}")),
    })
    .await;
    stack.cut(&Place::Hub).await;
    scale(1).await;
    eventually("the cell has one", async || match view.instances_in(city).await.len() {
        1 => Ok(()),
        count => Err(format!("{count}")),
    })
    .await;
    stack.mend(&Place::Hub).await;
    view.until_ready("web", &[(&name, 1)]).await;
    let copies: Vec<String> =
        list(&view.on_hub::<Instance>(), &ListParams::default()).await.into_keys().collect();
    assert_eq!(copies, [format!("{name}-0")]);
}
