//! Planes: isolated control planes that share nothing but the process, its definitions and its revision counter.
//!
//! Guarantees: a request acts on exactly one plane, fixed before anything else is decided; nothing read or written through
//! one plane touches another; dropping a plane frees its objects and ends its watches.

pub(crate) mod hooks;
mod policy;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::authz::{self, Policy};
use crate::hooks::{Chain, ConfigurationKind};
use crate::lifecycle::expiry::Expiry;
use crate::meta::NameRule;
use crate::registry::{APIEXTENSIONS, CompiledCrd, Definitions, Registry};
use crate::store::{CommitError, Complete, FoundObjects, GroupResource, PlaneStore, Revisions, Storage};
use hooks::{PlaneHooks, ServerHooks};
pub use template::{PlaneTemplate, TemplateError};

/// The name of a plane: a DNS subdomain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaneName(Arc<str>);

impl PlaneName {
    /// Checks the shape of `name`.
    pub fn new(name: &str) -> Result<Self, PlaneError> {
        match NameRule::Subdomain.problem(name) {
            Some(_) => Err(PlaneError::BadName(name.chars().take(64).collect())),
            None => Ok(Self(name.into())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PlaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a plane cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaneError {
    /// The name is not a DNS subdomain.
    #[error("{0:?} is not a plane name: lower case letters, digits, '-' and '.' only")]
    BadName(String),
    /// There is one of that name.
    #[error("plane {0} exists already")]
    Exists(PlaneName),
    /// What was found of it on disk cannot be read.
    #[error("plane {0} is damaged on disk")]
    Damaged(PlaneName, #[source] serde_json::Error),
    /// The disk did not take it.
    #[error("plane {0} cannot be written down")]
    NotDurable(PlaneName, #[source] CommitError),
    /// Its first objects could not be written.
    #[error("plane {0} cannot be made")]
    NotWritten(PlaneName, #[source] Box<TemplateError>),
}

/// One control plane.
#[derive(Debug)]
pub struct Plane {
    name: PlaneName,
    /// Its objects.
    pub(crate) store: Arc<PlaneStore>,
    registry: RwLock<Arc<Registry>>,
    /// What is compiled of each CRD, by its name.
    crds: Mutex<Arc<Crds>>,
    /// Who is asked about writes.
    hooks: PlaneHooks,
    /// Which events are past their time.
    pub(crate) expiry: Expiry,
    /// Who may do what by what the template has.
    base_policy: Arc<Policy>,
    /// Who may do what; compiled when first asked for after a change.
    policy: RwLock<Option<Arc<Policy>>>,
}

/// Compiled CRDs by name, with the revision of the object that each was compiled from.
type Crds = BTreeMap<Box<str>, (u64, Arc<CompiledCrd>)>;

impl Plane {
    pub(crate) fn new(name: PlaneName, revisions: Arc<Revisions>) -> Self {
        let registry = RwLock::new(Registry::built_in());
        Self {
            store: Arc::new(PlaneStore::new(name.as_str(), revisions)),
            name,
            registry,
            crds: Mutex::default(),
            hooks: PlaneHooks::default(),
            expiry: Expiry::default(),
            base_policy: authz::default_policy(),
            policy: RwLock::default(),
        }
    }

    fn from_template(name: PlaneName, template: &Plane, storage: Option<&Storage>) -> Self {
        let registry = RwLock::new(template.registry());
        let store = Arc::new(PlaneStore::from_template(name.as_str(), &template.store, storage));
        let crds = Mutex::new(template.crds.lock().clone());
        let (hooks, expiry) = (template.hooks.copied(), Expiry::default());
        let (base_policy, policy) = (template.policy(), RwLock::default());
        Self { name, store, registry, crds, hooks, expiry, base_policy, policy }
    }

    /// Its name.
    pub fn name(&self) -> &PlaneName {
        &self.name
    }

    /// How many objects it has, by resource.
    pub fn counts(&self) -> BTreeMap<GroupResource, usize> {
        self.store.counts()
    }

    /// What it serves at present.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().clone()
    }

    /// Who is asked about writes at present.
    pub(crate) fn chain(&self, server: &ServerHooks) -> Arc<Chain> {
        self.hooks.chain(server)
    }

    /// Brings who is asked in line with a change of `table`, if that says so.
    pub(crate) fn follow_hooks(&self, table: &GroupResource, server: &ServerHooks) {
        if ConfigurationKind::of(table).is_some() {
            self.hooks.reload(server, &self.name, &self.store);
        }
    }

    /// Takes over what was found of it on disk: CRDs first, because they say what the other objects are.
    fn restore(
        &self,
        mut found: FoundObjects,
        definitions: &Definitions,
        server: &ServerHooks,
    ) -> Result<(), PlaneError> {
        let damaged = |source| PlaneError::Damaged(self.name.clone(), source);
        let crds = GroupResource::new(APIEXTENSIONS, "customresourcedefinitions");
        if let Some(objects) = found.remove(&crds) {
            self.store.restore(crds, objects, &[], None).map_err(damaged)?;
            self.reload(definitions);
        }
        let registry = self.registry();
        for (table, objects) in found {
            let resource = registry.find_table(&table);
            let custom = resource.filter(|resource| !resource.def.built_in);
            let complete = custom.map(|resource| |object: &mut serde_json::Value| resource.complete(object));
            let complete = complete.as_ref().map(|complete| complete as &Complete<'_>);
            let fields = resource.map_or(&[][..], |resource| &resource.stored_fields);
            self.store.restore(table.clone(), objects, fields, complete).map_err(damaged)?;
            self.follow_hooks(&table, server);
        }
        Ok(())
    }

    /// Brings what it serves, and the objects it keeps, in line with its CRDs. Called after each change of one, before
    /// the change is answered.
    pub(crate) fn reload(&self, definitions: &Definitions) {
        let mut known = self.crds.lock();
        let table = GroupResource::new(APIEXTENSIONS, "customresourcedefinitions");
        let (objects, _) = self.store.list(&table, None, |_| true);
        let mut terminating = BTreeSet::new();
        let mut crds = Crds::new();
        for object in objects {
            let name = &object.meta.key.name;
            let compiled = match known.get(name) {
                Some((revision, compiled)) if *revision == object.revision => Ok(compiled.clone()),
                _ => definitions.compile(&object.value()),
            };
            match compiled {
                Ok(compiled) => {
                    if object.meta.deleting {
                        terminating.insert(compiled.storage.table.clone());
                    }
                    crds.insert(name.clone(), (object.revision, compiled));
                }
                Err(errors) => {
                    tracing::error!(plane = %self.name, crd = %name, ?errors, "stored CRD does not compile");
                }
            }
        }
        let registry = Registry::with_custom(crds.values().map(|(_, compiled)| compiled), terminating);
        *self.registry.write() = Arc::new(registry);
        self.follow(&known, &crds);
        *known = Arc::new(crds);
    }

    /// Objects of a definition that has changed become what it now says; watches of them, and of kinds that are gone, start anew.
    fn follow(&self, before: &Crds, after: &Crds) {
        for (name, (_, old)) in before {
            match after.get(name) {
                Some((_, new)) if Arc::ptr_eq(old, new) => {}
                Some((_, new)) => {
                    let storage = &new.storage;
                    self.store.rewrite(&storage.table, &storage.stored_fields, |object| {
                        storage.complete(object);
                    });
                }
                None => self.store.rewrite(&old.storage.table, &[], |_| {}),
            }
        }
    }
}

/// The planes of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Planes(RwLock<BTreeMap<PlaneName, Arc<Plane>>>);

impl Planes {
    pub(crate) fn find(&self, name: &PlaneName) -> Option<Arc<Plane>> {
        self.0.read().get(name).cloned()
    }

    pub(crate) fn names(&self) -> Vec<PlaneName> {
        self.0.read().keys().cloned().collect()
    }

    pub(crate) fn add(&self, plane: Arc<Plane>) -> Result<Arc<Plane>, PlaneError> {
        use std::collections::btree_map::Entry;
        match self.0.write().entry(plane.name.clone()) {
            Entry::Occupied(entry) => Err(PlaneError::Exists(entry.key().clone())),
            Entry::Vacant(entry) => Ok(entry.insert(plane).clone()),
        }
    }

    pub(crate) fn remove(&self, name: &PlaneName) -> bool {
        let Some(plane) = self.0.write().remove(name) else { return false };
        plane.store.clear();
        true
    }
}
