//! Bindings of a project. A key stands for all of a project, with its requests for access (`access`): it has few of either.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use compute_api::conditions;
use compute_api::kube::api::PropagationPolicy;
use compute_api::kube::{Api, Resource as _};
use compute_api::milo::{COMPUTE_ENTITLEMENT, ServiceConfiguration, ServiceEntitlement};
use compute_api::networking::{CONDITION_AVAILABLE, Location, LocationBinding};
use compute_core::location::offer::{self, MANAGED_BY, Step};
use compute_runtime::controller::{self, Error};
use compute_runtime::engage::Listener;
use compute_runtime::write::{self, Target, Writer};
use compute_runtime::{Cache, Key, Next, Plane, PlaneId, Planes, Queue, Reconciler, Subscription};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{LIMITS, REQUEST, Rules, matters};

const NAME: &str = "locations";

/// What there is to offer.
pub(super) struct Core {
    pub(super) locations: Cache<Location>,
    pub(super) catalog: Cache<ServiceConfiguration>,
}

/// Offers locations to projects.
pub(super) struct Offers {
    pub(super) core: Core,
    projects: Mutex<BTreeMap<PlaneId, Arc<Project>>>,
    pub(super) rules: Arc<Rules>,
    pub(super) writer: Writer,
    queue: Queue,
}

/// What is known of a project.
pub(super) struct Project {
    pub(super) plane: Plane,
    pub(super) entitlements: Cache<ServiceEntitlement>,
    _subscriptions: [Subscription; 2],
    bindings: Mutex<Bindings>,
}

/// What is known of a project's bindings.
enum Bindings {
    /// Nobody has looked yet.
    Unknown,
    /// It has none, and gets none while it is not entitled.
    None,
    /// They are watched.
    Watched(
        Cache<LocationBinding>,
        #[expect(dead_code, reason = "held for as long as keys are wanted")] [Subscription; 2],
    ),
}

impl Offers {
    pub(super) async fn run(core: Core, projects: Planes, rules: Arc<Rules>, stop: &CancellationToken) {
        let queue = Queue::new(projects.runtime(), NAME, LIMITS);
        let (locations, catalog) = (core.locations.clone(), core.catalog.clone());
        let offers = Arc::new(Self {
            core,
            projects: Mutex::default(),
            rules,
            writer: Writer::new(NAME).with_timeout(REQUEST),
            queue: queue.clone(),
        });
        let all = Arc::downgrade(&offers);
        let _locations = queue.watch(&locations, move |change| {
            let all = if matters(change) { all.upgrade() } else { None };
            all.map(|all| all.keys()).unwrap_or_default()
        });
        // It hardly ever changes.
        let all = Arc::downgrade(&offers);
        let _catalog =
            queue.watch(&catalog, move |_| all.upgrade().map(|all| all.keys()).unwrap_or_default());
        projects.listen(Arc::new(Engaged(Arc::downgrade(&offers))));
        controller::run(offers, queue, stop.cancelled()).await;
    }

    /// The keys of all projects.
    fn keys(&self) -> Vec<Key> {
        self.projects.lock().keys().map(key).collect()
    }

    /// The bindings of a project, if they matter and are known.
    fn bindings(&self, project: &Project, entitled: bool) -> Option<Cache<LocationBinding>> {
        let mut bindings = project.bindings.lock();
        let cache = match &*bindings {
            Bindings::Watched(cache, _) => cache.clone(),
            Bindings::None if !entitled => return None,
            Bindings::None | Bindings::Unknown => {
                let cache: Cache<LocationBinding> = project.plane.cache();
                let subscriptions = subscribe(&self.queue, &cache);
                *bindings = Bindings::Watched(cache.clone(), subscriptions);
                cache
            }
        };
        if !cache.is_synced() {
            // When it is, the project is due.
            return None;
        }
        if !entitled && cache.is_empty() {
            *bindings = Bindings::None;
            return None;
        }
        Some(cache)
    }

