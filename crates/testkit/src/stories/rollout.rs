//! How instances come to another template.

use std::collections::BTreeMap;
use std::time::Duration;

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::{annotations, conditions as c, labels};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::objects::{BAD_IMAGE, NEXT_IMAGE, placement, workload};
use crate::stack::Stack;
use crate::view::View;
use crate::wait::{eventually, stays};

fn uids(instances: &BTreeMap<String, Instance>) -> BTreeMap<String, Option<String>> {
    instances.iter().map(|(name, instance)| (name.clone(), instance.uid())).collect()
}

fn is_ready(instance: &Instance) -> bool {
    let status = instance.status.as_ref();
    instance.metadata.deletion_timestamp.is_none()
        && status.is_some_and(|status| c::is_true(&status.conditions, c::READY))
}

/// A new image takes one Ready instance of a city down at a time, and the counts show how far it is.
pub async fn image_change_rolls_one_at_a_time(stack: &impl Stack) {
    let view = View::new(stack, "roll").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    let mut wanted = workload("web", &[here, there], 3);
    wanted.spec.template.set_annotation("simulated.datumapis.com/start-delay", "500ms");
    view.create(&wanted).await;
    let all = [(names[0].as_str(), 3), (names[1].as_str(), 3)];
    view.until_ready("web", &all).await;
    let before = [view.instances_in(here).await, view.instances_in(there).await].map(|found| uids(&found));
    view.set_image("web", NEXT_IMAGE).await;
    let mut updated = std::collections::BTreeSet::new();
    eventually("the roll is complete", async || {
        for city in [here, there] {
            let ready = view.instances_in(city).await.values().filter(|instance| is_ready(instance)).count();
            assert!(ready >= 2, "{city} has only {ready} of 3 ready in a roll");
        }
        let status = view.mine::<Workload>().get("web").await.unwrap().status.unwrap();
        updated.insert(status.updated_replicas.unwrap_or(0));
        view.is_ready("web", &all).await
    })
    .await;
    assert!(updated.iter().any(|count| (1..6).contains(count)), "no count between was seen: {updated:?}");
    for (city, before) in [here, there].iter().zip(before) {
        for (name, instance) in view.instances_in(city).await {
            assert_ne!(instance.uid(), before[&name], "{name} was not replaced");
            let containers = instance.spec.runtime.sandbox.unwrap().containers;
            assert_eq!(containers[0].image, NEXT_IMAGE, "{name}");
        }
    }
}

