//! Direct mode: the project's plane is the cell, and there is no hub.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::{conditions as c, finalizers};
use compute_testkit::objects::{BAD_IMAGE, NEXT_IMAGE, template, workload};
use compute_testkit::{Direct, eventually};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

#[tokio::test]
async fn a_workload_lives_and_dies_on_one_plane() {
    let direct = Direct::start("DFW").await;
    let workloads: Api<Workload> = Api::default_namespaced(direct.client.clone());
    let deployments: Api<WorkloadDeployment> = Api::default_namespaced(direct.client.clone());
    let instances: Api<Instance> = Api::default_namespaced(direct.client.clone());
    workloads.create(&PostParams::default(), &workload("web", &["DFW"], 2)).await.unwrap();
    let ready = async |wanted: i64| {
        eventually("it is ready", async || {
            let found = workloads.get("web").await.unwrap();
            let status = found.status.unwrap_or_default();
            let counts =
                [status.replicas, status.ready_replicas, status.updated_replicas, status.desired_replicas];
            let done = counts == [Some(wanted); 4] && status.observed_generation == found.metadata.generation;
            if done { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    };
    ready(2).await;
    let deployment = deployments.get("web-main-dfw").await.unwrap();
    assert!(!deployment.finalizers().iter().any(|finalizer| finalizer == finalizers::FEDERATOR));
    for instance in instances.list(&ListParams::default()).await.unwrap() {
        let said = c::find(&instance.status.as_ref().unwrap().conditions, c::QUOTA_GRANTED).unwrap();
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("True", c::QUOTA_DISABLED));
        assert_eq!(instance.owner_references()[0].uid, deployment.uid().unwrap());
    }

    let change = async |image: &str| {
        let patch = Patch::Merge(json!({ "spec": { "template": template(image) } }));
        workloads.patch("web", &PatchParams::default(), &patch).await.unwrap();
    };
    change(BAD_IMAGE).await;
    eventually("it says what is wrong", async || {
        let found = instances.list(&ListParams::default()).await.unwrap();
        let said =
            found.iter().filter_map(|instance| c::find(&instance.status.as_ref()?.conditions, c::READY));
        let said: Vec<_> = said.map(|said| said.reason.clone()).collect();
        if said.iter().any(|reason| reason == c::IMAGE_UNAVAILABLE) {
            Ok(())
        } else {
            Err(format!("{said:?}"))
        }
    })
    .await;
    change(NEXT_IMAGE).await;
    ready(2).await;

    workloads.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("nothing is left", async || {
        let left = instances.list(&ListParams::default()).await.unwrap().items.len()
            + deployments.list(&ListParams::default()).await.unwrap().items.len()
            + workloads.list(&ListParams::default()).await.unwrap().items.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
    })
    .await;
}
