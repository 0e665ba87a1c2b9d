//! A project plane in the embedded API server, a wire to it that writes down every question and can give other answers, and Workloads.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use compute_admission::{Answer, Operation, Request, Resource};
use compute_api::k8s::UserInfo;
use compute_api::networking::{LocationBinding, Network};
use compute_apiserver::{ApiServer, Identity, Options, PlaneName};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// The identity that admission looks things up with.
pub const SERVICE: &str = "compute-manager";

/// A server with a project's plane.
pub struct World {
    pub server: ApiServer,
    pub plane: PlaneName,
}

impl World {
    /// A project with network `default`, offered DFW, where admission may do what its role says.
    pub async fn new() -> Self {
        let server = ApiServer::new(Options::default());
        let crds = compute_api::crds::ours().into_iter().chain(compute_api::crds::foreign());
        let mut objects: Vec<Value> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
        objects.extend(granted("admission", "User", SERVICE, &json!(compute_admission::rbac::project())));
        let template = server.template(&objects).await.unwrap();
        let plane = PlaneName::new("project-demo").unwrap();
        server.create_plane(plane.clone(), &template).await.unwrap();
        let world = Self { server, plane };
        let network = json!({ "metadata": { "name": "default" }, "spec": { "ipam": { "mode": "Auto" } } });
        let network: Network = serde_json::from_value(network).unwrap();
        Api::default_namespaced(world.admin()).create(&PostParams::default(), &network).await.unwrap();
        world.offer("DFW").await;
        world
    }

    /// Offers a city to the project.
    pub async fn offer(&self, city: &str) {
        let name = city.to_lowercase();
        let binding = json!({ "metadata": { "name": name }, "spec": {
            "locationRef": { "name": name }, "topology": { compute_api::labels::TOPOLOGY_CITY_CODE: city },
        } });
        let binding: LocationBinding = serde_json::from_value(binding).unwrap();
        let api: Api<LocationBinding> = Api::all(self.admin());
        api.create(&PostParams::default(), &binding).await.unwrap();
        let available = json!({ "status": { "conditions": [{ "type": "Available", "status": "True", "reason": "Offered",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(available)).await.unwrap();
    }

    /// A client whom nothing holds back.
    pub fn admin(&self) -> Client {
        self.client(Identity::superuser("admin"))
    }

    pub fn client(&self, identity: Identity) -> Client {
        Client::new(self.server.service(&self.plane, identity), "default")
    }

    /// Lets a user do something.
    pub async fn grant(&self, user: &str, rules: &Value) {
        for object in granted(user, "User", user, rules) {
            let kind = object["kind"].as_str().unwrap().to_lowercase();
            let request = http::Request::post(format!("/apis/{RBAC}/v1/{kind}s"));
            let body = serde_json::to_vec(&object).unwrap();
            let request = request.header("content-type", "application/json").body(body).unwrap();
            self.admin().request::<Value>(request).await.unwrap();
        }
    }

    /// The way that admission takes to the project.
    pub fn wire(&self) -> Wire {
        let inner = self.server.service(&self.plane, Identity::user(SERVICE));
        let forward = move |request: http::Request<Bytes>| {
            let inner = inner.clone();
            async move {
                let answer = inner.oneshot(request.map(Full::new)).await.unwrap();
                let (parts, body) = answer.into_parts();
                http::Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
            }
            .boxed()
        };
        Wire { asked: Arc::default(), forward: Arc::new(forward), instead: Arc::default() }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn granted(name: &str, kind: &str, subject: &str, rules: &Value) -> [Value; 2] {
    let version = format!("{RBAC}/v1");
    [
        json!({ "apiVersion": version, "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules }),
        json!({ "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": RBAC, "kind": kind, "name": subject }] }),
    ]
}

type Forward = dyn Fn(http::Request<Bytes>) -> BoxFuture<'static, http::Response<Bytes>> + Send + Sync;
type Instead = dyn Fn(&str) -> Option<Meddled> + Send + Sync;

/// What happens to a question instead of an answer.
pub enum Meddled {
    /// This answer comes.
    Answer(u16, Value),
    /// None ever comes.
    Silence,
    /// The connection breaks.
    Break,
}

/// A wire on which every question is written down.
#[derive(Clone)]
pub struct Wire {
    pub asked: Arc<Mutex<Vec<(String, Value)>>>,
    forward: Arc<Forward>,
    instead: Arc<Mutex<Option<Arc<Instead>>>>,
}

impl Wire {
    /// Meddles with questions, by method and path.
    pub fn meddle(&self, instead: impl Fn(&str) -> Option<Meddled> + Send + Sync + 'static) {
        *self.instead.lock() = Some(Arc::new(instead));
    }

    pub fn client(&self) -> Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let wire = wire.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let line = format!("{} {}", parts.method, parts.uri);
                wire.asked.lock().push((line.clone(), serde_json::from_slice(&body).unwrap_or_default()));
                let instead = wire.instead.lock().clone().and_then(|instead| instead(&line));
                match instead {
                    None => {
                        let answer = (wire.forward)(http::Request::from_parts(parts, body)).await;
                        Ok(answer.map(Full::new))
                    }
                    Some(Meddled::Answer(code, body)) => {
                        let body = Full::new(Bytes::from(body.to_string()));
                        Ok(http::Response::builder().status(code).body(body).unwrap())
                    }
                    Some(Meddled::Silence) => futures::future::pending().await,
                    Some(Meddled::Break) => Err(std::io::Error::other("broken on purpose")),
                }
            }
        });
        Client::new(service, "default")
    }

    /// The questions so far, in order, and forgets them.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            std::mem::take(&mut *self.asked.lock()).into_iter().map(|(line, _)| line).collect();
        lines.sort();
        lines
    }
}

/// A Workload on network `default` in DFW.
pub fn workload(name: &str) -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "app", "image": "nginx:1" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
            "placements": [{ "name": "main", "cityCodes": ["DFW"], "scaleSettings": {
                "minReplicas": 1, "instanceManagementPolicy": "OrderedReady",
            } }],
        },
    })
}

