//! A failure of each kind of networking object, from the cell to the project, verbatim; and its healing.

use compute_api::compute::{Instance, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::k8s::Condition;
use compute_api::networking::{NetworkBinding, NetworkContext, Subnet, SubnetClaim};
use compute_platform::networks::FAILURE;
use compute_providers::simulated::annotations::START_DELAY;
use compute_testkit::objects::workload;
use compute_testkit::{Embedded, Place, Stack as _, View, eventually};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;

/// No words of ours: what the network service says must come through as it is.
const TEXT: &str = "fabric dfw-7: VNI 4711 refused (code 0x2f), \"no route\" – ünïcode";

const CONTEXT: &str = "default-dfw";
const SUBNET: &str = "default-dfw-0";

/// Has an object of the cell fail, or heal.
async fn tell<K>(view: &View<'_, Embedded>, name: &str, failure: Option<&str>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let patch = json!({ "metadata": { "annotations": { FAILURE: failure } } });
    view.in_cell::<K>("DFW").patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

fn is_said(said: Option<&Condition>) -> Result<(), String> {
    let matches = said.is_some_and(|said| {
        said.status == "False" && said.reason == c::NETWORK_FAILED_TO_CREATE && said.message == TEXT
    });
    if matches { Ok(()) } else { Err(format!("{said:?}")) }
}

/// Waits until the failure is where people look: on the instance, its deployment and the Workload, all in the project.
async fn until_told(view: &View<'_, Embedded>, workload: &str) {
    let deployment = format!("{workload}-main-dfw");
    eventually("the Workload says it", async || {
        is_said(view.condition(workload, c::AVAILABLE).await.as_ref())
    })
    .await;
    let of = async || {
        let found: WorkloadDeployment = view.mine().get(&deployment).await.unwrap();
        found.status.unwrap_or_default().conditions
    };
    eventually("the deployment says it", async || is_said(c::find(&of().await, c::AVAILABLE))).await;
    eventually("the deployment says it of its networks", async || {
        is_said(c::find(&of().await, c::NETWORK_READY))
    })
    .await;
    eventually("the instance says it", async || {
        let found: Option<Instance> = view.mine().get_opt(&format!("{deployment}-0")).await.unwrap();
        let conditions = found.and_then(|found| found.status).unwrap_or_default().conditions;
        is_said(c::find(&conditions, c::READY))
    })
    .await;
}

/// One that runs keeps the network's objects there; the next one waits for what fails of them, and is there when it heals.
async fn a_shared_object_fails<K>(project: &str, name: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let stack = Embedded::start().await;
    let view = View::new(&stack, project).await;
    view.create(&workload("first", &["DFW"], 1)).await;
    view.until_ready("first", &[("first-main-dfw", 1)]).await;
    tell::<K>(&view, name, Some(TEXT)).await;
    view.create(&workload("web", &["DFW"], 1)).await;
    until_told(&view, "web").await;
    let held: Instance = view.in_cell("DFW").get("web-main-dfw-0").await.unwrap();
    assert!(
        held.spec.has_gate(compute_api::compute::gates::NETWORK),
        "it does not start without its network"
    );
    // What runs is not told to be down.
    view.until_ready("first", &[("first-main-dfw", 1)]).await;
    tell::<K>(&view, name, None).await;
    view.until_ready("web", &[("web-main-dfw", 1)]).await;
    let said = view.until_deployment_says("first-main-dfw", c::NETWORK_READY, c::DATA_READY).await;
    assert_eq!(said.status, "True");
    for name in ["first", "web"] {
        view.delete(name).await;
        view.until_gone(name).await;
    }
    super::until_released(&view).await;
}

#[tokio::test]
async fn a_network_context_fails_and_heals() {
    a_shared_object_fails::<NetworkContext>("context", CONTEXT).await;
}

#[tokio::test]
async fn a_subnet_claim_fails_and_heals() {
    a_shared_object_fails::<SubnetClaim>("claim", SUBNET).await;
}

#[tokio::test]
async fn a_subnet_fails_and_heals() {
    a_shared_object_fails::<Subnet>("subnet", SUBNET).await;
}

#[tokio::test]
async fn a_network_binding_fails_and_heals() {
    let stack = Embedded::start().await;
    let view = View::new(&stack, "binding").await;
    let mut slow = workload("web", &["DFW"], 1);
    let metadata = slow.spec.template.metadata.get_or_insert_default();
    metadata.annotations.insert(START_DELAY.to_owned(), "24h".to_owned());
    view.create(&slow).await;
    view.until_deployment_says("web-main-dfw", c::NETWORK_READY, c::DATA_READY).await;
    tell::<NetworkBinding>(&view, "web-main-dfw-net-0", Some(TEXT)).await;
    until_told(&view, "web").await;
    tell::<NetworkBinding>(&view, "web-main-dfw-net-0", None).await;
    view.until_deployment_says("web-main-dfw", c::NETWORK_READY, c::DATA_READY).await;
    let soon = json!({ "metadata": { "annotations": { START_DELAY: null } } });
    let real = view.in_cell::<Instance>("DFW");
    real.patch("web-main-dfw-0", &PatchParams::default(), &Patch::Merge(soon)).await.unwrap();
    view.until_ready("web", &[("web-main-dfw", 1)]).await;
}

/// What the cell's own API refuses is no less a failure of the network, and told in the API's words.
#[tokio::test]
async fn a_network_binding_that_is_refused_is_told_and_heals() {
    const RULE: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
    let stack = Embedded::start().await;
    let view = View::new(&stack, "refused").await;
    let crds: Api<CustomResourceDefinition> = Api::all(stack.client(&Place::Cell("DFW".to_owned())));
    let change = async |operations: serde_json::Value| {
        let patch = Patch::Json::<()>(serde_json::from_value(operations).unwrap());
        let name = "networkbindings.networking.datumapis.com";
        crds.patch(name, &PatchParams::default(), &patch).await.unwrap();
    };
    let never = json!([{ "rule": "self.network.name != 'default'", "message": TEXT }]);
    change(json!([{ "op": "add", "path": RULE, "value": never }])).await;
    view.create(&workload("web", &["DFW"], 1)).await;
    let said = view.until_says("web", c::AVAILABLE, c::NETWORK_FAILED_TO_CREATE).await;
    assert!(said.message.contains(TEXT), "{said:?}");
    let instance: Instance = view.mine().get("web-main-dfw-0").await.unwrap();
    let ready = c::find(&instance.status.unwrap().conditions, c::READY).unwrap().clone();
    assert_eq!((ready.reason, ready.message), (said.reason, said.message));
    change(json!([{ "op": "remove", "path": RULE }])).await;
    view.until_ready("web", &[("web-main-dfw", 1)]).await;
}
