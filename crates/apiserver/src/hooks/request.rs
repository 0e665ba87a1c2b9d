//! What a hook is asked about, and its form on the wire.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::auth::Identity;

/// What is done with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A new state of an object, by whatever verb.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to an object, such as `exec`.
    Connect,
}

impl Operation {
    /// Every operation: what `*` stands for.
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A kind in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupVersionKind {
    /// API group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl GroupVersionKind {
    /// A kind from its three parts.
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// As an object has it.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A resource in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupVersionResource {
    /// API group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
}

impl GroupVersionResource {
    /// A resource from its three parts.
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), resource: resource.to_owned() }
    }

    /// Whether these are namespaces, which count as cluster-scoped and carry the labels that select them.
    pub(super) fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    /// As errors have it: `workloads.compute.datumapis.com`.
    pub(super) fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }
}

/// What a hook is asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionRequest {
    /// Tells this request from every other. A webhook gets an identifier of its own for each call.
    pub uid: String,
    /// The plane that is written to. Hooks in this process see it; webhooks belong to one plane and are not told.
    pub plane: String,
    /// What is done.
    pub operation: Operation,
    /// The kind of `object`.
    pub kind: GroupVersionKind,
    /// The resource that is written.
    pub resource: GroupVersionResource,
    /// The part of it that is written, such as `status`; empty for the main part.
    pub subresource: String,
    /// The kind that the client asked for; differs from `kind` when a hook wants another version.
    pub request_kind: GroupVersionKind,
    /// The resource that the client asked for.
    pub request_resource: GroupVersionResource,
    /// The object's name; empty for a create with a generated name.
    pub name: String,
    /// The object's namespace; empty for cluster-scoped kinds. For a namespace it is the namespace itself.
    pub namespace: String,
    /// Who asks.
    pub user: Arc<Identity>,
    /// The new state; none for a delete.
    pub object: Option<Value>,
    /// The present state; none for a create.
    pub old_object: Option<Value>,
    /// The options of the verb (`CreateOptions` and the like); null if there are none.
    pub options: Value,
    /// Whether nothing will be written. A hook must then have no effects of its own.
    pub dry_run: bool,
}

impl AdmissionRequest {
    /// A request with these essentials; the rest is empty and is set by field.
    pub fn new(operation: Operation, kind: GroupVersionKind, resource: GroupVersionResource) -> Self {
        Self {
            uid: String::new(),
            plane: String::new(),
            operation,
            request_kind: kind.clone(),
            request_resource: resource.clone(),
            kind,
            resource,
            subresource: String::new(),
            name: String::new(),
            namespace: String::new(),
            user: Arc::default(),
            object: None,
            old_object: None,
            options: Value::Null,
            dry_run: false,
        }
    }

    /// The same request as seen through another version of the resource. Versions of a kind differ by their name only.
    pub(super) fn in_version(&self, kind: &GroupVersionKind, resource: &GroupVersionResource) -> Self {
        let mut seen = Self { kind: kind.clone(), resource: resource.clone(), ..self.clone() };
        for object in [&mut seen.object, &mut seen.old_object].into_iter().flatten() {
            set_api_version(object, kind);
        }
        seen
    }

    /// The `request` that match conditions see: without the objects, which are variables of their own.
    pub(super) fn as_variable(&self) -> Value {
        let wire = Wire::new(self, &self.uid, false);
        serde_json::to_value(wire).expect("a request serialises into memory")
    }

    /// The body of a webhook call.
    pub(super) fn to_review(&self, uid: &str) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Review<'a> {
            kind: &'static str,
            api_version: &'static str,
            request: Wire<'a>,
        }
        let review = Review {
            kind: "AdmissionReview",
            api_version: "admission.k8s.io/v1",
            request: Wire::new(self, uid, true),
        };
        serde_json::to_vec(&review).expect("a request serialises into memory")
    }
}

/// Gives an object the `apiVersion` of a kind.
pub(super) fn set_api_version(object: &mut Value, kind: &GroupVersionKind) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
    }
}

/// An `AdmissionRequest` of `admission.k8s.io/v1`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    uid: &'a str,
    kind: &'a GroupVersionKind,
    resource: &'a GroupVersionResource,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: &'a GroupVersionKind,
    request_resource: &'a GroupVersionResource,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: Operation,
    user_info: &'a Identity,
    /// The outer option says whether the field is there at all; the inner one may be null.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Option<&'a Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_object: Option<Option<&'a Value>>,
    dry_run: bool,
    options: &'a Value,
}

impl<'a> Wire<'a> {
    fn new(request: &'a AdmissionRequest, uid: &'a str, objects: bool) -> Self {
        Self {
            uid,
            kind: &request.kind,
            resource: &request.resource,
            sub_resource: &request.subresource,
            request_kind: &request.request_kind,
            request_resource: &request.request_resource,
            request_sub_resource: &request.subresource,
            name: &request.name,
            namespace: &request.namespace,
            operation: request.operation,
            user_info: &request.user,
            object: objects.then_some(request.object.as_ref()),
            old_object: objects.then_some(request.old_object.as_ref()),
            dry_run: request.dry_run,
            options: &request.options,
        }
    }
}
