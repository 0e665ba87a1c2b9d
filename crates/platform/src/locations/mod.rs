//! Locations: offered to projects, and given to the cells that are in them.
//!
//! Locations and the catalog of services are in core. A project that is entitled to the service has one LocationBinding for each location
//! whose class the service supports, which says whether it can be used (`offers`, by the rules of [`compute_core::location::offer`]). Requests
//! for access to a service of the catalog are granted after a while (`access`). A cell has a copy of the locations of its city (`cells`), each
//! with addresses of its own (`register`).
//!
//! # Guarantees
//!
//! - A project costs one watch (its ServiceEntitlements), and a second (its LocationBindings) only while it is entitled or has bindings.
//! - A pass over unchanged state makes no request.
//! - No two locations have an address in common, so that subnets of one network never overlap, wherever they are.
//! - A project or cell that does not answer delays no other.

mod access;
mod cells;
mod offers;
mod register;

use std::sync::Arc;
use std::time::Duration;

use compute_api::milo::ServiceConfiguration;
use compute_api::networking::Location;
use compute_core::meta;
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::{Backoff, Change, Plane, Planes};
use tokio_util::sync::CancellationToken;

pub use self::access::{catalog, seed_core};
use self::cells::Cells;
use self::offers::Offers;

/// What is needed for locations.
pub struct Setup {
    /// Where Locations and the catalog are.
    pub core: Plane,
    /// The planes of projects, as they come and go.
    pub projects: Planes,
    /// The city and the plane of each cell.
    pub cells: Vec<(String, Plane)>,
    /// By which rules.
    pub rules: Rules,
}

/// By which rules locations are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long after it was made a request for access is granted.
    pub entitle_after: Duration,
    /// Whether a Location that nobody has judged is said to be Ready. Where nothing stands behind it, nothing can be wrong with it.
    pub judge_locations: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { entitle_after: Duration::ZERO, judge_locations: true }
    }
}

/// Starts to offer locations, until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    tasks.spawn("locations", |stop| async move {
        run(setup, stop).await;
        Ok::<(), std::convert::Infallible>(())
    });
}

const LIMITS: Limits = Limits {
    concurrency: 16,
    slow_planes: 128,
    stalled: Duration::from_secs(2),
    timeout: Duration::from_secs(60),
    backoff: Backoff { base: Duration::from_millis(50), max: Duration::from_secs(15) },
    urgent: false,
};

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(5);

async fn run(Setup { core, projects, cells, rules }: Setup, stop: CancellationToken) {
    let (locations, catalog) = (core.cache::<Location>(), core.cache::<ServiceConfiguration>());
    let known = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        known = async { locations.synced().await?; catalog.synced().await } => known,
    };
    if known.is_err() {
        // Core is not served any more, which is not for us to mend.
        return stop.cancelled().await;
    }
    let rules = Arc::new(rules);
    tokio::join!(
        Offers::run(offers::Core { locations: locations.clone(), catalog }, projects, rules.clone(), &stop),
        Cells::run(core, locations, cells, rules, &stop),
    );
}

/// Whether a change of a Location can matter to anybody.
fn matters(change: &Change<Location>) -> bool {
    let relevant = |location: &Location| {
        let object = &location.metadata;
        let is_leaving = meta::is_being_deleted(object);
        (is_leaving, object.labels.clone(), location.spec.clone(), location.status.clone())
    };
    change.unreadable || change.before.as_deref().map(relevant) != change.after.as_deref().map(relevant)
}
