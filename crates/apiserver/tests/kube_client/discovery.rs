//! Discovery, version, and CRDs that come and go while the plane runs.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::{GroupVersion, GroupVersionKind};
use kube::discovery::{self, Discovery, Scope, verbs};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use crate::common::{Fixture, Widget, eventually, refused, soon, widget};

both_transports!(whole_discovery, single_groups, definitions_come_and_go);

fn check(discovery: &Discovery) {
    for group in ["", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io", "test.example.com"] {
        assert!(discovery.has_group(group), "{group:?}");
    }
    let gvk = GroupVersionKind::gvk("test.example.com", "v1", "Widget");
    let (resource, capabilities) = discovery.resolve_gvk(&gvk).unwrap();
    assert_eq!((resource.plural.as_str(), resource.api_version.as_str()), ("widgets", "test.example.com/v1"));
    assert_eq!(capabilities.scope, Scope::Namespaced);
    for verb in
        [verbs::CREATE, verbs::DELETE, verbs::GET, verbs::LIST, verbs::PATCH, verbs::UPDATE, verbs::WATCH]
    {
        assert!(capabilities.supports_operation(verb), "{verb}");
    }
    let gvk = GroupVersionKind::gvk("", "v1", "Namespace");
    assert_eq!(discovery.resolve_gvk(&gvk).unwrap().1.scope, Scope::Cluster);
    let gvk = GroupVersionKind::gvk("", "v1", "Nothing");
    assert!(discovery.resolve_gvk(&gvk).is_none());
}

async fn whole_discovery(fixture: Fixture) {
    let found = Discovery::new(fixture.client.clone()).run().await.unwrap();
    check(&found);
    check(&Discovery::new(fixture.client.clone()).run_aggregated().await.unwrap());
    let gvk = GroupVersionKind::gvk("test.example.com", "v1", "Widget");
    let (_, capabilities) = found.resolve_gvk(&gvk).unwrap();
    let mut subresources: Vec<_> = capabilities.subresources.iter().map(|(r, _)| r.plural.as_str()).collect();
    subresources.sort_unstable();
    assert_eq!(subresources, ["scale", "status"]);
    let filtered = Discovery::new(fixture.client.clone()).filter(&["test.example.com"]).run().await.unwrap();
    assert_eq!(filtered.groups().map(|group| group.name()).collect::<Vec<_>>(), ["test.example.com"]);
    let version = fixture.client.apiserver_version().await.unwrap();
    assert_eq!(version.major, "1");
}

async fn single_groups(fixture: Fixture) {
    let group = discovery::group(&fixture.client, "test.example.com").await.unwrap();
    assert_eq!((group.preferred_version(), group.versions().collect::<Vec<_>>()), (Some("v1"), vec!["v1"]));
    let kinds: Vec<String> = group.recommended_resources().into_iter().map(|(r, _)| r.kind).collect();
    assert_eq!(kinds, ["Widget"]);
    let core = discovery::pinned_group(&fixture.client, &GroupVersion::gv("", "v1")).await.unwrap();
    let (pods, _) = core.recommended_kind("Pod").unwrap();
    assert_eq!(pods.plural, "pods");
    let gvk = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    assert_eq!(discovery::pinned_kind(&fixture.client, &gvk).await.unwrap().0.plural, "leases");
    assert!(discovery::group(&fixture.client, "absent.example.com").await.is_err());
}

fn gadgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.test.example.com" },
        "spec": {
            "group": "test.example.com", "scope": "Cluster", "names": { "plural": "gadgets", "kind": "Gadget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

async fn definitions_come_and_go(fixture: Fixture) {
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let crd: CustomResourceDefinition = serde_json::from_value(gadgets()).unwrap();
    crds.create(&PostParams::default(), &crd).await.unwrap();
    let established =
        await_condition(crds.clone(), "gadgets.test.example.com", conditions::is_crd_established());
    soon("the CRD is established", established).await.unwrap();

    let gvk = GroupVersionKind::gvk("test.example.com", "v1", "Gadget");
    let (resource, capabilities) = discovery::pinned_kind(&fixture.client, &gvk).await.unwrap();
    assert_eq!(capabilities.scope, Scope::Cluster);
    let gadgets: Api<kube::api::DynamicObject> = Api::all_with(fixture.client.clone(), &resource);
    let gadget = kube::api::DynamicObject::new("g", &resource).data(json!({ "anything": [1, 2] }));
    let made = gadgets.create(&PostParams::default(), &gadget).await.unwrap();
    assert_eq!((made.namespace(), &made.data["anything"]), (None, &json!([1, 2])));

    crds.delete("gadgets.test.example.com", &DeleteParams::default()).await.unwrap();
    eventually("the CRD is gone", async || match crds.get_opt("gadgets.test.example.com").await.unwrap() {
        None => Ok(()),
        Some(found) => Err(format!("{:?}", found.metadata)),
    })
    .await;
    assert_eq!(refused(gadgets.list(&ListParams::default()).await), (404, "NotFound".to_owned()));
    assert!(discovery::pinned_kind(&fixture.client, &gvk).await.is_err());
    let widgets: Api<Widget> = Api::default_namespaced(fixture.client);
    widgets.create(&PostParams::default(), &widget("w", 1)).await.unwrap();

    crds.create(&PostParams::default(), &crd).await.unwrap();
    let left = gadgets.list(&ListParams::default()).await.unwrap();
    assert!(left.items.is_empty(), "a definition that comes back brings no objects back");
}
