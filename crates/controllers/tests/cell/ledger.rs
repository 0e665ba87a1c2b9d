//! The platform's own ledger beside the cell, on a way with faults of its own; and who watches over both: that no more is granted than
//! there is, and that no gate goes without a grant, at any instant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_api::quota::{AllowanceBucket, RESOURCE_INSTANCES, ResourceClaim, ResourceGrant};
use compute_platform::quota::{self, NAMESPACE, Setup};
use compute_runtime::tasks::Tasks;
use compute_runtime::{Plane, PlaneId, Planes};
use futures::StreamExt as _;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::faults::Way;
use super::platform::Ledger;
use super::world::{PROJECT, World};

/// The platform's ledger at work.
pub struct RealLedger {
    /// Its ways to the project and to core.
    pub way: Arc<Way>,
    pub core_way: Arc<Way>,
    stop: CancellationToken,
}

impl Drop for RealLedger {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// Lets the platform's ledger answer claims, with room for so many instances and for more of everything else than they need.
    pub async fn serve_ledger(&self, instances: i64) -> RealLedger {
        self.platform.set(|settings| settings.ledger = Ledger::Off);
        self.add_plane("core", &["quota.miloapis.com"]).await;
        let (way, core_way) = (Way::new(), Way::new());
        let core = Plane::new(&self.runtime, PlaneId::new("core"), self.reach(&core_way, "core"));
        quota::seed_core(&core).await.unwrap();
        let (namespace, mut grant) = quota::defaults(PROJECT);
        for allowance in &mut grant.spec.allowances {
            if allowance.resource_type == RESOURCE_INSTANCES {
                allowance.buckets[0].amount = instances;
            }
        }
        Api::all(self.project.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let grants: Api<ResourceGrant> = Api::namespaced(self.project.clone(), NAMESPACE);
        grants.create(&PostParams::default(), &grant).await.unwrap();
        let project = Plane::new(&self.runtime, PlaneId::new(PROJECT), self.reach(&way, "project-shop"));
        let projects = Planes::new(&self.runtime);
        projects.engage(&project);
        let mut tasks = Tasks::new();
        quota::spawn(&mut tasks, Setup { projects, core });
        let stop = tasks.stop_token();
        let stopped = stop.clone();
        tokio::spawn(async move {
            tasks.run(stopped.cancelled_owned(), Duration::from_secs(10)).await.unwrap();
        });
        RealLedger { way, core_way, stop }
    }
}

/// Tells of every change of a kind in a plane, straight from it, beginning with what is there.
async fn follow<K>(client: &Client, tell: impl Fn(&str, Option<&K>) + Send + 'static)
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<K> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await.unwrap();
    listed.items.iter().for_each(|object| tell(&object.name_any(), Some(object)));
    let mut version = listed.metadata.resource_version.unwrap();
    tokio::spawn(async move {
        loop {
            let events = api.watch(&WatchParams::default(), &version).await.unwrap();
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        version = object.resource_version().unwrap();
                        tell(&object.name_any(), Some(&object));
                    }
                    WatchEvent::Deleted(object) => {
                        version = object.resource_version().unwrap();
                        tell(&object.name_any(), None);
                    }
                    WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                    WatchEvent::Error(status) => panic!("{status:?}"),
                }
            }
        }
    });
}

/// Watches claims and buckets, and checks with every event that no more is granted than there is.
#[derive(Clone, Default)]
pub struct Inspector(Arc<Mutex<Inspected>>);

#[derive(Default)]
struct Inspected {
    /// What each claim was granted of each resource.
    granted: BTreeMap<String, Vec<(String, i64)>>,
    /// The most instances that were granted at one time.
    most: i64,
    events: usize,
    faults: Vec<String>,
}

impl Inspector {
    /// Begins with what is there, and with a limit of so many instances.
    pub async fn watch(world: &World, limit: i64) -> Self {
        let inspector = Self::default();
        let claims = inspector.clone();
        follow::<ResourceClaim>(&world.project, move |name, claim| claims.claim(name, claim, limit)).await;
        let buckets = inspector.clone();
        follow::<AllowanceBucket>(&world.project, move |name, bucket| buckets.bucket(name, bucket)).await;
        inspector
    }

    fn claim(&self, name: &str, claim: Option<&ResourceClaim>, limit: i64) {
        let mut all = self.0.lock();
        all.events += 1;
        all.granted.remove(name);
        if let Some(status) = claim.and_then(|claim| claim.status.as_ref()) {
            let parts = status.allocations.iter().filter(|part| part.status == "Granted");
            let parts = parts.map(|part| (part.resource_type.clone(), part.allocated_amount.unwrap_or(0)));
            all.granted.insert(name.to_owned(), parts.collect());
        }
        let instances = all.granted.values().flatten().filter(|(resource, _)| resource == RESOURCE_INSTANCES);
        let sum: i64 = instances.map(|(_, amount)| amount).sum();
        all.most = all.most.max(sum);
        if sum > limit {
            all.faults.push(format!("{sum} of {limit} instances are granted after {name}"));
        }
    }

    fn bucket(&self, name: &str, bucket: Option<&AllowanceBucket>) {
        let mut all = self.0.lock();
        all.events += 1;
        let Some(status) = bucket.and_then(|bucket| bucket.status.as_ref()) else { return };
        if status.allocated > status.limit || status.available != status.limit - status.allocated {
            all.faults.push(format!("bucket {name} says {status:?}"));
        }
    }

    /// All of it was in order; the most instances that were granted at one time.
    pub fn assert_never_too_much(&self) -> i64 {
        let all = self.0.lock();
        assert!(all.events > 0);
        assert_eq!(all.faults, Vec::<String>::new());
        all.most
    }
}

/// Watches instances, and checks with every event that one without the gate of quota has a grant.
#[derive(Clone, Default)]
pub struct Gates(Arc<Mutex<Vec<String>>>);

impl Gates {
    pub async fn watch(world: &World) -> Self {
        let gates = Self::default();
        let seen = gates.clone();
        follow::<Instance>(&world.cell, move |name, instance| {
            let Some(instance) = instance else { return };
            let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
            let granted = c::is_true(conditions, c::QUOTA_GRANTED);
            if !instance.spec.has_gate("Quota") && !granted {
                seen.0.lock().push(format!("{name}: {conditions:?}"));
            }
        })
        .await;
        gates
    }

    pub fn assert_never_opened_without_a_grant(&self) {
        assert_eq!(*self.0.lock(), Vec::<String>::new());
    }
}
