//! The hub's members: what the hub must know of our kinds, and by which address it reaches each cell.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compute_api::conditions as c;
use compute_api::karmada::Cluster;
use compute_local::content;
use compute_realstack::Running;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::foundation::{Endpoint, Engine, Foundation};
use super::install;
use super::stack::make;
use crate::wait::eventually;

/// Where Karmada keeps what it shows to members.
const CREDENTIALS: &str = "karmada-cluster";
/// What carries objects to members.
pub const CONTROLLERS: &str = "karmada-controller-manager";

/// Tells a hub about our kinds, or a stand-in for one about its members.
pub async fn install(foundation: &Foundation) {
    let hub = foundation.hub.admin();
    match foundation.engine {
        Engine::Real(_) => {
            let interpreter = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../config/base/federation/resource_interpreter.yaml");
            let text = std::fs::read_to_string(interpreter).unwrap();
            let object: Value = serde_saphyr::from_str(&text).unwrap();
            install::apply(&hub, &object).await;
        }
        Engine::Embedded { .. } => {
            for (city, cell) in &foundation.cells {
                let mut cluster = content::cluster(city);
                cluster.metadata.name = Some(cell.cluster.clone());
                make(&hub, &cluster).await;
            }
        }
    }
}

/// Lets the hub reach a member at an address.
pub async fn lead(hub: &Endpoint, cluster: &str, url: &str, ca_pem: &str) {
    let client = hub.admin();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), CREDENTIALS);
    let trust = Patch::Merge(json!({ "data": { "caBundle": STANDARD.encode(ca_pem) } }));
    for secret in [cluster.to_owned(), format!("{cluster}-impersonator")] {
        secrets.patch(&secret, &PatchParams::default(), &trust).await.unwrap();
    }
    let clusters: Api<Cluster> = Api::all(client);
    let address = Patch::Merge(json!({ "spec": { "apiEndpoint": url } }));
    clusters.patch(cluster, &PatchParams::default(), &address).await.unwrap();
}

/// Lets Karmada take note of new addresses: it keeps the connections that it has.
pub async fn reconnect(running: &Running, foundation: &Foundation) {
    running.stop_process(CONTROLLERS).await.unwrap();
    running.start_process(CONTROLLERS).await.unwrap();
    let clusters: Api<Cluster> = Api::all(foundation.hub.admin());
    for cell in foundation.cells.values() {
        eventually(&format!("{} is ready", cell.cluster), async || {
            let status = clusters.get(&cell.cluster).await.unwrap().status.unwrap_or_default();
            if c::is_true(&status.conditions, "Ready") {
                Ok(())
            } else {
                Err(format!("{:?}", status.conditions))
            }
        })
        .await;
    }
}