/// With a Secret and two uses of one ConfigMap.
pub fn workload_with_data(name: &str) -> Value {
    let mut object = workload(name);
    object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] = json!([
        { "configMapRef": { "name": "settings" } },
        { "prefix": "A_", "configMapRef": { "name": "settings" } },
        { "secretRef": { "name": "tokens" } },
    ]);
    object
}

/// A person of the platform, with the context that its requests carry.
pub fn person(name: &str) -> UserInfo {
    serde_json::from_value(json!({
        "username": name, "uid": "u-1", "groups": ["team", "system:authenticated"],
        "extra": {
            "iam.miloapis.com/parent-name": ["demo"], "iam.miloapis.com/parent-type": ["Project"],
            "iam.miloapis.com/parent-api-group": ["resourcemanager.miloapis.com"],
        },
    }))
    .unwrap()
}

/// A write of a Workload.
pub fn write(user: UserInfo, object: Value, old: Option<Value>) -> Request {
    Request {
        uid: "1".to_owned(),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        resource: Resource {
            group: "compute.datumapis.com".to_owned(),
            version: "v1alpha".to_owned(),
            resource: "workloads".to_owned(),
        },
        sub_resource: String::new(),
        name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        namespace: "default".to_owned(),
        user_info: user,
        object: Some(object),
        old_object: old,
    }
}

/// Code and message of a refusal; fails if there is none.
pub fn refused(answer: Answer) -> (u16, String) {
    let refusal = answer.refusal.expect("it is refused");
    (refusal.code, refusal.message)
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
pub async fn eventually<T, E: std::fmt::Display>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        match ask().await {
            Ok(found) => return found,
            Err(reason) if tokio::time::Instant::now() > deadline => {
                panic!("{what}: not within {DEADLINE:?}: {reason}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}
