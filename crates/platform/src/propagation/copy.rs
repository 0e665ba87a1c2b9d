//! One object of the hub on one member: carried there, kept equal, taken away; its status brought back.
//!
//! A key is an object's name in the plane of a member. A key without a name stands for all of a member: it is due when the
//! member's watch is open again, and makes due whatever either side has.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use compute_api::compute::WorkloadDeployment;
use compute_api::k8s::{ConfigMap, Namespace, ObjectMeta, Secret};
use compute_api::kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use compute_api::kube::{Api, Resource};
use compute_core::meta;
use compute_core::propagation::binding::Binding;
use compute_core::propagation::member::{self, MANAGED_LABEL, Step};
use compute_core::propagation::namespace_goes_to_members;
use compute_runtime::controller::{self, Error};
use compute_runtime::events::Notice;
use compute_runtime::write::{self, Target, Writer};
use compute_runtime::{Cache, Index, Key, Next, Plane, PlaneId, Queue, Reconciler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::raw::Raw;
use super::{Cell, Hub, World};

/// Templates of the hub by what follows them, in the form of [`dependency`].
pub(super) static DEPENDENCIES: Index<Raw<WorkloadDeployment>> = Index::new("dependencies", |template| {
    let namespace = meta::namespace(&template.metadata);
    let sources = template.dependencies();
    sources.iter().map(|source| dependency(source.kind(), namespace, &source.companion_name())).collect()
});

/// Something that follows a template, as [`DEPENDENCIES`] knows it.
fn dependency(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind}/{namespace}/{name}")
}

/// What to do when a write met an object that is not as it was seen: the event that tells of it makes the key due; the timer is for the
/// event that was seen between the two.
pub(super) const AFTER_RACE: Next = Next::After(Duration::from_secs(1));

/// Whether a write met an object that is not as it was seen.
pub(super) fn is_race(error: &write::Error) -> bool {
    matches!(error, write::Error::Conflict(_) | write::Error::NotFound(_))
}

/// How long something that is in the way on a member is left alone. Its going is not always seen.
const IN_THE_WAY: Duration = Duration::from_secs(30);

/// A kind that is carried.
pub(super) trait Carried: Resource<DynamicType = (), Scope: Send + Sync> + Sized + 'static {
    /// The name of the controller.
    const NAME: &'static str;
    /// Whether its status comes back.
    const REFLECTED: bool = false;

    /// What is known of the kind on the hub.
    fn on_hub(hub: &Hub) -> &Cache<Raw<Self>>;

    /// What is known of the kind on a member.
    fn on_cell(cell: &Cell) -> &Cache<Raw<Self>>;

    /// Whether an object of the hub goes to a member.
    fn is_sent(hub: &Hub, object: &ObjectMeta, member: &str) -> bool;
}

impl Carried for Namespace {
    const NAME: &'static str = "propagation-namespaces";

    fn on_hub(hub: &Hub) -> &Cache<Raw<Self>> {
        &hub.namespaces
    }

    fn on_cell(cell: &Cell) -> &Cache<Raw<Self>> {
        &cell.namespaces
    }

    fn is_sent(_: &Hub, object: &ObjectMeta, _: &str) -> bool {
        namespace_goes_to_members(meta::name(object))
    }
}

impl Carried for WorkloadDeployment {
    const NAME: &'static str = "propagation-templates";
    const REFLECTED: bool = true;

    fn on_hub(hub: &Hub) -> &Cache<Raw<Self>> {
        &hub.templates
    }

    fn on_cell(cell: &Cell) -> &Cache<Raw<Self>> {
        &cell.templates
    }

    fn is_sent(_: &Hub, object: &ObjectMeta, member: &str) -> bool {
        Binding::of(object).clusters.contains(member)
    }
}

impl Carried for ConfigMap {
    const NAME: &'static str = "propagation-config-maps";

    fn on_hub(hub: &Hub) -> &Cache<Raw<Self>> {
        &hub.config_maps
    }

    fn on_cell(cell: &Cell) -> &Cache<Raw<Self>> {
        &cell.config_maps
    }

    fn is_sent(hub: &Hub, object: &ObjectMeta, member: &str) -> bool {
        is_needed::<Self>(hub, object, member)
    }
}

