//! Structural schemas: what an object of a kind may look like, and what is done to it on the way in.
//!
//! A [`Schema`] is a tree compiled once from OpenAPI v3 JSON (of a CRD, or of a built-in kind) and
//! shared by every plane that serves the kind. It knows four things about each value: its type and
//! the constraints on it (`validate`), which fields it may have (`prune`), what is filled in when a
//! field is absent (`defaults`), and how lists and maps merge (used by `managed_fields` and `patch`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// The JSON type that a value must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A map of fields.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// How the entries of a list are told apart when two writers own parts of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value: whoever writes it replaces it whole.
    #[default]
    Atomic,
    /// A set of scalars.
    Set,
    /// Entries are objects identified by these fields.
    Map(Vec<String>),
}

/// How `application/strategic-merge-patch+json` treats a list of a built-in kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Merge entries by this field.
    MergeByKey(String),
    /// Merge scalars as a set.
    MergeSet,
}

/// One node of a structural schema.
///
/// A `Schema::default()` node accepts any scalar; an *untyped, open* value (nothing pruned, nothing
/// checked, merged as one value for lists and field by field for objects) is
/// `preserve_unknown_fields` with no `type_`.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// `type`; `None` for int-or-string and for untyped open values.
    pub type_: Option<Type>,
    /// `nullable`: an explicit `null` is a value.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`: has `apiVersion`, `kind` and `metadata` of its own.
    pub embedded_resource: bool,
    /// `properties`.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// `additionalProperties` given as a schema: the schema of every value of a map.
    pub additional_properties: Option<Arc<Schema>>,
    /// `items`.
    pub items: Option<Arc<Schema>>,
    /// `x-kubernetes-list-type` with `x-kubernetes-list-map-keys`.
    pub list_type: ListType,
    /// Whether entries of a set or keyed list must differ. Custom resources must; built-in kinds take
    /// duplicates (two `env` entries of one name are legal) and merge them as best they can.
    pub unique_entries: bool,
    /// `x-kubernetes-map-type: atomic`: the object is one value.
    pub map_atomic: bool,
    /// Strategic merge behaviour of a list (built-in kinds only).
    pub patch_strategy: Option<PatchStrategy>,
    /// `default`.
    pub default: Option<Value>,
    /// `required`.
    pub required: Vec<String>,
    /// Constraints on the value itself; `None` when there are none.
    pub constraints: Option<Box<constraints::Constraints>>,
    /// `x-kubernetes-validations`, compiled; empty when there are none.
    pub rules: Vec<cel_rules::Rule>,
    /// Whether this node or one below it has rules; spares the rule walk of objects that have none.
    pub rules_below: bool,
}

impl Schema {
    /// A node that takes any value as it is.
    pub fn open() -> Self {
        Self { preserve_unknown_fields: true, ..Self::default() }
    }

    /// A node of one type, with nothing else said about it.
    pub fn of(type_: Type) -> Self {
        Self { type_: Some(type_), ..Self::default() }
    }

    /// The schema of the field or map entry `name`, if it has one.
    pub fn child(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(self.additional_properties.as_ref()).map(Arc::as_ref)
    }

    /// The checked `format` of a scalar.
    pub fn format(&self) -> Option<constraints::Format> {
        self.constraints.as_ref().and_then(|constraints| constraints.format)
    }
}

pub mod built_in;
pub mod cel_rules;
pub mod compile;
pub mod constraints;
pub mod correlate;
pub mod defaults;
pub mod expr;
pub mod meta;
pub mod path;
pub mod prune;
pub mod regexp;
pub mod validate;

#[cfg(test)]
mod tests;
