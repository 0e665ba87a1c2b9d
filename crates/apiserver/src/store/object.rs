//! A stored object: its JSON bytes, kept once, and the few parsed fields that selectors, owners and
//! watches need. Nothing here is ever changed; a write makes a new one.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::value;

/// An API group and a plural resource name: the table that an object is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// API group; empty for core.
    pub group: String,
    /// Plural name.
    pub resource: String,
}

impl GroupResource {
    /// Shorthand.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

/// Namespace (empty for cluster-scoped objects) and name, in the order in which lists are sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
}

impl ObjectKey {
    /// Shorthand.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// An owner reference, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `apiVersion` of the owner.
    pub api_version: Box<str>,
    /// `kind` of the owner.
    pub kind: Box<str>,
    /// Name of the owner.
    pub name: Box<str>,
    /// Uid of the owner.
    pub uid: Box<str>,
    /// Whether the owner's foreground deletion waits for this object.
    pub blocks: bool,
}

/// The parsed fields of an object.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Uid.
    pub uid: Box<str>,
    /// Labels, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the kind's selectable fields, in the order of its definition.
    pub fields: Box<[Box<str>]>,
    /// Owners.
    pub owners: Box<[Owner]>,
    /// Finalizers.
    pub finalizers: Box<[Box<str>]>,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
}

/// A stored object.
#[derive(Debug)]
pub struct Object {
    /// The parsed fields.
    pub meta: Meta,
    /// The revision that wrote it; also in the bytes as `metadata.resourceVersion`.
    pub revision: u64,
    /// The whole object as JSON with sorted keys.
    pub bytes: Bytes,
}

/// Makes a stored object what its definition now says, and says whether that changed it.
pub type Complete<'a> = dyn Fn(&mut Value) -> bool + Sync + 'a;

impl Object {
    /// An object that was stored before, perhaps under another definition: `complete` makes it what the present one says.
    pub(super) fn restored(
        revision: u64,
        bytes: Bytes,
        fields: &[String],
        complete: Option<&Complete<'_>>,
    ) -> Result<Arc<Self>, serde_json::Error> {
        let mut value: Value = serde_json::from_slice(&bytes)?;
        if complete.is_some_and(|complete| complete(&mut value)) {
            return Ok(Draft::new(&value, fields).at(revision));
        }
        Ok(Arc::new(Self { meta: Meta::of(&value, fields), revision, bytes }))
    }

    /// The object as a value.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("stored bytes were written by this server from a value")
    }
}

