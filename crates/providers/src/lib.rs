//! What runs instances in a cell: one controller over the cell's instances, and engines that it drives.
//!
//! This crate must never touch what is not a provider's: of an Instance it writes `Programmed`, `Available`, addresses, the observed template hash
//! and its own finalizer. No engine's raw wording reaches a status.
//!
//! Start reading at [`spawn`] and [`Engine`]; [`simulated`] is the engine that needs nothing.

mod controller;
pub mod engine;
pub mod rbac;
pub mod simulated;
mod subnets;

use std::sync::Arc;

use compute_api::compute::Instance;
pub use compute_core::provider::Locations;
use compute_runtime::events::Events;
use compute_runtime::queue::Limits;
use compute_runtime::tasks::Tasks;
use compute_runtime::write::Writer;
use compute_runtime::{Key, OwnWrites, Plane, Queue, controller as runner};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;

use controller::Provider;
pub use engine::Engine;
pub use subnets::Subnets;

/// What a provider needs.
pub struct Setup {
    /// The cell whose instances it runs.
    pub cell: Plane,
    /// What runs them.
    pub engine: Arc<dyn Engine>,
    /// Which of them it runs.
    pub locations: Locations,
    /// Where events go.
    pub events: Events,
}

/// Starts a provider. It runs until the tasks are stopped; the instances run on.
pub fn spawn(tasks: &mut Tasks, setup: Setup) {
    let name = format!("provider {} of {}", setup.engine.name(), setup.cell.id());
    tasks.spawn(name, move |stop| run(setup, stop));
}

/// The engine's notices have ended, so that nothing would be heard of its instances any more.
#[derive(Debug, thiserror::Error)]
#[error("the engine tells of no more changes")]
struct Deaf;

async fn run(setup: Setup, stop: CancellationToken) -> Result<(), Deaf> {
    let Setup { cell, engine, locations, events } = setup;
    let cache = cell.cache::<Instance>();
    let synced = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        synced = cache.synced() => synced,
    };
    if synced.is_err() {
        // The cell is not served any more, and everything is about to stop.
        stop.cancelled().await;
        return Ok(());
    }
    let queue = Queue::new(cell.runtime(), "provider", Limits::default());
    let provider = Arc::new(Provider {
        instances: OwnWrites::new(cache.clone()),
        events: events.recorder(cell.id().as_str(), cell.client().clone()),
        writer: Writer::new(engine.name()),
        finalizer: Provider::finalizer_of(&*engine),
        engine: engine.clone(),
        locations,
        cell: cell.clone(),
    });
    let mine: Vec<_> = cache.list().into_iter().filter(|instance| provider.holds(instance)).collect();
    engine.resume(&mine);
    let mut changes = engine.changes();
    let told = async {
        while let Some(name) = changes.next().await {
            queue.add(Key::new(cell.id(), &name.namespace, &name.name));
        }
    };
    let _subscription = queue.watch_own(&cache);
    tokio::select! {
        biased;
        () = runner::run(provider, queue.clone(), stop.cancelled()) => Ok(()),
        () = told => Err(Deaf),
    }
}
