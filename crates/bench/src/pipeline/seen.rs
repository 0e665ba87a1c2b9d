//! When something was first seen on a plane, by a watch of the same process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use compute_runtime::cache::Object;
use compute_runtime::{Cache, Plane, Subscription};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long anything may take; a hundred workloads take Karmada minutes.
pub const PATIENCE: Duration = Duration::from_secs(900);

/// First sights, by plane and what was seen.
#[derive(Clone, Default)]
pub struct Seen(Arc<Inner>);

#[derive(Default)]
struct Inner {
    sights: Mutex<BTreeMap<(String, String), Instant>>,
    changed: Notify,
}

/// Keeps a watch going.
pub struct Eye<K: Object> {
    _cache: Cache<K>,
    _subscription: Subscription,
}

impl Seen {
    /// Watches a kind in a plane; `what` names what is to be seen in an object, if anything.
    pub async fn watch<K: Object>(
        &self,
        plane: &Plane,
        what: impl Fn(&K) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Eye<K>> {
        let cache = plane.cache::<K>();
        let (seen, id) = (self.clone(), plane.id().as_str().to_owned());
        let subscription = cache.subscribe(move |change| {
            let Some(what) = change.after.as_ref().and_then(|object| what(object)) else { return };
            seen.0.sights.lock().entry((id.clone(), what)).or_insert_with(Instant::now);
            seen.0.changed.notify_waiters();
        });
        cache.synced().await?;
        Ok(Eye { _cache: cache, _subscription: subscription })
    }

    /// Forgets that something was seen, on all planes.
    pub fn forget(&self, what: &str) {
        self.0.sights.lock().retain(|(_, seen), _| seen != what);
    }

    /// When something was seen; waits for it.
    pub async fn when(&self, plane: &str, what: &str) -> Result<Instant> {
        let key = (plane.to_owned(), what.to_owned());
        let found = async {
            loop {
                let changed = self.0.changed.notified();
                if let Some(&at) = self.0.sights.lock().get(&key) {
                    return at;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(at) => Ok(at),
            Err(_) => bail!("{what} was not seen in {plane} within {PATIENCE:?}"),
        }
    }
}
