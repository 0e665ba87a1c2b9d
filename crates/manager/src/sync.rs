//! Waiting until the planes that a role works on have been seen.

use std::convert::Infallible;

use compute_runtime::Plane;
use compute_runtime::cache::{Cache, Object};
use compute_runtime::tasks::Tasks;

use crate::readiness::{Readiness, State};

/// Something that has to be seen.
pub(crate) struct Sync {
    what: &'static str,
    seen: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Sync {
    /// All objects of a kind in a plane. The cache is one that controllers have open anyway.
    pub(crate) fn of<K: Object>(plane: &Plane, what: &'static str) -> Self {
        let cache: Cache<K> = plane.cache();
        let seen = Box::pin(async move {
            if cache.synced().await.is_err() {
                // The plane is closed, and everything is about to stop.
                std::future::pending::<()>().await;
            }
        });
        Self { what, seen }
    }
}

/// Says that a role is ready once all has been seen.
pub(crate) fn become_ready(role: &'static str, readiness: Readiness, syncs: Vec<Sync>, tasks: &mut Tasks) {
    tasks.spawn(format!("readiness of {role}"), move |stop| async move {
        let all = async {
            for Sync { what, seen } in syncs {
                readiness.set(role, State::WaitingFor(what.to_owned()));
                seen.await;
            }
            readiness.set(role, State::Ready);
            tracing::info!(role, "ready");
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok::<(), Infallible>(()),
            () = all => {}
        }
        stop.cancelled().await;
        Ok(())
    });
}
