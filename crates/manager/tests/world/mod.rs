//! Planes served over TLS in this process with the platform's stand-ins at work on them, and managers as processes of their own, each with credentials
//! that can do no more than its rules say.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod process;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compute_apiserver::audit::{Event, Sink};
use compute_apiserver::{Access, ApiServer, Authority, Identity, Options, PlaneName, Tls, serve};
use compute_local::{Platform, Settings, Worker, planes};
use compute_platform::propagation::Probe;
use compute_runtime::Runtime;
use compute_runtime::tasks::Tasks;
use compute_testkit::{Place, Stack};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// Where Leases are.
pub const NAMESPACE: &str = "compute-system";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Writes down who did what.
#[derive(Clone, Default)]
pub struct Audit(Arc<Mutex<Vec<Event>>>);

impl Sink for Audit {
    fn record(&self, event: Event) {
        self.0.lock().push(event);
    }
}

impl Audit {
    /// What a user did so far.
    pub fn of(&self, user: &str) -> Vec<Event> {
        self.0.lock().iter().filter(|event| event.user.user == user).cloned().collect()
    }

    /// What a user was not allowed to do so far.
    pub fn refused(&self, user: &str) -> BTreeSet<String> {
        let code = |event: &Event| event.response_status.as_ref().map_or(0, |status| status.code);
        let all = self.of(user);
        let refused = all.iter().filter(|event| code(event) == 403);
        refused.map(|event| format!("{} {}", event.verb, event.uri)).collect()
    }

    /// What a user changed so far.
    pub fn writes(&self, user: &str) -> Vec<String> {
        let all = self.of(user);
        let writes = all.iter().filter(|event| !["get", "list", "watch"].contains(&event.verb.as_str()));
        writes.map(|event| format!("{} {}", event.verb, event.uri)).collect()
    }
}

/// An API server on loopback.
pub struct Served {
    pub server: ApiServer,
    pub audit: Audit,
    pub folder: TempDir,
    pub authority: Authority,
    pub url: String,
}

impl Served {
    pub async fn start() -> Self {
        let audit = Audit::default();
        let options = Options {
            routes: vec![planes::project_route()],
            audit: Some(Arc::new(audit.clone())),
            ..Options::default()
        };
        let server = ApiServer::new(options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let authority = Authority::generate("test authority").unwrap();
        let issued = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        let tls = Tls::from_pem(&issued.certificate, &issued.key).unwrap();
        tokio::spawn(serve(server.clone(), listener, tls, std::future::pending()));
        Self { server, audit, folder: tempfile::tempdir().unwrap(), authority, url }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and says where it is.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        // As whoever rotates files does it: whole, at once.
        let next = self.path(&format!("{name}.next"));
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, &path).unwrap();
        path
    }

    /// Lets a token in.
    pub fn admit(&self, token: &str, identity: Identity) {
        self.server.tokens().add(token, identity, Access::AllPlanes);
    }

    /// A kubeconfig for a plane, with a token in a file of its own: `<name>.token`.
    pub fn kubeconfig(&self, name: &str, plane: &PlaneName, token: &str) -> PathBuf {
        self.write(&format!("{name}.token"), token);
        self.write(
            name,
            &json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "it",
                "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
                "clusters": [{ "name": "it", "cluster": {
                    "server": planes::url(&self.url, plane),
                    "certificate-authority-data": STANDARD.encode(self.authority.certificate()),
                } }],
                "users": [{ "name": "it", "user": { "tokenFile": format!("{name}.token") } }],
            })
            .to_string(),
        )
    }

    /// A client for a plane whom nothing holds back.
    pub fn admin(&self, plane: &PlaneName) -> Client {
        self.client(plane, Identity::superuser("test"))
    }

    pub fn client(&self, plane: &PlaneName, identity: Identity) -> Client {
        Client::new(self.server.service(plane, identity), "default")
    }

    /// Lets a user run for a Lease in a plane.
    pub async fn allow_leases(&self, plane: &PlaneName, user: &str, rules: &[PolicyRule]) {
        let client = self.admin(plane);
        let namespace: Namespace =
            serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).unwrap();
        apply(&Api::all(client.clone()), &namespace).await;
        let role = json!({ "metadata": { "name": user, "namespace": NAMESPACE }, "rules": rules });
        let role: k8s_openapi::api::rbac::v1::Role = serde_json::from_value(role).unwrap();
        apply(&Api::namespaced(client.clone(), NAMESPACE), &role).await;
        let binding = json!({ "metadata": { "name": user, "namespace": NAMESPACE },
            "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": user }],
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": user } });
        let binding: k8s_openapi::api::rbac::v1::RoleBinding = serde_json::from_value(binding).unwrap();
        apply(&Api::namespaced(client, NAMESPACE), &binding).await;
    }
}

async fn apply<K>(api: &Api<K>, object: &K)
where
    K: kube::Resource<DynamicType = ()>
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let name = object.meta().name.clone().unwrap();
    let params = PatchParams::apply("test").force();
    api.patch(&name, &params, &Patch::Apply(object)).await.unwrap();
}

/// A cluster role, and who has it, as objects of a template.
pub fn granted(user: &str, rules: &[PolicyRule]) -> [Value; 2] {
    [
        json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": user }, "rules": rules }),
        json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": user },
            "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": user }],
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": user } }),
    ]
}

/// A server config, with what is common to all of them.
pub fn server_config(settings: &Value) -> String {
    let mut config = json!({
        "apiVersion": "apiserver.config.datumapis.com/v1alpha1", "kind": "WorkloadOperator",
        "metricsServer": { "bindAddress": "127.0.0.1:0" },
    });
    config.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    config.to_string()
}

/// The whole platform around the managers: core, hub, one cell and projects.
pub struct World {
    pub served: Served,
    pub platform: Platform,
}

pub const CITY: &str = "DFW";

impl World {
    pub async fn start() -> Self {
        let served = Served::start().await;
        let probe = Probe { every: Duration::from_millis(200), timeout: Duration::from_secs(5) };
        let settings =
            Settings { cities: vec![CITY.to_owned()], admission: false, probe, ..Settings::default() };
        let platform = Platform::new(&served.server, Runtime::system(), settings).await.unwrap();
        let mut tasks = Tasks::new();
        platform.spawn(&Worker::Surroundings, &mut tasks);
        tokio::spawn(tasks.run(std::future::pending(), Duration::from_secs(1)));
        platform.until_cells_are_there().await.unwrap();
        Self { served, platform }
    }
}

/// What a story's eyes need; its levers are processes here.
impl Stack for World {
    fn cities(&self) -> Vec<String> {
        vec![CITY.to_owned()]
    }

    fn client(&self, place: &Place) -> Client {
        self.platform.client(&match place {
            Place::Core => planes::core(),
            Place::Hub => planes::hub(),
            Place::Cell(city) => planes::cell(city).unwrap(),
            Place::Project(name) => planes::project(name).unwrap(),
        })
    }

    async fn make_project(&self, name: &str) {
        self.platform.make_project(name).await.unwrap();
    }

    async fn cut(&self, _: &Place) {
        panic!("not here");
    }

    async fn mend(&self, _: &Place) {
        panic!("not here");
    }

    async fn crash(&self, _: &Worker) {
        panic!("not here");
    }

    async fn start(&self, _: &Worker) {
        panic!("not here");
    }

    fn allow_writes(&self, _: &Worker, _: u64) {
        panic!("not here");
    }

    fn is_out_of_writes(&self, _: &Worker) -> bool {
        panic!("not here");
    }
}

/// A path as an argument.
pub fn argument(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
