//! JSON patch, merge patch and strategic merge patch.

use json_patch::Patch as JsonPatch;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::common::{Fixture, Widget, refused, widget};

both_transports!(json_patches, merge_patches, strategic_patches);

fn operations(patch: Value) -> Patch<()> {
    Patch::Json(serde_json::from_value::<JsonPatch>(patch).unwrap())
}

async fn json_patches(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let params = PatchParams::default();
    let created = api.create(&PostParams::default(), &widget("w", 1)).await.unwrap();

    let patch = operations(json!([
        { "op": "test", "path": "/spec/replicas", "value": 1 },
        { "op": "replace", "path": "/spec/replicas", "value": 2 },
        { "op": "add", "path": "/metadata/labels", "value": { "a/b": "c" } },
        { "op": "copy", "from": "/spec/size", "path": "/spec/color" },
    ]));
    let patched = api.patch("w", &params, &patch).await.unwrap();
    assert_eq!((patched.spec.replicas, patched.spec.color.as_deref()), (2, Some("medium")));
    let patch = operations(json!([{ "op": "remove", "path": "/metadata/labels/a~1b" }]));
    let patched = api.patch("w", &params, &patch).await.unwrap();
    assert!(patched.labels().is_empty());

    let failing = operations(json!([
        { "op": "replace", "path": "/spec/replicas", "value": 9 },
        { "op": "test", "path": "/spec/color", "value": "another" },
    ]));
    assert_eq!(refused(api.patch("w", &params, &failing).await).0, 422);
    let missing = operations(json!([{ "op": "remove", "path": "/spec/nothing" }]));
    assert_eq!(refused(api.patch("w", &params, &missing).await).0, 422);
    let stale = operations(json!([
        { "op": "replace", "path": "/metadata/resourceVersion", "value": created.resource_version() },
        { "op": "replace", "path": "/spec/replicas", "value": 9 },
    ]));
    assert_eq!(refused(api.patch("w", &params, &stale).await), (409, "Conflict".to_owned()));
    let wrong = operations(json!([{ "op": "replace", "path": "/spec/replicas", "value": -1 }]));
    assert_eq!(refused(api.patch("w", &params, &wrong).await), (422, "Invalid".to_owned()));
    assert_eq!(api.get("w").await.unwrap(), patched, "a patch is done whole or not at all");
    assert_eq!(refused(api.patch("absent", &params, &failing).await), (404, "NotFound".to_owned()));
}

async fn merge_patches(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let params = PatchParams::default();
    let mut object = widget("w", 1);
    object.spec.color = Some("red".to_owned());
    object.annotations_mut().insert("keep".to_owned(), "this".to_owned());
    let created = api.create(&PostParams::default(), &object).await.unwrap();

    let patch =
        json!({ "metadata": { "annotations": { "more": "x" } }, "spec": { "color": null, "replicas": 4 } });
    let patched = api.patch("w", &params, &Patch::Merge(&patch)).await.unwrap();
    assert_eq!((patched.spec.replicas, &patched.spec.color), (4, &None));
    assert_eq!(patched.annotations().len(), 2);
    let again = api.patch("w", &params, &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(again, patched, "a patch that changes nothing makes no new version");

    let stale =
        json!({ "metadata": { "resourceVersion": created.resource_version() }, "spec": { "replicas": 5 } });
    assert_eq!(refused(api.patch("w", &params, &Patch::Merge(&stale)).await), (409, "Conflict".to_owned()));
    let renamed = json!({ "metadata": { "name": "other" } });
    assert_eq!(
        refused(api.patch("w", &params, &Patch::Merge(&renamed)).await),
        (400, "BadRequest".to_owned())
    );
    let fixed = json!({ "metadata": { "generation": 99, "creationTimestamp": null } });
    assert_eq!(api.patch("w", &params, &Patch::Merge(&fixed)).await.unwrap(), patched);
    let strategic = api.patch("w", &params, &Patch::Strategic(&patch)).await;
    assert_eq!(refused(strategic), (415, "UnsupportedMediaType".to_owned()));
}

async fn strategic_patches(fixture: Fixture) {
    let api: Api<Pod> = Api::default_namespaced(fixture.client);
    let params = PatchParams::default();
    let pod = json!({
        "metadata": { "name": "p", "finalizers": ["test.example.com/a"] },
        "spec": {
            "containers": [
                { "name": "main", "image": "one", "env": [{ "name": "A", "value": "1" }] },
                { "name": "side", "image": "two" },
            ],
            "tolerations": [{ "key": "k", "operator": "Exists" }],
        },
    });
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();

    let patch = json!({
        "metadata": { "finalizers": ["test.example.com/b"] },
        "spec": { "containers": [{ "name": "main", "image": "three" }], "activeDeadlineSeconds": 9 },
    });
    let patched = api.patch("p", &params, &Patch::Strategic(&patch)).await.unwrap();
    let spec = patched.spec.as_ref().unwrap();
    let images: Vec<_> =
        spec.containers.iter().map(|c| (c.name.as_str(), c.image.as_deref().unwrap())).collect();
    assert_eq!(images, [("main", "three"), ("side", "two")], "containers are merged by name");
    assert_eq!(spec.containers[0].env.as_ref().unwrap().len(), 1);
    assert_eq!(patched.finalizers().len(), 2, "finalizers are merged as a set");

    let patch = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["test.example.com/a"] } });
    let patched = api.patch("p", &params, &Patch::Strategic(&patch)).await.unwrap();
    assert_eq!(patched.finalizers(), ["test.example.com/b"]);

    let status =
        json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    let patched = api.patch_status("p", &params, &Patch::Strategic(&status)).await.unwrap();
    assert_eq!(patched.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
    let status = json!({ "status": { "conditions": [{ "type": "Other", "status": "False" }] } });
    let patched = api.patch_status("p", &params, &Patch::Strategic(&status)).await.unwrap();
    assert_eq!(patched.status.unwrap().conditions.unwrap().len(), 2, "conditions are merged by type");
}
