//! What a plane serves: the built-in kinds, and custom resources compiled from CRDs.
//!
//! A [`Registry`] is an immutable snapshot. Built-in kinds are compiled once per process; a CRD is compiled once
//! per content, however many planes hold it ([`Definitions`]). A plane swaps its snapshot when its CRDs change.

pub mod built_in;
pub mod crd;
pub mod definition;
pub(crate) mod discovery;
pub(crate) mod events;
pub(crate) mod strategy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::meta::NameRule;
use crate::openapi;
use crate::store::GroupResource;
use crate::table::Printer;
use definition::{Definition, GroupVersion};

/// The group of CustomResourceDefinition.
pub const APIEXTENSIONS: &str = "apiextensions.k8s.io";

/// A served resource: its definition and what is derived from it once.
#[derive(Debug)]
pub struct Resource {
    /// What it is.
    pub def: Arc<Definition>,
    /// Where its objects are kept.
    pub table: GroupResource,
    /// The version in which its objects are kept.
    pub storage_version: String,
    /// The kind as which its objects are kept, if that is another than its own.
    pub kept_as: Option<Arc<Definition>>,
    /// The fields whose values are kept beside each object for field selectors; the same for all versions.
    pub stored_fields: Arc<[String]>,
    /// The fields that selectors may name, each with its place among the stored ones.
    pub selectable: Vec<(String, usize)>,
    /// How its names must look.
    pub name_rule: NameRule,
    /// How it is shown in a table.
    pub printer: Printer,
}

impl Resource {
    /// A built-in kind.
    fn built_in(def: Arc<Definition>) -> Arc<Self> {
        let kept_as = events::is_view(&def).then(built_in::core_events);
        let stored_fields = kept_as.as_ref().unwrap_or(&def).selectable_fields.as_slice().into();
        let version = def.gv.version.clone();
        Self::new(def, version, kept_as, stored_fields)
    }

    fn new(
        def: Arc<Definition>,
        storage_version: String,
        kept_as: Option<Arc<Definition>>,
        stored_fields: Arc<[String]>,
    ) -> Arc<Self> {
        let kind = kept_as.as_ref().unwrap_or(&def);
        let table = GroupResource::new(&kind.gv.group, &kind.names.plural);
        // A kind that is kept as another has the same fields under other names, in the same order.
        let place = |(at, path): (usize, &String)| {
            (path.clone(), stored_fields.iter().position(|stored| stored == path).unwrap_or(at))
        };
        let selectable = def.selectable_fields.iter().enumerate().map(place).collect();
        let name_rule = strategy::name_rule(&def);
        let printer = Printer::for_definition(&def);
        Arc::new(Self { def, table, storage_version, kept_as, stored_fields, selectable, name_rule, printer })
    }

    /// Whether stored bytes are already what this version serves.
    pub fn is_storage_version(&self) -> bool {
        self.kept_as.is_none() && self.def.gv.version == self.storage_version
    }

    /// Turns a stored object into one of this version.
    pub fn serve(&self, object: &mut Value) {
        if self.kept_as.is_some() {
            events::to_view(object);
        }
        if !self.is_storage_version() {
            object["apiVersion"] = Value::String(self.def.gv.to_string());
        }
    }

    /// Turns an object of this version into one to store.
    pub fn keep(&self, object: &mut Value) {
        if self.kept_as.is_some() {
            events::to_core(object);
        }
        if !self.is_storage_version() {
            object["apiVersion"] = Value::String(self.storage_api_version());
        }
    }

    /// Makes a stored object what this definition says: of this version, without fields that it does not know, with its
    /// defaults. Says whether that changed it.
    pub fn complete(&self, object: &mut Value) -> bool {
        let pruned = !crate::schema::prune::prune(&self.def.schema, object).is_empty();
        let filled = crate::schema::defaults::apply(&self.def.schema, object);
        let version = self.def.gv.to_string();
        let moved = object["apiVersion"] != version.as_str();
        if moved {
            object["apiVersion"] = Value::String(version);
        }
        pruned || filled || moved
    }

    fn storage_api_version(&self) -> String {
        GroupVersion { group: self.table.group.clone(), version: self.storage_version.clone() }.to_string()
    }

    /// Whether this is the kind of CRDs.
    pub fn is_crd(&self) -> bool {
        self.table.resource == "customresourcedefinitions" && self.table.group == APIEXTENSIONS
    }

    /// Whether this is the kind of service accounts.
    pub fn is_service_account(&self) -> bool {
        self.table.resource == "serviceaccounts" && self.table.group.is_empty()
    }

    /// Whether this is the kind of namespaces.
    pub fn is_namespace(&self) -> bool {
        self.table.resource == "namespaces" && self.table.group.is_empty()
    }
}

/// Everything that one plane serves.
#[derive(Debug, Default)]
pub struct Registry {
    versions: BTreeMap<GroupVersion, BTreeMap<String, Arc<Resource>>>,
    /// How the objects of each table are kept: the storage version, served or not.
    stored: BTreeMap<GroupResource, Arc<Resource>>,
    /// Custom resources whose CRD is being deleted: nothing new is made of them.
    terminating: BTreeSet<GroupResource>,
    documents: Documents,
}

/// Documents derived from a registry, made when first asked for and then shared.
#[derive(Debug, Default)]
struct Documents {
    openapi_index: OnceLock<Bytes>,
    openapi: Mutex<BTreeMap<GroupVersion, Bytes>>,
}

