//! Who is asked about writes to a plane: the hooks of the server, and the webhooks of the plane's own configurations.
//!
//! Guarantees: a plane without configurations keeps nothing and shares the server's chain; a hook that is added counts
//! in every plane from the next write on, and a configuration once its commit is answered. Nothing is locked while a
//! hook is asked: whoever asks holds a chain of its own.

use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use super::PlaneName;
use crate::clock::Clock;
use crate::hooks::{Chain, ConfigurationKind, Hook, Transport};
use crate::store::PlaneStore;

/// What all planes of a server share: the hooks in this process, and the way to webhooks.
#[derive(Debug)]
pub(crate) struct ServerHooks {
    chain: RwLock<Arc<Chain>>,
    pub(crate) transport: Transport,
}

impl ServerHooks {
    /// No hooks yet. Certificates of webhooks are valid or not by `clock`.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { chain: RwLock::default(), transport: Transport::new(move || clock.now()) }
    }

    /// Asks `hook`, too, from now on.
    pub(crate) fn add(&self, hook: Arc<dyn Hook>) {
        let mut chain = self.chain.write();
        *chain = Arc::new(chain.with_hook(hook));
    }

    fn chain(&self) -> Arc<Chain> {
        self.chain.read().clone()
    }
}

/// A plane's own chain; none while it has no configurations.
#[derive(Debug, Default)]
pub(crate) struct PlaneHooks(RwLock<Option<Own>>);

#[derive(Clone, Debug)]
struct Own {
    /// The server's chain that `chain` starts with.
    base: Arc<Chain>,
    chain: Arc<Chain>,
}

impl PlaneHooks {
    /// The same for a plane that starts with the same configurations.
    pub(super) fn copied(&self) -> Self {
        Self(RwLock::new(self.0.read().clone()))
    }

    /// Everybody who is asked.
    pub(crate) fn chain(&self, server: &ServerHooks) -> Arc<Chain> {
        let base = server.chain();
        match &*self.0.read() {
            None => return base,
            Some(own) if Arc::ptr_eq(&own.base, &base) => return own.chain.clone(),
            Some(_) => {}
        }
        let mut own = self.0.write();
        match &mut *own {
            None => base,
            Some(own) => {
                // The server has hooks that this chain does not know.
                own.chain = Arc::new(base.configured_as(&own.chain));
                own.base = base;
                own.chain.clone()
            }
        }
    }

    /// Brings the chain in line with the configurations of the plane. Called after each change of one, before the change is
    /// answered.
    pub(super) fn reload(&self, server: &ServerHooks, plane: &PlaneName, store: &PlaneStore) {
        let mut own = self.0.write();
        let stored = |kind: ConfigurationKind| -> Vec<Value> {
            let (objects, _) = store.list(&kind.table(), None, |_| true);
            objects.iter().map(|object| object.value()).collect()
        };
        let (mut mutating, mut validating) =
            (stored(ConfigurationKind::Mutating), stored(ConfigurationKind::Validating));
        let base = server.chain();
        let known = own.as_ref().map_or_else(|| base.clone(), |own| Arc::new(base.configured_as(&own.chain)));
        while !(mutating.is_empty() && validating.is_empty()) {
            let bad = match known.recompile(&mutating, &validating) {
                Ok(chain) => {
                    *own = Some(Own { base, chain: Arc::new(chain) });
                    return;
                }
                Err(bad) => bad,
            };
            // It compiled when it was written, by other rules. The others must not suffer for it.
            tracing::error!(%plane, error = %bad, "stored webhook configuration does not compile and is left out");
            let list = match bad.kind {
                ConfigurationKind::Mutating => &mut mutating,
                ConfigurationKind::Validating => &mut validating,
            };
            list.retain(|object| object["metadata"]["name"] != *bad.name);
        }
        *own = None;
    }
}
