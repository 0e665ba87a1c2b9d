//! Joining cells to the hub by hand: credentials, and a `Cluster` with the city's label.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Error;
use crate::karmada::has_condition;
use crate::kubernetes::Account;
use crate::objects::{self, Objects};
use crate::server::Server;

/// The hub's namespace for members' credentials.
pub(crate) const NAMESPACE: &str = "karmada-cluster";
/// The label that tells which city a member serves.
const CITY_LABEL: &str = "topology.datum.net/city-code";

/// Who Karmada is in a cell.
pub(crate) struct Member {
    /// Does everything that is propagated.
    pub(crate) controllers: Account,
    /// Speaks for whoever reaches the cell through the hub. Karmada itself grants this service account, by name, what it needs.
    pub(crate) impersonator: Account,
}

impl Member {
    pub(crate) fn generate() -> Result<Self, Error> {
        Ok(Self {
            controllers: Account::new("karmada", "system:masters")?,
            impersonator: Account::new(
                format!("system:serviceaccount:{NAMESPACE}:karmada-impersonator"),
                "system:serviceaccounts",
            )?,
        })
    }
}

/// Creates the member on the hub.
pub(crate) async fn join(
    hub: &Objects,
    city: &str,
    cluster: &str,
    server: &Server,
    tokens: (&str, &str),
) -> Result<(), Error> {
    let cell = Objects::new(server.client()?);
    let system = cell
        .wait("/api/v1/namespaces/kube-system", "kube-system is there", |found| {
            found["metadata"]["uid"].is_string()
        })
        .await?;
    let id = system["metadata"]["uid"].as_str().unwrap_or_default();
    let [secrets @ .., member] = &objects(city, cluster, id, server, tokens);
    hub.create_all(secrets).await?;
    hub.create(member).await
}

/// Waits until Karmada finds the member ready.
pub(crate) async fn ready(hub: &Objects, cluster: &str) -> Result<(), Error> {
    let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}");
    hub.wait(&path, "the member is ready", |found| has_condition(found, "Ready")).await?;
    // The namespace that what goes to this member is written to; without it, the first object would wait for a retry.
    let works = objects::path(&namespace(&format!("karmada-es-{cluster}")));
    hub.wait(&works, "the member's namespace is there", |_| true).await?;
    Ok(())
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn objects(
    city: &str,
    cluster: &str,
    id: &str,
    server: &Server,
    (token, impersonator): (&str, &str),
) -> [Value; 3] {
    let secret = |name: &str, data: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "data": data,
        })
    };
    let (ca, encode) = (STANDARD.encode(&server.ca_pem), |text: &str| STANDARD.encode(text));
    let impersonator_name = format!("{cluster}-impersonator");
    let member = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": { "name": cluster, "labels": { CITY_LABEL: city } },
        "spec": {
            "id": id,
            "apiEndpoint": server.url,
            "syncMode": "Push",
            "secretRef": { "namespace": NAMESPACE, "name": cluster },
            "impersonatorSecretRef": { "namespace": NAMESPACE, "name": impersonator_name },
        },
    });
    [
        secret(cluster, json!({ "token": encode(token), "caBundle": ca })),
        secret(&impersonator_name, json!({ "token": encode(impersonator), "caBundle": ca })),
        member,
    ]
}
