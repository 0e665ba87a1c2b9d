//! How a place in an object merges: a schema node together with where it stands.
//!
//! Every walk over values (extract, compare, merge, prune) asks here whether a map or list is one value
//! or is taken item by item, so that they agree at every place.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::FieldSet;
use crate::schema::{ListType, PatchStrategy, Schema, Type};

/// Below this many levels a value is tracked as one. An entry of `managedFields` is a few levels deeper
/// than the object it describes, and the whole must stay within the 128 levels that can be read back.
pub(crate) const MAX_DEPTH: u8 = 100;

/// Fields of `metadata` that nobody owns: the object's identity and what the server keeps.
const UNTRACKED_METADATA: [&str; 9] = [
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Fields of `metadata` that only the server writes.
pub(super) const SERVER_METADATA: [&str; 5] =
    ["clusterName", "creationTimestamp", "generation", "managedFields", "selfLink"];

static OBJECT_META: LazyLock<Schema> = LazyLock::new(object_meta);
static ATOMIC: ListType = ListType::Atomic;

/// A schema node and where it stands. Without a node the value is untyped: objects field by field,
/// lists as one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    schema: Option<&'a Schema>,
    place: Place,
    depth: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Root,
    Metadata,
    Inner,
}

/// Why an entry of a list cannot be told apart from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoIdentity {
    /// An entry of a keyed list is not an object.
    NotAnObject,
    /// An entry of a set is an object or a list.
    NotAScalar,
    /// An entry lacks this key field, which has no default.
    MissingKey(String),
}

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(crate) fn root(schema: &'a Schema) -> Self {
        Self { schema: Some(schema), place: Place::Root, depth: 0 }
    }

    /// The schema node, if the place is typed.
    pub(crate) fn schema(self) -> Option<&'a Schema> {
        self.schema
    }

    /// The shape of a field, and whether the schema names it (as against an entry of an open map).
    pub(crate) fn field(self, name: &str) -> (Self, bool) {
        let depth = self.depth.saturating_add(1);
        let property = self.schema.and_then(|schema| schema.properties.get(name)).map(Arc::as_ref);
        let is_resource =
            self.place == Place::Root || self.schema.is_some_and(|schema| schema.embedded_resource);
        if is_resource && name == "metadata" {
            let place = if self.place == Place::Root { Place::Metadata } else { Place::Inner };
            let typed = property.filter(|schema| !schema.properties.is_empty());
            return (Self { schema: Some(typed.unwrap_or(&OBJECT_META)), place, depth }, true);
        }
        let open = || self.schema.and_then(|schema| schema.additional_properties.as_deref());
        (Self { schema: property.or_else(open), place: Place::Inner, depth }, property.is_some())
    }

    /// The shape of the entries of a list.
    pub(crate) fn items(self) -> Self {
        let schema = self.schema.and_then(|schema| schema.items.as_deref());
        Self { schema, place: Place::Inner, depth: self.depth.saturating_add(1) }
    }

    /// Whether a map here is one value.
    pub(crate) fn is_atomic_map(self) -> bool {
        self.depth >= MAX_DEPTH || self.schema.is_some_and(|schema| schema.map_atomic)
    }

    /// How the entries of a list here are told apart.
    pub(super) fn list_type(self) -> &'a ListType {
        match self.schema.map(|schema| &schema.list_type) {
            Some(ListType::Map(keys)) if keys.is_empty() => &ATOMIC,
            Some(list_type) if self.depth < MAX_DEPTH => list_type,
            _ => &ATOMIC,
        }
    }

    /// Whether the field of this object can be owned at all.
    pub(super) fn is_tracked(self, name: &str) -> bool {
        match self.place {
            Place::Root => name != "apiVersion" && name != "kind",
            Place::Metadata => !UNTRACKED_METADATA.contains(&name),
            Place::Inner => true,
        }
    }

    /// Whether this is the whole object.
    pub(super) fn is_root(self) -> bool {
        self.place == Place::Root
    }

    /// Whether this is the object's own `metadata`.
    pub(super) fn is_metadata(self) -> bool {
        self.place == Place::Metadata
    }

    /// What each entry of the list is told apart by; `None` when the list is one value, which a list
    /// with entries that cannot be told apart is too.
    pub(super) fn identify(self, items: &[Value]) -> Option<Vec<PathElement>> {
        if matches!(self.list_type(), ListType::Atomic) {
            return None;
        }
        items.iter().map(|item| self.identity(item).ok()).collect()
    }

    /// What one entry of a set or keyed list here is told apart by.
    pub(super) fn identity(self, item: &Value) -> Result<PathElement, NoIdentity> {
        let ListType::Map(keys) = self.list_type() else {
            let scalar = !item.is_object() && !item.is_array();
            return if scalar { Ok(PathElement::value(item)) } else { Err(NoIdentity::NotAScalar) };
        };
        let fields = item.as_object().ok_or(NoIdentity::NotAnObject)?;
        let items = self.items();
        let mut identity = Vec::with_capacity(keys.len());
        for key in keys {
            let value = fields.get(key).or_else(|| items.field(key).0.schema?.default.as_ref());
            identity.push((key.as_str(), value.ok_or_else(|| NoIdentity::MissingKey(key.clone()))?));
        }
        Ok(PathElement::key(&mut identity))
    }

    /// Makes a set that was recorded when this map or list was merged item by item fit a schema under
    /// which it is one value: owning a part then means owning the whole.
    pub(super) fn reconcile(self, set: &mut FieldSet) {
        if set.children.is_empty() {
            return;
        }
        let Some(schema) = self.schema else { return };
        if self.is_one_value(schema) {
            *set = FieldSet::leaf();
            return;
        }
        for (element, below) in &mut set.children {
            let shape =
                if let PathElement::Field(name) = element { self.field(name).0 } else { self.items() };
            shape.reconcile(below);
        }
    }
}

