//! From a Workload to instances in cities, and their state back to the project.

use std::collections::BTreeMap;

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::karmada::PropagationPolicy;
use compute_api::{annotations, conditions as c, finalizers, labels};
use compute_local::census::Census;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::objects::{placement, workload};
use crate::stack::{Place, Stack};
use crate::view::{View, list};
use crate::wait::eventually;

/// A deployment's copy on the hub: in a namespace that says where it comes from, labelled with city and project, and carrying the generation of
/// the original.
pub async fn workload_deployment_federation(stack: &impl Stack) {
    let view = View::new(stack, "federation").await;
    let city = &stack.cities()[0];
    view.create(&workload("web", &[city], 1)).await;
    let name = format!("web-main-{}", city.to_lowercase());

    let copy: WorkloadDeployment =
        eventually("the hub has a copy", async || view.on_hub::<WorkloadDeployment>().get(&name).await).await;
    let original: WorkloadDeployment = view.mine().get(&name).await.unwrap();
    assert_eq!(copy.spec, original.spec);
    assert_eq!(copy.labels()[labels::TOPOLOGY_CITY_CODE], *city);
    assert_eq!(copy.labels()[labels::UPSTREAM_CLUSTER_NAME], "cluster-federation");
    assert_eq!(copy.labels()[labels::UPSTREAM_NAMESPACE], "default");
    assert_eq!(
        copy.annotations()[annotations::UPSTREAM_GENERATION],
        original.metadata.generation.unwrap().to_string()
    );
    assert_eq!(original.annotations()[annotations::FEDERATION_NAMESPACE], view.hub_namespace);
    assert!(original.finalizers().iter().any(|finalizer| finalizer == finalizers::FEDERATOR));

    let namespaces: Api<Namespace> = Api::all(stack.client(&Place::Hub));
    let namespace = namespaces.get(&view.hub_namespace).await.unwrap();
    assert_eq!(namespace.labels()[labels::UPSTREAM_CLUSTER_NAME], "cluster-federation");
    assert_eq!(namespace.labels()[labels::UPSTREAM_NAMESPACE], "default");

    // A change follows.
    view.set_placements("web", &[placement("main", &[city], 2)]).await;
    eventually("the copy follows", async || {
        let copy = view.on_hub::<WorkloadDeployment>().get(&name).await.unwrap();
        let found = copy.spec.scale_settings.min_replicas;
        if found == 2 { Ok(()) } else { Err(format!("minReplicas {found}")) }
    })
    .await;
    view.until_ready("web", &[(&name, 2)]).await;
}

/// A city's policy is there exactly as long as a deployment of the city is on the hub.
pub async fn propagation_policy_lifecycle(stack: &impl Stack) {
    let view = View::new(stack, "policies").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    view.create(&workload("one", &[here, there], 1)).await;
    view.create(&workload("two", &[here], 1)).await;
    let policy = |city: &str| format!("city-{}", city.to_lowercase());
    let until = async |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|city| policy(city)).collect();
        eventually(&format!("policies are {wanted:?}"), async || {
            let found = list(&view.on_hub::<PropagationPolicy>(), &ListParams::default()).await;
            let mut expected = wanted.clone();
            expected.sort();
            let found: Vec<String> = found.into_keys().collect();
            if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    };
    until(&[here, there]).await;
    view.delete("one").await;
    until(&[here]).await;
    // Taken away by hand, it comes back.
    let policies = view.on_hub::<PropagationPolicy>();
    let before = policies.get(&policy(here)).await.unwrap().uid();
    policies.delete(&policy(here), &kube::api::DeleteParams::default()).await.unwrap();
    eventually("the policy is made again", async || match policies.get_opt(&policy(here)).await.unwrap() {
        Some(found) if found.uid() != before => Ok(()),
        found => Err(format!("{:?}", found.map(|found| found.uid()))),
    })
    .await;
    view.delete("two").await;
    until(&[]).await;
    view.until_gone("two").await;
}

/// The cell's instances are on the hub, owned by the hub's deployment, also while they are gated.
pub async fn instance_writeback(stack: &impl Stack) {
    let view = View::new(stack, "writeback").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;

    let deployment: WorkloadDeployment = view.on_hub().get(&name).await.unwrap();
    let real = view.instances_in(city).await;
    let copies = list(&view.on_hub::<Instance>(), &ListParams::default()).await;
    assert_eq!(copies.keys().collect::<Vec<_>>(), real.keys().collect::<Vec<_>>());
    for (name, copy) in &copies {
        let owners = copy.owner_references();
        assert_eq!(owners.len(), 1, "{name}: {owners:?}");
        assert_eq!(Some(&owners[0].uid), deployment.metadata.uid.as_ref(), "{name}");
        assert!(copy.labels().contains_key(labels::SOURCE_CLUSTER), "{name}");
        assert_eq!(copy.spec, real[name].spec, "{name}");
        assert_eq!(copy.labels()[labels::UPSTREAM_CLUSTER_NAME], "cluster-writeback", "{name}");
    }
    let spread = list(&view.mine::<Instance>(), &ListParams::default()).await;
    assert_eq!(spread.keys().collect::<Vec<_>>(), real.keys().collect::<Vec<_>>());
}

