//! Who is who: same names, old names, long names, and things that only look like the ones they replaced.

use std::collections::BTreeSet;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::milo::Project;
use compute_api::{annotations, conditions as c};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::objects::{placement, workload};
use crate::stack::{Place, Stack};
use crate::view::{View, list};
use crate::wait::eventually;

/// Two projects may use the same names; what one does is not felt by the other.
pub async fn two_projects_with_the_same_names(stack: &impl Stack) {
    let (one, two) = (View::new(stack, "twin-a").await, View::new(stack, "twin-b").await);
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    one.create(&workload("web", &[city], 1)).await;
    two.create(&workload("web", &[city], 2)).await;
    one.until_ready("web", &[(&name, 1)]).await;
    two.until_ready("web", &[(&name, 2)]).await;
    let kept: Vec<_> = two.instances_in(city).await.values().map(|instance| instance.uid()).collect();
    one.delete("web").await;
    one.until_gone("web").await;
    two.until_ready("web", &[(&name, 2)]).await;
    let now: Vec<_> = two.instances_in(city).await.values().map(|instance| instance.uid()).collect();
    assert_eq!(now, kept);
}

/// A workload that is made again under its old name, while the old one is still going, is a new one on every plane.
pub async fn recreated_during_the_cascade(stack: &impl Stack) {
    let view = View::new(stack, "again").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    let mut slow = workload("web", &[city], 2);
    slow.spec.template.set_annotation("simulated.datumapis.com/stop-delay", "200ms");
    let first = view.create(&slow).await;
    view.until_ready("web", &[(&name, 2)]).await;
    let before: BTreeSet<_> = view.instances_in(city).await.values().map(|i| i.uid().unwrap()).collect();
    view.delete("web").await;
    let second = eventually("the name is free", async || {
        view.mine::<Workload>().create(&kube::api::PostParams::default(), &workload("web", &[city], 1)).await
    })
    .await;
    assert_ne!(first.uid(), second.uid());
    view.until_ready("web", &[(&name, 1)]).await;
    eventually("only the new one is there", async || {
        let now: BTreeSet<_> = view.instances_in(city).await.values().map(|i| i.uid().unwrap()).collect();
        if now.len() == 1 && now.is_disjoint(&before) { Ok(()) } else { Err(format!("{before:?} {now:?}")) }
    })
    .await;
    let deployment: WorkloadDeployment = view.mine().get(&name).await.unwrap();
    assert_eq!(deployment.spec.workload_ref.uid, second.uid().unwrap());
}

