//! Deletion: what goes along, what stays, what waits.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::wait::delete::delete_and_finalize;
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::common::{Fixture, Widget, eventually, refused, soon, widget};

both_transports!(
    propagation_background,
    propagation_orphan,
    propagation_foreground,
    foreground_ends_when_a_dependent_is_let_go,
    preconditions,
    finalizers,
    namespaces,
    namespaces_in_foreground,
);

/// Makes a widget that owns a ConfigMap of the same name.
async fn family(
    client: &Client,
    name: &str,
    finalizer: Option<&str>,
) -> (Api<Widget>, Api<ConfigMap>, OwnerReference) {
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let owner = widgets.create(&PostParams::default(), &widget(name, 1)).await.unwrap();
    let reference =
        OwnerReference { block_owner_deletion: Some(true), ..owner.controller_owner_ref(&()).unwrap() };
    let owned = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            owner_references: Some(vec![reference.clone()]),
            finalizers: finalizer.map(|finalizer| vec![finalizer.to_owned()]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &owned).await.unwrap();
    (widgets, maps, reference)
}

async fn gone<K>(api: &Api<K>, name: &str)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    eventually(&format!("{name} is gone"), async || match api.get_opt(name).await.unwrap() {
        None => Ok(()),
        Some(found) => Err(format!("{:?}", found.meta())),
    })
    .await;
}

