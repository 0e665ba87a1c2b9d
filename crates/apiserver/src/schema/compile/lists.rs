//! The rules for sets and keyed lists.

use serde_json::Value;

use super::Compiler;
use super::keywords::Keywords;
use crate::schema::path::Path;
use crate::schema::{ListType, Schema, Type};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

impl Compiler<'_> {
    /// `x-kubernetes-list-type` with `x-kubernetes-list-map-keys`.
    pub(super) fn list_type(&mut self, words: &Keywords<'_>, path: &Path<'_>) -> ListType {
        let keys = self.names(words, MAP_KEYS);
        let given = words.get(LIST_TYPE);
        let is_array = words.get("type").and_then(Value::as_str) == Some("array");
        if given.is_some() && !is_array {
            let detail = "must be array if x-kubernetes-list-type is specified";
            match words.get("type") {
                None => self.required(&path.field("type"), detail),
                Some(found) => self.invalid(&path.field("type"), found, detail),
            }
        }
        let name = given.and_then(Value::as_str);
        if !keys.is_empty() && name != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match given {
                None => self.required(&path.field(LIST_TYPE), detail),
                Some(found) => self.invalid(&path.field(LIST_TYPE), found, detail),
            }
        }
        match (given, name) {
            (None, _) | (_, Some("atomic")) => ListType::Atomic,
            (_, Some("set")) => ListType::Set,
            (_, Some("map")) => {
                if keys.is_empty() {
                    let detail = "must not be empty if x-kubernetes-list-type is map";
                    self.required(&path.field(MAP_KEYS), detail);
                }
                ListType::Map(keys)
            }
            (_, other) => {
                let known = ["atomic", "set", "map"];
                self.not_supported(&path.field(LIST_TYPE), other.unwrap_or_default(), &known);
                ListType::Atomic
            }
        }
    }

    /// Checks that the entries of a set or keyed list can be told apart.
    pub(super) fn check_list(&mut self, schema: &Schema, path: &Path<'_>) {
        let items_path = path.field("items");
        match (&schema.list_type, schema.items.as_deref()) {
            (ListType::Atomic, _) | (ListType::Set, None) => {}
            (ListType::Set, Some(items)) => self.check_set(items, &items_path),
            (ListType::Map(_), None) => {
                self.required(&items_path, "must have a schema if x-kubernetes-list-type is map");
            }
            (ListType::Map(keys), Some(items)) => self.check_keys(keys, items, path, &items_path),
        }
    }

    fn check_set(&mut self, items: &Schema, path: &Path<'_>) {
        if items.nullable {
            self.forbidden(&path.field("nullable"), "cannot be nullable when x-kubernetes-list-type is set");
        }
        let must_be_atomic = "must be atomic as item of a list with x-kubernetes-list-type=set";
        if items.type_ == Some(Type::Object) && !items.map_atomic {
            self.required(&path.field("x-kubernetes-map-type"), must_be_atomic);
        }
        if items.type_ == Some(Type::Array) && items.list_type != ListType::Atomic {
            self.required(&path.field(LIST_TYPE), must_be_atomic);
        }
    }

    fn check_keys(&mut self, keys: &[String], items: &Schema, path: &Path<'_>, items_path: &Path<'_>) {
        if items.type_ != Some(Type::Object) {
            let found = Value::from(items.type_.map_or("", Type::name));
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(&items_path.field("type"), &found, detail);
            return;
        }
        if items.nullable {
            self.forbidden(
                &items_path.field("nullable"),
                "cannot be nullable when x-kubernetes-list-type is map",
            );
        }
        let properties = items_path.field("properties");
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].contains(key) {
                let shown = Value::from(key.as_str());
                self.invalid(&path.field(MAP_KEYS), &shown, "must not contain duplicate entries");
            }
            let Some(property) = items.properties.get(key) else {
                let shown = Value::from(key.as_str());
                self.invalid(&path.field(MAP_KEYS), &shown, "entries must all be names of item properties");
                continue;
            };
            let property_path = properties.key(key);
            if let Some(type_ @ (Type::Object | Type::Array)) = property.type_ {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                self.invalid(&property_path.field("type"), &Value::from(type_.name()), detail);
            }
            let because = "this property is in x-kubernetes-list-map-keys, so it";
            if property.default.is_none() && !items.required.contains(key) {
                let detail = format!("{because} must have a default or be a required property");
                self.required(&property_path.field("default"), &detail);
            }
            if property.nullable {
                let detail = format!("{because} cannot be nullable");
                self.forbidden(&property_path.field("nullable"), &detail);
            }
        }
    }
}
