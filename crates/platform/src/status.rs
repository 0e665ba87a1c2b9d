//! Writing statuses: whole, by one writer, and only onto the object that was looked at.

use compute_api::conditions::{self, Status, Update};
use compute_api::k8s::{Condition, Timestamp};
use compute_runtime::write::{self, Object, Writer};
use kube::{Api, ResourceExt as _};
use serde::Serialize;
use serde_json::json;

/// Which version of an object a status is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Onto {
    /// Any: what it says does not depend on what was stored.
    Any,
    /// The one that was looked at, or the answer is a conflict.
    AsSeen,
}

/// Applies a status to an object, and never to a successor of the same name.
pub(crate) async fn apply<K>(
    writer: &Writer,
    api: &Api<K>,
    object: &K,
    status: &impl Serialize,
    onto: Onto,
) -> write::Result<K>
where
    K: Object + kube::Resource<DynamicType = ()>,
{
    let mut fields = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": { "name": object.name_any(), "uid": object.uid() },
        "status": status,
    });
    if onto == Onto::AsSeen {
        fields["metadata"]["resourceVersion"] = object.resource_version().into();
    }
    writer.apply_status(api, &object.name_any(), &fields).await
}

/// The conditions of these types, all with one reason and message, after those that are stored.
pub(crate) fn conditions(
    stored: &[Condition],
    types: &[&str],
    (status, reason, message): (Status, &str, &str),
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let next = |type_: &&str| {
        let update = Update::new(type_, status, reason, message).of_generation(generation);
        conditions::next(conditions::find(stored, type_), update, now)
    };
    types.iter().map(next).collect()
}
