//! From the `openAPIV3Schema` of a CRD to a [`Schema`], with the rules for structural schemas enforced.
//!
//! Guarantees about a schema that compiles: every value it specifies has a type (or is open, or an int
//! or string); every default is valid, complete under pruning and of bounded nesting; every pattern and
//! rule is compiled; keyed lists have keys that every entry has. Keywords that Kubernetes does not know
//! are ignored, as it drops them; keywords that it refuses are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::path::Path;
use super::validate::{MAX_ERRORS, Sink, validate};
use super::{ListType, Schema, Type, cel_rules, meta, prune};
use crate::field_error::{FieldError, FieldErrorType};

mod keywords;
mod lists;
mod nested;

use keywords::Keywords;

/// How deep a schema may nest. Parsed JSON has at most 128 levels and a schema takes two of them for
/// each of its own, so only a schema that never was JSON text can reach this.
const MAX_DEPTH: usize = 64;

/// Compiles the schema of one version of a CRD; `base` is its place in the CRD, such as
/// `spec.versions[0].schema.openAPIV3Schema`.
///
/// # Errors
/// All that is wrong with the schema, up to a bounded number of errors.
pub fn compile(openapi_v3_schema: &Value, base: &str) -> Result<Schema, Vec<FieldError>> {
    let mut sink = Sink::with_limit(MAX_ERRORS);
    let place = Place { level: Level::Root, depth: 0, correlatable: true };
    let schema = Compiler { sink: &mut sink }.structural(openapi_v3_schema, &Path::base(base), place);
    if sink.is_empty() { Ok(schema) } else { Err(sink.into_errors()) }
}

/// What a schema is the schema of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Where in the tree a schema stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    level: Level,
    depth: usize,
    /// Whether a value here can be found again in an older object.
    correlatable: bool,
}

impl Place {
    fn below(self, level: Level, correlatable: bool) -> Self {
        Self { level, depth: self.depth + 1, correlatable: self.correlatable && correlatable }
    }
}

struct Compiler<'s> {
    sink: &'s mut Sink,
}

