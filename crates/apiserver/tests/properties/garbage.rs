//! Garbage collection over random owner graphs: what has no owner left goes, and nothing else does.
//!
//! ConfigMaps own each other in any way, circles included; some owners never existed or are gone from the start.
//! Objects are deleted with every policy while others are held by finalizers. A watch keeps the history of the
//! namespace, and every deletion in it must have had a reason at its moment; at rest nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Resource as _, ResourceExt as _};
use proptest::prelude::*;
use serde_json::json;

use crate::common::{eventually, soon};
use crate::{check, raced};

const HOLD: &str = "test.example.com/hold";
const FOREGROUND: &str = "foregroundDeletion";
/// Sorts behind every other name, and so is looked at last.
const CANARY: &str = "zz-canary";

#[derive(Clone, Copy, Debug)]
enum Owner {
    /// The object of this number, itself and later ones included.
    Node(usize),
    /// An object that was deleted before.
    Deleted,
    /// A uid that never existed under a name that does.
    Never(usize),
}

#[derive(Clone, Debug)]
struct Node {
    owners: Vec<(Owner, bool)>,
    held: bool,
}

#[derive(Clone, Copy, Debug)]
enum Policy {
    Unsaid,
    Background,
    Foreground,
    Orphan,
}

#[derive(Clone, Debug)]
enum Step {
    Delete(usize, Policy),
    Release(usize),
    /// Changes the owners, when everything is at rest.
    Adopt(usize, Vec<(Owner, bool)>),
    /// Makes an object of the same name anew, when everything is at rest.
    Create(usize),
    Rest,
}

const MOST: usize = 7;

fn owners() -> impl Strategy<Value = Vec<(Owner, bool)>> {
    let owner = prop_oneof![
        6 => (0..MOST).prop_map(Owner::Node),
        1 => Just(Owner::Deleted),
        1 => (0..MOST).prop_map(Owner::Never),
    ];
    proptest::collection::vec((owner, any::<bool>()), 0..=3)
}

fn node() -> impl Strategy<Value = Node> {
    (owners(), proptest::bool::weighted(0.3)).prop_map(|(owners, held)| Node { owners, held })
}

fn step() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![
        1 => Just(Policy::Unsaid),
        1 => Just(Policy::Background),
        2 => Just(Policy::Foreground),
        1 => Just(Policy::Orphan),
    ];
    prop_oneof![
        6 => (0..MOST, policy).prop_map(|(at, policy)| Step::Delete(at, policy)),
        2 => (0..MOST).prop_map(Step::Release),
        1 => (0..MOST, owners()).prop_map(|(at, owners)| Step::Adopt(at, owners)),
        1 => (0..MOST).prop_map(Step::Create),
        1 => Just(Step::Rest),
    ]
}

struct World {
    api: Api<ConfigMap>,
    /// The present object of each number, as far as the test has made one.
    made: Vec<ConfigMap>,
    deleted: ConfigMap,
    /// Uids of what the test has deleted itself.
    asked: BTreeSet<String>,
    /// Uids of what the test has told not to care for its dependents, whatever it was told before.
    careless: BTreeSet<String>,
    canaries: usize,
}

fn name(at: usize) -> String {
    format!("n{at}")
}

