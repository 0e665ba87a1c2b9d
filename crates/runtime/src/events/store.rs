//! How an Event gets onto its plane.

use std::sync::Arc;

use compute_api::k8s::{Event, ObjectMeta, ObjectReference, Time};
use compute_api::k8s_openapi::api::core::v1::EventSource;
use compute_api::kube::api::{Patch, PatchParams, PostParams};
use compute_api::kube::{Api, Client};
use serde_json::json;

use super::Reporter;
use super::correlate::{Key, Occurrence};
use crate::write::Error;

/// Where the Events of objects without a namespace are.
const DEFAULT_NAMESPACE: &str = "default";

/// Writes an Event as it is now. Returns the count that the server has then.
pub(super) async fn write(
    client: Client,
    reporter: Arc<Reporter>,
    key: Arc<Key>,
    occurrence: Occurrence,
) -> Result<i32, Error> {
    let namespace = namespace(&key);
    let events: Api<Event> = Api::namespaced(client, namespace);
    let name = key.event_name();
    if occurrence.written > 0 {
        let count = occurrence.written.saturating_add(occurrence.pending);
        match patch(&events, &name, count, occurrence).await {
            // Servers forget Events after an hour.
            Err(Error::NotFound(_)) => {}
            result => return result,
        }
    }
    let event = event(&key, &name, &reporter, occurrence);
    match events.create(&PostParams::default(), &event).await.map_err(Error::from) {
        Ok(_) => Ok(occurrence.pending),
        // An earlier process, or this one before it forgot, has told the same.
        Err(Error::AlreadyExists(_)) => {
            let before = events.get(&name).await?.count.unwrap_or(0);
            patch(&events, &name, before.saturating_add(occurrence.pending), occurrence).await
        }
        Err(error) => Err(error),
    }
}

async fn patch(events: &Api<Event>, name: &str, count: i32, occurrence: Occurrence) -> Result<i32, Error> {
    let patch = json!({ "count": count, "lastTimestamp": Time(occurrence.last) });
    events.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(count)
}

fn namespace(key: &Key) -> &str {
    if key.about.namespace.is_empty() { DEFAULT_NAMESPACE } else { &key.about.namespace }
}

fn event(key: &Key, name: &str, reporter: &Reporter, occurrence: Occurrence) -> Event {
    let about = &key.about;
    let filled = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    Event {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace(key).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: filled(&about.api_version),
            kind: filled(&about.kind),
            namespace: filled(&about.namespace),
            name: filled(&about.name),
            uid: filled(&about.uid),
            ..ObjectReference::default()
        },
        type_: Some(key.notice.severity.as_str().to_owned()),
        reason: Some(key.notice.reason.clone()),
        message: Some(key.notice.message.clone()),
        count: Some(occurrence.pending),
        first_timestamp: Some(Time(occurrence.first)),
        last_timestamp: Some(Time(occurrence.last)),
        source: Some(EventSource { component: Some(reporter.component.clone()), host: None }),
        reporting_component: Some(reporter.component.clone()),
        reporting_instance: Some(reporter.instance.clone()),
        ..Event::default()
    }
}