impl Compiler<'_> {
    fn invalid(&mut self, path: &Path<'_>, value: &Value, words: &str) {
        self.sink.push(|| FieldError::invalid(path.text(), value, words));
    }

    fn required(&mut self, path: &Path<'_>, words: &str) {
        self.sink.push(|| FieldError::new(path.text(), FieldErrorType::Required, words));
    }

    fn forbidden(&mut self, path: &Path<'_>, words: &str) {
        self.sink.push(|| FieldError::new(path.text(), FieldErrorType::Forbidden, words));
    }

    fn not_supported(&mut self, path: &Path<'_>, value: &str, supported: &[&str]) {
        let list: Vec<String> = supported.iter().map(|name| format!("\"{name}\"")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        self.sink.push(|| {
            FieldError::with_value(path.text(), FieldErrorType::NotSupported, &Value::from(value), detail)
        });
    }

    fn structural(&mut self, json: &Value, path: &Path<'_>, place: Place) -> Schema {
        if place.depth > MAX_DEPTH {
            self.forbidden(path, &format!("must not nest deeper than {MAX_DEPTH} levels"));
            return Schema::default();
        }
        if self.sink.is_full() {
            return Schema::default();
        }
        let Some(words) = self.keywords(json, path) else { return Schema::default() };
        self.refused(&words, path);
        let mut schema = Schema {
            type_: self.type_keyword(&words),
            nullable: self.flag(&words, "nullable"),
            int_or_string: self.flag(&words, "x-kubernetes-int-or-string"),
            embedded_resource: self.flag(&words, "x-kubernetes-embedded-resource"),
            preserve_unknown_fields: self.flag(&words, "x-kubernetes-preserve-unknown-fields"),
            required: self.names(&words, "required"),
            ..Schema::default()
        };
        if words.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let path = path.field("x-kubernetes-preserve-unknown-fields");
            self.invalid(&path, &Value::Bool(false), "must be true or undefined");
        }
        self.map_type(&words, &mut schema, path);
        schema.list_type = self.list_type(&words, path);
        schema.unique_entries = schema.list_type != ListType::Atomic;
        self.children(&words, &mut schema, path, place);
        self.check_shape(&words, &schema, path, place.level);
        self.check_list(&schema, path);

        let constraints = self.constraints(&words, &schema, path, place.depth);
        if !constraints.is_empty() {
            schema.constraints = Some(Box::new(constraints));
        }
        let root = place.level == Level::Root;
        if root || schema.embedded_resource {
            self.check_identity(&schema, path);
            meta::complete(&mut schema.properties);
        }
        let children = schema.properties.values().chain(&schema.additional_properties).chain(&schema.items);
        schema.rules_below = children.into_iter().any(|child| child.rules_below);
        if let Some(rules) = words.get("x-kubernetes-validations") {
            let at = path.field("x-kubernetes-validations");
            let rules = cel_rules::compile(rules, &schema, root, place.correlatable, &at, self.sink);
            schema.rules_below |= !rules.is_empty();
            schema.rules = rules;
        }
        if let Some(default) = words.get("default").filter(|default| !default.is_null()) {
            self.check_default(default, &schema, path);
            schema.default = Some(default.clone());
        }
        schema
    }

    /// The keywords of a schema, which must be an object.
    fn keywords<'j>(&mut self, json: &'j Value, path: &Path<'_>) -> Option<Keywords<'j>> {
        let words = Keywords::of(json);
        if words.is_none() {
            self.invalid(path, json, "must be a schema object");
        }
        words
    }

    /// Refuses the keywords that are valid JSON schema but no part of a structural one.
    fn refused(&mut self, words: &Keywords<'_>, path: &Path<'_>) {
        for name in ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"] {
            if words.get(name).is_some() {
                self.forbidden(&path.field(name), &format!("{name} is not supported"));
            }
        }
        if words.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.forbidden(
                &path.field("uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }
    }

    fn map_type(&mut self, words: &Keywords<'_>, schema: &mut Schema, path: &Path<'_>) {
        const NAME: &str = "x-kubernetes-map-type";
        let Some(given) = words.get(NAME) else { return };
        match given.as_str() {
            Some("atomic") => schema.map_atomic = true,
            Some("granular") => {}
            other => {
                self.not_supported(&path.field(NAME), other.unwrap_or_default(), &["atomic", "granular"]);
            }
        }
        if schema.type_ != Some(Type::Object) {
            self.wrong_type(schema, path, "must be object if x-kubernetes-map-type is specified");
        }
    }

    /// An error at `type`: it is absent, or it is another than the one that `detail` names.
    fn wrong_type(&mut self, schema: &Schema, path: &Path<'_>, detail: &str) {
        let path = path.field("type");
        match schema.type_ {
            None => self.required(&path, detail),
            Some(type_) => self.invalid(&path, &Value::from(type_.name()), detail),
        }
    }

    fn children(&mut self, words: &Keywords<'_>, schema: &mut Schema, path: &Path<'_>, place: Place) {
        if let Some(properties) = words.get("properties") {
            let at = path.field("properties");
            match properties.as_object() {
                Some(properties) => {
                    let below = place.below(Level::Field, !schema.map_atomic);
                    let compiled = properties.iter().map(|(name, json)| {
                        (name.clone(), Arc::new(self.structural(json, &at.key(name), below)))
                    });
                    schema.properties = compiled.collect::<BTreeMap<_, _>>();
                }
                None => self.invalid(&at, properties, "must be an object"),
            }
        }
        if let Some(additional) = words.get("additionalProperties") {
            let at = path.field("additionalProperties");
            let below = place.below(Level::Field, !schema.map_atomic);
            schema.additional_properties = match additional {
                // What is in such a map has no schema, so the values are kept and their fields are not.
                Value::Bool(true) => Some(Arc::new(Schema::default())),
                Value::Bool(false) => {
                    self.forbidden(&at, "additionalProperties cannot be set to false");
                    None
                }
                json => Some(Arc::new(self.structural(json, &at, below))),
            };
            if !schema.properties.is_empty() && !matches!(additional, Value::Bool(true)) {
                self.forbidden(&at, "additionalProperties and properties are mutual exclusive");
            }
        }
        if let Some(items) = words.get("items") {
            let at = path.field("items");
            if items.is_array() {
                self.forbidden(&at, "items must be a schema object and not an array");
            } else {
                let keyed = matches!(schema.list_type, ListType::Map(_));
                let below = place.below(Level::Item, keyed);
                schema.items = Some(Arc::new(self.structural(items, &at, below)));
            }
        }
    }

    fn check_shape(&mut self, words: &Keywords<'_>, schema: &Schema, path: &Path<'_>, level: Level) {
        let type_given = words.get("type").is_some();
        if schema.embedded_resource && schema.type_ != Some(Type::Object) {
            self.wrong_type(schema, path, "must be object if x-kubernetes-embedded-resource is true");
        } else if level == Level::Root && schema.type_ != Some(Type::Object) {
            let detail = if schema.type_.is_none() {
                "must not be empty at the root"
            } else {
                "must be object at the root"
            };
            self.wrong_type(schema, path, detail);
        } else if !type_given && !schema.int_or_string && !schema.preserve_unknown_fields {
            let what = if level == Level::Item { "array items" } else { "object fields" };
            self.required(&path.field("type"), &format!("must not be empty for specified {what}"));
        }
        if schema.int_or_string {
            if let Some(type_) = schema.type_ {
                let detail = "must be empty if x-kubernetes-int-or-string is true";
                self.invalid(&path.field("type"), &Value::from(type_.name()), detail);
            }
            let clashes = [
                ("x-kubernetes-embedded-resource", schema.embedded_resource),
                ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown_fields),
            ];
            for (name, _) in clashes.into_iter().filter(|(_, set)| *set) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.invalid(&path.field(name), &Value::Bool(true), detail);
            }
        }
        if schema.type_ == Some(Type::Array) && words.get("items").is_none() {
            self.required(&path.field("items"), "must be specified");
        }
        if schema.additional_properties.is_some() {
            let at = path.field("additionalProperties");
            if level == Level::Root {
                self.forbidden(&at, "must not be used at the root");
            } else if schema.embedded_resource {
                self.forbidden(&at, "must not be used if x-kubernetes-embedded-resource is set");
            }
        }
        if schema.embedded_resource && !schema.preserve_unknown_fields && schema.properties.is_empty() {
            self.required(
                &path.field("properties"),
                "must not be empty if x-kubernetes-embedded-resource is true without \
                 x-kubernetes-preserve-unknown-fields",
            );
        }
    }

    /// `apiVersion` and `kind` are texts, and of `metadata` only the names may be constrained.
    fn check_identity(&mut self, schema: &Schema, path: &Path<'_>) {
        let properties = path.field("properties");
        for name in ["apiVersion", "kind"] {
            if let Some(child) = schema.properties.get(name)
                && child.type_ != Some(Type::String)
            {
                let found = Value::from(child.type_.map_or("", Type::name));
                self.invalid(&properties.key(name).field("type"), &found, "must be string");
            }
        }
        let Some(metadata) = schema.properties.get("metadata") else { return };
        let path = properties.key("metadata");
        if metadata.type_ != Some(Type::Object) {
            let found = Value::from(metadata.type_.map_or("", Type::name));
            self.invalid(&path.field("type"), &found, "must be object");
        }
        let only_names = metadata.properties.keys().all(|name| name == "name" || name == "generateName");
        let plain = !metadata.nullable
            && !metadata.embedded_resource
            && metadata.additional_properties.is_none()
            && metadata.required.is_empty()
            && metadata.default.is_none()
            && metadata.properties.values().all(|child| child.default.is_none());
        if !only_names || !plain {
            self.forbidden(
                &path,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
    }

    fn check_default(&mut self, default: &Value, schema: &Schema, path: &Path<'_>) {
        let at = path.field("default");
        let unknown = prune::unknown_fields(schema, default);
        if let Some(first) = unknown.first() {
            self.invalid(
                &at,
                default,
                &format!("must not have unspecified fields: unknown field \"{first}\""),
            );
            return;
        }
        let mut complete = default.clone();
        super::defaults::apply(schema, &mut complete);
        for error in validate(schema, &complete, None) {
            let place = match error.path.as_str() {
                "<nil>" => at.text(),
                inner => format!("{at}.{inner}"),
            };
            self.sink.push(|| FieldError { path: place, ..error });
        }
    }
}

#[cfg(test)]
mod tests;