/// A bad image breaks a workload, which says why; a good one heals it, and nobody has to do anything else.
pub async fn bad_image_then_good_image_heals(stack: &impl Stack) {
    let view = View::new(stack, "bad-image").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    view.set_image("web", BAD_IMAGE).await;
    // One instance is taken down for it, the other serves on.
    eventually("an instance says what is wrong", async || {
        let found = view.instances_of("web").await;
        let said = found.values().filter_map(|instance| {
            let status = instance.status.as_ref()?;
            let said = c::find(&status.conditions, c::READY)?;
            (said.reason == c::IMAGE_UNAVAILABLE).then(|| said.message.clone())
        });
        match said.collect::<Vec<_>>().first() {
            Some(message) if message.contains(BAD_IMAGE) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    stays("the other serves on", Duration::from_millis(300), async || {
        let ready = view.instances_in(city).await.values().filter(|instance| is_ready(instance)).count();
        if ready == 1 { Ok(()) } else { Err(format!("{ready} ready")) }
    })
    .await;
    view.set_image("web", NEXT_IMAGE).await;
    view.until_ready("web", &[(&name, 2)]).await;

    // The same from the start, with nothing that serves.
    let mut broken = workload("broken", &[city], 2);
    broken.spec.template = crate::objects::template(BAD_IMAGE);
    view.create(&broken).await;
    let name = format!("broken-main-{}", city.to_lowercase());
    let said = view.until_deployment_says(&name, c::AVAILABLE, c::IMAGE_UNAVAILABLE).await;
    assert!(said.message.contains(BAD_IMAGE), "{said:?}");
    view.set_image("broken", NEXT_IMAGE).await;
    view.until_ready("broken", &[(&name, 2)]).await;
}

/// A restart replaces every instance of a workload; one of a city replaces those of the city.
pub async fn restart_of_a_workload_and_of_one_city(stack: &impl Stack) {
    let view = View::new(stack, "restart").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.create(&workload("web", &[here, there], 2)).await;
    let all = [(names[0].as_str(), 2), (names[1].as_str(), 2)];
    view.until_ready("web", &all).await;
    let at = |time: &str| json!({ "spec": { "template": { "metadata": { "annotations": { annotations::RESTARTED_AT: time } } } } });
    let until_replaced = async |city: &str, before: &BTreeMap<String, Instance>| {
        eventually(&format!("{city} has other instances"), async || {
            let now = view.instances_in(city).await;
            let same = now.iter().filter(|(name, instance)| {
                before.get(*name).is_some_and(|before| before.uid() == instance.uid())
            });
            let same: Vec<_> = same.map(|(name, _)| name.clone()).collect();
            if same.is_empty() { Ok(()) } else { Err(format!("{same:?} are the same")) }
        })
        .await;
    };
    let before = [view.instances_in(here).await, view.instances_in(there).await];
    view.change("web", &at("2026-01-01T00:00:00Z")).await;
    until_replaced(here, &before[0]).await;
    until_replaced(there, &before[1]).await;
    view.until_ready("web", &all).await;

    let before = [view.instances_in(here).await, view.instances_in(there).await];
    let deployments = view.mine::<WorkloadDeployment>();
    let patch = Patch::Merge(at("2026-01-02T00:00:00Z"));
    deployments.patch(&names[0], &PatchParams::default(), &patch).await.unwrap();
    until_replaced(here, &before[0]).await;
    view.until_ready("web", &all).await;
    assert_eq!(uids(&view.instances_in(there).await), uids(&before[1]), "the other city was restarted too");
}

/// While a workload is paused nothing is replaced, and scaling goes on; resumed, it rolls.
pub async fn pause_and_resume(stack: &impl Stack) {
    let view = View::new(stack, "pause").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    let before = uids(&view.instances_in(city).await);
    view.change("web", &json!({ "spec": { "paused": true } })).await;
    view.set_image("web", NEXT_IMAGE).await;
    view.set_placements("web", &[placement("main", &[city], 3)]).await;
    eventually("the third instance is ready, from the new template", async || {
        let status = view.mine::<Workload>().get("web").await.unwrap().status.unwrap();
        let counts = (status.ready_replicas, status.updated_replicas);
        if counts == (Some(3), Some(1)) { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    let now = uids(&view.instances_in(city).await);
    assert!(before.iter().all(|(name, uid)| now.get(name) == Some(uid)), "{before:?} {now:?}");
    view.change("web", &json!({ "spec": { "paused": null } })).await;
    view.until_ready("web", &[(&name, 3)]).await;
    let now = uids(&view.instances_in(city).await);
    assert!(before.iter().all(|(name, uid)| now.get(name) != Some(uid)), "{before:?} {now:?}");
}

/// A label that somebody took away comes back, and the instance stays the same.
pub async fn label_back_fill_does_not_roll(stack: &impl Stack) {
    let view = View::new(stack, "labels").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    let before = uids(&view.instances_in(city).await);
    let real = view.in_cell::<Instance>(city);
    let bare = json!({ "metadata": { "labels": { labels::CITY_CODE: null, labels::WORKLOAD_UID: null } } });
    let instance = format!("{name}-1");
    real.patch(&instance, &PatchParams::default(), &Patch::Merge(bare)).await.unwrap();
    eventually("the labels are back", async || {
        let found = real.get(&instance).await.unwrap();
        let missing: Vec<_> =
            labels::ON_INSTANCES.iter().filter(|label| !found.labels().contains_key(**label)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?}")) }
    })
    .await;
    view.until_ready("web", &[(&name, 2)]).await;
    assert_eq!(uids(&view.instances_in(city).await), before);
}
