//! One record of the audit log, in the shape of `audit.k8s.io/v1`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::auth::Identity;

/// The annotation that says which plane a request was for.
const PLANE: &str = "control-plane/name";
/// The annotation that says how long a request took, by its name in Kubernetes.
const LATENCY: &str = "apiserver.latency.k8s.io/total";
/// The annotation that says how many events are missing here.
const LOST: &str = "audit/lost-events";

/// When in the life of a request an event was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Stage {
    /// A watch has started.
    ResponseStarted,
    /// The request is over.
    ResponseComplete,
}

/// What a request was about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Plural name of the resource.
    pub resource: String,
    /// Namespace; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// API version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Subresource; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

/// How a request ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// `Failure`, or empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub status: &'static str,
    /// What failed, if it can be told without showing content.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The machine-readable reason of a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// HTTP status code.
    pub code: u16,
}

/// One record of the audit log. Serialises as an `Event` of `audit.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    /// The id that the answer carries in its `Audit-Id` header.
    #[serde(rename = "auditID")]
    pub id: String,
    /// When in the life of the request.
    pub stage: Stage,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub uri: String,
    /// `get`, `list`, `create`…; for paths that are no resource the method in lower case.
    pub verb: String,
    /// Who sent it; empty if that is not known.
    pub user: Identity,
    /// On whose behalf, if the sender said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<Identity>,
    /// Where it came from; empty for requests from within the process.
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// What the client calls itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    /// What it was about, if that is a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectRef>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Outcome>,
    /// When it came.
    #[serde(rename = "requestReceivedTimestamp", serialize_with = "micros")]
    pub received: Timestamp,
    /// When the stage was reached.
    #[serde(rename = "stageTimestamp", serialize_with = "micros")]
    pub at: Timestamp,
    /// Further facts: the plane, how long it took, what authorization and admission have to say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Event {
    pub(super) fn new(id: String, received: Timestamp) -> Self {
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: "Metadata",
            id,
            stage: Stage::ResponseComplete,
            uri: String::new(),
            verb: String::new(),
            user: Identity::default(),
            impersonated_user: None,
            sources: Vec::new(),
            user_agent: String::new(),
            object_ref: None,
            response_status: None,
            received,
            at: received,
            annotations: BTreeMap::new(),
        }
    }

    /// An event that stands for `count` lost ones, about the time `at`.
    pub(super) fn lost(count: u64, at: Timestamp) -> Self {
        let mut event = Self::new(format!("lost-{}", at.as_microsecond()), at);
        event.annotations.insert(LOST.to_owned(), count.to_string());
        event
    }

    pub(super) fn set_plane(&mut self, plane: &str) {
        self.annotations.insert(PLANE.to_owned(), plane.to_owned());
    }

    pub(super) fn set_latency(&mut self, elapsed: std::time::Duration) {
        self.annotations.insert(LATENCY.to_owned(), format!("{elapsed:?}"));
    }

    /// The plane that the request was for; empty if it was for none.
    pub fn plane(&self) -> &str {
        self.annotations.get(PLANE).map_or("", String::as_str)
    }
}

/// A time as Kubernetes writes it where it counts microseconds.
fn micros<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
}
