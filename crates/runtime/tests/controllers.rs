//! Controllers over planes that come and go, against an embedded server, with faults on the way.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use compute_api::milo::Project;
use compute_runtime::controller::{self, Error};
use compute_runtime::engage::{Listener, milo};
use compute_runtime::queue::Limits;
use compute_runtime::{Cache, Key, Next, Plane, PlaneId, Planes, Queue, Reconciler, Subscription};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use common::{Asked, World, create, delete, eventually, until};

/// Copies every config map whose name begins with `in-` to one whose name begins with `out-`.
struct Copier {
    planes: Planes,
    queue: Queue,
    watched: Mutex<BTreeMap<PlaneId, (Cache<ConfigMap>, Subscription)>>,
    passes: AtomicUsize,
}

impl Listener for Copier {
    fn on_engage(&self, plane: &Plane) {
        let cache = plane.cache();
        let subscription = self.queue.watch_own(&cache);
        self.watched.lock().insert(plane.id().clone(), (cache, subscription));
    }

    fn on_disengage(&self, plane: &PlaneId) {
        self.watched.lock().remove(plane);
        self.queue.remove_plane(plane);
    }
}

impl Reconciler for Copier {
    fn name(&self) -> &'static str {
        "copier"
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        self.passes.fetch_add(1, Ordering::SeqCst);
        let Some(plane) = self.planes.get(&key.plane) else { return Ok(Next::Done) };
        let Some(name) = key.name.strip_prefix("in-") else { return Ok(Next::Done) };
        let cache = self.watched.lock().get(&key.plane).context("not watched")?.0.clone();
        if cache.get(&key.namespace, &key.name).is_none()
            || cache.get(&key.namespace, &format!("out-{name}")).is_some()
        {
            return Ok(Next::Done);
        }
        let api: Api<ConfigMap> = Api::namespaced(plane.client().clone(), &key.namespace);
        api.create(&Default::default(), &common::config_map(&format!("out-{name}"), "copy")).await?;
        Ok(Next::Done)
    }
}

/// A controller that runs until this is stopped.
struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    fn start<R: Reconciler>(reconciler: &Arc<R>, queue: &Queue) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (reconciler, queue) = (reconciler.clone(), queue.clone());
        let task = tokio::spawn(async move {
            controller::run(reconciler, queue, async {
                let _ = stopped.await;
            })
            .await;
        });
        Self { stop: Some(stop), task }
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }
}

fn copier(world: &World, concurrency: usize) -> (Arc<Copier>, Planes) {
    let planes = Planes::new(&world.runtime);
    let copier = Arc::new(Copier {
        planes: planes.clone(),
        queue: Queue::new(&world.runtime, "copier", Limits::with_concurrency(concurrency)),
        watched: Mutex::default(),
        passes: AtomicUsize::new(0),
    });
    planes.listen(copier.clone());
    (copier, planes)
}

