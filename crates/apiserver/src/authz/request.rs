//! From a request's method and path to what authorization asks.

use super::attributes::{Attributes, Caller, ResourceAttributes};
use crate::meta::NameRule;

/// What the path and the query of a request to a resource say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural name.
    pub resource: &'a str,
    /// Subresource.
    pub subresource: Option<&'a str>,
    /// Namespace.
    pub namespace: Option<&'a str>,
    /// Name of the object; none for a collection.
    pub name: Option<&'a str>,
    /// Whether a watch is asked for.
    pub watch: bool,
    /// The name that a field selector `metadata.name=…` of a list or watch demands: rules with `resourceNames` can
    /// allow such a request.
    pub selected_name: Option<&'a str>,
}

/// The attributes of a request to a resource. `method` is in upper case.
pub fn resource_request<'a>(caller: Caller<'a>, method: &str, path: &ResourcePath<'a>) -> Attributes<'a> {
    let verb = match (method, path.name) {
        ("GET" | "HEAD", _) if path.watch => "watch",
        ("GET" | "HEAD", Some(_)) => "get",
        ("GET" | "HEAD", None) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        // No rule but one for all verbs allows it; the server refuses the method anyway.
        _ => "",
    };
    let is_list = path.name.is_none() && matches!(verb, "list" | "watch");
    let selected = path.selected_name.filter(|name| is_list && NameRule::PathSegment.problem(name).is_none());
    // A namespace is within itself: whoever administers it may read it.
    let within = match (path.group, path.resource, path.namespace) {
        ("", "namespaces", None) => path.name,
        (_, _, namespace) => namespace,
    };
    let resource = ResourceAttributes {
        group: path.group,
        version: path.version,
        resource: path.resource,
        subresource: path.subresource.unwrap_or_default(),
        namespace: within.unwrap_or_default(),
        name: path.name.or(selected).unwrap_or_default(),
    };
    Attributes::resource(caller, verb, resource)
}

/// The attributes of a request to any other path, relative to the plane. `method` is in upper case.
pub fn path_request<'a>(caller: Caller<'a>, method: &'a str, path: &'a str) -> Attributes<'a> {
    let verb = match method {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        other => other,
    };
    Attributes::path(caller, verb, path)
}
