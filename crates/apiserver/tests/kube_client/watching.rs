//! Watchers and reflectors: nothing is lost and nothing comes twice, whatever happens to the connection.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, reflector};
use kube::runtime::watcher::{Config, Event, watch_object, watcher};
use kube::{Client, Resource, ResourceExt};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use serde_json::json;

use crate::common::{Fixture, eventually, soon};

both_transports!(
    list_then_watch,
    streaming_list,
    list_watch_survives_a_cut,
    streaming_list_survives_a_cut,
    list_watch_recovers_from_a_desync,
    streaming_list_recovers_from_a_desync,
    watches_end_and_resume,
    old_watches_are_told_so,
    selectors_follow_changes,
    metadata_watches,
    single_objects,
    reflectors_equal_lists,
);

/// More changes than a plane remembers of one resource.
const BEYOND_HISTORY: usize = 1100;

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

async fn make(api: &Api<ConfigMap>, name: &str) {
    let object = json!({ "metadata": { "name": name }, "data": { "v": "0" } });
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

async fn set(api: &Api<ConfigMap>, name: &str, value: usize) {
    let patch = json!({ "data": { "v": value.to_string() } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

fn revision(object: &impl ResourceExt) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

type Events<K> = Pin<Box<dyn Stream<Item = Result<Event<K>, kube::runtime::watcher::Error>> + Send>>;

/// What a client that follows a watcher knows, and what it has been told.
struct Follower<K> {
    events: Events<K>,
    known: BTreeMap<String, K>,
    incoming: BTreeMap<String, K>,
    newest: u64,
    /// Applied and deleted objects after the first list, in order.
    seen: Vec<(String, K)>,
    lists: usize,
    errors: Vec<String>,
}

impl<K: Resource<DynamicType = ()> + Clone + std::fmt::Debug> Follower<K> {
    fn new(
        events: impl Stream<Item = Result<Event<K>, kube::runtime::watcher::Error>> + Send + 'static,
    ) -> Self {
        let empty = BTreeMap::new;
        Self {
            events: events.boxed(),
            known: empty(),
            incoming: empty(),
            newest: 0,
            seen: vec![],
            lists: 0,
            errors: vec![],
        }
    }

    async fn step(&mut self) {
        match soon("the next event", self.events.next()).await.unwrap() {
            Err(error) => {
                self.errors.push(error.to_string());
                assert!(self.errors.len() < 50, "the watcher does not recover: {error}");
            }
            Ok(Event::Init) => self.incoming.clear(),
            Ok(Event::InitApply(object)) => {
                let doubled = self.incoming.insert(object.name_any(), object);
                assert!(doubled.is_none(), "listed twice: {doubled:?}");
            }
            Ok(Event::InitDone) => {
                self.known = std::mem::take(&mut self.incoming);
                self.newest = self.known.values().map(revision).max().unwrap_or(0).max(self.newest);
                self.lists += 1;
            }
            Ok(Event::Apply(object)) => {
                self.advance(&object);
                self.known.insert(object.name_any(), object.clone());
                self.seen.push(("applied".to_owned(), object));
            }
            Ok(Event::Delete(object)) => {
                self.advance(&object);
                assert!(
                    self.known.remove(&object.name_any()).is_some(),
                    "deleted but never seen: {object:?}"
                );
                self.seen.push(("deleted".to_owned(), object));
            }
        }
    }

    fn advance(&mut self, object: &K) {
        assert!(revision(object) > self.newest, "doubled or out of order: {object:?} after {}", self.newest);
        self.newest = revision(object);
    }

    async fn listed(&mut self) {
        let lists = self.lists;
        while self.lists == lists {
            self.step().await;
        }
    }

    /// Follows on until the object has this revision or, being deleted, a newer one has come.
    async fn reach(&mut self, object: &impl ResourceExt) {
        while self.newest < revision(object) {
            self.step().await;
        }
    }
}

fn small_pages() -> Config {
    Config::default().page_size(3)
}

async fn list_then_watch(fixture: Fixture) {
    follow_everything(fixture, small_pages()).await;
}

async fn streaming_list(fixture: Fixture) {
    follow_everything(fixture, Config::default().streaming_lists()).await;
}

async fn follow_everything(fixture: Fixture, config: Config) {
    let api = maps(&fixture.client);
    for i in 0..8 {
        make(&api, &format!("c{i}")).await;
    }
    let mut follower = Follower::new(watcher(api.clone(), config));
    follower.listed().await;
    let listed: Vec<ConfigMap> = follower.known.values().cloned().collect();
    assert_eq!(listed, api.list(&ListParams::default()).await.unwrap().items);

    make(&api, "new").await;
    set(&api, "c3", 1).await;
    api.delete("c0", &DeleteParams::default()).await.unwrap();
    set(&api, "c3", 2).await;
    let last = api.get("c3").await.unwrap();
    follower.reach(&last).await;
    let seen: Vec<_> =
        follower.seen.iter().map(|(what, object)| format!("{what} {}", object.name_any())).collect();
    assert_eq!(seen, ["applied new", "applied c3", "deleted c0", "applied c3"]);
    let known: Vec<ConfigMap> = follower.known.into_values().collect();
    assert_eq!(known, api.list(&ListParams::default()).await.unwrap().items);
    assert_eq!(follower.errors, [""; 0]);
}

async fn list_watch_survives_a_cut(fixture: Fixture) {
    resume_after_a_cut(fixture, small_pages()).await;
}

async fn streaming_list_survives_a_cut(fixture: Fixture) {
    resume_after_a_cut(fixture, Config::default().streaming_lists()).await;
}

/// A watch that was away for fewer changes than the plane remembers goes on where it was.
async fn resume_after_a_cut(mut fixture: Fixture, config: Config) {
    let behind = maps(&fixture.backdoor());
    make(&behind, "c").await;
    let mut follower = Follower::new(watcher(maps(&fixture.client), config));
    follower.listed().await;
    let mut value = 0;
    for round in 0..3 {
        for _ in 0..20 {
            value += 1;
            set(&behind, "c", value).await;
        }
        if round < 2 {
            follower.step().await;
            fixture.cut();
        }
    }
    follower.reach(&behind.get("c").await.unwrap()).await;
    let seen: Vec<usize> =
        follower.seen.iter().map(|(_, map)| map.data.as_ref().unwrap()["v"].parse().unwrap()).collect();
    assert_eq!(seen, (1..=value).collect::<Vec<_>>(), "every change once, in order");
    assert_eq!(follower.lists, 1, "nothing was listed again: {:?}", follower.errors);
}

async fn list_watch_recovers_from_a_desync(fixture: Fixture) {
    list_anew_after_a_desync(fixture, small_pages()).await;
}

async fn streaming_list_recovers_from_a_desync(fixture: Fixture) {
    list_anew_after_a_desync(fixture, Config::default().streaming_lists()).await;
}

/// A watch that was away for too many changes is told so, and lists anew.
async fn list_anew_after_a_desync(mut fixture: Fixture, config: Config) {
    let behind = maps(&fixture.backdoor());
    for name in ["a", "b", "c", "d"] {
        make(&behind, name).await;
    }
    let mut follower = Follower::new(watcher(maps(&fixture.client), config));
    follower.listed().await;
    set(&behind, "c", 1).await;
    follower.reach(&behind.get("c").await.unwrap()).await;

    fixture.cut();
    for value in 0..BEYOND_HISTORY {
        set(&behind, "c", value + 2).await;
    }
    behind.delete("a", &DeleteParams::default()).await.unwrap();
    make(&behind, "e").await;
    follower.listed().await;
    let known: Vec<ConfigMap> = follower.known.values().cloned().collect();
    assert_eq!(known, behind.list(&ListParams::default()).await.unwrap().items);
    assert!(follower.errors.iter().any(|error| error.contains("too old")), "{:?}", follower.errors);

    let seen = follower.seen.len();
    set(&behind, "b", 7).await;
    follower.reach(&behind.get("b").await.unwrap()).await;
    assert_eq!(follower.seen.len(), seen + 1);
    assert_eq!(follower.lists, 2, "once is enough: {:?}", follower.errors);
}

/// The events of one watch, up to its end or the given number.
async fn watched(
    api: &Api<ConfigMap>,
    params: &WatchParams,
    from: &str,
    most: usize,
) -> Vec<WatchEvent<ConfigMap>> {
    let stream = api.watch(params, from).await.unwrap();
    soon("the watch ends", stream.take(most).try_collect()).await.unwrap()
}

async fn watches_end_and_resume(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, "c").await;
    let mut from = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let enough = Arc::new(AtomicBool::new(false));
    let writer = tokio::spawn({
        let (api, enough) = (api.clone(), enough.clone());
        async move {
            let mut value = 0;
            while !enough.load(Ordering::SeqCst) {
                value += 1;
                set(&api, "c", value).await;
                // At a pace that stays within the history while the watch is between two requests.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            value
        }
    });
    let mut seen = Vec::new();
    let mut collect = |events: Vec<WatchEvent<ConfigMap>>| {
        for event in events {
            let WatchEvent::Modified(map) = event else { panic!("{event:?}") };
            from = map.resource_version().unwrap();
            seen.push(map.data.unwrap()["v"].parse::<usize>().unwrap());
        }
        (from.clone(), seen.len())
    };
    let mut at = collect(Vec::new());
    for _ in 0..2 {
        // The server ends this one by itself, in the middle of the changes.
        at = collect(watched(&api, &WatchParams::default().timeout(1), &at.0, usize::MAX).await);
    }
    enough.store(true, Ordering::SeqCst);
    let written = writer.await.unwrap();
    collect(watched(&api, &WatchParams::default(), &at.0, written - at.1).await);
    assert_eq!(seen, (1..=written).collect::<Vec<_>>());
}

async fn old_watches_are_told_so(fixture: Fixture) {
    let api = maps(&fixture.client);
    let behind = maps(&fixture.backdoor());
    make(&behind, "c").await;
    let from = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    for value in 0..BEYOND_HISTORY {
        set(&behind, "c", value + 1).await;
    }
    // As an event and not as the answer to the request: clients list anew on the one and only try again on the other.
    let events = watched(&api, &WatchParams::default(), &from, usize::MAX).await;
    let [WatchEvent::Error(status)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let events = watched(&api, &WatchParams::default(), "1", usize::MAX).await;
    assert!(matches!(events.as_slice(), [WatchEvent::Error(status)] if status.code == 410), "{events:?}");

    // Another resource of the plane has its own history.
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::default_namespaced(fixture.client);
    let mut watch = pods.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let pod =
        json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let event = soon("the pod is seen", watch.next()).await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(_)), "{event:?}");
}

async fn selectors_follow_changes(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, "c").await;
    let from = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let label = async |value: Option<&str>| {
        let patch = json!({ "metadata": { "labels": { "in": value } } });
        api.patch("c", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    };
    let entered = label(Some("yes")).await;
    set(&api, "c", 1).await;
    let left = label(Some("no")).await;
    set(&api, "c", 2).await;
    label(Some("yes")).await;
    api.delete("c", &DeleteParams::default()).await.unwrap();
    let events = watched(&api, &WatchParams::default().labels("in=yes"), &from, 5).await;
    let kinds: Vec<String> =
        events.iter().map(|event| format!("{event:?}").split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["Added", "Modified", "Deleted", "Added", "Deleted"]);
    let WatchEvent::Added(first) = &events[0] else { panic!("{events:?}") };
    assert_eq!(*first, entered);
    let WatchEvent::Deleted(gone) = &events[2] else { panic!("{events:?}") };
    assert_eq!(gone.labels()["in"], "yes", "an object that leaves is shown as it was in view");
    assert_eq!(gone.resource_version(), left.resource_version(), "at the revision at which it left");
}

async fn metadata_watches(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, "a").await;
    for (value, config) in [(1, small_pages()), (2, Config::default().streaming_lists())] {
        let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(fixture.client.clone());
        let mut follower = Follower::new(watcher(metadata, config));
        follower.listed().await;
        make(&api, "b").await;
        set(&api, "a", value).await;
        api.delete("b", &DeleteParams::default()).await.unwrap();
        make(&api, "c").await;
        let last = api.get("c").await.unwrap();
        follower.reach(&last).await;
        assert_eq!(follower.known["a"].metadata, api.get("a").await.unwrap().metadata);
        assert_eq!(follower.known["c"].metadata, last.metadata);
        assert_eq!((follower.known.len(), follower.seen.len()), (2, 4));
        api.delete("c", &DeleteParams::default()).await.unwrap();
    }
}

async fn single_objects(fixture: Fixture) {
    let api = maps(&fixture.client);
    let mut stream = watch_object(api.clone(), "c").boxed();
    let mut next = async || soon("the object's next state", stream.try_next()).await.unwrap().unwrap();
    assert!(next().await.is_none());
    make(&api, "other").await;
    make(&api, "c").await;
    assert_eq!(next().await.unwrap().name_any(), "c");
    set(&api, "other", 1).await;
    set(&api, "c", 1).await;
    assert_eq!(next().await.unwrap().data.unwrap()["v"], "1");
    api.delete("c", &DeleteParams::default()).await.unwrap();
    assert!(next().await.is_none());
}

async fn reflectors_equal_lists(mut fixture: Fixture) {
    let behind = maps(&fixture.backdoor());
    let follow = |config: Config| {
        let (store, writer) = reflector::store::<ConfigMap>();
        let stream = reflector(writer, watcher(maps(&fixture.client), config)).default_backoff();
        (store, tokio::spawn(stream.for_each(|_| std::future::ready(()))))
    };
    let followers = [
        follow(small_pages()),
        follow(Config::default().streaming_lists()),
        follow(Config::default().any_semantic()),
    ];
    let mut random = StdRng::seed_from_u64(3);
    for value in 0..400 {
        let name = format!("c{}", random.random_range(0..12));
        match (behind.get_opt(&name).await.unwrap(), random.random_range(0..4)) {
            (None, _) => make(&behind, &name).await,
            (Some(_), 0) => drop(behind.delete(&name, &DeleteParams::default()).await.unwrap()),
            (Some(_), _) => set(&behind, &name, value).await,
        }
        if value == 150 {
            fixture.cut();
        }
        // Lets the followers in, so that the changes do not all come as one.
        tokio::task::yield_now().await;
    }
    let mut expected = behind.list(&ListParams::default()).await.unwrap().items;
    expected.sort_by_key(ResourceExt::name_any);
    for (store, task) in followers {
        soon("the store is ready", store.wait_until_ready()).await.unwrap();
        eventually("the store equals the list", async || {
            let mut found: Vec<ConfigMap> = store.state().iter().map(|map| (**map).clone()).collect();
            found.sort_by_key(ResourceExt::name_any);
            if found == expected {
                Ok(())
            } else {
                Err(format!("{} objects, {} expected", found.len(), expected.len()))
            }
        })
        .await;
        task.abort();
    }
}
