//! The schema of `metadata`, and of the three fields that every object has.
//!
//! It stands in the tree of every kind, so that unknown metadata fields are found and dropped, badly
//! typed ones reported, and owner references and finalizers merged as Kubernetes merges them, without
//! a special case in any walk.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::constraints::{Constraints, Format};
use super::{ListType, PatchStrategy, Schema, Type};

static OBJECT_META: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(build_object_meta()));
static LIST_META: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let fields = [
        ("continue", string()),
        ("remainingItemCount", whole(Format::Int64)),
        ("resourceVersion", string()),
        ("selfLink", string()),
    ];
    Arc::new(object(fields))
});
static STRING: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::of(Type::String)));

/// The schema of `ObjectMeta`.
pub fn object_meta() -> Arc<Schema> {
    Arc::clone(&OBJECT_META)
}

/// The schema of `ListMeta`.
pub fn list_meta() -> Arc<Schema> {
    Arc::clone(&LIST_META)
}

/// Puts `apiVersion`, `kind` and `metadata` among `properties`, where the author of the schema has not
/// put the first two. What the author says about `name` and `generateName` is kept.
pub fn complete(properties: &mut BTreeMap<String, Arc<Schema>>) {
    for name in ["apiVersion", "kind"] {
        properties.entry(name.to_owned()).or_insert_with(|| Arc::clone(&STRING));
    }
    let own = properties.remove("metadata");
    let mut metadata = object_meta();
    for name in ["name", "generateName"] {
        let given = own.as_ref().and_then(|own| own.properties.get(name));
        if let Some(given) = given {
            Arc::make_mut(&mut metadata).properties.insert(name.to_owned(), Arc::clone(given));
        }
    }
    if let Some(own) = own.filter(|own| own.rules_below || own.constraints.is_some()) {
        let metadata = Arc::make_mut(&mut metadata);
        metadata.constraints = own.constraints.clone();
        metadata.rules = own.rules.clone();
        metadata.rules_below = own.rules_below;
    }
    properties.insert("metadata".to_owned(), metadata);
}

fn build_object_meta() -> Schema {
    let owner = object([
        ("apiVersion", string()),
        ("blockOwnerDeletion", Schema::of(Type::Boolean)),
        ("controller", Schema::of(Type::Boolean)),
        ("kind", string()),
        ("name", string()),
        ("uid", string()),
    ]);
    let owner = Schema {
        required: ["apiVersion", "kind", "name", "uid"].map(str::to_owned).to_vec(),
        map_atomic: true,
        ..owner
    };
    let managed = object([
        ("apiVersion", string()),
        ("fieldsType", string()),
        ("fieldsV1", Schema { type_: Some(Type::Object), ..Schema::open() }),
        ("manager", string()),
        ("operation", string()),
        ("subresource", string()),
        ("time", time()),
    ]);
    object([
        ("annotations", map_of(string())),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", whole(Format::Int64)),
        ("deletionTimestamp", time()),
        (
            "finalizers",
            Schema {
                list_type: ListType::Set,
                patch_strategy: Some(PatchStrategy::MergeSet),
                ..list_of(string())
            },
        ),
        ("generateName", string()),
        ("generation", whole(Format::Int64)),
        ("labels", map_of(string())),
        ("managedFields", list_of(managed)),
        ("name", string()),
        ("namespace", string()),
        (
            "ownerReferences",
            Schema {
                list_type: ListType::Map(vec!["uid".to_owned()]),
                patch_strategy: Some(PatchStrategy::MergeByKey("uid".to_owned())),
                ..list_of(owner)
            },
        ),
        ("resourceVersion", string()),
        ("selfLink", string()),
        ("uid", string()),
    ])
}

fn object<const N: usize>(fields: [(&str, Schema); N]) -> Schema {
    let properties = fields.into_iter().map(|(name, schema)| (name.to_owned(), Arc::new(schema)));
    Schema { properties: properties.collect(), ..Schema::of(Type::Object) }
}

fn list_of(items: Schema) -> Schema {
    Schema { items: Some(Arc::new(items)), ..Schema::of(Type::Array) }
}

fn map_of(values: Schema) -> Schema {
    Schema { additional_properties: Some(Arc::new(values)), ..Schema::of(Type::Object) }
}

fn string() -> Schema {
    Schema::of(Type::String)
}

/// A time. Go clients send `null` for the zero time; defaulting drops it.
fn time() -> Schema {
    formatted(Type::String, Format::DateTime)
}

fn whole(format: Format) -> Schema {
    formatted(Type::Integer, format)
}

fn formatted(type_: Type, format: Format) -> Schema {
    let constraints = Constraints { format: Some(format), ..Constraints::default() };
    Schema { constraints: Some(Box::new(constraints)), ..Schema::of(type_) }
}
