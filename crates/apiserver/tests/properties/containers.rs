//! What holds other objects leaves nothing behind when it is deleted: a namespace, and a CRD.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource as _, ResourceExt as _};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::check;
use crate::common::{Widget, eventually};

const HOLD: &str = "test.example.com/hold";

#[derive(Clone, Copy, Debug)]
enum Policy {
    Unsaid,
    Background,
    Foreground,
    Orphan,
}

impl Policy {
    fn params(self) -> DeleteParams {
        match self {
            Self::Unsaid => DeleteParams::default(),
            Self::Background => DeleteParams::background(),
            Self::Foreground => DeleteParams::foreground(),
            Self::Orphan => DeleteParams::orphan(),
        }
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Unsaid),
        Just(Policy::Background),
        Just(Policy::Foreground),
        Just(Policy::Orphan)
    ]
}

/// A built-in object and which widgets own it.
#[derive(Clone, Debug)]
struct Owned {
    is_secret: bool,
    widgets: Vec<usize>,
    /// Whether a ConfigMap that nobody deletes owns it, too.
    kept: bool,
    blocks: bool,
    held: bool,
}

#[derive(Clone, Debug)]
struct Contents {
    /// Whether each widget is held.
    widgets: Vec<bool>,
    owned: Vec<Owned>,
}

fn contents() -> impl Strategy<Value = Contents> {
    let owned = (
        any::<bool>(),
        proptest::collection::vec(0..6usize, 0..3),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(is_secret, widgets, kept, blocks, held)| Owned {
            is_secret,
            widgets,
            kept,
            blocks,
            held,
        });
    let widgets = proptest::collection::vec(proptest::bool::weighted(0.3), 0..6);
    (widgets, proptest::collection::vec(owned, 0..8)).prop_map(|(widgets, owned)| Contents { widgets, owned })
}

fn metadata(name: &str, owners: &[OwnerReference], held: bool) -> Value {
    json!({ "name": name, "ownerReferences": owners, "finalizers": if held { vec![HOLD] } else { vec![] } })
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

struct Place {
    widgets: Api<Widget>,
    maps: Api<ConfigMap>,
    secrets: Api<Secret>,
}

impl Place {
    fn new(client: &Client, namespace: &str) -> Self {
        Self {
            widgets: Api::namespaced(client.clone(), namespace),
            maps: Api::namespaced(client.clone(), namespace),
            secrets: Api::namespaced(client.clone(), namespace),
        }
    }

    async fn fill(&self, contents: &Contents) {
        let post = PostParams::default();
        let keeper = json!({ "metadata": { "name": "keeper" } });
        let keeper: ConfigMap = self.maps.create(&post, &object(keeper)).await.unwrap();
        let mut widgets = Vec::new();
        for (at, held) in contents.widgets.iter().enumerate() {
            let metadata = metadata(&format!("w{at}"), &[], *held);
            let widget = object(json!({ "metadata": metadata, "spec": { "replicas": 1 } }));
            widgets.push(self.widgets.create(&post, &widget).await.unwrap());
        }
        for (at, owned) in contents.owned.iter().enumerate() {
            let mut owners: Vec<OwnerReference> = Vec::new();
            for widget in owned.widgets.iter().filter_map(|at| widgets.get(*at)) {
                let reference = widget.owner_ref(&()).unwrap();
                if !owners.iter().any(|found| found.uid == reference.uid) {
                    owners.push(OwnerReference { block_owner_deletion: Some(owned.blocks), ..reference });
                }
            }
            owners.extend(owned.kept.then(|| keeper.owner_ref(&()).unwrap()));
            let value = json!({ "metadata": metadata(&format!("o{at}"), &owners, owned.held) });
            if owned.is_secret {
                self.secrets.create(&post, &object(value)).await.unwrap();
            } else {
                self.maps.create(&post, &object(value)).await.unwrap();
            }
        }
    }

    async fn names(&self) -> Vec<String> {
        let all = ListParams::default();
        let widgets = self.widgets.list(&all).await.map_or_else(|_| Vec::new(), |list| list.items);
        let maps = self.maps.list(&all).await.unwrap().items;
        let secrets = self.secrets.list(&all).await.unwrap().items;
        let names = widgets.iter().map(|o| o.name_any()).chain(maps.iter().map(|o| o.name_any()));
        let mut names: Vec<String> = names.chain(secrets.iter().map(|o| o.name_any())).collect();
        names.sort();
        names
    }

    /// Lets everything go that is held; what is gone already stays gone.
    async fn release(&self) {
        let patch = json!([{ "op": "test", "path": "/metadata/finalizers/0", "value": HOLD },
            { "op": "remove", "path": "/metadata/finalizers/0" }]);
        let patch = Patch::<()>::Json(object(patch));
        for name in self.names().await {
            // Not held, or not of this kind, or gone: all fine.
            drop(self.widgets.patch(&name, &PatchParams::default(), &patch).await);
            drop(self.maps.patch(&name, &PatchParams::default(), &patch).await);
            drop(self.secrets.patch(&name, &PatchParams::default(), &patch).await);
        }
    }
}

async fn gone<K>(api: &Api<K>, name: &str)
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    eventually(&format!("{name} is gone"), async || {
        let found = api.get_opt(name).await.unwrap();
        found.map_or(Ok(()), |found| Err(format!("{:?}", found.meta())))
    })
    .await;
}

#[test]
fn a_namespace_leaves_nothing_behind() {
    check(40, (contents(), policy()), |client, (contents, policy)| async move {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace: Namespace = object(json!({ "metadata": { "name": "team" } }));
        let team = Place::new(&client, "team");
        let other = Place::new(&client, "default");
        other.fill(&contents).await;
        let untouched = other.names().await;
        for _ in 0..2 {
            namespaces.create(&PostParams::default(), &namespace).await.unwrap();
            team.fill(&contents).await;
            assert!(namespaces.delete("team", &policy.params()).await.unwrap().is_left());
            let late = team
                .maps
                .create(&PostParams::default(), &object(json!({ "metadata": { "name": "late" } })))
                .await;
            assert!(matches!(late, Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404)));
            team.release().await;
            gone(&namespaces, "team").await;
            assert_eq!(team.names().await, [""; 0]);
        }
        assert_eq!(other.names().await, untouched);
    });
}

#[test]
fn a_definition_leaves_nothing_behind() {
    check(40, (contents(), policy()), |client, (contents, policy)| async move {
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let place = Place::new(&client, "default");
        place.fill(&contents).await;
        // What a widget owned goes with it, unless another owner lives; what none owned stays.
        let stays =
            |owned: &Owned| owned.kept || owned.widgets.iter().all(|at| *at >= contents.widgets.len());
        let mut expected: Vec<String> = contents
            .owned
            .iter()
            .enumerate()
            .filter(|(_, owned)| stays(owned))
            .map(|(at, _)| format!("o{at}"))
            .collect();
        expected.insert(0, "keeper".to_owned());
        assert!(crds.delete("widgets.test.example.com", &policy.params()).await.unwrap().is_left());
        place.release().await;
        gone(&crds, "widgets.test.example.com").await;
        eventually("what widgets owned is gone", async || {
            place.release().await;
            let found = place.names().await;
            if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
        })
        .await;
        let refs = place.maps.list(&ListParams::default()).await.unwrap();
        assert!(refs.iter().all(|map| map.owner_references().iter().all(|owner| owner.kind == "ConfigMap")));
    });
}
