//! What a plane serves: the built-in kinds, and custom resources compiled from CRDs.
//!
//! A [`Registry`] is an immutable snapshot. Built-in kinds are compiled once per process; a CRD is compiled once
//! per content, however many planes hold it ([`Definitions`]). A plane swaps its snapshot when its CRDs change.

pub mod built_in;
pub mod crd;
pub mod definition;
pub(crate) mod discovery;
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
    /// How its names must look.
    pub name_rule: NameRule,
    /// How it is shown in a table.
    pub printer: Printer,
}

impl Resource {
    fn new(def: Arc<Definition>, storage_version: String) -> Arc<Self> {
        let table = GroupResource::new(&def.gv.group, &def.names.plural);
        let name_rule = strategy::name_rule(&def);
        let printer = Printer::for_definition(&def);
        Arc::new(Self { def, table, storage_version, name_rule, printer })
    }

    /// Whether stored bytes already carry the `apiVersion` of this version.
    pub fn is_storage_version(&self) -> bool {
        self.def.gv.version == self.storage_version
    }

    /// The `apiVersion` that objects are stored with.
    pub fn storage_api_version(&self) -> String {
        GroupVersion { group: self.def.gv.group.clone(), version: self.storage_version.clone() }.to_string()
    }

    /// Whether this is the kind of CRDs.
    pub fn is_crd(&self) -> bool {
        self.table.resource == "customresourcedefinitions" && self.table.group == APIEXTENSIONS
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
                    let version = def.gv.version.clone();
                    registry.add(Resource::new(def, version));
                }
                Arc::new(registry)
            })
            .clone()
    }

    /// The built-in kinds and these custom resources.
    pub fn with_custom(custom: &[Arc<CompiledCrd>], terminating: BTreeSet<GroupResource>) -> Self {
        let built_in = Self::built_in();
        let mut registry = Self { versions: built_in.versions.clone(), terminating, ..Self::default() };
        for resource in custom.iter().flat_map(|crd| &crd.resources) {
            registry.add(resource.clone());
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

    /// Any served version of the resource whose objects are in `table`.
    pub fn find_table(&self, table: &GroupResource) -> Option<&Arc<Resource>> {
        let versions = self.versions.iter().filter(|(gv, _)| gv.group == table.group);
        let mut found = versions.filter_map(|(_, resources)| resources.get(&table.resource)).peekable();
        let first = found.peek().copied();
        found.find(|resource| resource.is_storage_version()).or(first)
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
    pub resources: Vec<Arc<Resource>>,
}

/// Compiled CRDs by content, shared by all planes; forgotten when no plane uses them.
#[derive(Debug, Default)]
pub struct Definitions(Mutex<BTreeMap<[u8; 32], Weak<CompiledCrd>>>);

impl Definitions {
    /// The compiled form of `crd`, or everything that is wrong with it.
    pub fn compile(&self, crd: &Value) -> Result<Arc<CompiledCrd>, Vec<FieldError>> {
        let errors = crd::validate_metadata(crd);
        if !errors.is_empty() {
            return Err(errors);
        }
        let key = crd::fingerprint(&crd["spec"]);
        if let Some(found) = self.0.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        let definitions = crd::compile(crd)?;
        let storage = crd::storage_version(crd);
        let resources = definitions.into_iter().map(|def| Resource::new(def, storage.to_owned())).collect();
        let compiled = Arc::new(CompiledCrd { resources });
        let mut known = self.0.lock();
        known.retain(|_, weak| weak.strong_count() > 0);
        known.insert(key, Arc::downgrade(&compiled));
        Ok(compiled)
    }
}
