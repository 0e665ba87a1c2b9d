//! Planes come and go while the process runs.
//!
//! Nothing here waits for a plane's network: to engage a plane is to make it known to those who listen, and what they start goes on by itself.
//! So a plane that is slow, broken or gone delays no other.

mod milo;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::plane::{Plane, PlaneId};
use crate::runtime::Runtime;
pub use milo::{Connect, Discovered, milo};

/// Hears of planes. Calls come one at a time and in order; a listener must be quick, and must not engage or disengage planes itself.
pub trait Listener: Send + Sync + 'static {
    /// A plane is served from now on. Everything in it has to be looked at.
    fn on_engage(&self, plane: &Plane);

    /// A plane is not served any more: its keys, handles and subscriptions can go. Its caches stand still.
    fn on_disengage(&self, plane: &PlaneId);
}

/// The planes that are served. Cheap to clone.
#[derive(Clone)]
pub struct Planes(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    engaged: RwLock<BTreeMap<PlaneId, Plane>>,
    /// Held while they are told, so that all hear the same in the same order.
    listeners: Mutex<Vec<Arc<dyn Listener>>>,
}

impl Planes {
    /// None yet.
    pub fn new(runtime: &Runtime) -> Self {
        Self(Arc::new(Inner {
            runtime: runtime.clone(),
            engaged: RwLock::default(),
            listeners: Mutex::default(),
        }))
    }

    /// Just one plane, for good.
    pub fn single(plane: &Plane) -> Self {
        let planes = Self::new(plane.runtime());
        planes.engage(plane);
        planes
    }

    /// Tells a listener of planes, beginning with those that are served already.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        let mut listeners = self.0.listeners.lock();
        let engaged: Vec<Plane> = self.all();
        for plane in engaged {
            tell(&listener, plane.id(), |listener| listener.on_engage(&plane));
        }
        listeners.push(listener);
    }

    /// Serves a plane. One that is served already under this name stays; whether this one was taken.
    pub fn engage(&self, plane: &Plane) -> bool {
        let listeners = self.0.listeners.lock();
        {
            let mut engaged = self.0.engaged.write();
            if engaged.contains_key(plane.id()) {
                return false;
            }
            engaged.insert(plane.id().clone(), plane.clone());
            self.0.runtime.metrics().set_engaged_planes(engaged.len());
        }
        for listener in &*listeners {
            tell(listener, plane.id(), |listener| listener.on_engage(plane));
        }
        tracing::info!(plane = %plane.id(), "engaged");
        true
    }

    /// Does not serve a plane any more, and ends its watches; whether it was served.
    pub fn disengage(&self, id: &PlaneId) -> bool {
        let listeners = self.0.listeners.lock();
        let plane = {
            let mut engaged = self.0.engaged.write();
            let plane = engaged.remove(id);
            self.0.runtime.metrics().set_engaged_planes(engaged.len());
            plane
        };
        let Some(plane) = plane else { return false };
        plane.close();
        for listener in &*listeners {
            tell(listener, id, |listener| listener.on_disengage(id));
        }
        tracing::info!(plane = %id, "disengaged");
        true
    }

    /// A plane, if it is served.
    pub fn get(&self, id: &PlaneId) -> Option<Plane> {
        self.0.engaged.read().get(id).cloned()
    }

    /// All planes that are served, by name.
    pub fn all(&self) -> Vec<Plane> {
        self.0.engaged.read().values().cloned().collect()
    }

    /// What they share.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }
}

/// One that panics has missed this plane; nobody else is touched.
fn tell(listener: &Arc<dyn Listener>, plane: &PlaneId, call: impl FnOnce(&dyn Listener)) {
    if catch_unwind(AssertUnwindSafe(|| call(&**listener))).is_err() {
        tracing::error!(%plane, "a listener panicked");
    }
}

impl fmt::Debug for Planes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Planes({} engaged)", self.0.engaged.read().len())
    }
}
