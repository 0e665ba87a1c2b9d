//! Kinds that are brought up to date under objects that are there.

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::{conditions as c, labels};
use compute_local::planes::Role;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::objects::workload;
use crate::real::{RealStack, install};
use crate::stack::{Place, Stack as _, Worker};
use crate::view::{View, list};
use crate::wait::eventually;

/// A template hash as somebody else writes it.
const FOREIGN_HASH: &str = "6f1d8c";

/// Managers and kinds of an earlier release are replaced: what that left behind is mended in place, and no instance is replaced for it.
pub async fn kinds_are_brought_up_to_date(stack: &RealStack) {
    let view = View::new(stack, "upgraded").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 2)).await;
    view.until_ready("web", &[(&name, 2)]).await;
    let before = view.instances_in(city).await;

    let managers = stack.workers().into_iter().filter(|worker| *worker != Worker::Surroundings);
    let managers: Vec<Worker> = managers.collect();
    for worker in &managers {
        stack.crash(worker).await;
    }
    let planes = [Place::Hub, view.place(), Place::Cell(city.clone())];
    for place in &planes {
        install_older(&stack.client(place)).await;
    }
    for instance in before.keys() {
        leave_as_before(&view, city, instance).await;
    }
    for (place, role) in planes.iter().zip([Role::Hub, Role::Project, Role::Cell]) {
        install::role(&stack.client(place), role).await;
    }
    for worker in &managers {
        stack.start(worker).await;
    }

    eventually("what was left behind is mended", async || {
        let pictures = list(&view.mine::<Instance>(), &ListParams::default()).await;
        let copies = list(&view.on_hub::<Instance>(), &ListParams::default()).await;
        for (name, instance) in view.instances_in(city).await.iter().chain(&copies).chain(&pictures) {
            let status = instance.status.clone().unwrap_or_default();
            if c::find(&status.conditions, c::RUNNING_RETIRED).is_some() {
                return Err(format!("{name} says {}", c::RUNNING_RETIRED));
            }
            if !c::is_true(&status.conditions, c::AVAILABLE) {
                return Err(format!("{name}: {:?}", status.conditions));
            }
            let missing = labels::ON_INSTANCES.iter().find(|label| !instance.labels().contains_key(**label));
            if let Some(missing) = missing {
                return Err(format!("{name} has no label {missing}"));
            }
        }
        Ok(())
    })
    .await;
    view.until_ready("web", &[(&name, 2)]).await;
    let after = view.instances_in(city).await;
    for (name, instance) in &before {
        assert_eq!(instance.uid(), after[name].uid(), "{name} was replaced");
    }
    let deployment: WorkloadDeployment = view.mine().get(&name).await.unwrap();
    assert_eq!(deployment.status.unwrap().updated_replicas, Some(2));
}

/// Puts the kinds of an earlier release in the place of ours: without the fields and parts that came later, and with the earlier default.
async fn install_older(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in compute_api::crds::ours() {
        let mut older = serde_json::to_value(&crd).unwrap();
        let kind = crd.spec.names.kind.as_str();
        let version = &mut older["spec"]["versions"][0];
        if let Some(parts) = version["subresources"].as_object_mut() {
            parts.remove("scale");
        }
        let schema = &mut version["schema"]["openAPIV3Schema"]["properties"];
        for (part, field) in [
            ("spec", "replicas"),
            ("spec", "paused"),
            ("status", "updatedReplicas"),
            ("status", "observedGeneration"),
            ("status", "selector"),
        ] {
            if let Some(fields) = schema[part]["properties"].as_object_mut() {
                fields.remove(field);
            }
        }
        if kind == "Instance" {
            rename_default(&mut schema["status"]);
        }
        let name = crd.name_any();
        let live = crds.get(&name).await.unwrap();
        older["metadata"] = json!({ "name": name, "resourceVersion": live.resource_version(),
            "annotations": live.annotations(), "labels": live.labels() });
        let older: CustomResourceDefinition = serde_json::from_value(older).unwrap();
        crds.replace(&name, &kube::api::PostParams::default(), &older).await.unwrap();
    }
}

/// In whatever defaults there are, the condition goes by its earlier name.
fn rename_default(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(default) = fields.get_mut("default") {
                let entries = match default {
                    Value::Array(entries) => Some(entries),
                    Value::Object(fields) => fields.get_mut("conditions").and_then(Value::as_array_mut),
                    _ => None,
                };
                for entry in entries.into_iter().flatten().filter(|entry| entry["type"] == c::AVAILABLE) {
                    entry["type"] = json!(c::RUNNING_RETIRED);
                }
            }
            fields.values_mut().for_each(rename_default);
        }
        Value::Array(items) => items.iter_mut().for_each(rename_default),
        _ => {}
    }
}

/// Makes an instance what a manager of that release would have left.
async fn leave_as_before(view: &View<'_, RealStack>, city: &str, name: &str) {
    let real = view.in_cell::<Instance>(city);
    let params = PatchParams::default();
    let bare = json!({
        "metadata": { "labels": { labels::CITY_CODE: null, labels::WORKLOAD_NAME: null } },
        "spec": { "controller": { "templateHash": FOREIGN_HASH } },
    });
    // A server takes a moment to serve a kind as it is now.
    eventually("the instance is what it would have been", async || {
        let found = real.patch(name, &params, &Patch::Merge(&bare)).await?;
        let mut conditions = serde_json::to_value(found.status.unwrap_or_default().conditions).unwrap();
        for condition in conditions.as_array_mut().into_iter().flatten() {
            if condition["type"] == c::AVAILABLE {
                condition["type"] = json!(c::RUNNING_RETIRED);
            }
        }
        let status = json!({ "status": { "conditions": conditions,
            "controller": { "observedTemplateHash": FOREIGN_HASH } } });
        real.patch_status(name, &params, &Patch::Merge(&status)).await
    })
    .await;
}