/// Instances are seen in the project, owned by its own deployment, with the cell's status; a copy that goes takes its projection along.
pub async fn instance_projection(stack: &impl Stack) {
    let view = View::new(stack, "projection").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;

    let owner: WorkloadDeployment = view.mine().get(&name).await.unwrap();
    let real = view.instances_in(city).await;
    eventually("projections show what the cell says", async || {
        for (name, seen) in view.instances_of("web").await {
            let owners = seen.owner_references();
            if owners.iter().all(|reference| Some(&reference.uid) != owner.metadata.uid.as_ref()) {
                return Err(format!("{name} is owned by {owners:?}"));
            }
            let (seen, real) = (conditions(&seen), conditions(&real[&name]));
            if seen != real {
                return Err(format!("{name} shows {seen:?}, the cell says {real:?}"));
            }
        }
        Ok(())
    })
    .await;
    view.set_placements("web", &[placement("main", &[city], 1)]).await;
    view.until_ready("web", &[(&name, 1)]).await;
}

fn conditions(instance: &Instance) -> BTreeMap<String, (String, String)> {
    let said = instance.status.iter().flat_map(|status| &status.conditions);
    said.map(|said| (said.type_.clone(), (said.status.clone(), said.reason.clone()))).collect()
}

/// One workload, two cities, status all the way back.
pub async fn full_federation(stack: &impl Stack) {
    let view = View::new(stack, "full").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    view.create(&workload("web", &[here, there], 2)).await;
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    for (city, name) in [here, there].iter().zip(&names) {
        let found: Vec<String> = view.instances_in(city).await.into_keys().collect();
        assert_eq!(found, [format!("{name}-0"), format!("{name}-1")]);
        let seen: WorkloadDeployment = view.mine().get(name).await.unwrap();
        let status = seen.status.unwrap();
        assert_eq!(status.observed_generation, seen.metadata.generation, "{name}");
        assert_eq!(status.selector.as_deref(), Some(&*labels::deployment_selector(name)));
        let said = c::find(&status.conditions, c::AVAILABLE).unwrap();
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("True", c::STABLE_INSTANCE_FOUND));
    }
    let status = view.mine::<compute_api::compute::Workload>().get("web").await.unwrap().status.unwrap();
    assert_eq!(status.deployments, Some(2));
    assert_eq!(status.placements.len(), 1);
    assert_eq!(status.placements[0].ready_replicas, Some(4));
}

/// Nothing is left of a deleted workload, on any plane: every object is listed before and after.
pub async fn deletion_cascade(stack: &impl Stack) {
    let view = View::new(stack, "cascade").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let before = everything(stack, &view.project).await;
    view.create(&workload("web", &[here, there], 2)).await;
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    view.delete("web").await;
    view.until_gone("web").await;
    // A namespace on the hub stays as long as the project's does, and so do its copies in the cells.
    let expected = |kind: &str, name: &str| {
        name.split('/').next() == Some(&view.hub_namespace)
            && ["Namespace", "ServiceAccount", "ConfigMap"].contains(&kind)
    };
    eventually("nothing is left on any plane", async || {
        for (place, now) in everything(stack, &view.project).await {
            let mut left = now.beyond(&before[&place]);
            left.0.iter_mut().for_each(|(kind, names)| names.retain(|name| !expected(kind, name)));
            if !left.is_empty() {
                return Err(format!("in {place:?}: {left}"));
            }
            let lost = before[&place].beyond(&now);
            if !lost.is_empty() {
                return Err(format!("lost in {place:?}: {lost}"));
            }
        }
        Ok(())
    })
    .await;
}

/// Every object of every plane of a project's world.
async fn everything(stack: &impl Stack, project: &str) -> BTreeMap<Place, Census> {
    let cells = stack.cities().into_iter().map(Place::Cell);
    let mut found = BTreeMap::new();
    for place in [Place::Core, Place::Hub, Place::Project(project.to_owned())].into_iter().chain(cells) {
        let census = stack.census(&place).await;
        found.insert(place, census);
    }
    found
}

/// What happens to an instance in a cell is seen in the project, there and back.
pub async fn status_from_cell_to_project(stack: &impl Stack) {
    let view = View::new(stack, "news").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    let instance = format!("{name}-0");
    let real = view.in_cell::<Instance>(city);
    let crash = async |value: serde_json::Value| {
        let patch = json!({ "metadata": { "annotations": { "simulated.datumapis.com/crash": value } } });
        real.patch(&instance, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    };
    for _ in 0..3 {
        crash(json!("true")).await;
        let said = view.until_deployment_says(&name, c::AVAILABLE, c::INSTANCE_CRASHING).await;
        assert_eq!(said.status, "False");
        view.until_says("web", c::AVAILABLE, c::INSTANCE_CRASHING).await;
        crash(serde_json::Value::Null).await;
        view.until_ready("web", &[(&name, 1)]).await;
    }
}