fn map(name: &str, owners: Vec<OwnerReference>, finalizers: Vec<String>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            owner_references: (!owners.is_empty()).then_some(owners),
            finalizers: (!finalizers.is_empty()).then_some(finalizers),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

impl World {
    async fn create(&self, object: &ConfigMap) -> ConfigMap {
        self.api.create(&PostParams::default(), object).await.unwrap()
    }

    fn references(&self, owners: &[(Owner, bool)]) -> Vec<OwnerReference> {
        let mut references: Vec<OwnerReference> = Vec::new();
        for (owner, blocks) in owners {
            let mut reference = match owner {
                Owner::Node(at) => self.made[at % self.made.len()].owner_ref(&()).unwrap(),
                Owner::Deleted => self.deleted.owner_ref(&()).unwrap(),
                Owner::Never(at) => {
                    let like = self.made[at % self.made.len()].owner_ref(&()).unwrap();
                    OwnerReference { uid: format!("never-{at}"), ..like }
                }
            };
            reference.block_owner_deletion = Some(*blocks);
            if references.iter().all(|found| found.uid != reference.uid) {
                references.push(reference);
            }
        }
        references
    }

    async fn adopt(&self, at: usize, owners: &[(Owner, bool)]) {
        let patch = json!({ "metadata": { "ownerReferences": self.references(owners) } });
        raced(self.api.patch(&name(at), &PatchParams::default(), &Patch::Merge(&patch)).await);
    }

    async fn delete(&mut self, at: usize, policy: Policy) {
        let params = match policy {
            Policy::Unsaid => DeleteParams::default(),
            Policy::Background => DeleteParams::background(),
            Policy::Foreground => DeleteParams::foreground(),
            Policy::Orphan => DeleteParams::orphan(),
        };
        let uid = self.made[at].uid().unwrap();
        let params =
            params.preconditions(kube::api::Preconditions { uid: Some(uid.clone()), resource_version: None });
        if raced(self.api.delete(&name(at), &params).await).is_some() {
            if matches!(policy, Policy::Background) {
                self.careless.insert(uid.clone());
            }
            self.asked.insert(uid);
        }
    }

    async fn release(&self, at: usize) {
        let Some(found) = self.api.get_opt(&name(at)).await.unwrap() else { return };
        let Some(index) = found.finalizers().iter().position(|finalizer| finalizer == HOLD) else { return };
        let path = format!("/metadata/finalizers/{index}");
        let patch = json!([{ "op": "test", "path": path, "value": HOLD }, { "op": "remove", "path": path }]);
        let patch = Patch::<()>::Json(serde_json::from_value(patch).unwrap());
        // The collector may have taken its own finalizer away meanwhile.
        if let Err(kube::Error::Api(status)) =
            self.api.patch(&name(at), &PatchParams::default(), &patch).await
        {
            assert!(matches!(status.code, 404 | 409 | 422), "{status:?}");
            Box::pin(self.release(at)).await;
        }
    }

    async fn objects(&self) -> Vec<ConfigMap> {
        let mut items = self.api.list(&ListParams::default()).await.unwrap().items;
        items.retain(|item| item.name_any().starts_with('n'));
        items
    }

    /// Waits until the collector has nothing left to do: a family that is made and broken up after everything else is
    /// collected, and meanwhile nothing has changed.
    async fn rest(&mut self) {
        loop {
            let before = self.objects().await;
            self.canaries += 1;
            let owner = self.create(&map(&format!("{CANARY}-a{}", self.canaries), vec![], vec![])).await;
            let owned = format!("{CANARY}-b{}", self.canaries);
            self.create(&map(&owned, vec![owner.owner_ref(&()).unwrap()], vec![])).await;
            self.api.delete(&owner.name_any(), &DeleteParams::default()).await.unwrap();
            eventually("the canary is collected", async || {
                let found = self.api.get_opt(&owned).await.unwrap();
                found.map_or(Ok(()), |found| Err(format!("{:?}", found.metadata)))
            })
            .await;
            if self.objects().await == before {
                return;
            }
        }
    }
}

/// Replays the history: each deletion must have had a reason at its moment.
fn check_history(events: &[WatchEvent<ConfigMap>], asked: &BTreeSet<String>, careless: &BTreeSet<String>) {
    let mut present: BTreeMap<String, &ConfigMap> = BTreeMap::new();
    // Who once waited for its dependents has set their deletion off, even if it was told otherwise later.
    let mut waited = BTreeSet::new();
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in events {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = event
        else {
            panic!("{event:?}")
        };
        let uid = object.uid().unwrap();
        let gone = matches!(event, WatchEvent::Deleted(_));
        let before = present.get(&uid).copied();
        let was_going = before.is_some_and(|before| before.metadata.deletion_timestamp.is_some());
        let is_going = gone || object.metadata.deletion_timestamp.is_some();
        if is_going && !was_going && !asked.contains(&uid) {
            let judged = before.unwrap_or(object);
            assert!(!judged.owner_references().is_empty(), "deleted without any owner: {object:?}");
            for owner in judged.owner_references() {
                let lives = present.get(&owner.uid).is_some_and(|_| !waited.contains(&owner.uid));
                assert!(
                    !lives,
                    "{} was deleted although {} lived: {object:?}",
                    object.name_any(),
                    owner.name
                );
            }
        }
        owners
            .entry(uid.clone())
            .or_default()
            .extend(object.owner_references().iter().map(|owner| owner.uid.clone()));
        if let (true, Some(before)) = (gone && !careless.contains(&uid), before) {
            check_dependents(before, &uid, &present, |dependent| {
                waited.contains(dependent) && is_above(dependent, &uid, &owners)
            });
        }
        if in_foreground(object) {
            waited.insert(uid.clone());
        }
        if gone {
            present.remove(&uid);
        } else {
            present.insert(uid, object);
        }
    }
}

fn in_foreground(object: &ConfigMap) -> bool {
    object.metadata.deletion_timestamp.is_some()
        && object.finalizers().iter().any(|found| found == FOREGROUND)
}

/// When an owner goes in the foreground nothing that blocks it is left, but for objects of a circle that have waited for it in
/// turn; when it goes as `orphan`, nothing names it any more.
fn check_dependents(
    owner: &ConfigMap,
    uid: &str,
    present: &BTreeMap<String, &ConfigMap>,
    is_in_circle: impl Fn(&str) -> bool,
) {
    for (dependent_uid, dependent) in present.iter().filter(|(other, _)| *other != uid) {
        let reference = dependent.owner_references().iter().find(|reference| reference.uid == uid);
        let Some(reference) = reference else { continue };
        let orphans = owner.finalizers().iter().any(|finalizer| finalizer == "orphan");
        assert!(!orphans, "{} was not set free by {}", dependent.name_any(), owner.name_any());
        if in_foreground(owner) && reference.block_owner_deletion == Some(true) {
            let circle = is_in_circle(dependent_uid);
            assert!(
                circle,
                "{} went before {}: {:?}",
                owner.name_any(),
                dependent.name_any(),
                dependent.metadata
            );
        }
    }
}

/// Whether an object has been an owner of another, itself or through others.
fn is_above(above: &str, below: &str, owners: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let mut seen = BTreeSet::new();
    let mut next = vec![below];
    while let Some(uid) = next.pop() {
        for owner in owners.get(uid).into_iter().flatten() {
            if owner == above {
                return true;
            }
            if seen.insert(owner) {
                next.push(owner);
            }
        }
    }
    false
}

/// What is left to do, if anything: nothing is to be on its way out, and every owner that is named lives.
fn left_to_do(objects: &[ConfigMap], asked: &BTreeSet<String>) -> Result<(), String> {
    let living: BTreeSet<String> = objects.iter().filter_map(|object| object.uid()).collect();
    for object in objects {
        let lacks_owner = object.owner_references().iter().any(|owner| !living.contains(&owner.uid));
        let what = match () {
            () if object.metadata.deletion_timestamp.is_some() => "still on its way out",
            () if asked.contains(&object.uid().unwrap()) => "deleted and still there",
            () if lacks_owner => "an owner that is gone",
            () => continue,
        };
        return Err(format!("{what}: {:?}", object.metadata));
    }
    Ok(())
}

async fn run(client: kube::Client, nodes: Vec<Node>, steps: Vec<Step>) {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let from = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let deleted = api.create(&PostParams::default(), &map("a-deleted", vec![], vec![])).await.unwrap();
    api.delete("a-deleted", &DeleteParams::default()).await.unwrap();
    let mut world = World {
        api,
        made: Vec::new(),
        deleted,
        asked: BTreeSet::new(),
        careless: BTreeSet::new(),
        canaries: 0,
    };
    world.asked.insert(world.deleted.uid().unwrap());
    let count = nodes.len();
    let finalizers = |node: &Node| if node.held { vec![HOLD.to_owned()] } else { vec![] };
    for (at, node) in nodes.iter().enumerate() {
        let made = world.create(&map(&name(at), vec![], finalizers(node))).await;
        world.made.push(made);
    }
    // Owners are named afterwards, so that they may be any, and all may be gone at once.
    for (at, node) in nodes.iter().enumerate() {
        world.adopt(at, &node.owners).await;
    }
    for step in steps {
        match step {
            Step::Delete(at, policy) => world.delete(at % count, policy).await,
            Step::Release(at) => world.release(at % count).await,
            Step::Rest => world.rest().await,
            Step::Adopt(at, owners) => {
                world.rest().await;
                world.adopt(at % count, &owners).await;
            }
            Step::Create(at) => {
                world.rest().await;
                let at = at % count;
                let object = map(&name(at), vec![], finalizers(&nodes[at]));
                if let Some(made) = raced(world.api.create(&PostParams::default(), &object).await) {
                    world.made[at] = made;
                }
            }
        }
    }
    for at in 0..count {
        world.release(at).await;
    }
    world.rest().await;
    // The collector works on several objects at once: one that it began with before the canary may be done after it.
    eventually("nothing is left to do", async || left_to_do(&world.objects().await, &world.asked)).await;

    // The canaries are asked for or collected like everything else; the end of the history is a last object.
    let end = world.create(&map("end", vec![], vec![])).await;
    let mut stream = world.api.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let mut events = Vec::new();
    loop {
        let event = soon("the next event", stream.next()).await.unwrap().unwrap();
        let is_end = matches!(&event, WatchEvent::Added(object) if object.uid() == end.uid());
        let is_canary = matches!(&event, WatchEvent::Added(o) | WatchEvent::Modified(o) | WatchEvent::Deleted(o)
            if o.name_any().starts_with(CANARY));
        if is_end {
            break;
        }
        if !is_canary {
            events.push(event);
        }
    }
    check_history(&events, &world.asked, &world.careless);
}

#[test]
fn what_has_no_owner_left_goes_and_nothing_else_does() {
    let nodes = proptest::collection::vec(node(), 1..=MOST);
    let steps = proptest::collection::vec(step(), 1..12);
    check(200, (nodes, steps), |client, (nodes, steps)| run(client, nodes, steps));
}
