//! Create, read, replace, delete: built-in kinds, custom resources, kinds that are known at run time only.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, LogParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::common::{Fixture, Widget, WidgetStatus, refusal, refused, widget};

both_transports!(
    config_maps,
    custom_resources,
    dynamic_objects,
    entries,
    metadata_alone,
    generated_names,
    dry_runs,
    strict_fields,
    absent_subresources,
    collections,
    scale,
    large_bodies,
);

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

async fn config_maps(fixture: Fixture) {
    let api: Api<ConfigMap> = Api::default_namespaced(fixture.client.clone());
    let post = PostParams::default();
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert_eq!(refused(api.get("a").await), (404, "NotFound".to_owned()));

    let created = api.create(&post, &config_map("a", "1")).await.unwrap();
    assert_eq!(created.namespace().as_deref(), Some("default"));
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    assert_eq!(api.get("a").await.unwrap(), created);
    assert_eq!(refused(api.create(&post, &created).await), (400, "BadRequest".to_owned()));
    let status = refusal(api.create(&post, &config_map("a", "2")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(status.details.unwrap().kind, "configmaps");

    let mut changed = created.clone();
    changed.data = Some([("key".to_owned(), "2".to_owned())].into());
    let replaced = api.replace("a", &post, &changed).await.unwrap();
    assert_eq!((replaced.uid(), &replaced.data), (created.uid(), &changed.data));
    assert_ne!(replaced.resource_version(), created.resource_version());
    assert_eq!(refused(api.replace("a", &post, &changed).await), (409, "Conflict".to_owned()));
    let same = api.replace("a", &post, &replaced).await.unwrap();
    assert_eq!(same, replaced, "a replacement by the same is no change");
    let unconditional = api.replace("a", &post, &config_map("a", "3")).await.unwrap();
    assert_eq!(unconditional.data.unwrap()["key"], "3");

    let listed = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items.iter().map(|found| found.name_any()).collect::<Vec<_>>(), ["a"]);

    let deleted = api.delete("a", &DeleteParams::default()).await.unwrap();
    let status = deleted.right().expect("an object without finalizers goes at once");
    assert!(status.is_success());
    assert_eq!(status.details.unwrap().uid, created.uid().unwrap());
    assert_eq!(refused(api.delete("a", &DeleteParams::default()).await), (404, "NotFound".to_owned()));

    let elsewhere: Api<ConfigMap> = Api::namespaced(fixture.client, "nowhere");
    let status = refusal(elsewhere.create(&post, &config_map("a", "1")).await);
    assert_eq!((status.code, status.details.unwrap().kind.as_str()), (404, "namespaces"));
}

async fn custom_resources(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let post = PostParams::default();
    let mut wanted = widget("w", 1);
    wanted.status = Some(WidgetStatus { phase: Some("Made up".to_owned()), ..WidgetStatus::default() });
    let created = api.create(&post, &wanted).await.unwrap();
    assert_eq!(created.status, None, "the status is not the creator's to set");
    assert_eq!(created.spec.size, "medium", "defaults are filled in");
    assert_eq!(created.metadata.generation, Some(1));

    let mut next = created.clone();
    next.spec.replicas = 2;
    next.status.clone_from(&wanted.status);
    let next = api.replace("w", &post, &next).await.unwrap();
    assert_eq!((next.metadata.generation, &next.status), (Some(2), &None));

    let mut reported = next.clone();
    reported.spec.replicas = 77;
    reported.status = Some(WidgetStatus { replicas: Some(2), ..WidgetStatus::default() });
    let reported = api.replace_status("w", &post, &reported).await.unwrap();
    assert_eq!(reported.spec.replicas, 2, "the status subresource changes nothing else");
    assert_eq!(reported.metadata.generation, Some(2), "a status is no desired state");
    assert_eq!(api.get_status("w").await.unwrap(), reported);
    assert_eq!(refused(api.replace_status("w", &post, &next).await), (409, "Conflict".to_owned()));

    let mut labelled = reported.clone();
    labelled.labels_mut().insert("a".to_owned(), "b".to_owned());
    let labelled = api.replace("w", &post, &labelled).await.unwrap();
    assert_eq!(labelled.metadata.generation, Some(2), "labels are no desired state");
    assert_eq!(labelled.status, reported.status);

    let mut blind = labelled;
    blind.metadata.resource_version = None;
    let status = refusal(api.replace("w", &post, &blind).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let status = refusal(api.create(&post, &widget("bad", 101)).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.details.unwrap().causes[0].field, "spec.replicas");
    assert!(api.delete("w", &DeleteParams::default()).await.unwrap().is_right());
}

async fn dynamic_objects(fixture: Fixture) {
    let gvk = GroupVersionKind::gvk("test.example.com", "v1", "Widget");
    let (resource, _) = kube::discovery::pinned_kind(&fixture.client, &gvk).await.unwrap();
    let api: Api<DynamicObject> = Api::default_namespaced_with(fixture.client.clone(), &resource);
    let object = DynamicObject::new("w", &resource).data(json!({ "spec": { "replicas": 3 } }));
    let created = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(created.types.as_ref().unwrap().kind, "Widget");
    assert_eq!(created.data["spec"], json!({ "replicas": 3, "size": "medium" }));
    let typed: Api<Widget> = Api::default_namespaced(fixture.client);
    assert_eq!(typed.get("w").await.unwrap().spec.replicas, 3);
    let listed = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items, [api.get("w").await.unwrap()]);
    assert_eq!(listed.types.kind, "WidgetList");
    let patch = json!({ "spec": { "color": "red" } });
    let patched = api.patch("w", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(patched.data["spec"]["color"], "red");
    let by_field = api.list(&ListParams::default().fields("spec.color=red")).await.unwrap();
    assert_eq!(by_field.items.len(), 1);
    assert!(api.delete("w", &DeleteParams::default()).await.unwrap().is_right());
}

async fn entries(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let post = PostParams::default();
    let mut entry = api.entry("w").await.unwrap().or_insert(|| widget("w", 1));
    entry.commit(&post).await.unwrap();
    let mut stale =
        api.entry("w").await.unwrap().and_modify(|found| found.spec.replicas += 1).or_insert(Widget::default);
    api.entry("w")
        .await
        .unwrap()
        .and_modify(|found| found.spec.replicas = 9)
        .or_insert(Widget::default)
        .commit(&post)
        .await
        .unwrap();
    let lost = stale.commit(&post).await;
    assert!(
        matches!(lost, Err(kube::api::entry::CommitError::Save(kube::Error::Api(status))) if status.code == 409)
    );
    assert_eq!(api.get("w").await.unwrap().spec.replicas, 9);
}

async fn metadata_alone(fixture: Fixture) {
    let api: Api<Secret> = Api::default_namespaced(fixture.client);
    let secret = Secret {
        metadata: ObjectMeta { name: Some("s".to_owned()), ..ObjectMeta::default() },
        string_data: Some([("password".to_owned(), "hidden".to_owned())].into()),
        ..Secret::default()
    };
    let created = api.create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!((created.type_.as_deref(), created.string_data), (Some("Opaque"), None));
    assert_eq!(created.data.unwrap()["password"].0, b"hidden");
    let metadata = api.get_metadata("s").await.unwrap();
    assert_eq!(metadata.metadata, created.metadata);
    assert_eq!(metadata.types.unwrap().kind, "PartialObjectMetadata");
    let listed = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(listed.items[0].metadata, created.metadata);
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = api.patch_metadata("s", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(patched.metadata.labels.unwrap()["a"], "b");
    assert_eq!(api.get("s").await.unwrap().data.unwrap()["password"].0, b"hidden");
}

async fn generated_names(fixture: Fixture) {
    let api: Api<ConfigMap> = Api::default_namespaced(fixture.client);
    let template = ConfigMap {
        metadata: ObjectMeta { generate_name: Some("x-".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let name = api.create(&PostParams::default(), &template).await.unwrap().name_any();
        assert!(name.starts_with("x-") && name.len() == 7, "{name}");
        names.insert(name);
    }
    assert_eq!(names.len(), 20);
    let nameless = ConfigMap::default();
    assert_eq!(refused(api.create(&PostParams::default(), &nameless).await), (422, "Invalid".to_owned()));
}

async fn dry_runs(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let answer = api.create(&dry, &widget("w", 1)).await.unwrap();
    assert_eq!(answer.spec.size, "medium", "the answer is what would have been stored");
    assert!(api.get_opt("w").await.unwrap().is_none());
    assert_eq!(refused(api.create(&dry, &widget("w", 101)).await), (422, "Invalid".to_owned()));

    let stored = api.create(&PostParams::default(), &widget("w", 1)).await.unwrap();
    assert_eq!(refused(api.create(&dry, &widget("w", 1)).await), (409, "AlreadyExists".to_owned()));
    let mut next = stored.clone();
    next.spec.replicas = 2;
    assert_eq!(api.replace("w", &dry, &next).await.unwrap().spec.replicas, 2);
    let patch = json!({ "spec": { "replicas": 3 } });
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    assert_eq!(api.patch("w", &params, &Patch::Merge(&patch)).await.unwrap().spec.replicas, 3);
    let spec = json!({ "replicas": 1, "color": "red" });
    let config = json!({ "apiVersion": "test.example.com/v1", "kind": "Widget", "spec": spec });
    let applied = api.patch("w", &PatchParams::apply("me").dry_run(), &Patch::Apply(&config)).await.unwrap();
    assert_eq!(applied.spec.color.as_deref(), Some("red"));
    assert!(api.delete("w", &DeleteParams::default().dry_run()).await.unwrap().is_right());
    assert!(api.delete("w", &DeleteParams::foreground().dry_run()).await.unwrap().is_left());
    api.delete_collection(&DeleteParams::default().dry_run(), &ListParams::default()).await.unwrap();
    assert_eq!(api.get("w").await.unwrap(), stored, "nothing has changed");
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await
}

async fn strict_fields(fixture: Fixture) {
    let path = "/apis/test.example.com/v1/namespaces/default/widgets?fieldValidation=";
    let object = json!({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": { "name": "w" },
        "spec": { "replicas": 1, "colour": "red" },
    });
    let status = refusal(send(&fixture.client, "POST", &format!("{path}Strict"), &object).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    assert!(status.message.contains("unknown field \"spec.colour\""), "{}", status.message);
    let made = send(&fixture.client, "POST", &format!("{path}Ignore"), &object).await.unwrap();
    assert_eq!(made["spec"], json!({ "replicas": 1, "size": "medium" }), "unknown fields are dropped");

    let api: Api<Widget> = Api::default_namespaced(fixture.client.clone());
    let patch = json!({ "spec": { "wrong": 1, "color": "red" } });
    let status =
        refusal(api.patch("w", &PatchParams::default().validation_strict(), &Patch::Merge(&patch)).await);
    assert!(status.message.contains("unknown field \"spec.wrong\""), "{}", status.message);
    let patched =
        api.patch("w", &PatchParams::default().validation_warn(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(patched.spec.color.as_deref(), Some("red"));

    let built_in = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict";
    let object = json!({ "metadata": { "name": "c" }, "date": {} });
    assert_eq!(refused(send(&fixture.client, "POST", built_in, &object).await).0, 400);
}

async fn absent_subresources(fixture: Fixture) {
    let pods: Api<Pod> = Api::default_namespaced(fixture.client.clone());
    let pod =
        json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    assert_eq!(refused(pods.logs("p", &LogParams::default()).await), (404, "NotFound".to_owned()));
    assert_eq!(refused(pods.get_subresource("nothing", "p").await), (404, "NotFound".to_owned()));
    assert_eq!(refused(pods.get_scale("p").await), (404, "NotFound".to_owned()));
    let maps: Api<ConfigMap> = Api::default_namespaced(fixture.client);
    maps.create(&PostParams::default(), &config_map("c", "1")).await.unwrap();
    assert_eq!(refused(maps.get_subresource("status", "c").await), (404, "NotFound".to_owned()));
}

async fn collections(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    for (name, color) in [("a", "red"), ("b", "red"), ("c", "blue"), ("d", "green")] {
        let mut object = widget(name, 1);
        object.spec.color = Some(color.to_owned());
        object.labels_mut().insert("color".to_owned(), color.to_owned());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let by_label = ListParams::default().labels("color in (red)");
    let deleted = api.delete_collection(&DeleteParams::default(), &by_label).await.unwrap();
    let list = deleted.left().expect("the answer is the list of what was deleted");
    assert_eq!(list.items.iter().map(|found| found.name_any()).collect::<Vec<_>>(), ["a", "b"]);
    let by_field = ListParams::default().fields("spec.color=blue");
    api.delete_collection(&DeleteParams::default(), &by_field).await.unwrap();
    let left = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.iter().map(|found| found.name_any()).collect::<Vec<_>>(), ["d"]);
}

async fn scale(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let created = api.create(&PostParams::default(), &widget("w", 2)).await.unwrap();
    let status = json!({ "status": { "replicas": 1, "selector": "app=w" } });
    api.patch_status("w", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();

    let scale = api.get_scale("w").await.unwrap();
    assert_eq!(scale.metadata.uid, created.uid());
    assert_eq!(scale.spec.as_ref().unwrap().replicas, Some(2));
    let found = scale.status.as_ref().unwrap();
    assert_eq!((found.replicas, found.selector.as_deref()), (1, Some("app=w")));

    let patch = json!({ "spec": { "replicas": 5 } });
    let patched = api.patch_scale("w", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(patched.spec.as_ref().unwrap().replicas, Some(5));
    let object = api.get("w").await.unwrap();
    assert_eq!((object.spec.replicas, object.metadata.generation), (5, Some(2)));
    assert_eq!(object.spec.size, "medium", "the rest of the spec is as it was");

    let mut next = patched.clone();
    next.spec.as_mut().unwrap().replicas = Some(0);
    let replaced = api.replace_scale("w", &PostParams::default(), &next).await.unwrap();
    assert_eq!(replaced.spec.unwrap().replicas, Some(0));
    assert_eq!(
        refused(api.replace_scale("w", &PostParams::default(), &next).await),
        (409, "Conflict".to_owned())
    );
    next.metadata.resource_version = None;
    next.spec.as_mut().unwrap().replicas = Some(101);
    assert_eq!(
        refused(api.replace_scale("w", &PostParams::default(), &next).await),
        (422, "Invalid".to_owned())
    );
    assert_eq!(api.get("w").await.unwrap().spec.replicas, 0);
}

/// The client is still sending when the server knows; the answer must reach it all the same.
async fn large_bodies(fixture: Fixture) {
    let api: Api<ConfigMap> = Api::default_namespaced(fixture.client);
    let large = config_map("large", &"x".repeat(10 << 20));
    let answer = refused(api.create(&PostParams::default(), &large).await);
    assert_eq!(answer, (413, "RequestEntityTooLarge".to_owned()));
    assert!(api.get_opt("large").await.unwrap().is_none());
}
