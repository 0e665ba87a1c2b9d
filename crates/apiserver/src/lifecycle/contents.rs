//! What holds other objects goes last: a namespace after its contents, a CRD after its custom resources.

use serde_json::json;

use super::garbage::remove_finalizer;
use super::{CRD_FINALIZER, settled};
use crate::error::Result;
use crate::store::{GroupResource, Object};
use crate::verbs::{self, DeleteOptions, Part, Propagation, Target, WriteOptions, YIELD_EVERY};

/// Deletes everything in a namespace; when nothing is left, lets the namespace go.
pub(super) async fn empty_namespace(target: &Target, namespace: &Object) -> Result<()> {
    let name = &*namespace.meta.key.name;
    let mut first_failure = Ok(());
    for resource in target.plane.store.resources_in(name) {
        // What a hook keeps must not keep the rest.
        first_failure = first_failure.and(delete_all(target, &resource, Some(name)).await);
    }
    first_failure?;
    if !target.plane.store.resources_in(name).is_empty() {
        return Ok(());
    }
    let Some(live) = target.plane.store.get(&target.resource.table, &namespace.meta.key) else {
        return Ok(());
    };
    let mut value = live.value();
    value["spec"]["finalizers"] = json!([]);
    let options = WriteOptions { part: Part::Finalize, ..WriteOptions::by("namespace-controller") };
    settled(verbs::update(&target.clone().unasked(), &live.meta.key, value, &options).await)
}

/// Deletes every object of a CRD; when none is left, lets the CRD go.
pub(super) async fn empty_crd(target: &Target, crd: &Object) -> Result<()> {
    let Some((plural, group)) = crd.meta.key.name.split_once('.') else { return Ok(()) };
    let table = GroupResource::new(group, plural);
    delete_all(&target.clone().unasked(), &table, None).await?;
    if target.plane.store.list(&table, None, |_| true).0.is_empty() {
        remove_finalizer(target, crd, CRD_FINALIZER).await?;
    }
    Ok(())
}

async fn delete_all(target: &Target, table: &GroupResource, namespace: Option<&str>) -> Result<()> {
    let Some(resource) = target.registry.find_table(table) else { return Ok(()) };
    let target = Target { resource: resource.clone(), ..target.clone() };
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let (objects, _) = target.plane.store.list(table, namespace, |object| !object.meta.deleting);
    for (i, object) in objects.into_iter().enumerate() {
        if i % YIELD_EVERY == YIELD_EVERY - 1 {
            tokio::task::yield_now().await;
        }
        let options = DeleteOptions { uid: Some(object.meta.uid.to_string()), ..options.clone() };
        settled(verbs::delete(&target.anew(), &object.meta.key, &options).await)?;
    }
    Ok(())
}