/// `a-b` with placement `c` and `a` with placement `b-c` want the same name: the second gets another, keeps it, and the first stays what it is.
pub async fn names_that_collide_and_free_up_again(stack: &impl Stack) {
    let view = View::new(stack, "collide").await;
    let city = &stack.cities()[0];
    let shared = format!("a-b-c-{}", city.to_lowercase());
    let mut first = workload("a-b", &[city], 1);
    first.spec.placements = vec![placement("c", &[city], 1)];
    let mut second = workload("a", &[city], 1);
    second.spec.placements = vec![placement("b-c", &[city], 1)];
    view.create(&first).await;
    view.until_ready("a-b", &[(&shared, 1)]).await;
    view.create(&second).await;
    let other = eventually("the second has a deployment of its own", async || {
        let all = list(&view.mine::<WorkloadDeployment>(), &ListParams::default()).await;
        let mut own = all.into_values().filter(|found| found.spec.workload_ref.name == "a");
        own.next().map(|found| found.name_any()).ok_or("none yet")
    })
    .await;
    assert_ne!(other, shared);
    view.until_ready("a", &[(&other, 1)]).await;
    view.until_ready("a-b", &[(&shared, 1)]).await;
    view.delete("a-b").await;
    view.until_gone("a-b").await;
    // The name is free now, and the other one keeps what it has.
    view.change("a", &json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    view.set_placements("a", &[placement("b-c", &[city], 2)]).await;
    view.until_ready("a", &[(&other, 2)]).await;
    view.create(&first).await;
    view.until_ready("a-b", &[(&shared, 1)]).await;
}

/// Names that do not fit are cut and told apart.
pub async fn names_that_are_too_long(stack: &impl Stack) {
    let view = View::new(stack, "long").await;
    let city = &stack.cities()[0];
    let (one, two) = ("w".repeat(63), format!("{}x", "w".repeat(62)));
    for name in [&one, &two] {
        let mut long = workload(name, &[city], 1);
        long.spec.placements = vec![placement(&"p".repeat(40), &[city], 1)];
        view.create(&long).await;
    }
    let mut names = BTreeSet::new();
    for workload in [&one, &two] {
        let name = eventually("it has a deployment", async || {
            let all = list(&view.mine::<WorkloadDeployment>(), &ListParams::default()).await;
            let mut own = all.into_values().filter(|found| found.spec.workload_ref.name == **workload);
            own.next().map(|found| found.name_any()).ok_or("none yet")
        })
        .await;
        assert!(name.len() <= 58, "{name}");
        view.until_ready(workload, &[(&name, 1)]).await;
        names.insert(name);
    }
    assert_eq!(names.len(), 2);
}

/// A status on the hub that was made for the predecessor of a deployment, or for an older generation, is not shown as its own.
pub async fn status_of_a_predecessor_is_not_believed(stack: &impl Stack) {
    let view = View::new(stack, "believe").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    // The cell is out of reach: the last status stays on the hub.
    stack.cut(&Place::Cell(city.clone())).await;
    view.delete("web").await;
    eventually("the name is free", async || {
        view.mine::<Workload>().create(&kube::api::PostParams::default(), &workload("web", &[city], 1)).await
    })
    .await;
    let copy = eventually("the hub has the new copy", async || {
        let mine: WorkloadDeployment = view.mine().get(&name).await.map_err(|error| error.to_string())?;
        let copy: WorkloadDeployment = view.on_hub().get(&name).await.map_err(|error| error.to_string())?;
        let of = copy.annotations().get(annotations::UPSTREAM_UID).cloned();
        if of == mine.uid() { Ok(copy) } else { Err(format!("it is of {of:?}")) }
    })
    .await;
    // Somebody late reflects what the predecessor said.
    let late = json!({ "status": { "observedGeneration": 7, "replicas": 9, "readyReplicas": 9, "updatedReplicas": 9 } });
    let hub = view.on_hub::<WorkloadDeployment>();
    hub.patch_status(&copy.name_any(), &PatchParams::default(), &Patch::Merge(late)).await.unwrap();
    let not_believed = async || {
        let seen: WorkloadDeployment = view.mine().get(&name).await.unwrap();
        let status = seen.status.unwrap_or_default();
        let current = status.observed_generation == seen.metadata.generation;
        let workload: Workload = view.mine().get("web").await.unwrap();
        let updated = workload.status.unwrap_or_default().updated_replicas.unwrap_or(0);
        if current || updated != 0 { Err(format!("{status:?}, {updated} up to date")) } else { Ok(()) }
    };
    crate::wait::stays("it does not look done", std::time::Duration::from_millis(300), not_believed).await;
    stack.mend(&Place::Cell(city.clone())).await;
    view.until_ready("web", &[(&name, 1)]).await;
}

/// A deleted project takes everything of it along, on the hub and in cells too, and another project notices nothing.
pub async fn project_deleted(stack: &impl Stack) {
    let (gone, kept) = (View::new(stack, "leaving").await, View::new(stack, "staying").await);
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    let all = [(names[0].as_str(), 1), (names[1].as_str(), 1)];
    for view in [&gone, &kept] {
        view.create(&workload("web", &[here, there], 1)).await;
        view.until_ready("web", &all).await;
    }
    let projects: Api<Project> = Api::all(stack.client(&Place::Core));
    projects.delete("leaving", &DeleteParams::default()).await.unwrap();
    eventually("the project is gone", async || match projects.get_opt("leaving").await.unwrap() {
        None => Ok(()),
        Some(project) => Err(format!("{:?}", project.status)),
    })
    .await;
    let places = [Place::Hub].into_iter().chain(cities.iter().cloned().map(Place::Cell));
    for place in places {
        eventually(&format!("nothing of it is in {place:?}"), async || {
            let found = stack.census(&place).await;
            let of_it = |name: &String| name.split('/').next() == Some(&gone.hub_namespace);
            let left: Vec<_> = found.0.values().flatten().filter(|name| of_it(name)).cloned().collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }
    kept.until_ready("web", &all).await;
}

/// What is done to an instance in the project, by one whom no rule holds back, is undone: it is only a picture.
pub async fn instance_edited_or_deleted_by_hand_in_the_project(stack: &impl Stack) {
    let view = View::new(stack, "by-hand").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    let instance = format!("{name}-0");
    let real = view.instances_in(city).await.remove(&instance).unwrap();
    let pictures = view.mine::<Instance>();
    let picture = pictures.get(&instance).await.unwrap();

    let lie = json!({ "status": { "conditions": [{
        "type": c::READY, "status": "False", "reason": "Lie", "message": "not so",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } });
    pictures.patch_status(&instance, &PatchParams::default(), &Patch::Merge(lie)).await.unwrap();
    let shows_truth = async || {
        let seen = pictures.get_opt(&instance).await.unwrap().and_then(|seen| seen.status);
        let said = seen.as_ref().and_then(|status| c::find(&status.conditions, c::READY));
        if said.is_some_and(|said| said.status == "True") { Ok(()) } else { Err(format!("{said:?}")) }
    };
    eventually("the picture is true again", shows_truth).await;

    pictures.delete(&instance, &DeleteParams::default()).await.unwrap();
    eventually("the picture is back", async || match pictures.get_opt(&instance).await.unwrap() {
        Some(found) if found.uid() != picture.uid() => Ok(()),
        _ => Err("not yet"),
    })
    .await;
    eventually("the picture is true again", shows_truth).await;
    let now = view.instances_in(city).await.remove(&instance).unwrap();
    assert_eq!(now.uid(), real.uid(), "the instance itself was never to be touched");
    view.until_ready("web", &[(&name, 1)]).await;
}