impl Registry {
    /// The built-in kinds alone; compiled once per process.
    pub fn built_in() -> Arc<Self> {
        static BUILT_IN: OnceLock<Arc<Registry>> = OnceLock::new();
        BUILT_IN
            .get_or_init(|| {
                let mut registry = Self::default();
                for def in built_in::definitions() {
                    let resource = Resource::built_in(def);
                    if resource.is_storage_version() {
                        registry.stored.insert(resource.table.clone(), resource.clone());
                    }
                    registry.add(resource);
                }
                Arc::new(registry)
            })
            .clone()
    }

    /// The built-in kinds and these custom resources.
    pub fn with_custom<'a>(
        custom: impl Iterator<Item = &'a Arc<CompiledCrd>>,
        terminating: BTreeSet<GroupResource>,
    ) -> Self {
        let built_in = Self::built_in();
        let (versions, stored) = (built_in.versions.clone(), built_in.stored.clone());
        let mut registry = Self { versions, stored, terminating, ..Self::default() };
        for crd in custom {
            registry.stored.insert(crd.storage.table.clone(), crd.storage.clone());
            for resource in &crd.served {
                registry.add(resource.clone());
            }
        }
        registry
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let version = self.versions.entry(resource.def.gv.clone()).or_default();
        version.insert(resource.def.names.plural.clone(), resource);
    }

    /// A resource by its URL.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let gv = GroupVersion { group: group.to_owned(), version: version.to_owned() };
        self.versions.get(&gv)?.get(plural)
    }

    /// A resource by `apiVersion` and `kind`.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gv = GroupVersion { group: group.to_owned(), version: version.to_owned() };
        self.versions.get(&gv)?.values().find(|resource| resource.def.names.kind == kind)
    }

    /// The resource whose objects are in `table`, in their storage version.
    pub fn find_table(&self, table: &GroupResource) -> Option<&Arc<Resource>> {
        self.stored.get(table)
    }

    /// Whether the CRD of this resource is being deleted.
    pub fn is_terminating(&self, table: &GroupResource) -> bool {
        self.terminating.contains(table)
    }

    /// All versions with their resources, in order.
    pub fn versions(&self) -> impl Iterator<Item = (&GroupVersion, &BTreeMap<String, Arc<Resource>>)> {
        self.versions.iter()
    }

    fn definitions(&self, gv: &GroupVersion) -> Option<Vec<Arc<Definition>>> {
        Some(self.versions.get(gv)?.values().map(|resource| resource.def.clone()).collect())
    }

    /// The index of OpenAPI documents.
    pub fn openapi_index(&self) -> Bytes {
        let make = || {
            let hashes: Vec<(GroupVersion, u64)> = self
                .versions
                .keys()
                .filter_map(|gv| Some((gv.clone(), openapi::hash(&self.definitions(gv)?))))
                .collect();
            to_bytes(&openapi::index(&hashes))
        };
        self.documents.openapi_index.get_or_init(make).clone()
    }

    /// The OpenAPI document of a version.
    pub fn openapi(&self, gv: &GroupVersion) -> Option<Bytes> {
        let definitions = self.definitions(gv)?;
        let mut documents = self.documents.openapi.lock();
        let document = documents.entry(gv.clone());
        Some(document.or_insert_with(|| to_bytes(&openapi::document(gv, &definitions))).clone())
    }
}

fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("a value always serialises into memory").into()
}

/// A CRD in its compiled form.
#[derive(Debug)]
pub struct CompiledCrd {
    /// One resource per served version.
    pub served: Vec<Arc<Resource>>,
    /// The version in which objects are kept, served or not.
    pub storage: Arc<Resource>,
}

/// Compiled CRDs by content, shared by all planes; forgotten when no plane uses them.
#[derive(Debug, Default)]
pub struct Definitions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_content: BTreeMap<[u8; 32], Weak<CompiledCrd>>,
    /// Keeps what was compiled for a CRD's validation until the CRD is committed and served.
    latest: Option<Arc<CompiledCrd>>,
}

impl Definitions {
    /// The compiled form of `crd`, or everything that is wrong with it.
    pub fn compile(&self, crd: &Value) -> Result<Arc<CompiledCrd>, Vec<FieldError>> {
        let errors = crd::validate_metadata(crd);
        if !errors.is_empty() {
            return Err(errors);
        }
        let key = crd::fingerprint(&crd["spec"]);
        if let Some(found) = self.0.lock().by_content.get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        let crd::Compiled { served, storage } = crd::compile(crd)?;
        let mut fields: Vec<String> = Vec::new();
        for path in std::iter::once(&storage).chain(&served).flat_map(|def| &def.selectable_fields) {
            if !fields.contains(path) {
                fields.push(path.clone());
            }
        }
        let fields: Arc<[String]> = fields.into();
        let version = &storage.gv.version;
        let resource = |def: Arc<Definition>| Resource::new(def, version.clone(), None, fields.clone());
        let served = served.into_iter().map(resource).collect();
        let compiled = Arc::new(CompiledCrd { served, storage: resource(storage.clone()) });
        let mut known = self.0.lock();
        known.latest = Some(compiled.clone());
        known.by_content.retain(|_, weak| weak.strong_count() > 0);
        known.by_content.insert(key, Arc::downgrade(&compiled));
        Ok(compiled)
    }
}