    async fn act(&self, project: &Project, held: &Cache<LocationBinding>, step: Step) -> Result<(), Error> {
        let api: Api<LocationBinding> = Api::all(project.plane.client().clone());
        let kind =
            json!({ "apiVersion": LocationBinding::api_version(&()), "kind": LocationBinding::kind(&()) });
        match step {
            Step::Apply { name, spec } => {
                let mut fields = kind;
                fields["metadata"] = json!({ "labels": { MANAGED_BY.0: MANAGED_BY.1 } });
                fields["spec"] = json!(spec);
                self.writer.apply(&api, &name, &fields).await?;
                Ok(())
            }
            Step::Say { name, update } => {
                let now = project.plane.runtime().clock().now();
                let stored = held.get("", &name);
                let stored = stored.as_ref().and_then(|binding| binding.status.as_ref());
                let stored =
                    stored.and_then(|status| conditions::find(&status.conditions, CONDITION_AVAILABLE));
                let mut fields = kind;
                fields["status"] = json!({ "conditions": [conditions::next(stored, update, now)] });
                gone_is_fine(self.writer.apply_status(&api, &name, &fields).await)
            }
            // A location that cannot be read is still there.
            Step::Delete { name, .. } if self.core.locations.is_unreadable("", &name) => Ok(()),
            Step::Delete { name, uid } => {
                let target = Target { name, uid, resource_version: None };
                gone_is_fine(self.writer.delete(&api, &target, PropagationPolicy::Background).await)
            }
        }
    }
}

fn key(project: &PlaneId) -> Key {
    Key::new(project, "", "")
}

/// Makes a cache's project due with each change, and once all of it is known.
fn subscribe<K: compute_runtime::cache::Object>(queue: &Queue, cache: &Cache<K>) -> [Subscription; 2] {
    let due = key(cache.plane());
    let again = due.clone();
    let waker = queue.clone();
    [queue.watch(cache, move |_| Some(due.clone())), cache.on_connect(move |_| waker.add(again.clone()))]
}

/// What is gone, or another one by now, needs nothing; the watch tells of it.
pub(super) fn gone_is_fine<T>(result: write::Result<T>) -> Result<(), Error> {
    match result {
        Ok(_) | Err(write::Error::NotFound(_) | write::Error::Conflict(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Hears of projects. The planes outlive us, and hold nothing of ours.
struct Engaged(Weak<Offers>);

impl Listener for Engaged {
    fn on_engage(&self, plane: &Plane) {
        let Some(offers) = self.0.upgrade() else { return };
        let entitlements: Cache<ServiceEntitlement> = plane.cache();
        let subscriptions = subscribe(&offers.queue, &entitlements);
        let project = Project {
            plane: plane.clone(),
            entitlements,
            _subscriptions: subscriptions,
            bindings: Mutex::new(Bindings::Unknown),
        };
        offers.projects.lock().insert(plane.id().clone(), Arc::new(project));
        offers.queue.add(key(plane.id()));
    }

    fn on_disengage(&self, plane: &PlaneId) {
        let Some(offers) = self.0.upgrade() else { return };
        let _ended = offers.projects.lock().remove(plane);
        offers.queue.remove_plane(plane);
    }
}

impl Reconciler for Offers {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(project) = self.projects.lock().get(&key.plane).cloned() else { return Ok(Next::Done) };
        if !project.entitlements.is_synced() {
            // When it is, the project is due.
            return Ok(Next::Done);
        }
        let next = self.grant(&project).await?;
        if project.entitlements.is_unreadable("", COMPUTE_ENTITLEMENT) {
            return Ok(next);
        }
        let entitled = offer::is_entitled(project.entitlements.get("", COMPUTE_ENTITLEMENT).as_deref());
        let Some(held) = self.bindings(&project, entitled) else { return Ok(next) };
        let Some(supported_classes) = self.supported_classes() else { return Ok(next) };
        let (locations, bindings) = (self.core.locations.list(), held.list());
        let steps = offer::decide(
            entitled,
            &supported_classes,
            locations.iter().map(|location| &**location),
            bindings.iter().map(|binding| &**binding),
        );
        for step in steps {
            self.act(&project, &held, step).await?;
        }
        Ok(next)
    }
}
