//! What makes a key due: every change of either side, and a member's watch that is open again.

use std::sync::Arc;

use compute_api::compute::WorkloadDeployment;
use compute_api::k8s::{ConfigMap, Namespace, Secret};
use compute_api::karmada::{Cluster, PropagationPolicy};
use compute_core::meta;
use compute_core::propagation::binding::Binding;
use compute_core::referenced_data::Source;
use compute_runtime::{Change, Key, Queue, Subscription};

use super::copy::{Carried, everything};
use super::raw::Raw;
use super::{Cell, Queues, World};

/// Begins to make keys due, until the subscriptions are dropped.
pub(super) fn start(world: &Arc<World>, queues: &Arc<Queues>) -> Vec<Subscription> {
    let mut all = vec![
        templates(world, queues),
        queues.bind.watch_own(&world.hub.templates),
        policies(world, queues),
        clusters_bind(world, queues),
        clusters_own(world, queues),
        to_all_members::<Namespace>(world, &queues.namespaces),
        to_all_members::<ConfigMap>(world, &queues.config_maps),
        to_all_members::<Secret>(world, &queues.secrets),
    ];
    for cell in world.cells.values() {
        // A Cluster that is not there yet has nobody to tell of it.
        queues.clusters.add(Key::new(cell.plane.id(), "", &cell.name));
        own::<Namespace>(cell, &queues.namespaces, &mut all);
        own::<WorkloadDeployment>(cell, &queues.templates, &mut all);
        own::<ConfigMap>(cell, &queues.config_maps, &mut all);
        own::<Secret>(cell, &queues.secrets, &mut all);
        all.push(opened_namespaces(world, cell, queues));
    }
    all
}

/// A template of the hub: it and what follows it, on the members that it was sent to and is now.
fn templates(world: &Arc<World>, queues: &Arc<Queues>) -> Subscription {
    let (planes, queues) = (world.planes.clone(), queues.clone());
    world.hub.templates.subscribe(move |change: &Change<Raw<WorkloadDeployment>>| {
        for version in change.versions() {
            let binding = Binding::of(&version.metadata);
            let dependencies = version.dependencies();
            for plane in binding.clusters.iter().filter_map(|name| planes.get(name)) {
                queues.templates.add(Key::new(plane, &change.name.namespace, &change.name.name));
                for source in &dependencies {
                    let queue = match source {
                        Source::ConfigMap(_) => &queues.config_maps,
                        Source::Secret(_) => &queues.secrets,
                    };
                    queue.add(Key::new(plane, &change.name.namespace, &source.companion_name()));
                }
            }
        }
    })
}

/// A policy: the templates of its namespace. One that only changes hands (its owners are its users) is the same policy.
fn policies(world: &Arc<World>, queues: &Queues) -> Subscription {
    let (templates, hub) = (world.hub.templates.clone(), world.hub.plane.id().clone());
    queues.bind.watch(&world.hub.policies, move |change: &Change<PropagationPolicy>| {
        let relevant =
            |policy: &PropagationPolicy| (meta::is_being_deleted(&policy.metadata), policy.spec.clone());
        let same = change.before.as_deref().map(relevant) == change.after.as_deref().map(relevant);
        let due = if same { Vec::new() } else { templates.in_namespace(&change.name.namespace) };
        due.into_iter().map(|template| Key::of(&hub, &*template)).collect::<Vec<_>>()
    })
}

/// A cluster that can be chosen for more, or for less: all templates.
fn clusters_bind(world: &Arc<World>, queues: &Queues) -> Subscription {
    let (templates, hub) = (world.hub.templates.clone(), world.hub.plane.id().clone());
    queues.bind.watch(&world.hub.clusters, move |change: &Change<Cluster>| {
        let relevant = |cluster: &Cluster| {
            let object = &cluster.metadata;
            (meta::is_being_deleted(object), object.labels.clone(), cluster.spec.clone())
        };
        let same = change.before.as_deref().map(relevant) == change.after.as_deref().map(relevant);
        let due = if same { Vec::new() } else { templates.list() };
        due.into_iter().map(|template| Key::of(&hub, &*template)).collect::<Vec<_>>()
    })
}

/// A cluster: itself, in the plane of the member that it stands for.
fn clusters_own(world: &Arc<World>, queues: &Queues) -> Subscription {
    let (planes, hub) = (world.planes.clone(), world.hub.plane.id().clone());
    queues.clusters.watch(&world.hub.clusters, move |change: &Change<Cluster>| {
        // Its conditions are our own doing, and a timer asks for them anyway.
        let ours = matches!((&change.before, &change.after), (Some(before), Some(after))
            if before.metadata.labels == after.metadata.labels && before.spec == after.spec);
        let plane = planes.get(&change.name.name).unwrap_or(&hub);
        (!ours).then(|| Key::new(plane, "", &change.name.name))
    })
}

/// An object of the hub that may be anywhere.
fn to_all_members<K: Carried>(world: &Arc<World>, queue: &Queue) -> Subscription {
    let planes: Vec<_> = world.cells.keys().cloned().collect();
    queue.watch(K::on_hub(&world.hub), move |change: &Change<Raw<K>>| {
        let key = |plane| Key::new(plane, &change.name.namespace, &change.name.name);
        planes.iter().map(key).collect::<Vec<_>>()
    })
}

/// An object of a member; and all of them when the watch is open again.
fn own<K: Carried>(cell: &Cell, queue: &Queue, all: &mut Vec<Subscription>) {
    let cache = K::on_cell(cell);
    all.push(queue.watch_own(cache));
    let (queue, plane) = (queue.clone(), cell.plane.id().clone());
    all.push(cache.on_connect(move |_| queue.add(everything(&plane))));
}

/// A namespace that has come to a member: what the hub has in it.
fn opened_namespaces(world: &Arc<World>, cell: &Cell, queues: &Arc<Queues>) -> Subscription {
    let (templates, config_maps, secrets) =
        (world.hub.templates.clone(), world.hub.config_maps.clone(), world.hub.secrets.clone());
    let (queues, plane) = (queues.clone(), cell.plane.id().clone());
    cell.namespaces.subscribe(move |change: &Change<Raw<Namespace>>| {
        if change.before.is_some() || change.after.is_none() {
            return;
        }
        let namespace = &change.name.name;
        queues.templates.add_all(templates.in_namespace(namespace).iter().map(|o| Key::of(&plane, &**o)));
        queues.config_maps.add_all(config_maps.in_namespace(namespace).iter().map(|o| Key::of(&plane, &**o)));
        queues.secrets.add_all(secrets.in_namespace(namespace).iter().map(|o| Key::of(&plane, &**o)));
    })
}
