//! Definitions that change under their objects: versions, selectable fields, stricter rules, and the end of a kind.

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::common::{Fixture, eventually, refused, soon};

both_transports!(
    versions_share_objects,
    definitions_change_under_objects,
    watches_end_with_their_kind,
    objects_come_while_their_kind_goes
);

const NAME: &str = "gadgets.test.example.com";

fn version(name: &str, storage: bool, selectable: &[&str], spec: &Value) -> Value {
    let fields: Vec<Value> = selectable.iter().map(|path| json!({ "jsonPath": path })).collect();
    json!({
        "name": name, "served": true, "storage": storage, "selectableFields": fields,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
            "type": "object", "properties": spec,
        } } } },
    })
}

fn definition(versions: &[Value]) -> CustomResourceDefinition {
    let value = json!({
        "metadata": { "name": NAME },
        "spec": {
            "group": "test.example.com", "scope": "Namespaced", "names": { "plural": "gadgets", "kind": "Gadget" },
            "versions": versions,
        },
    });
    serde_json::from_value(value).unwrap()
}

fn gadgets(client: &Client, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("test.example.com", version, "Gadget"));
    Api::default_namespaced_with(client.clone(), &resource)
}

fn gadget(version: &str, name: &str, spec: &Value) -> DynamicObject {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("test.example.com", version, "Gadget"));
    DynamicObject::new(name, &resource).data(json!({ "spec": spec }))
}

async fn names(api: &Api<DynamicObject>, fields: &str) -> Vec<String> {
    let list = api.list(&ListParams::default().fields(fields)).await.unwrap();
    list.items.iter().map(|item| item.name_any()).collect()
}

