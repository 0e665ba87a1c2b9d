//! Component schemas: their names, the lists, and the completed schemas of custom resources.

use serde_json::{Map, Value, json};

use super::reference;
use crate::registry::definition::{Definition, GroupVersion};

pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. \
    Servers should convert recognized schemas to the latest internal value, and may reject unrecognized \
    values. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers \
    may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More \
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The component of a built-in kind: `io.k8s.api.core.v1.Pod`.
pub fn built_in_component(gv: &GroupVersion, kind: &str) -> String {
    let package = match gv.group.as_str() {
        "" => "api.core",
        "apiextensions.k8s.io" => "apiextensions-apiserver.pkg.apis.apiextensions",
        group => {
            let package = group.split('.').next().unwrap_or(group);
            return format!("io.k8s.api.{package}.{}.{kind}", gv.version);
        }
    };
    format!("io.k8s.{package}.{}.{kind}", gv.version)
}

/// The component of a custom resource, its group reversed: `com.example.shop.v1.Order`.
pub fn custom_component(gv: &GroupVersion, kind: &str) -> String {
    let group: Vec<&str> = gv.group.rsplit('.').collect();
    format!("{}.{}.{kind}", group.join("."), gv.version)
}

/// Says in a schema which kind its objects are of.
pub fn set_group_version_kind(schema: &mut Value, gv: &GroupVersion, kind: &str) {
    if let Value::Object(members) = schema {
        let gvk = json!([{"group": gv.group, "version": gv.version, "kind": kind}]);
        members.insert("x-kubernetes-group-version-kind".to_owned(), gvk);
    }
}

/// The published schema of a custom resource: that of its CRD, with the fields that every object has.
pub fn custom_root(crd_schema: &Value, gv: &GroupVersion, kind: &str) -> Value {
    let mut root = crd_schema.clone();
    if !root.is_object() {
        root = json!({});
    }
    complete_embedded(&mut root);
    add_type_and_metadata(&mut root);
    set_group_version_kind(&mut root, gv, kind);
    root
}

/// The list of a kind.
pub(super) fn list(definition: &Definition, component: &str) -> Value {
    let names = &definition.names;
    let items = json!({
        "description": format!(
            "List of {}. More info: \
                https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
            names.plural
        ),
        "type": "array",
        "items": reference(component),
    });
    let mut list = json!({
        "description": format!("{} is a list of {}", names.list_kind, names.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": {"description": LIST_METADATA, "allOf": [reference(&format!("{META}.ListMeta"))]},
            "items": items,
        },
    });
    set_group_version_kind(&mut list, &definition.gv, &names.list_kind);
    list
}

fn add_type_and_metadata(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    let properties = members.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else { return };
    properties.insert("apiVersion".to_owned(), json!({"type": "string", "description": API_VERSION}));
    properties.insert("kind".to_owned(), json!({"type": "string", "description": KIND}));
    let metadata = json!({"description": METADATA, "allOf": [reference(&format!("{META}.ObjectMeta"))]});
    properties.insert("metadata".to_owned(), metadata);
    members.entry("type").or_insert_with(|| json!("object"));
}

/// Objects within objects have a type and metadata of their own.
fn complete_embedded(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    each_child(members, complete_embedded);
    if members.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        add_type_and_metadata(schema);
    }
}

fn each_child(members: &mut Map<String, Value>, each: fn(&mut Value)) {
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(each);
    }
    for place in ["additionalProperties", "items"] {
        if let Some(child) = members.get_mut(place) {
            each(child);
        }
    }
}
