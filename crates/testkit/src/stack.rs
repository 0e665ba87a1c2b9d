//! What a story needs of the stack that it runs on.

use compute_local::census::{self, Census};
use kube::Client;

pub use compute_local::Worker;

/// A plane, as a place that can be cut off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The core plane.
    Core,
    /// The hub.
    Hub,
    /// The cell of a city.
    Cell(String),
    /// The plane of a project.
    Project(String),
}

/// A running system: planes to look at and to write to, and levers.
///
/// Clients see through every fault: they are the story's own eyes and hands, not the system's.
#[expect(async_fn_in_trait, reason = "stories run on the test's own thread")]
pub trait Stack {
    /// The cities that have a cell.
    fn cities(&self) -> Vec<String>;

    /// A client for a plane, with full rights.
    fn client(&self, place: &Place) -> Client;

    /// Every object of a plane, but for what its server keeps by itself.
    async fn census(&self, place: &Place) -> Census {
        census::take(&self.client(place)).await.unwrap()
    }

    /// Makes a project and waits until it is ready.
    async fn make_project(&self, name: &str);

    /// Workers do not reach a plane from now on: new requests fail, and open watches break.
    async fn cut(&self, place: &Place);

    /// Workers reach a plane again.
    async fn mend(&self, place: &Place);

    /// Ends a worker as a crash would: in the middle of what it does.
    async fn crash(&self, worker: &Worker);

    /// Starts a worker that was ended.
    async fn start(&self, worker: &Worker);

    /// Lets a worker write so many times more; the next write, and everything after it, does not get through.
    fn allow_writes(&self, worker: &Worker, writes: u64);

    /// Whether a worker has used up what [`allow_writes`](Self::allow_writes) gave it.
    fn is_out_of_writes(&self, worker: &Worker) -> bool;
}
