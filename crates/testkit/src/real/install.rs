//! What API servers need before anybody works on them: kinds, roles, and an identity for each worker.

use compute_controllers::{cell, management};
use compute_local::planes::{self, Role};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::stack::Worker;
use crate::wait::eventually;

/// The namespace of workers' service accounts, and of their leases.
pub const NAMESPACE: &str = "compute-system";
/// Who installs.
const MANAGER: &str = "installer";
const RBAC: &str = "rbac.authorization.k8s.io";
/// How long a worker's token is good for, in seconds.
const TOKEN_LIFETIME: i64 = 24 * 3600;

/// Whether an object is one of the kinds that Karmada brings itself.
pub fn is_karmadas(object: &Value) -> bool {
    object["spec"]["group"].as_str().is_some_and(|group| group.ends_with(".karmada.io"))
}

/// Writes what planes of a role start with, as far as the server does not have it by itself.
pub async fn role(client: &Client, role: Role) {
    let objects = planes::objects(role).unwrap();
    let objects: Vec<Value> = objects.into_iter().filter(|object| !is_karmadas(object)).collect();
    all(client, &objects).await;
}

/// Writes objects, kinds first.
pub async fn all(client: &Client, objects: &[Value]) {
    let (kinds, others): (Vec<&Value>, Vec<&Value>) =
        objects.iter().partition(|object| object["kind"] == "CustomResourceDefinition");
    for kind in &kinds {
        apply(client, kind).await;
    }
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for kind in kinds {
        let name = kind["metadata"]["name"].as_str().unwrap();
        eventually(&format!("{name} is served"), async || {
            let status = crds.get(name).await.unwrap().status.unwrap_or_default();
            let established = status
                .conditions
                .iter()
                .flatten()
                .any(|said| said.type_ == "Established" && said.status == "True");
            if established { Ok(()) } else { Err(format!("{:?}", status.conditions)) }
        })
        .await;
    }
    for object in others {
        apply(client, object).await;
    }
}

/// Writes one object, whatever it was before.
pub async fn apply(client: &Client, object: &Value) -> DynamicObject {
    let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let name = object["metadata"]["name"].as_str().unwrap();
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    // A server that has just started, or whose kinds have, may need a moment.
    eventually(&format!("{kind} {name} is taken"), async || {
        api.patch(name, &params, &Patch::Apply(object)).await
    })
    .await
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// What a worker's service account is called, wherever it has one.
pub fn account(worker: &Worker) -> String {
    worker.identity().user
}

/// Gives a worker a service account with some roles of a plane, and no more than those.
pub async fn identity(client: &Client, worker: &Worker, roles: &[&str]) {
    let account = account(worker);
    apply(client, &namespace(NAMESPACE)).await;
    apply(client, &service_account(&account)).await;
    for role in roles {
        apply(
            client,
            &json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": { "name": format!("{role}-{account}") },
                "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
                "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": NAMESPACE }],
            }),
        )
        .await;
    }
}

/// Lets a worker hold leases in its own cluster.
pub async fn leases(client: &Client, worker: &Worker) {
    let (account, name) = (account(worker), "compute-leader-election");
    let rules = match worker {
        Worker::Cell(_) => cell::rbac::leader_election(),
        Worker::Management | Worker::Surroundings => management::rbac::leader_election(),
    };
    apply(
        client,
        &json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "rules": rules,
        }),
    )
    .await;
    apply(
        client,
        &json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": NAMESPACE }],
        }),
    )
    .await;
}

/// Lets somebody who is no worker do what some rules say, in the whole plane.
pub async fn person(client: &Client, user: &str, rules: &Value) {
    let role = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": user }, "rules": rules });
    apply(client, &role).await;
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": { "name": user },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": user },
        "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": user }],
    });
    apply(client, &binding).await;
}

/// Makes a worker's service account anew: tokens of the old one are good for nothing.
pub async fn revoke(client: &Client, worker: &Worker) {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let name = account(worker);
    accounts.delete(&name, &DeleteParams::default()).await.unwrap();
    apply(client, &service_account(&name)).await;
}

fn service_account(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": NAMESPACE } })
}

/// A new token of a worker's service account.
pub async fn token(client: &Client, worker: &Worker) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = TokenRequestSpec { expiration_seconds: Some(TOKEN_LIFETIME), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let made =
        accounts.create_token_request(&account(worker), &PostParams::default(), &request).await.unwrap();
    made.status.unwrap().token
}
