//! A watch from a list's revision, replayed onto that list, gives the list at the end: exactly, whenever it starts and
//! whatever it selects.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt as _, future::join_all};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use proptest::prelude::*;
use serde_json::json;
use tokio::sync::Barrier;

use crate::common::soon;
use crate::{check, raced};

const NAMESPACES: [&str; 2] = ["default", "other"];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The last object that is made in each namespace; a watch that has seen it has seen everything. It is in every view.
const LAST: &str = "zz-last";

#[derive(Clone, Copy, Debug)]
enum Action {
    Create { tier: u8 },
    Replace { value: u8 },
    Patch { value: u8 },
    Label { tier: Option<u8> },
    Hold,
    Release,
    Delete,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    namespace: usize,
    name: usize,
    action: Action,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..3u8).prop_map(|tier| Action::Create { tier }),
        3 => any::<u8>().prop_map(|value| Action::Replace { value }),
        3 => any::<u8>().prop_map(|value| Action::Patch { value }),
        3 => proptest::option::of(0..3u8).prop_map(|tier| Action::Label { tier }),
        1 => Just(Action::Hold),
        1 => Just(Action::Release),
        2 => Just(Action::Delete),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    (0..NAMESPACES.len(), 0..NAMES.len(), action()).prop_map(|(namespace, name, action)| Op {
        namespace,
        name,
        action,
    })
}

async fn run(client: &Client, op: Op) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACES[op.namespace]);
    let name = NAMES[op.name];
    let patch = async |patch: serde_json::Value| {
        raced(api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await);
    };
    match op.action {
        Action::Create { tier } => {
            let object = json!({ "metadata": { "name": name, "labels": { "tier": tier.to_string() } } });
            raced(api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await);
        }
        Action::Replace { value } => {
            if let Some(mut found) = api.get_opt(name).await.unwrap() {
                found.data = Some([("v".to_owned(), value.to_string())].into());
                raced(api.replace(name, &PostParams::default(), &found).await);
            }
        }
        Action::Patch { value } => patch(json!({ "data": { "v": value.to_string() } })).await,
        Action::Label { tier } => {
            patch(json!({ "metadata": { "labels": { "tier": tier.map(|tier| tier.to_string()) } } })).await;
        }
        Action::Hold => {
            // Refused with 422 once the object is being deleted.
            let hold = json!({ "metadata": { "finalizers": ["test.example.com/hold"] } });
            let held = api.patch(name, &PatchParams::default(), &Patch::Merge(&hold)).await;
            assert!(
                held.is_ok() || matches!(held, Err(kube::Error::Api(s)) if matches!(s.code, 404 | 409 | 422))
            );
        }
        Action::Release => patch(json!({ "metadata": { "finalizers": null } })).await,
        Action::Delete => drop(raced(api.delete(name, &DeleteParams::default()).await)),
    }
}

/// What a watch looks at.
#[derive(Clone, Debug)]
struct View {
    namespace: Option<&'static str>,
    selector: &'static str,
    /// Whether the present objects come as events, too.
    streaming: bool,
}

impl View {
    fn api(&self, client: &Client) -> Api<ConfigMap> {
        match self.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }

    async fn list(&self, client: &Client) -> (State, String) {
        let list = self.api(client).list(&ListParams::default().labels(self.selector)).await.unwrap();
        let version = list.metadata.resource_version.clone().unwrap();
        (list.items.into_iter().map(|object| (key(&object), object)).collect(), version)
    }
}

type State = BTreeMap<(String, String), ConfigMap>;

fn key(object: &ConfigMap) -> (String, String) {
    (object.namespace().unwrap(), object.name_any())
}

/// Lists now, and follows until the last object has been seen.
async fn follow(client: &Client, view: &View) -> State {
    let (mut state, mut version) = view.list(client).await;
    let mut params = WatchParams::default().labels(view.selector);
    if view.streaming {
        (state, version) = (State::new(), "0".to_owned());
        params = params.initial_events();
    }
    let mut newest: u64 = if view.streaming { 0 } else { version.parse().unwrap() };
    let mut listing = view.streaming;
    let mut events = view.api(client).watch(&params, &version).await.unwrap().boxed();
    // A watch may start so late that the list has it already.
    let mut last_seen = state.keys().filter(|(_, name)| name == LAST).count();
    let last_wanted = if view.namespace.is_some() { 1 } else { NAMESPACES.len() };
    while last_seen < last_wanted || listing {
        let event = soon("the next event", events.next()).await.unwrap().unwrap();
        let (object, present, stays) = match event {
            WatchEvent::Added(object) => (object, false, true),
            WatchEvent::Modified(object) => (object, true, true),
            WatchEvent::Deleted(object) => (object, true, false),
            WatchEvent::Bookmark(_) => {
                listing = false;
                continue;
            }
            WatchEvent::Error(error) => panic!("{error:?}"),
        };
        let revision: u64 = object.resource_version().unwrap().parse().unwrap();
        if !listing {
            assert!(revision > newest, "{revision} after {newest}: {object:?}");
        }
        newest = newest.max(revision);
        assert_eq!(state.contains_key(&key(&object)), present, "{object:?}");
        last_seen += usize::from(object.name_any() == LAST);
        if stays {
            state.insert(key(&object), object);
        } else {
            state.remove(&key(&object));
        }
    }
    state
}

fn views() -> Vec<View> {
    let view = |namespace, selector, streaming| View { namespace, selector, streaming };
    vec![
        view(None, "", false),
        view(None, "tier=1", false),
        view(Some("other"), "tier!=0", false),
        view(None, "tier in (0,1)", true),
    ]
}

#[test]
fn a_watch_replayed_onto_its_list_gives_the_final_list() {
    let writers = proptest::collection::vec(proptest::collection::vec(op(), 10..40), 2..4);
    let prepared = proptest::collection::vec(op(), 0..12);
    check(40, (prepared, writers), |client, (prepared, writers)| async move {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let other = serde_json::from_value(json!({ "metadata": { "name": "other" } })).unwrap();
        namespaces.create(&PostParams::default(), &other).await.unwrap();
        for op in prepared {
            run(&client, op).await;
        }

        let start = |client: Client, view: View| tokio::spawn(async move { follow(&client, &view).await });
        let early: Vec<_> = views().into_iter().map(|view| start(client.clone(), view)).collect();
        let midway = Arc::new(Barrier::new(writers.len() + 1));
        let writing: Vec<_> = writers
            .into_iter()
            .map(|ops| {
                let (client, midway) = (client.clone(), midway.clone());
                tokio::spawn(async move {
                    let half = ops.len() / 2;
                    for (at, op) in ops.into_iter().enumerate() {
                        if at == half {
                            midway.wait().await;
                        }
                        run(&client, op).await;
                    }
                })
            })
            .collect();
        midway.wait().await;
        let late: Vec<_> = views().into_iter().map(|view| start(client.clone(), view)).collect();
        join_all(writing).await.into_iter().for_each(|writer| writer.unwrap());
        for namespace in NAMESPACES {
            let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
            let object = json!({ "metadata": { "name": LAST, "labels": { "tier": "1" } } });
            api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
        for (view, followed) in views().into_iter().chain(views()).zip(early.into_iter().chain(late)) {
            let followed = followed.await.unwrap();
            assert_eq!(followed, view.list(&client).await.0, "{view:?}");
        }
    });
}