async fn copied(client: &Client, name: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    eventually("the copy", async || match api.get_opt(&format!("out-{name}")).await {
        Ok(Some(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn planes_come_and_go_while_controllers_run() {
    let world = World::new().await;
    let (copier, planes) = copier(&world, 2);
    let running = Running::start(&copier, &copier.queue);
    let (one, one_plane, one_faults) = world.plane("one").await;
    let (two, two_plane, _) = world.plane("two").await;
    create(&one, "in-a", "1").await;
    assert!(planes.engage(&one_plane));
    assert!(!planes.engage(&one_plane), "it is engaged already");
    copied(&one, "a").await;
    planes.engage(&two_plane);
    create(&two, "in-b", "1").await;
    copied(&two, "b").await;
    assert_eq!(world.runtime.metrics().engaged_planes(), 2);

    assert!(planes.disengage(one_plane.id()));
    assert!(!planes.disengage(one_plane.id()));
    until("its watches end", || one_faults.streams() == 0).await;
    let passes = copier.passes.load(Ordering::SeqCst);
    create(&one, "in-c", "1").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(copier.passes.load(Ordering::SeqCst), passes);

    // Engaged anew, everything in it is looked at.
    let again = Plane::new(&world.runtime, "one".into(), one_plane.client().clone());
    planes.engage(&again);
    copied(&one, "c").await;
    running.stop().await;
    create(&one, "in-d", "1").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let api: Api<ConfigMap> = Api::namespaced(one.clone(), "default");
    assert!(api.get_opt("out-d").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn planes_that_hang_do_not_delay_the_others() {
    let world = World::new().await;
    let (copier, planes) = copier(&world, 2);
    let _running = Running::start(&copier, &copier.queue);
    let mut hanging = Vec::new();
    for n in 0..20 {
        let (client, plane, faults) = world.plane(&format!("hanging{n}")).await;
        for m in 0..5 {
            create(&client, &format!("in-{m}"), "1").await;
        }
        planes.engage(&plane);
        until("synced", || plane.cache::<ConfigMap>().is_connected()).await;
        copied(&client, "4").await;
        faults.hanging();
        create(&client, "in-x", "1").await;
        create(&client, "in-y", "1").await;
        hanging.push((client, faults));
    }
    let (good, plane, _) = world.plane("good").await;
    planes.engage(&plane);
    tokio::time::sleep(Duration::from_secs(10)).await;
    // By now it is known who does not answer.
    for n in 0..10 {
        let began = tokio::time::Instant::now();
        create(&good, &format!("in-{n}"), "1").await;
        copied(&good, &n.to_string()).await;
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        tokio::time::sleep(Duration::from_secs(17)).await;
    }
    for (client, faults) in hanging {
        faults.good();
        copied(&client, "x").await;
        copied(&client, "y").await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_while_nothing_happens() {
    let world = World::new().await;
    let (copier, planes) = copier(&world, 2);
    let _running = Running::start(&copier, &copier.queue);
    let (client, plane, faults) = world.plane("p").await;
    for n in 0..50 {
        create(&client, &format!("in-{n}"), "1").await;
    }
    planes.engage(&plane);
    for n in 0..50 {
        copied(&client, &n.to_string()).await;
    }
    let (passes, before) =
        (copier.passes.load(Ordering::SeqCst), [Asked::List, Asked::Other].map(|asked| faults.count(asked)));
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    assert_eq!([Asked::List, Asked::Other].map(|asked| faults.count(asked)), before);
    assert!(copier.passes.load(Ordering::SeqCst) <= passes + 50, "the copies themselves, once each");
}

/// Does what the name of its key says.
struct Moody {
    calls: Mutex<BTreeMap<String, usize>>,
}

impl Reconciler for Moody {
    fn name(&self) -> &'static str {
        "moody"
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let call = {
            let mut calls = self.calls.lock();
            let call = calls.entry(key.name.to_string()).or_default();
            *call += 1;
            *call
        };
        match (&*key.name, call) {
            ("panics", 1..3) => panic!("on purpose"),
            ("fails", 1..3) => bail!("on purpose"),
            ("hangs", 1) => std::future::pending().await,
            ("takes long", _) => tokio::time::sleep(Duration::from_secs(20)).await,
            ("again", 1..5) => return Ok(Next::After(Duration::from_secs(60))),
            _ => {}
        }
        Ok(Next::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn passes_that_panic_fail_or_hang_are_tried_again() {
    let world = World::new().await;
    let queue = Queue::new(&world.runtime, "moody", Limits::with_concurrency(2));
    let moody = Arc::new(Moody { calls: Mutex::default() });
    let running = Running::start(&moody, &queue);
    for name in ["panics", "fails", "hangs", "again", "good"] {
        queue.add(Key::new(&"p".into(), "", name));
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    let calls = |name: &str| moody.calls.lock()[name];
    assert_eq!(["panics", "fails", "hangs", "again", "good"].map(calls), [3, 3, 2, 5, 1]);
    let results = ["panic", "error", "timeout", "success"]
        .map(|result| world.runtime.metrics().reconciles("moody", result));
    assert_eq!(results, [2, 2, 1, 9]);

    // Work in hand is waited for; what has not begun does not begin.
    queue.add(Key::new(&"p".into(), "", "takes long"));
    until("it begins", || moody.calls.lock().contains_key("takes long")).await;
    let began = tokio::time::Instant::now();
    running.stop().await;
    assert!(began.elapsed() > Duration::from_secs(19));
    queue.add(Key::new(&"p".into(), "", "late"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!moody.calls.lock().contains_key("late"));
}

/// Remembers which planes are engaged.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Listener for Seen {
    fn on_engage(&self, plane: &Plane) {
        self.0.lock().push(format!("+{}", plane.id()));
    }

    fn on_disengage(&self, plane: &PlaneId) {
        self.0.lock().push(format!("-{plane}"));
    }
}

async fn project(client: &Client, name: &str, ready: &str) {
    let api: Api<Project> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    let object = json!({
        "apiVersion": "resourcemanager.miloapis.com/v1alpha1",
        "kind": "Project",
        "metadata": { "name": name, "finalizers": ["test.example.com/hold"] },
        "spec": { "ownerRef": { "kind": "Organization", "name": "acme" } },
    });
    api.patch(name, &params, &Patch::Apply(&object)).await.unwrap();
    let status = json!({
        "apiVersion": object["apiVersion"],
        "kind": "Project",
        "status": { "conditions": [{
            "type": "Ready", "status": ready, "reason": "Test", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] },
    });
    api.patch_status(name, &params, &Patch::Apply(status)).await.unwrap();
}

async fn release(client: &Client, name: &str) {
    let api: Api<Project> = Api::all(client.clone());
    let patch = json!({ "metadata": { "finalizers": null } });
    api.patch(name, &Default::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn projects_are_engaged_from_the_first_ready_until_they_are_gone() {
    let world = World::new().await;
    let (client, core, faults) = world.plane("core").await;
    let (_, backend, _) = world.plane("backend").await;
    let planes = Planes::new(&world.runtime);
    let seen = Arc::new(Seen::default());
    planes.listen(seen.clone());
    let refusals = Arc::new(AtomicUsize::new(0));
    let left = refusals.clone();
    let connect = Arc::new(move |name: &str| {
        if name == "reluctant" && left.fetch_add(1, Ordering::SeqCst) < 3 {
            bail!("no token yet");
        }
        Ok(backend.client().clone())
    });
    let discovering = planes.clone();
    tokio::spawn(async move { milo::<Project>(&core, &discovering, connect, std::future::pending()).await });
    let engaged = || planes.all().iter().map(|plane| plane.id().to_string()).collect::<BTreeSet<_>>();
    let is =
        |names: &[&str]| engaged() == names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();

    project(&client, "a", "False").await;
    project(&client, "b", "True").await;
    until("b", || is(&["b"])).await;
    project(&client, "a", "True").await;
    project(&client, "reluctant", "True").await;
    until("all", || is(&["a", "b", "reluctant"])).await;
    assert_eq!(refusals.load(Ordering::SeqCst), 4, "a client that cannot be made is tried again");

    // Neither a flap, nor a deletion that waits, nor an interruption disengages.
    project(&client, "a", "False").await;
    let api: Api<Project> = Api::all(client.clone());
    api.delete("b", &Default::default()).await.unwrap();
    project(&client, "b", "False").await;
    faults.expire(2);
    faults.cut();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(is(&["a", "b", "reluctant"]));
    release(&client, "b").await;
    until("b is gone", || is(&["a", "reluctant"])).await;

    // Deleted and made again while nobody looked: it is another one.
    faults.failing();
    faults.cut();
    tokio::time::sleep(Duration::from_secs(5)).await;
    api.delete("a", &Default::default()).await.unwrap();
    release(&client, "a").await;
    project(&client, "a", "True").await;
    faults.good();
    until("another a", || seen.0.lock().len() == 6).await;
    assert_eq!(*seen.0.lock(), ["+b", "+a", "+reluctant", "-b", "-a", "+a"]);
}

#[tokio::test(start_paused = true)]
async fn a_project_whose_name_cannot_be_served_is_refused_once() {
    let world = World::new().await;
    let (client, core, _) = world.plane("core").await;
    let planes = Planes::new(&world.runtime);
    let backend = core.client().clone();
    let discovering = planes.clone();
    let connect = Arc::new(move |_: &str| Ok(backend.clone()));
    tokio::spawn(async move { milo::<Project>(&core, &discovering, connect, std::future::pending()).await });
    let long = "p".repeat(60);
    project(&client, &long, "True").await;
    project(&client, &long, "False").await;
    project(&client, &long, "True").await;
    project(&client, "good", "True").await;
    until("the good one", || planes.get(&"good".into()).is_some()).await;
    assert!(planes.get(&PlaneId::new(long)).is_none());
    assert!(world.runtime.metrics().encode().contains("compute_refused_planes_total 1"));
}

#[tokio::test(start_paused = true)]
async fn a_listener_hears_of_planes_that_were_there_before() {
    let world = World::new().await;
    let (_, plane, _) = world.plane("p").await;
    let planes = Planes::single(&plane);
    let seen = Arc::new(Seen::default());
    planes.listen(seen.clone());
    planes.disengage(&"p".into());
    assert_eq!(*seen.0.lock(), ["+p", "-p"]);
}

/// Planes are engaged and disengaged at random while objects come and go in them; in the end everything is as it should be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engaging_and_disengaging_while_busy_loses_nothing() {
    let world = World::new().await;
    let (copier, planes) = copier(&world, 4);
    let running = Running::start(&copier, &copier.queue);
    let mut ends = Vec::new();
    for n in 0..6 {
        ends.push(world.plane(&format!("p{n}")).await);
    }
    for round in 0..10 {
        for (n, (client, plane, faults)) in ends.iter().enumerate() {
            create(client, &format!("in-{round}"), "1").await;
            if (round + n) % 3 == 0 {
                planes.engage(&Plane::new(&world.runtime, plane.id().clone(), plane.client().clone()));
            } else if (round + n) % 3 == 1 {
                planes.disengage(plane.id());
            } else {
                faults.cut();
            }
            if round % 4 == 3 {
                delete(client, &format!("in-{}", round - 3)).await;
            }
        }
    }
    for (client, plane, _) in &ends {
        planes.engage(&Plane::new(&world.runtime, plane.id().clone(), plane.client().clone()));
        copied(client, "9").await;
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        for object in api.list(&Default::default()).await.unwrap() {
            if let Some(name) = object.name_any().strip_prefix("in-") {
                copied(client, name).await;
            }
        }
    }
    running.stop().await;
}
