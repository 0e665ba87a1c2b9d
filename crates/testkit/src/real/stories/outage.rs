//! Servers and services that are stopped for a while.

use compute_api::compute::{Instance, Workload};
use compute_api::conditions as c;
use compute_local::planes;
use kube::ResourceExt as _;

use crate::objects::{NEXT_IMAGE, placement, workload};
use crate::real::{RealStack, audit};
use crate::stack::{Stack as _, Worker};
use crate::view::View;
use crate::wait::eventually;

/// Karmada carries nothing for a while: what is there runs on, and what was asked meanwhile is done when it is back.
pub async fn karmada_stopped_for_a_while(stack: &RealStack) {
    const CONTROLLERS: &str = "karmada-controller-manager";
    let Some(running) = stack.foundation.running() else { return };
    let view = View::new(stack, "no-karmada").await;
    let city = &stack.cities()[0];
    let name = |workload: &str| format!("{workload}-main-{}", city.to_lowercase());
    for workload_name in ["kept", "changed", "deleted"] {
        view.create(&workload(workload_name, &[city], 1)).await;
    }
    for workload_name in ["kept", "changed", "deleted"] {
        view.until_ready(workload_name, &[(&name(workload_name), 1)]).await;
    }
    let kept = view.instances_in(city).await;
    running.stop_process(CONTROLLERS).await.unwrap();
    view.set_placements("changed", &[placement("main", &[city], 2)]).await;
    view.set_image("changed", NEXT_IMAGE).await;
    view.create(&workload("new", &[city], 1)).await;
    view.delete("deleted").await;
    eventually("the hub has what was asked", async || {
        let copies = view.on_hub::<compute_api::compute::WorkloadDeployment>();
        let new = copies.get_opt(&name("new")).await.unwrap();
        let changed = copies.get(&name("changed")).await.unwrap().spec.scale_settings.min_replicas;
        if new.is_some() && changed == 2 { Ok(()) } else { Err(format!("{} {changed}", new.is_some())) }
    })
    .await;
    assert_eq!(view.instances_in(city).await.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
    running.start_process(CONTROLLERS).await.unwrap();
    view.until_ready("changed", &[(&name("changed"), 2)]).await;
    view.until_ready("new", &[(&name("new"), 1)]).await;
    view.until_gone("deleted").await;
    view.until_ready("kept", &[(&name("kept"), 1)]).await;
    let instance = format!("{}-0", name("kept"));
    assert_eq!(
        view.instances_in(city).await[&instance].uid(),
        kept[&instance].uid(),
        "it was to be left alone"
    );
}

/// A cell's API server is stopped: the cell is said not to answer, the other city goes on, and all is caught up with when it is back.
pub async fn cell_api_server_stopped_for_a_while(stack: &RealStack) {
    let Some(running) = stack.foundation.running() else { return };
    let view = View::new(stack, "no-cell-server").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.create(&workload("web", &[here, there], 1)).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;
    let before = view.instances_in(here).await;
    let process = format!("cell-{}-apiserver", here.to_lowercase());
    let server = &running.cells()[here].server;
    let length = audit::length(&server.audit_log);
    running.stop_process(&process).await.unwrap();
    view.until_deployment_says(&names[0], c::AVAILABLE, c::CELL_NOT_READY).await;
    view.set_placements("web", &[placement("main", &[here, there], 2)]).await;
    eventually("the other city follows", async || {
        let ready = view.instances_in(there).await.into_values().filter(|found| {
            found.status.as_ref().is_some_and(|status| c::is_true(&status.conditions, c::READY))
        });
        let ready = ready.count();
        if ready == 2 { Ok(()) } else { Err(format!("{ready} ready")) }
    })
    .await;
    stack.assert_all_run();
    running.start_process(&process).await.unwrap();
    stack.audit_logs().pass_over(server, length);
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    let first = format!("{}-0", names[0]);
    assert_eq!(
        before[&first].uid(),
        view.instances_in(here).await[&first].uid(),
        "nothing was to be evicted"
    );
}

/// While a cell cannot ask for quota, instances that have theirs run on, new ones wait and say why, and what is deleted stops but stays until its claim is
/// released.
pub async fn quota_backend_down_for_a_while(stack: &RealStack) {
    let view = View::new(stack, "no-quota").await;
    let city = &stack.cities()[0];
    let name = |workload: &str| format!("{workload}-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name("web"), 1)]).await;
    let plane = planes::project(&view.project).unwrap();
    stack.wires.cut_for(&Worker::Cell(city.clone()), &plane);
    view.create(&workload("new", &[city], 1)).await;
    let waiting = format!("{}-0", name("new"));
    eventually("the new instance says why it waits", async || {
        let seen = view.mine::<Instance>().get_opt(&waiting).await.unwrap();
        let status = seen.and_then(|seen| seen.status).unwrap_or_default();
        let said = c::find(&status.conditions, c::QUOTA_GRANTED).cloned();
        let known = said.as_ref().is_some_and(|said| {
            (said.status.as_str(), said.reason.as_str()) == ("Unknown", c::QUOTA_BACKEND_UNAVAILABLE)
        });
        if known { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    view.until_ready("web", &[(&name("web"), 1)]).await;
    view.delete("web").await;
    let leaving = format!("{}-0", name("web"));
    eventually("the deleted instance has stopped, and waits", async || {
        let real = view.in_cell::<Instance>(city).get_opt(&leaving).await.unwrap();
        let Some(real) = real else { return Err("it is gone before its claim is released".to_owned()) };
        let left = real.finalizers().to_vec();
        let only_ours = left == [compute_api::finalizers::INSTANCE];
        if real.metadata.deletion_timestamp.is_some() && only_ours {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await;
    stack.wires.mend_all();
    view.until_ready("new", &[(&name("new"), 1)]).await;
    view.until_gone("web").await;
    let left = view.mine::<Workload>().get_opt("web").await.unwrap();
    assert!(left.is_none());
}
