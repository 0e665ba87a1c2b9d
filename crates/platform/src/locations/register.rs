//! Which location has which addresses: one ConfigMap in core, an entry for each location, written once.
//!
//! # Guarantees
//!
//! - The register is changed only as it was read: of two who give out at once, one has to look again.
//! - A location's addresses are asked for once in a lifetime of this process, all of them with the first; after that they are known.
//!
//! # Caveats
//!
//! - An entry outlives its location: a cell that is cut off may still use it. Who knows that it does not may take the entry out.
//! - An entry that is changed by hand counts after a restart.

use std::collections::BTreeMap;

use anyhow::Context as _;
use compute_api::k8s::{ConfigMap, ObjectMeta};
use compute_api::kube::Api;
use compute_core::subnets::blocks::{self, Assigned, Blocks};
use compute_runtime::Plane;
use compute_runtime::controller::Error;
use compute_runtime::write::{Part, Writer};
use serde_json::json;
use tokio::sync::Mutex;

/// Where the register is, in core.
const NAMESPACE: &str = "kube-system";
/// What it is called.
const NAME: &str = "location-addresses";

/// Gives each location addresses of its own.
pub(super) struct Register {
    core: Plane,
    writer: Writer,
    /// What the register is known to say. One at a time looks and writes.
    recorded: Mutex<BTreeMap<String, Blocks>>,
}

impl Register {
    pub(super) fn new(core: &Plane, writer: Writer) -> Self {
        Self { core: core.clone(), writer, recorded: Mutex::default() }
    }

    /// The addresses of a location. `known` is what cells know of any.
    ///
    /// # Errors
    ///
    /// If core does not answer, or there is nothing to give.
    pub(super) async fn of(
        &self,
        location: &str,
        known: impl Fn() -> BTreeMap<String, Blocks>,
    ) -> Result<Blocks, Error> {
        let mut recorded = self.recorded.lock().await;
        if let Some(blocks) = recorded.get(location) {
            return Ok(*blocks);
        }
        let api: Api<ConfigMap> = Api::namespaced(self.core.client().clone(), NAMESPACE);
        let stored =
            self.writer.request(api.get_opt(NAME)).await.context("reading the register of addresses")?;
        let register = stored.as_ref().and_then(|stored| stored.data.clone()).unwrap_or_default();
        // Each is checked against all others before it counts.
        recorded.extend(register.keys().filter_map(|name| match blocks::assign(name, &register, &known()) {
            Ok(Assigned::Recorded(blocks)) => Some((name.clone(), blocks)),
            _ => None,
        }));
        let assigned = blocks::assign(location, &register, &known());
        let blocks = match assigned.with_context(|| format!("addresses of location {location}"))? {
            Assigned::Recorded(blocks) => blocks,
            Assigned::New(blocks) => {
                self.record(&api, stored.as_ref(), location, &blocks)
                    .await
                    .context("writing the register of addresses")?;
                tracing::info!(location, %blocks, "a location has got addresses of its own");
                blocks
            }
        };
        recorded.insert(location.to_owned(), blocks);
        Ok(blocks)
    }

    async fn record(
        &self,
        api: &Api<ConfigMap>,
        stored: Option<&ConfigMap>,
        location: &str,
        blocks: &Blocks,
    ) -> compute_runtime::write::Result<()> {
        let entry = BTreeMap::from([(location.to_owned(), blocks.to_string())]);
        let Some(stored) = stored else {
            let metadata = ObjectMeta {
                name: Some(NAME.to_owned()),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            };
            let new = ConfigMap { metadata, data: Some(entry), ..ConfigMap::default() };
            return self.writer.create(api, &new).await.map(drop);
        };
        let version = &stored.metadata.resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version }, "data": entry });
        self.writer.merge(api, NAME, Part::Main, &patch).await.map(drop)
    }
}