async fn versions_share_objects(fixture: Fixture) {
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let spec = json!({ "a": { "type": "string" }, "b": { "type": "string" } });
    let crd = definition(&[
        version("v1", true, &[".spec.a"], &spec),
        version("v2", false, &[".spec.b", ".spec.a"], &spec),
    ]);
    crds.create(&PostParams::default(), &crd).await.unwrap();
    let (old, new) = (gadgets(&fixture.client, "v1"), gadgets(&fixture.client, "v2"));
    let from = new.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    for (version, name) in [("v1", "one"), ("v2", "two")] {
        let api = gadgets(&fixture.client, version);
        let made =
            api.create(&PostParams::default(), &gadget(version, name, &json!({ "a": "x", "b": "y" }))).await;
        assert_eq!(made.unwrap().types.unwrap().api_version, format!("test.example.com/{version}"));
    }
    let seen = new.get("one").await.unwrap();
    assert_eq!(seen.types.as_ref().unwrap().api_version, "test.example.com/v2");
    assert_eq!(seen.metadata, old.get("one").await.unwrap().metadata);
    for (api, selector, picked) in [
        (&old, "spec.a=x", 2),
        (&old, "spec.a=y", 0),
        (&new, "spec.a=x", 2),
        (&new, "spec.b=y", 2),
        (&new, "spec.b=x", 0),
    ] {
        assert_eq!(names(api, selector).await.len(), picked, "{selector}");
    }
    assert_eq!(refused(old.list(&ListParams::default().fields("spec.b=y")).await).0, 400);

    let patch = json!({ "spec": { "b": "z" } });
    old.patch("one", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(names(&new, "spec.b=z").await, ["one"]);
    let stream = new.watch(&WatchParams::default().fields("spec.b=y"), &from).await.unwrap();
    let events: Vec<_> = soon("three events", stream.take(3).collect()).await;
    for event in events {
        let (WatchEvent::Added(object) | WatchEvent::Deleted(object)) = event.unwrap() else {
            panic!("unexpected")
        };
        assert_eq!(object.types.unwrap().api_version, "test.example.com/v2");
    }
}

async fn definitions_change_under_objects(fixture: Fixture) {
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let loose = json!({ "a": { "type": "string" }, "n": { "type": "integer" } });
    crds.create(&PostParams::default(), &definition(&[version("v1", true, &[], &loose)])).await.unwrap();
    let api = gadgets(&fixture.client, "v1");
    let mut object = gadget("v1", "g", &json!({ "a": "x", "n": 50 }));
    object.metadata.finalizers = Some(vec!["test.example.com/hold".to_owned()]);
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(refused(api.list(&ListParams::default().fields("spec.a=x")).await).0, 400);

    let strict = json!({
        "a": { "type": "string" }, "n": { "type": "integer", "maximum": 10 },
        "size": { "type": "string", "default": "medium" },
    });
    let mut crd = definition(&[version("v1", true, &[".spec.a"], &strict)]);
    crd.metadata.resource_version = crds.get(NAME).await.unwrap().resource_version();
    crds.replace(NAME, &PostParams::default(), &crd).await.unwrap();
    assert_eq!(names(&api, "spec.a=x").await, ["g"], "objects from before are found by the new field");
    let found = api.get("g").await.unwrap();
    assert_eq!((found.uid(), &found.data["spec"]["size"]), (made.uid(), &json!("medium")));
    let worse = json!({ "spec": { "n": 60 } });
    assert_eq!(refused(api.patch("g", &PatchParams::default(), &Patch::Merge(&worse)).await).0, 422);
    let other = json!({ "spec": { "a": "y" } });
    let patched = api.patch("g", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    assert_eq!(patched.data["spec"]["n"], 50, "what was good once may stay as it is");

    // An object that the rules would refuse by now can be deleted all the same.
    api.delete("g", &DeleteParams::foreground()).await.unwrap();
    let release = json!({ "metadata": { "finalizers": null } });
    api.patch("g", &PatchParams::default(), &Patch::Merge(&release)).await.unwrap();
    eventually("the object is gone", async || {
        let found = api.get_opt("g").await.unwrap();
        found.map_or(Ok(()), |found| Err(format!("{:?}", found.metadata)))
    })
    .await;
}

async fn watches_end_with_their_kind(fixture: Fixture) {
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let spec = json!({ "a": { "type": "string" } });
    crds.create(&PostParams::default(), &definition(&[version("v1", true, &[], &spec)])).await.unwrap();
    let api = gadgets(&fixture.client, "v1");
    api.create(&PostParams::default(), &gadget("v1", "g", &json!({ "a": "x" }))).await.unwrap();
    let mut watch = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let first = soon("the object is seen", watch.next()).await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Added(_)));
    crds.delete(NAME, &DeleteParams::default()).await.unwrap();
    let rest: Vec<_> = soon("the watch ends", watch.collect()).await;
    let rest: Vec<_> = rest.into_iter().map(|event| event.unwrap()).collect();
    let told = rest.iter().any(|event| match event {
        WatchEvent::Deleted(object) => object.name_any() == "g",
        WatchEvent::Error(status) => status.code == 410,
        _ => false,
    });
    assert!(told, "the client learns that the object is gone: {rest:?}");
    eventually("the kind is gone", async || match api.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

/// Whatever comes while its kind goes is made and goes with it, or is told that there is no such kind any more.
async fn objects_come_while_their_kind_goes(fixture: Fixture) {
    const ROUNDS: usize = 5;
    const OBJECTS: usize = 20;
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let api = gadgets(&fixture.client, "v1");
    for _ in 0..ROUNDS {
        let crd = definition(&[version("v1", true, &[], &json!({}))]);
        crds.create(&PostParams::default(), &crd).await.unwrap();
        let left = eventually("the kind is served", async || api.list(&ListParams::default()).await).await;
        assert!(left.items.is_empty(), "an object outlived its kind: {:?}", left.items);
        let come = futures::future::join_all((0..OBJECTS).map(async |number| {
            let object = gadget("v1", &format!("g{number}"), &json!({}));
            api.create(&PostParams::default(), &object).await
        }));
        let delete = DeleteParams::default();
        let (come, gone) = tokio::join!(come, crds.delete(NAME, &delete));
        gone.unwrap();
        for answer in come {
            let Err(kube::Error::Api(status)) = answer else {
                answer.unwrap();
                continue;
            };
            assert!([404, 405].contains(&status.code), "{status:?}");
        }
        eventually("the kind is gone", async || match crds.get_opt(NAME).await {
            Ok(None) => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
    }
}
