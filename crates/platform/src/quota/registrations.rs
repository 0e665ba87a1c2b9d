//! Registrations in the core plane: each that is there counts, and says so.

use std::sync::Arc;

use compute_api::quota::ResourceRegistration;
use compute_core::ledger;
use compute_runtime::controller::{self, Error};
use compute_runtime::queue::Limits;
use compute_runtime::write::Writer;
use compute_runtime::{Cache, Key, Next, OwnWrites, Plane, Queue, Reconciler};
use kube::Api;

use super::NAME;
use crate::status::{self, Onto};

struct Registrations {
    core: Plane,
    writer: Writer,
    registrations: OwnWrites<ResourceRegistration>,
}

/// Keeps the statuses of registrations until `shutdown`.
pub(super) async fn run(
    core: &Plane,
    registrations: Cache<ResourceRegistration>,
    shutdown: impl Future<Output = ()>,
) {
    // There are a handful of them.
    let queue = Queue::new(core.runtime(), "quota-registrations", Limits::with_concurrency(1));
    let _subscription = queue.watch_own(&registrations);
    let reconciler = Registrations {
        core: core.clone(),
        writer: Writer::new(NAME),
        registrations: OwnWrites::new(registrations),
    };
    controller::run(Arc::new(reconciler), queue, shutdown).await;
}

impl Reconciler for Registrations {
    fn name(&self) -> &'static str {
        "quota-registrations"
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, Error> {
        let Some(registration) = self.registrations.get("", &key.name) else { return Ok(Next::Done) };
        let now = self.core.runtime().clock().now();
        let Some(wanted) = ledger::activate(&registration, now) else { return Ok(Next::Done) };
        let api: Api<ResourceRegistration> = Api::all(self.core.client().clone());
        match status::apply(&self.writer, &api, &*registration, &wanted, Onto::Any).await {
            Ok(written) => {
                self.registrations.wrote(written);
                Ok(Next::Done)
            }
            Err(error) => error.into_next(),
        }
    }
}
