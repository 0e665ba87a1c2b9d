//! What is in the plane of a project that is being deleted: metadata only, watched, so that whatever goes makes the project due.

use std::time::Duration;

use anyhow::Context as _;
use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::ObjectMeta;
use compute_api::kube::api::{ApiResource, DynamicObject, ListParams, PropagationPolicy};
use compute_api::kube::core::PartialObjectMeta;
use compute_api::kube::{Api, Resource};
use compute_api::quota::ResourceClaim;
use compute_core::meta;
use compute_core::project::{self, Kind};
use compute_runtime::cache::Object;
use compute_runtime::controller::Error;
use compute_runtime::write::{self, Target, Writer};
use compute_runtime::{Cache, Key, Plane, Queue, Subscription};
use tokio::time::timeout;

/// How long the first lists may take before the pass is given up. They go on meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);

type Metadata<K> = Cache<PartialObjectMeta<K>>;

/// What is in the plane.
pub(super) struct Contents {
    plane: Plane,
    workloads: Metadata<Workload>,
    deployments: Metadata<WorkloadDeployment>,
    instances: Metadata<Instance>,
    claims: Metadata<ResourceClaim>,
    _subscriptions: [Subscription; 4],
}

/// What was in the plane at one time.
pub(super) struct Left {
    workloads: Vec<ObjectMeta>,
    deployments: Vec<ObjectMeta>,
    instances: Vec<ObjectMeta>,
    claims: Vec<ObjectMeta>,
}

impl Left {
    /// The same, as decisions take it.
    pub(super) fn borrowed(&self) -> project::Contents<'_> {
        project::Contents {
            workloads: self.workloads.iter().collect(),
            deployments: self.deployments.iter().collect(),
            instances: self.instances.iter().collect(),
            claims: self.claims.iter().collect(),
        }
    }
}

impl Contents {
    /// Watches a plane, and makes `key` due when anything in it changes.
    pub(super) fn watch(plane: Plane, queue: &Queue, key: &Key) -> Self {
        fn due<K: Object>(cache: &Cache<K>, queue: &Queue, key: &Key) -> Subscription {
            let key = key.clone();
            queue.watch(cache, move |_| Some(key.clone()))
        }
        let (workloads, deployments) = (plane.cache(), plane.cache());
        let (instances, claims) = (plane.cache(), plane.cache());
        let subscriptions = [
            due(&workloads, queue, key),
            due(&deployments, queue, key),
            due(&instances, queue, key),
            due(&claims, queue, key),
        ];
        Self { plane, workloads, deployments, instances, claims, _subscriptions: subscriptions }
    }

    /// Waits until all of it is known.
    pub(super) async fn synced(&self) -> Result<(), Error> {
        let all = async {
            self.workloads.synced().await?;
            self.deployments.synced().await?;
            self.instances.synced().await?;
            self.claims.synced().await
        };
        match timeout(PATIENCE, all).await {
            Ok(known) => Ok(known?),
            Err(_) => Err(anyhow::anyhow!("The project's control plane does not answer")),
        }
    }

    /// What is left.
    pub(super) fn left(&self) -> Left {
        fn all<K>(cache: &Metadata<K>) -> Vec<ObjectMeta>
        where
            PartialObjectMeta<K>: Object,
        {
            cache.list().iter().map(|object| object.metadata.clone()).collect()
        }
        Left {
            workloads: all(&self.workloads),
            deployments: all(&self.deployments),
            instances: all(&self.instances),
            claims: all(&self.claims),
        }
    }

    /// Asks the plane itself whether nothing is left: what was watched may be behind.
    pub(super) async fn is_empty(&self, writer: &Writer) -> Result<bool, Error> {
        for kind in [Kind::Workload, Kind::WorkloadDeployment, Kind::Instance, Kind::ResourceClaim] {
            let api: Api<DynamicObject> = Api::all_with(self.plane.client().clone(), &resource(kind));
            let found = writer.request(api.list_metadata(&ListParams::default().limit(1))).await;
            let found = found.with_context(|| format!("cannot list {}", kind.plural()))?;
            if !found.items.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes an object.
    pub(super) async fn delete(&self, writer: &Writer, kind: Kind, object: &ObjectMeta) -> Result<(), Error> {
        let (namespace, name) = (meta::namespace(object), meta::name(object));
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.plane.client().clone(), namespace, &resource(kind));
        let target =
            Target { name: name.to_owned(), uid: meta::uid(object).to_owned(), resource_version: None };
        match writer.delete(&api, &target, PropagationPolicy::Background).await {
            // Gone, or another one by now, of which the watch tells.
            Ok(()) | Err(write::Error::NotFound(_) | write::Error::Conflict(_)) => Ok(()),
            Err(error) => Err(Error::new(error).context(format!("cannot delete {namespace}/{name}"))),
        }
    }
}

fn resource(kind: Kind) -> ApiResource {
    fn of<K: Resource<DynamicType = ()>>() -> ApiResource {
        ApiResource::erase::<K>(&())
    }
    match kind {
        Kind::Workload => of::<Workload>(),
        Kind::WorkloadDeployment => of::<WorkloadDeployment>(),
        Kind::Instance => of::<Instance>(),
        Kind::ResourceClaim => of::<ResourceClaim>(),
    }
}