impl Carried for Secret {
    const NAME: &'static str = "propagation-secrets";

    fn on_hub(hub: &Hub) -> &Cache<Raw<Self>> {
        &hub.secrets
    }

    fn on_cell(cell: &Cell) -> &Cache<Raw<Self>> {
        &cell.secrets
    }

    fn is_sent(hub: &Hub, object: &ObjectMeta, member: &str) -> bool {
        is_needed::<Self>(hub, object, member)
    }
}

/// Whether a template that goes to a member takes this companion with it.
fn is_needed<K: Resource<DynamicType = ()>>(hub: &Hub, object: &ObjectMeta, member: &str) -> bool {
    let value = dependency(&K::kind(&()), meta::namespace(object), meta::name(object));
    hub.templates.by_index(&DEPENDENCIES, &value).iter().any(|template| {
        let binding = Binding::of(&template.metadata);
        !meta::is_being_deleted(&template.metadata)
            && binding.propagate_deps
            && binding.clusters.contains(member)
    })
}

/// The key for all of a member.
pub(super) fn everything(plane: &PlaneId) -> Key {
    Key::new(plane, "", "")
}

/// Carries a kind until `stop`.
pub(super) async fn run<K: Carried>(
    world: &Arc<World>,
    writer: &Writer,
    queue: &Queue,
    stop: &CancellationToken,
) {
    let copier = Copier::<K> {
        world: world.clone(),
        writer: writer.clone(),
        queue: queue.clone(),
        resource: ApiResource::erase::<K>(&()),
        kind: std::marker::PhantomData,
    };
    controller::run(Arc::new(copier), queue.clone(), stop.cancelled()).await;
}

