//! Schemas of built-in kinds, from the OpenAPI components that their Rust types generate.
//!
//! The components say what fields there are and of what type. How lists and maps merge is not in them;
//! the table in [`merge`] adds it. Each component is compiled once and shared by all that refer to it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::constraints::{Constraints, Format};
use super::{ListType, PatchStrategy, Schema, Type, meta};

pub mod merge;

/// How deep references may lead. The deepest built-in kind stays below 30.
const MAX_DEPTH: usize = 96;

/// Compiles the component `root` and what it refers to.
///
/// To compile several kinds of the same components, use one [`Compiler`], which shares among them.
pub fn compile(components: &Map<String, Value>, root: &str) -> Arc<Schema> {
    let mut schema = Compiler::new(components).component(root);
    if let Some(status) = Arc::make_mut(&mut schema).properties.get_mut("status") {
        nothing_required(status);
    }
    schema
}

/// Whoever reports a status tells what it knows; Kubernetes asks for no field of it.
fn nothing_required(schema: &mut Arc<Schema>) {
    let schema = Arc::make_mut(schema);
    schema.required.clear();
    schema.properties.values_mut().for_each(nothing_required);
    schema.items.iter_mut().for_each(nothing_required);
    schema.additional_properties.iter_mut().for_each(nothing_required);
}

/// Compiles components, each once.
pub struct Compiler<'c> {
    components: &'c Map<String, Value>,
    /// `None` while a component is being compiled, so that a reference back to it is found.
    done: HashMap<String, Option<Arc<Schema>>>,
    depth: usize,
}

impl<'c> Compiler<'c> {
    /// A compiler of these components.
    pub fn new(components: &'c Map<String, Value>) -> Self {
        Self { components, done: HashMap::new(), depth: 0 }
    }

    /// The schema of the component `name`; an unknown one is open, and so is one that contains itself
    /// where it does.
    pub fn component(&mut self, name: &str) -> Arc<Schema> {
        if let Some(special) = special(name) {
            return special;
        }
        match self.done.get(name) {
            Some(Some(done)) => return Arc::clone(done),
            Some(None) => return Arc::new(Schema::open()),
            None => {}
        }
        let Some(json) = self.components.get(name).filter(|_| self.depth < MAX_DEPTH) else {
            return Arc::new(Schema::open());
        };
        self.done.insert(name.to_owned(), None);
        self.depth += 1;
        let mut schema = self.inline(json);
        self.depth -= 1;
        for (field, said) in merge::of(name) {
            if let Some(child) = schema.properties.get_mut(field) {
                said.apply(Arc::make_mut(child));
            }
        }
        schema.map_atomic |= merge::is_atomic(name);
        let schema = Arc::new(schema);
        self.done.insert(name.to_owned(), Some(Arc::clone(&schema)));
        schema
    }

    fn child(&mut self, json: &Value) -> Arc<Schema> {
        // Descriptions beside a reference wrap it in an `allOf` of one.
        let reference = json.get("$ref").or_else(|| match json.get("allOf")?.as_array()?.as_slice() {
            [only] => only.get("$ref"),
            _ => None,
        });
        match reference.and_then(Value::as_str) {
            Some(reference) => self.component(reference.rsplit('/').next().unwrap_or(reference)),
            None => Arc::new(self.inline(json)),
        }
    }

    /// A schema that is written out. Its nesting is that of parsed JSON.
    fn inline(&mut self, json: &Value) -> Schema {
        let type_ = match json.get("type").and_then(Value::as_str) {
            Some("object") => Type::Object,
            Some("array") => Type::Array,
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            _ if json.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) => {
                return Schema { int_or_string: true, ..Schema::default() };
            }
            _ => return Schema::open(),
        };
        let mut schema = Schema::of(type_);
        for (name, property) in json.get("properties").and_then(Value::as_object).into_iter().flatten() {
            schema.properties.insert(name.clone(), self.child(property));
        }
        schema.additional_properties =
            json.get("additionalProperties").filter(|json| json.is_object()).map(|json| self.child(json));
        schema.items = json.get("items").map(|json| self.child(json));
        // That an object without metadata has no name is said elsewhere, in better words.
        let required = json.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.filter_map(Value::as_str).filter(|name| *name != "metadata");
        schema.required = required.map(str::to_owned).collect();
        schema.constraints =
            json.get("format").and_then(Value::as_str).and_then(Format::named).map(formatted);
        // An object of which nothing is said holds anything.
        schema.preserve_unknown_fields =
            type_ == Type::Object && schema.properties.is_empty() && schema.additional_properties.is_none();
        schema
    }
}

fn formatted(format: Format) -> Box<Constraints> {
    Box::new(Constraints { format: Some(format), ..Constraints::default() })
}

/// Components that are more, or less, than their own schema says.
fn special(name: &str) -> Option<Arc<Schema>> {
    let short = name.rsplit('.').next().unwrap_or(name);
    let machinery = name.starts_with("io.k8s.apimachinery.");
    let extensions = name.starts_with("io.k8s.apiextensions-apiserver.");
    Some(match short {
        "ObjectMeta" if machinery => meta::object_meta(),
        "ListMeta" if machinery => meta::list_meta(),
        "Quantity" if machinery => {
            Arc::new(Schema { constraints: Some(formatted(Format::Quantity)), ..Schema::default() })
        }
        "IntOrString" if machinery => Arc::new(Schema { int_or_string: true, ..Schema::default() }),
        "FieldsV1" | "RawExtension" | "Patch" if machinery => Arc::new(Schema::open()),
        "JSON"
        | "JSONSchemaProps"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray"
            if extensions =>
        {
            Arc::new(Schema::open())
        }
        _ => return None,
    })
}

impl merge::Said {
    fn apply(&self, schema: &mut Schema) {
        let keyed = |keys: &[&str]| ListType::Map(keys.iter().map(|key| (*key).to_owned()).collect());
        match self {
            Self::Keyed(keys) => {
                schema.list_type = keyed(keys);
                schema.patch_strategy = keys.first().map(|key| PatchStrategy::MergeByKey((*key).to_owned()));
            }
            Self::KeyedNoPatch(keys) => schema.list_type = keyed(keys),
            Self::AtomicPatch(key) => {
                schema.patch_strategy = Some(PatchStrategy::MergeByKey((*key).to_owned()));
            }
            Self::Set => schema.list_type = ListType::Set,
            Self::SetPatch => {
                schema.list_type = ListType::Set;
                schema.patch_strategy = Some(PatchStrategy::MergeSet);
            }
            Self::AtomicMap => schema.map_atomic = true,
            Self::Default(text) => schema.default = Some(Value::from(*text)),
        }
    }
}

#[cfg(test)]
mod tests;