/// An object that is ready to be stored but for its revision, which the commit gives it.
#[derive(Debug)]
pub struct Draft {
    meta: Meta,
    /// JSON up to the digits of the revision, and from there on.
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Draft {
    /// Prepares `value`, whose metadata has passed validation. `fields` are the JSON paths (`spec.nodeName`)
    /// of the kind's selectable fields.
    pub fn new(value: &Value, fields: &[String]) -> Self {
        let (head, tail) = encode_around_revision(value);
        Self { meta: Meta::of(value, fields), head, tail }
    }

    /// The parsed fields.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How many bytes the object takes, but for its revision.
    pub fn size(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    pub(super) fn at(self, revision: u64) -> Arc<Object> {
        self.after(&[], revision).0
    }

    /// The object, and the same bytes as the value that goes to disk if it is no secret: the storage engine holds on to them until it has
    /// written them to a table.
    pub(super) fn for_disk(self, revision: u64) -> (Arc<Object>, Bytes) {
        self.after(&value::head(revision), revision)
    }

    /// The object, and its bytes together with those that stand before them.
    fn after(self, before: &[u8], revision: u64) -> (Arc<Object>, Bytes) {
        let digits = revision.to_string();
        // Made anew to the byte: it stays for as long as the object does.
        let all = [before, &self.head, digits.as_bytes(), &self.tail].concat();
        let all = Bytes::from(all);
        let bytes = if before.is_empty() { all.clone() } else { all.slice(before.len()..) };
        (Arc::new(Object { meta: self.meta, revision, bytes }), all)
    }
}

impl Meta {
    fn of(value: &Value, fields: &[String]) -> Self {
        let metadata = &value["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let list = |field: &str| metadata[field].as_array().map_or(&[][..], Vec::as_slice);
        let labels = metadata["labels"].as_object().into_iter().flatten();
        Self {
            key: ObjectKey::new(text("namespace"), text("name")),
            uid: text("uid").into(),
            labels: labels.map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect(),
            fields: fields.iter().map(|path| field_text(value, path).into()).collect(),
            owners: list("ownerReferences").iter().map(Owner::of).collect(),
            finalizers: list("finalizers").iter().filter_map(Value::as_str).map(Into::into).collect(),
            deleting: metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null()),
        }
    }
}

impl Owner {
    fn of(reference: &Value) -> Self {
        let text = |field: &str| reference[field].as_str().unwrap_or_default().into();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            blocks: reference["blockOwnerDeletion"].as_bool().unwrap_or(false),
        }
    }
}

/// The text by which a field selector sees the value at `path` (dotted, with or without a leading dot).
fn field_text(value: &Value, path: &str) -> String {
    // An event's `source` is selected by its component.
    let path = if path == "source" { "source.component" } else { path };
    let found =
        path.split('.').filter(|s| !s.is_empty()).try_fold(value, |value, segment| value.get(segment));
    match found {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Serialises `value` with an empty `metadata.resourceVersion` and cuts the text inside its quotes.
fn encode_around_revision(value: &Value) -> (Vec<u8>, Vec<u8>) {
    const FIELD: &str = "resourceVersion";
    let mut head = Vec::with_capacity(1024);
    let mut tail = Vec::new();
    let write = |out: &mut Vec<u8>, value: &Value| {
        serde_json::to_writer(out, value).expect("a value always serialises into memory");
    };
    let entry = |out: &mut Vec<u8>, first: bool, key: &str, value: &Value| {
        if !first {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, key).expect("text always serialises into memory");
        out.push(b':');
        write(out, value);
    };
    let empty = serde_json::Map::new();
    let top = value.as_object().unwrap_or(&empty);
    let metadata = top.get("metadata").and_then(Value::as_object).unwrap_or(&empty);

    head.push(b'{');
    let before = top.iter().filter(|(k, _)| k.as_str() < "metadata");
    let mut first = true;
    for (key, value) in before {
        entry(&mut head, first, key, value);
        first = false;
    }
    if !first {
        head.push(b',');
    }
    head.extend_from_slice(b"\"metadata\":{");
    let mut first = true;
    for (key, value) in metadata.iter().filter(|(k, _)| k.as_str() < FIELD) {
        entry(&mut head, first, key, value);
        first = false;
    }
    if !first {
        head.push(b',');
    }
    head.extend_from_slice(b"\"resourceVersion\":\"");

    tail.push(b'"');
    for (key, value) in metadata.iter().filter(|(k, _)| k.as_str() > FIELD) {
        entry(&mut tail, false, key, value);
    }
    tail.push(b'}');
    for (key, value) in top.iter().filter(|(k, _)| k.as_str() > "metadata") {
        entry(&mut tail, false, key, value);
    }
    tail.push(b'}');
    (head, tail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_equal_the_sorted_json_of_the_value_with_its_revision() {
        let mut value = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"resourceVersion": "\"}"}, "immutable": false,
            "metadata": {"name": "a", "namespace": "b", "uid": "u", "labels": {"x": "y"}, "resourceVersion": "old"},
            "zeta": [1, 2],
        });
        let object = Draft::new(&value, &[]).at(42);
        value["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(object.bytes, serde_json::to_vec(&value).unwrap());
        assert_eq!(object.value(), value);
    }

    #[test]
    fn meta_has_what_selectors_and_owners_need() {
        let value = json!({
            "metadata": {
                "name": "a", "uid": "u", "labels": {"x": "y"}, "finalizers": ["f/a"],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o"}],
            },
            "spec": {"nodeName": "n1", "unschedulable": true},
        });
        let fields =
            ["spec.nodeName".to_owned(), ".spec.unschedulable".to_owned(), "status.phase".to_owned()];
        let meta = Draft::new(&value, &fields).meta;
        assert_eq!(meta.key, ObjectKey::new("", "a"));
        assert_eq!(meta.fields.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["n1", "true", ""]);
        assert_eq!(meta.owners[0].uid.as_ref(), "o");
        assert!(meta.deleting && !meta.owners[0].blocks);
    }
}