/// Carries a kind.
pub(super) struct Copier<K> {
    world: Arc<World>,
    writer: Writer,
    queue: Queue,
    resource: ApiResource,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Carried> Copier<K> {
    pub(super) const NAME: &'static str = K::NAME;

    /// Makes due whatever either side has.
    fn sweep(&self, cell: &Cell) {
        let hub = &self.world.hub;
        let sent = K::on_hub(hub).list();
        let sent = sent.iter().filter(|object| K::is_sent(hub, &object.metadata, &cell.name));
        let held = K::on_cell(cell).list();
        self.queue.add_all(sent.chain(&held).map(|object| Key::of(cell.plane.id(), &**object)));
    }

    fn api(&self, plane: &Plane, namespace: &str) -> Api<DynamicObject> {
        let client = plane.client().clone();
        if namespace.is_empty() {
            Api::all_with(client, &self.resource)
        } else {
            Api::namespaced_with(client, namespace, &self.resource)
        }
    }

    fn params(&self) -> PostParams {
        PostParams { field_manager: Some(self.writer.manager().to_owned()), ..PostParams::default() }
    }

    /// Does what there is to do on the member.
    async fn act(&self, cell: &Cell, key: &Key, step: Step) -> Result<Next, Error> {
        let api = self.api(&cell.plane, &key.namespace);
        let done = match step {
            Step::Nothing | Step::Wait => return Ok(Next::Done),
            Step::Conflict => {
                self.tell_of_conflict(cell, key);
                return Ok(Next::Done);
            }
            Step::Create(object) => {
                if !is_open(cell, &key.namespace) {
                    // Its coming makes everything in it due.
                    return Ok(Next::Done);
                }
                match self.writer.create(&api, &serde_json::from_value(object)?).await {
                    Err(write::Error::AlreadyExists(_)) => {
                        return self.look_what_is_there(cell, key, &api).await;
                    }
                    done => done.map(|_| ()),
                }
            }
            Step::Update(object) => {
                let object: DynamicObject = serde_json::from_value(object)?;
                self.writer.request(api.replace(&key.name, &self.params(), &object)).await.map(|_| ())
            }
            Step::Delete { uid } => {
                let target = Target { name: key.name.to_string(), uid, resource_version: None };
                self.writer.delete(&api, &target, PropagationPolicy::Background).await
            }
        };
        match done {
            Ok(()) => Ok(Next::Done),
            Err(error) if is_race(&error) => Ok(AFTER_RACE),
            Err(error) => Err(error.into()),
        }
    }

    /// There is something of that name that was not known of: our own doing, of which the watch has not told yet, or something
    /// in the way.
    async fn look_what_is_there(
        &self,
        cell: &Cell,
        key: &Key,
        api: &Api<DynamicObject>,
    ) -> Result<Next, Error> {
        let found = self.writer.request(api.get_metadata(&key.name)).await;
        match found {
            Ok(found) if meta::label(&found.metadata, MANAGED_LABEL) != Some("true") => {
                self.tell_of_conflict(cell, key);
                Ok(Next::After(IN_THE_WAY))
            }
            Ok(_) => Ok(AFTER_RACE),
            Err(error) if is_race(&error) => Ok(AFTER_RACE),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the member's status back.
    async fn reflect(&self, key: &Key, hub: &Value, held: &Value) -> Result<Next, Error> {
        let Some(status) = member::reflected(hub, held) else { return Ok(Next::Done) };
        let patch = json!([
            { "op": "test", "path": "/metadata/uid", "value": hub.pointer("/metadata/uid") },
            { "op": "add", "path": "/status", "value": status },
        ]);
        let patch = Patch::<()>::Json(serde_json::from_value(patch)?);
        let params =
            PatchParams { field_manager: Some(self.writer.manager().to_owned()), ..PatchParams::default() };
        let api = self.api(&self.world.hub.plane, &key.namespace);
        match self.writer.request(api.patch_status(&key.name, &params, &patch)).await {
            Ok(_) => Ok(Next::Done),
            // Another object has the name now.
            Err(write::Error::Invalid(_)) => Ok(AFTER_RACE),
            Err(error) if is_race(&error) => Ok(AFTER_RACE),
            Err(error) => Err(error.into()),
        }
    }

    fn tell_of_conflict(&self, cell: &Cell, key: &Key) {
        let Some(object) = K::on_hub(&self.world.hub).get(&key.namespace, &key.name) else { return };
        let message = format!("Cluster {} has an object of that name that is not the hub's", cell.name);
        tracing::warn!(cluster = cell.name, %key, kind = %K::kind(&()), "something is in the way");
        self.world.hub.recorder.tell(&*object, Notice::warning("SyncFailed", message));
    }
}

/// Whether a member's namespace takes new objects.
fn is_open(cell: &Cell, namespace: &str) -> bool {
    namespace.is_empty()
        || cell
            .namespaces
            .get("", namespace)
            .is_some_and(|namespace| !meta::is_being_deleted(&namespace.metadata))
}

impl<K: Carried> Reconciler for Copier<K>
where
    Raw<K>: Any + Send + Sync,
{
    fn name(&self) -> &'static str {
        K::NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(cell) = self.world.cells.get(&key.plane) else { return Ok(Next::Done) };
        let (hub, held) = (K::on_hub(&self.world.hub), K::on_cell(cell));
        if !held.is_connected() {
            // Nothing is known of the member as it is now. When it is, everything is due.
            return Ok(Next::Done);
        }
        if key.name.is_empty() {
            self.sweep(cell);
            return Ok(Next::Done);
        }
        let (namespace, name) = (&*key.namespace, &*key.name);
        if hub.is_unreadable(namespace, name) || held.is_unreadable(namespace, name) {
            return Ok(Next::Done);
        }
        let (hub, held) = (hub.get(namespace, name), held.get(namespace, name));
        let sent = hub.filter(|object| K::is_sent(&self.world.hub, &object.metadata, &cell.name));
        let sent = sent.map(|object| object.to_value()).transpose()?;
        let held = held.map(|object| object.to_value()).transpose()?;
        let acted = self.act(cell, key, member::decide(sent.as_ref(), held.as_ref())).await;
        // A member that refuses a write has a status all the same.
        let reflected = match (&sent, &held) {
            (Some(sent), Some(held)) if K::REFLECTED => self.reflect(key, sent, held).await,
            _ => Ok(Next::Done),
        };
        match (acted?, reflected?) {
            (Next::Done, next) => Ok(next),
            (next, _) => Ok(next),
        }
    }
}