impl Shape<'_> {
    fn is_one_value(self, schema: &Schema) -> bool {
        match schema.type_ {
            Some(Type::Array) => matches!(self.list_type(), ListType::Atomic),
            Some(Type::Object) => schema.map_atomic,
            _ => false,
        }
    }

    /// Whether [`Shape::reconcile`] would leave the set alone that these `FieldsV1` stand for.
    pub(super) fn fits(self, fields: &Map<String, Value>) -> bool {
        let Some(schema) = self.schema.filter(|_| !fields.is_empty()) else { return true };
        // A mere dot is a path without anything below it.
        let is_leaf = fields.len() == 1 && fields.contains_key(".");
        (is_leaf || !self.is_one_value(schema))
            && fields.iter().all(|(key, below)| match below.as_object() {
                Some(below) if below.is_empty() => true,
                Some(below) => match key.strip_prefix("f:") {
                    Some(name) => self.field(name).0.fits(below),
                    None => self.items().fits(below),
                },
                None => false,
            })
    }
}

/// `ObjectMeta`, for schemas that leave `metadata` open.
fn object_meta() -> Schema {
    let text = || Arc::new(Schema { type_: Some(Type::String), ..Schema::default() });
    let texts = || {
        let additional_properties = Some(text());
        Arc::new(Schema { type_: Some(Type::Object), additional_properties, ..Schema::default() })
    };
    let owner = ["apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"];
    let owner = Schema {
        type_: Some(Type::Object),
        map_atomic: true,
        properties: owner.into_iter().map(|name| (name.to_owned(), Arc::default())).collect(),
        ..Schema::default()
    };
    let owners = Schema {
        type_: Some(Type::Array),
        items: Some(Arc::new(owner)),
        list_type: ListType::Map(vec!["uid".to_owned()]),
        patch_strategy: Some(PatchStrategy::MergeByKey("uid".to_owned())),
        ..Schema::default()
    };
    let finalizers = Schema {
        type_: Some(Type::Array),
        items: Some(text()),
        list_type: ListType::Set,
        patch_strategy: Some(PatchStrategy::MergeSet),
        ..Schema::default()
    };
    let scalars = ["deletionGracePeriodSeconds", "deletionTimestamp", "generateName"];
    let mut properties: BTreeMap<String, Arc<Schema>> =
        scalars.iter().chain(&UNTRACKED_METADATA).map(|&name| (name.to_owned(), Arc::default())).collect();
    properties.insert("annotations".to_owned(), texts());
    properties.insert("labels".to_owned(), texts());
    properties.insert("finalizers".to_owned(), Arc::new(finalizers));
    properties.insert("ownerReferences".to_owned(), Arc::new(owners));
    Schema { type_: Some(Type::Object), properties, ..Schema::default() }
}
