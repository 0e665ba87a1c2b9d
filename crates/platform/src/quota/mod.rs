//! The quota ledger in its plain form: answers the claims of projects from their budgets.
//!
//! Registrations are in the core plane, for all projects. Claims, grants and buckets are in the project's own plane: claims in any of its
//! namespaces, grants and buckets in [`NAMESPACE`]. A pass is over one whole project (`pass`), so that its budgets are given out by one
//! at a time; what it decides is in [`compute_core::ledger`].
//!
//! # Guarantees
//!
//! - However many claims come at once, no budget is granted beyond its limit: a pass knows every answer that was given before, also those
//!   whose write has not been answered.
//! - Nothing is answered before registrations, grants, buckets and claims are all known, nor while the watch of anything in the project is
//!   broken. While that of registrations is, claims are granted from those last seen, and none is refused.
//! - No claim is collected before the server itself says that its owner is gone.
//!
//! # Caveats
//!
//! - An idle project holds one watch, that of its claims: nothing else tells of a first one. The others are held while it has claims, and
//!   for a while when it is first seen, so that its buckets say what it has.

mod book;
mod pass;
mod registrations;
mod seed;

use std::collections::BTreeMap;
use std::sync::Arc;

use compute_api::quota::ResourceRegistration;
use compute_runtime::controller;
use compute_runtime::engage::Listener;
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::write::Writer;
use compute_runtime::{Cache, Key, Plane, PlaneId, Planes, Queue};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use book::Book;
pub use seed::{defaults, registrations, seed_core, seed_project};

/// Where a project's grants and buckets are.
pub const NAMESPACE: &str = "milo-system";

const NAME: &str = "quota";

/// What the ledger needs.
pub struct Setup {
    /// The planes of projects, as they come and go.
    pub projects: Planes,
    /// Where registrations are.
    pub core: Plane,
}

/// Starts the ledger. It runs until the tasks are stopped.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    tasks.spawn("quota ledger", move |stop| async move {
        run(setup, stop).await;
        Ok::<_, std::convert::Infallible>(())
    });
}

async fn run(setup: Setup, stop: CancellationToken) {
    let Setup { projects, core } = setup;
    let registrations = core.cache::<ResourceRegistration>();
    let queue = Queue::new(projects.runtime(), NAME, Limits::default());
    let ledger = Arc::new(Ledger {
        registrations: registrations.clone(),
        queue: queue.clone(),
        writer: Writer::new(NAME),
        books: Mutex::default(),
    });
    projects.listen(ledger.clone());
    // What is registered decides what grants and claims mean. It hardly ever changes.
    let wake = || {
        let ledger = Arc::downgrade(&ledger);
        move || {
            if let Some(ledger) = ledger.upgrade() {
                ledger.wake_all();
            }
        }
    };
    let (on_change, on_connect) = (wake(), wake());
    let _changes = registrations.subscribe(move |_| on_change());
    let _connects = registrations.on_connect(move |_| on_connect());
    futures::join!(
        controller::run(ledger.clone(), queue, stop.cancelled()),
        registrations::run(&core, registrations.clone(), stop.cancelled()),
    );
    // The planes keep their listeners: what this one holds of them goes now.
    ledger.books.lock().closed = true;
    ledger.books.lock().of.clear();
}

/// The books of all projects.
struct Ledger {
    registrations: Cache<ResourceRegistration>,
    queue: Queue,
    writer: Writer,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    of: BTreeMap<PlaneId, Arc<Book>>,
    closed: bool,
}

/// The one key of a project.
fn key(plane: &PlaneId) -> Key {
    Key::new(plane, "", "")
}

impl Ledger {
    fn wake_all(&self) {
        let keys: Vec<_> =
            self.books.lock().of.values().filter(|book| book.is_awake()).map(|b| key(b.id())).collect();
        self.queue.add_all(keys);
    }
}

impl Listener for Ledger {
    fn on_engage(&self, plane: &Plane) {
        let mut books = self.books.lock();
        if !books.closed {
            books.of.insert(plane.id().clone(), Arc::new(Book::new(plane, &self.queue)));
        }
    }

    fn on_disengage(&self, plane: &PlaneId) {
        let book = self.books.lock().of.remove(plane);
        self.queue.remove_plane(plane);
        drop(book);
    }
}