async fn release(maps: &Api<ConfigMap>, name: &str) {
    let patch = json!({ "metadata": { "finalizers": null } });
    maps.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

async fn propagation_background(fixture: Fixture) {
    for params in [DeleteParams::default(), DeleteParams::background()] {
        let (widgets, maps, _) = family(&fixture.client, "w", None).await;
        assert!(widgets.delete("w", &params).await.unwrap().is_right(), "the owner goes at once");
        gone(&maps, "w").await;
    }
}

async fn propagation_orphan(fixture: Fixture) {
    let (widgets, maps, _) = family(&fixture.client, "w", None).await;
    let pending = widgets.delete("w", &DeleteParams::orphan()).await.unwrap().left().unwrap();
    assert_eq!(pending.finalizers(), ["orphan"]);
    gone(&widgets, "w").await;
    let map = maps.get("w").await.unwrap();
    assert!(map.owner_references().is_empty() && map.metadata.deletion_timestamp.is_none());
}

async fn propagation_foreground(fixture: Fixture) {
    let (widgets, maps, _) = family(&fixture.client, "w", Some("test.example.com/hold")).await;
    let pending = widgets.delete("w", &DeleteParams::foreground()).await.unwrap().left().unwrap();
    assert_eq!(pending.finalizers(), ["foregroundDeletion"]);
    assert!(pending.metadata.deletion_timestamp.is_some());
    eventually("the dependent is being deleted", async || {
        let map = maps.get("w").await.unwrap();
        map.metadata.deletion_timestamp.ok_or("not yet")
    })
    .await;
    assert!(widgets.get_opt("w").await.unwrap().is_some(), "the owner waits for its dependent");
    release(&maps, "w").await;
    gone(&widgets, "w").await;
    gone(&maps, "w").await;
}

async fn foreground_ends_when_a_dependent_is_let_go(fixture: Fixture) {
    let (widgets, maps, reference) = family(&fixture.client, "w", None).await;
    let keeper = widgets.create(&PostParams::default(), &widget("keeper", 1)).await.unwrap();
    let both = json!({ "metadata": { "ownerReferences": [reference, keeper.owner_ref(&()).unwrap()] } });
    maps.patch("w", &PatchParams::default(), &Patch::Merge(&both)).await.unwrap();
    widgets.delete("w", &DeleteParams::foreground()).await.unwrap();
    gone(&widgets, "w").await;
    let map = maps.get("w").await.unwrap();
    assert_eq!(map.owner_references().len(), 1, "it stays with the owner that lives");
    assert_eq!(Some(&map.owner_references()[0].uid), keeper.metadata.uid.as_ref());
}

async fn preconditions(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let first = api.create(&PostParams::default(), &widget("w", 1)).await.unwrap();
    let patch = json!({ "spec": { "replicas": 2 } });
    let second = api.patch("w", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let when = |uid: Option<String>, resource_version: Option<String>| {
        DeleteParams::default().preconditions(Preconditions { uid, resource_version })
    };
    let conflict = (409, "Conflict".to_owned());
    assert_eq!(refused(api.delete("w", &when(Some("other".to_owned()), None)).await), conflict);
    assert_eq!(refused(api.delete("w", &when(first.uid(), first.resource_version())).await), conflict);
    assert!(api.delete("w", &when(first.uid(), second.resource_version())).await.unwrap().is_right());
}

async fn finalizers(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let mut object = widget("w", 1);
    object.finalizers_mut().push("test.example.com/hold".to_owned());
    api.create(&PostParams::default(), &object).await.unwrap();
    let pending = api.delete("w", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!((pending.finalizers().len(), pending.metadata.generation), (1, Some(2)));
    let again = api.delete("w", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(again, pending, "a second delete changes nothing");
    let more = json!({ "metadata": { "finalizers": ["test.example.com/hold", "test.example.com/more"] } });
    let refusal = refused(api.patch("w", &PatchParams::default(), &Patch::Merge(&more)).await);
    assert_eq!(refusal, (422, "Invalid".to_owned()), "nothing may be added that holds it longer");
    let status = json!({ "status": { "phase": "Cleaning" } });
    api.patch_status("w", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();

    let waiting = tokio::spawn(delete_and_finalize_owned(api.clone()));
    let last = json!({ "metadata": { "finalizers": null } });
    let last = api.patch("w", &PatchParams::default(), &Patch::Merge(&last)).await.unwrap();
    assert!(last.finalizers().is_empty());
    soon("delete_and_finalize returns", waiting).await.unwrap();
    assert_eq!(refused(api.get("w").await), (404, "NotFound".to_owned()));
}

/// The object may be gone before this comes to delete it.
async fn delete_and_finalize_owned(api: Api<Widget>) {
    match delete_and_finalize(api, "w", &DeleteParams::default()).await {
        Ok(()) => {}
        Err(kube::runtime::wait::delete::Error::Delete(kube::Error::Api(status))) if status.code == 404 => {}
        Err(error) => panic!("{error}"),
    }
}

async fn filled_namespace(client: &Client) -> (Api<Namespace>, Api<Widget>, Api<ConfigMap>) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "team" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let widgets: Api<Widget> = Api::namespaced(client.clone(), "team");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    for i in 0..5 {
        widgets.create(&PostParams::default(), &widget(&format!("w{i}"), i)).await.unwrap();
    }
    let map = serde_json::from_value(
        json!({ "metadata": { "name": "held", "finalizers": ["test.example.com/hold"] } }),
    );
    maps.create(&PostParams::default(), &map.unwrap()).await.unwrap();
    (namespaces, widgets, maps)
}

async fn namespaces(fixture: Fixture) {
    let (namespaces, widgets, maps) = filled_namespace(&fixture.client).await;
    let pending = namespaces.delete("team", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(pending.status.unwrap().phase.as_deref(), Some("Terminating"));
    let refusal = refused(widgets.create(&PostParams::default(), &widget("late", 1)).await);
    assert_eq!(refusal, (403, "Forbidden".to_owned()));
    eventually("everything that can go is gone", async || {
        let left = widgets.list(&ListParams::default()).await.unwrap().items.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
    })
    .await;
    assert!(namespaces.get_opt("team").await.unwrap().is_some(), "the namespace waits for what is held");
    release(&maps, "held").await;
    gone(&namespaces, "team").await;
    filled_namespace(&fixture.client).await;
    assert_eq!(
        refused(namespaces.delete("default", &DeleteParams::default()).await),
        (403, "Forbidden".to_owned())
    );
}

async fn namespaces_in_foreground(fixture: Fixture) {
    for params in [DeleteParams::foreground(), DeleteParams::orphan()] {
        let (namespaces, _, maps) = filled_namespace(&fixture.client).await;
        release(&maps, "held").await;
        soon("the namespace is gone", delete_and_finalize(namespaces, "team", &params)).await.unwrap();
        assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
    }
}
