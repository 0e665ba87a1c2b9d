//! A controller as people write them: a custom resource that owns ConfigMaps, with a finalizer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::common::{Fixture, Widget, eventually, widget};

both_transports!(owned_objects_follow, finalizer_cleans_up);

const FINALIZER: &str = "test.example.com/cleanup";

struct Context {
    client: Client,
    finalize: bool,
    cleaned: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the API refused")]
    Kube(#[from] kube::Error),
    #[error("the finalizer failed")]
    Finalizer(#[source] Box<kube::runtime::finalizer::Error<Error>>),
}

/// As many ConfigMaps as the widget has replicas, and their number in its status.
async fn apply(widget: &Widget, client: &Client) -> Result<Action, Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let name = widget.name_any();
    let owner = widget.controller_owner_ref(&()).expect("it comes from the server");
    for i in 0..widget.spec.replicas {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": format!("{name}-{i}"), "labels": { "widget": name }, "ownerReferences": [owner] },
            "data": { "color": widget.spec.color.as_deref().unwrap_or("none") },
        });
        maps.patch(&format!("{name}-{i}"), &PatchParams::apply("controller").force(), &Patch::Apply(&map))
            .await?;
    }
    let mine = maps.list(&ListParams::default().labels(&format!("widget={name}"))).await?;
    for map in mine.iter().filter(|map| index(&map.name_any()) >= widget.spec.replicas) {
        maps.delete(&map.name_any(), &DeleteParams::default()).await?;
    }
    let status = json!({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "status": { "replicas": widget.spec.replicas },
    });
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    widgets.patch_status(&name, &PatchParams::apply("controller").force(), &Patch::Apply(&status)).await?;
    Ok(Action::await_change())
}

fn index(name: &str) -> i32 {
    name.rsplit('-').next().unwrap().parse().unwrap()
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, Error> {
    if !context.finalize {
        if widget.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        return apply(&widget, &context.client).await;
    }
    let api: Api<Widget> = Api::default_namespaced(context.client.clone());
    let step = finalizer(&api, FINALIZER, widget, async |event| match event {
        Event::Apply(widget) => apply(&widget, &context.client).await,
        Event::Cleanup(_) => {
            context.cleaned.fetch_add(1, Ordering::SeqCst);
            Ok(Action::await_change())
        }
    });
    step.await.map_err(|error| Error::Finalizer(Box::new(error)))
}

/// A running controller; it ends when this is dropped.
struct Running {
    context: Arc<Context>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn start(client: &Client, finalize: bool) -> Running {
    let context = Arc::new(Context { client: client.clone(), finalize, cleaned: AtomicUsize::new(0) });
    let stream =
        Controller::new(Api::<Widget>::default_namespaced(client.clone()), watcher::Config::default())
            .owns(
                Api::<ConfigMap>::default_namespaced(client.clone()),
                watcher::Config::default().streaming_lists(),
            )
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(20)), context.clone());
    let task = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    Running { context, task }
}

async fn owned(client: &Client, widget: &str) -> BTreeMap<String, String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let listed = maps.list(&ListParams::default().labels(&format!("widget={widget}"))).await.unwrap();
    listed
        .into_iter()
        .map(|map| (map.name_any(), map.data.unwrap_or_default().remove("color").unwrap_or_default()))
        .collect()
}

async fn expect(client: &Client, what: &str, widget: &str, color: &str, count: usize) {
    let wanted: BTreeMap<_, _> = (0..count).map(|i| (format!("{widget}-{i}"), color.to_owned())).collect();
    eventually(what, async || {
        let found = owned(client, widget).await;
        if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

async fn owned_objects_follow(fixture: Fixture) {
    let client = &fixture.client;
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let before = widgets.create(&PostParams::default(), &widget("early", 1)).await.unwrap();
    let _running = start(client, false);
    expect(client, "an object from before the start is reconciled", "early", "none", 1).await;
    widgets.create(&PostParams::default(), &widget("w", 2)).await.unwrap();
    expect(client, "a new object is reconciled", "w", "none", 2).await;

    let change = json!({ "spec": { "replicas": 3, "color": "red" } });
    widgets.patch("w", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    expect(client, "a change is followed", "w", "red", 3).await;
    eventually("the status is reported", async || {
        let status = widgets.get("w").await.unwrap().status.and_then(|status| status.replicas);
        if status == Some(3) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;

    maps.delete("w-1", &DeleteParams::default()).await.unwrap();
    expect(client, "a deleted owned object comes back", "w", "red", 3).await;
    let vandal = json!({ "data": { "color": "blue" } });
    maps.patch("w-2", &PatchParams::default(), &Patch::Merge(&vandal)).await.unwrap();
    expect(client, "a changed owned object is put right", "w", "red", 3).await;
    widgets
        .patch("w", &PatchParams::default(), &Patch::Merge(&json!({ "spec": { "replicas": 1 } })))
        .await
        .unwrap();
    expect(client, "what is too much goes", "w", "red", 1).await;

    widgets.delete("w", &DeleteParams::default()).await.unwrap();
    expect(client, "owned objects go with their owner", "w", "red", 0).await;
    assert_eq!(owned(client, "early").await.len(), 1, "others stay");
    assert_eq!(widgets.get("early").await.unwrap().uid(), before.uid());
}

async fn finalizer_cleans_up(fixture: Fixture) {
    let client = &fixture.client;
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    let running = start(client, true);
    let cleaned = || running.context.cleaned.load(Ordering::SeqCst);
    widgets.create(&PostParams::default(), &widget("w", 2)).await.unwrap();
    expect(client, "the object is reconciled", "w", "none", 2).await;
    assert_eq!(widgets.get("w").await.unwrap().finalizers(), [FINALIZER]);
    assert_eq!(cleaned(), 0);

    let deleted = widgets.delete("w", &DeleteParams::default()).await.unwrap();
    assert!(deleted.is_left(), "the object waits for its finalizer");
    eventually("the object is gone", async || match widgets.get_opt("w").await.unwrap() {
        None => Ok(()),
        Some(found) => Err(format!("{:?}", found.metadata)),
    })
    .await;
    assert!(cleaned() >= 1, "clean-up ran before the object went");
    expect(client, "owned objects go with their owner", "w", "none", 0).await;
}
