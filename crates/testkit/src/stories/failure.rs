//! Crashes of workers, and objects that cannot be read.

use compute_api::compute::{Workload, WorkloadDeployment};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::json;

use crate::objects::{NEXT_IMAGE, placement, workload};
use crate::stack::{Stack, Worker};
use crate::view::View;
use crate::wait::eventually;

/// Workers that die after any of their writes pick up where they were.
pub async fn managers_restarted(stack: &impl Stack) {
    let view = View::new(stack, "restarted").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    let workers = [Worker::Management, Worker::Cell(here.to_owned())];
    view.create(&workload("web", &[here, there], 2)).await;
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    for (round, worker) in (0..24).zip(workers.iter().cycle()) {
        let writes = round / 2;
        stack.allow_writes(worker, writes);
        // Something for every controller to do.
        let (count, image) = if round % 4 < 2 { (3, NEXT_IMAGE) } else { (1, crate::objects::IMAGE) };
        view.set_placements("web", &[placement("main", &[here, there], count)]).await;
        view.set_image("web", image).await;
        let count = usize::try_from(count).unwrap();
        let wanted = [(names[0].as_str(), count), (names[1].as_str(), count)];
        eventually("the worker has died, or had nothing left to write", async || {
            if stack.is_out_of_writes(worker) { Ok(()) } else { view.is_ready("web", &wanted).await }
        })
        .await;
        stack.crash(worker).await;
        stack.start(worker).await;
        view.until_ready("web", &wanted).await;
    }
    stack.allow_writes(&Worker::Management, 3);
    view.delete("web").await;
    eventually("the worker has died, or had nothing left to write", async || {
        let gone = view.mine::<Workload>().get_opt("web").await.unwrap().is_none();
        if stack.is_out_of_writes(&Worker::Management) || gone { Ok(()) } else { Err("it goes on") }
    })
    .await;
    stack.crash(&Worker::Management).await;
    stack.start(&Worker::Management).await;
    view.until_gone("web").await;
}

/// An object that cannot be read is skipped; what is beside it is served, and itself once it can be read.
pub async fn undecodable_object_among_good_ones(stack: &impl Stack) {
    let view = View::new(stack, "unreadable").await;
    let city = &stack.cities()[0];
    let of = |name: &str| format!("{name}-main-{}", city.to_lowercase());
    for name in ["good", "bad"] {
        view.create(&workload(name, &[city], 1)).await;
        view.until_ready(name, &[(&of(name), 1)]).await;
    }

    // A schema that lets everything in, as after a downgrade.
    let crds: Api<CustomResourceDefinition> = Api::all(view.client());
    let name = "workloads.compute.datumapis.com";
    let kept = crds.get(name).await.unwrap();
    let anything = json!([{ "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    } }]);
    let patch = Patch::Json::<()>(serde_json::from_value(anything).unwrap());
    crds.patch(name, &PatchParams::default(), &patch).await.unwrap();
    let resource = ApiResource::erase::<Workload>(&());
    let raw: Api<DynamicObject> = Api::namespaced_with(view.client(), "default", &resource);
    // What people write is judged all the same.
    let mut worse = DynamicObject::new("worse", &resource).within("default");
    worse.data = json!({ "spec": { "placements": "everywhere", "template": 7 } });
    eventually("a bad one is refused for what is wrong in it", async || {
        let refused = raw.create(&PostParams::default(), &worse).await.unwrap_err().to_string();
        let named = ["spec.placements: ", "must be a list", "spec.template: ", "must be an object"];
        if named.iter().all(|words| refused.contains(words)) { Ok(()) } else { Err(refused) }
    })
    .await;
    let broken = Patch::Merge(json!({ "status": { "placements": "everywhere" } }));
    eventually("one cannot be read any more", async || {
        raw.patch_status("bad", &PatchParams::default(), &broken).await?;
        let stored = raw.get("bad").await?;
        assert_eq!(stored.data["status"]["placements"], "everywhere");
        Ok::<(), kube::Error>(())
    })
    .await;
    raw.patch("bad", &PatchParams::default(), &Patch::Merge(scaled(city))).await.unwrap();

    view.set_placements("good", &[placement("main", &[city], 2)]).await;
    view.until_ready("good", &[(&of("good"), 2)]).await;
    view.create(&workload("more", &[city], 1)).await;
    view.until_ready("more", &[(&of("more"), 1)]).await;
    let untouched: WorkloadDeployment = view.mine().get(&of("bad")).await.unwrap();
    assert_eq!(untouched.spec.scale_settings.min_replicas, 1);

    // Mended, it is served like any other.
    let schema =
        serde_json::to_value(&kept.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema).unwrap();
    let strict =
        json!([{ "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema }]);
    let mended = Patch::Merge(json!({ "status": { "placements": null } }));
    raw.patch_status("bad", &PatchParams::default(), &mended).await.unwrap();
    let patch = Patch::Json::<()>(serde_json::from_value(strict).unwrap());
    crds.patch(name, &PatchParams::default(), &patch).await.unwrap();
    view.until_ready("bad", &[(&of("bad"), 2)]).await;
}

fn scaled(city: &str) -> serde_json::Value {
    json!({ "spec": { "placements": [placement("main", &[city], 2)] } })
}
