//! The webhook server, called by an API server over TLS, and by clients that mean no good.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{SERVICE, World, eventually, workload};
use compute_admission::{
    Admission, Certificates, MUTATE_WORKLOADS, Projects, Settings, VALIDATE_INSTANCES, VALIDATE_WORKLOADS,
    Webhooks, serve,
};
use compute_api::compute::{Instance, Workload};
use compute_apiserver::Identity;
use compute_core::admission::guard::{Guard, Subject};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// A webhook server on loopback.
struct Server {
    address: std::net::SocketAddr,
    authority: CertifiedIssuer<'static, KeyPair>,
    files: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(projects: Projects) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let files = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let mut server =
            Self { address, authority, files, stop: Some(stop), serving: tokio::spawn(async {}) };
        server.renew();
        let certificates = Certificates::open(server.file("tls.crt"), server.file("tls.key")).await.unwrap();
        let guard = Guard::with_defaults(Subject::User("projector".to_owned()));
        let webhooks = Webhooks { admission: Admission::new(Some(guard)), projects };
        let settings = Settings { look_every: Duration::from_millis(5), ..Settings::default() };
        server.serving = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            serve(listener, certificates, webhooks, settings, stopped).await.unwrap();
        });
        server
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Writes a new certificate, and gives it.
    fn renew(&self) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        std::fs::write(self.file("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(self.file("tls.key"), key.serialize_pem()).unwrap();
        certificate.der().clone()
    }

    fn webhook(&self, name: &str, path: &str, resources: &[&str]) -> Value {
        json!({
            "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": { "url": format!("https://{}{path}", self.address), "caBundle": STANDARD.encode(self.authority.pem()) },
            "rules": [{ "operations": ["*"], "apiGroups": ["compute.datumapis.com"], "apiVersions": ["v1alpha"], "resources": resources }],
        })
    }

    /// Makes an API server ask this one.
    async fn register(&self, world: &World) {
        let mutating = json!({ "metadata": { "name": "compute" }, "webhooks": [
            self.webhook("defaults.compute.datumapis.com", MUTATE_WORKLOADS, &["workloads"]),
        ] });
        let validating = json!({ "metadata": { "name": "compute" }, "webhooks": [
            self.webhook("workloads.compute.datumapis.com", VALIDATE_WORKLOADS, &["workloads", "workloads/status"]),
            self.webhook("instances.compute.datumapis.com", VALIDATE_INSTANCES, &["instances", "instances/status"]),
        ] });
        let mutating: MutatingWebhookConfiguration = serde_json::from_value(mutating).unwrap();
        let validating: ValidatingWebhookConfiguration = serde_json::from_value(validating).unwrap();
        Api::all(world.admin()).create(&PostParams::default(), &mutating).await.unwrap();
        Api::all(world.admin()).create(&PostParams::default(), &validating).await.unwrap();
    }

    /// A TLS connection, and the certificate that was shown on it.
    async fn connect(&self) -> (tokio_rustls::client::TlsStream<TcpStream>, CertificateDer<'static>) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned();
        (stream, shown)
    }

    /// Status line and body of the answer to a request.
    async fn send(&self, head: &str, body: &[u8]) -> (String, String) {
        let (mut stream, _) = self.connect().await;
        let head =
            format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that has heard enough may hang up before the end.
        let _ = stream.write_all(body).await;
        // What is written may still wait to be encrypted.
        let _ = stream.flush().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn single(world: &World) -> Projects {
    Projects::Single(world.client(Identity::user(SERVICE)))
}

fn refusal<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

fn typed(object: Value) -> Workload {
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn an_api_server_asks_about_workloads() {
    let world = World::new().await;
    let server = Server::start(single(&world)).await;
    server.register(&world).await;
    let api: Api<Workload> = Api::default_namespaced(world.admin());
    let mut object = workload("web");
    object["spec"]["placements"][0]["scaleSettings"]["instanceManagementPolicy"] = json!("");
    let made = api.create(&PostParams::default(), &typed(object)).await.unwrap();
    assert_eq!(made.spec.placements[0].scale_settings.instance_management_policy, "OrderedReady");

    let mut bad = workload("bad");
    bad["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("huge");
    bad["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "dfw", "ORD"]);
    let status = refusal(api.create(&PostParams::default(), &typed(bad.clone())).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let details = status.details.unwrap();
    assert_eq!((details.kind.as_str(), details.name.as_str()), ("Workload", "bad"));
    let fields: Vec<_> = details.causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.template.spec.runtime.resources.instanceType",
            "spec.placements[0].cityCodes[1]",
            "spec.placements[0].cityCodes[2]",
        ]
    );
    // By update, too.
    let patch = json!({ "spec": { "placements": bad["spec"]["placements"] } });
    let status = refusal(api.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await);
    assert_eq!(status.details.unwrap().causes.len(), 2);
    // What is not judged.
    let labels = json!({ "metadata": { "labels": { "a": "b" }, "finalizers": ["example.com/hold"] } });
    api.patch("web", &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    let status = json!({ "status": { "replicas": 7 } });
    api.patch_status("web", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    api.delete("web", &DeleteParams::default()).await.unwrap();
    let released = json!({ "metadata": { "finalizers": null } });
    api.patch("web", &PatchParams::default(), &Patch::Merge(released)).await.unwrap();
    assert!(api.get_opt("web").await.unwrap().is_none());
}

#[tokio::test]
async fn an_api_server_asks_about_instances() {
    let world = World::new().await;
    let server = Server::start(single(&world)).await;
    server.register(&world).await;
    let everything = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
    for user in ["projector", "ann", "old-projector", "system:serviceaccount:default:builder"] {
        world.grant(user, &everything).await;
    }
    let of = |user: &str| -> Api<Instance> { Api::default_namespaced(world.client(Identity::user(user))) };
    let instance: Instance = serde_json::from_value(json!({
        "metadata": { "name": "i", "labels": { "compute.datumapis.com/workload-name": "web" } },
        "spec": workload("web")["spec"]["template"]["spec"],
    }))
    .unwrap();
    of("projector").create(&PostParams::default(), &instance).await.unwrap();
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let status = Patch::Merge(json!({ "status": { "networkInterfaces": [{}] } }));
    let params = PatchParams::default();
    for user in ["ann", "old-projector", "system:serviceaccount:default:builder"] {
        let mut other = instance.clone();
        other.metadata.name = Some("j".to_owned());
        for refused in [
            refusal(of(user).create(&PostParams::default(), &other).await),
            refusal(of(user).patch("i", &params, &label).await),
            refusal(of(user).patch_status("i", &params, &status).await),
            refusal(of(user).delete("i", &DeleteParams::default()).await),
            refusal(of(user).delete_collection(&DeleteParams::default(), &Default::default()).await),
        ] {
            assert_eq!((refused.code, refused.reason.as_str()), (403, "Forbidden"), "{user}");
            assert!(refused.message.contains("Instances in a project are read-only"), "{}", refused.message);
            assert!(refused.message.contains("Change Workload \"web\" instead"), "{}", refused.message);
        }
    }
    of("projector").patch("i", &params, &label).await.unwrap();
    of("projector").patch_status("i", &params, &status).await.unwrap();
    let admin: Api<Instance> = Api::default_namespaced(world.admin());
    admin.delete("i", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn in_a_platform_each_request_names_its_project() {
    let world = World::new().await;
    let client = world.client(Identity::user(SERVICE));
    let connect = move |project: &str| match project {
        "demo" => Ok(client.clone()),
        _ => Err("there is no such project".into()),
    };
    let server = Server::start(Projects::Milo(Arc::new(connect))).await;
    server.register(&world).await;
    let of = |project: Option<&str>| -> Api<Workload> {
        let mut identity = Identity::superuser("ann");
        if let Some(project) = project {
            let extra =
                [("name", project), ("type", "Project"), ("api-group", "resourcemanager.miloapis.com")];
            identity.extra = extra
                .map(|(key, value)| (format!("iam.miloapis.com/parent-{key}"), vec![value.to_owned()]))
                .into();
        }
        Api::default_namespaced(world.client(identity))
    };
    let post = PostParams::default();
    of(Some("demo")).create(&post, &typed(workload("web"))).await.unwrap();
    let status = refusal(of(None).create(&post, &typed(workload("other"))).await);
    assert_eq!(status.code, 400);
    assert!(status.message.contains("does not say which project it is for"), "{}", status.message);
    let status = refusal(of(Some("elsewhere")).create(&post, &typed(workload("other"))).await);
    assert_eq!(status.code, 500);
    assert!(status.message.ends_with("the project could not be reached; try again"), "{}", status.message);
    // What needs no look at the project goes through.
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    of(None).patch("web", &PatchParams::default(), &labels).await.unwrap();
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let world = World::new().await;
    let server = Server::start(single(&world)).await;
    let (mut kept, first) = server.connect().await;
    // Half of a renewal, and nonsense, change nothing.
    let key = std::fs::read(server.file("tls.key")).unwrap();
    let certificate = std::fs::read(server.file("tls.crt")).unwrap();
    std::fs::write(server.file("tls.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    for _ in 0..20 {
        assert_eq!(server.connect().await.1, first);
    }
    std::fs::write(server.file("tls.crt"), "nonsense").unwrap();
    for _ in 0..20 {
        assert_eq!(server.connect().await.1, first);
    }
    std::fs::write(server.file("tls.crt"), &certificate).unwrap();
    std::fs::write(server.file("tls.key"), &key).unwrap();
    let renewed = server.renew();
    assert_ne!(first, renewed);
    eventually("the new certificate is shown", async || {
        if server.connect().await.1 == renewed { Ok(()) } else { Err("the old one is") }
    })
    .await;
    // An open connection goes on.
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = kept.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn what_is_no_question_gets_no_answer() {
    let world = World::new().await;
    let server = Server::start(single(&world)).await;
    let post = format!("POST {VALIDATE_WORKLOADS} HTTP/1.1");
    for (head, body, status) in [
        ("GET /healthz HTTP/1.1".to_owned(), Vec::new(), "200 OK"),
        ("GET /readyz HTTP/1.1".to_owned(), Vec::new(), "200 OK"),
        ("POST /elsewhere HTTP/1.1".to_owned(), Vec::new(), "404 Not Found"),
        (format!("GET {VALIDATE_WORKLOADS} HTTP/1.1"), Vec::new(), "405 Method Not Allowed"),
        (post.clone(), b"{".to_vec(), "400 Bad Request"),
        (post.clone(), b"{}".to_vec(), "400 Bad Request"),
        (post.clone(), vec![b' '; (8 << 20) + 1], "413 Payload Too Large"),
    ] {
        let (line, body) = server.send(&head, &body).await;
        assert_eq!(line, format!("HTTP/1.1 {status}"), "{head}: {body}");
    }
    let foreign = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "7", "operation": "CREATE", "resource": { "group": "", "version": "v1", "resource": "pods" }, "object": {},
    } });
    let (line, body) = server.send(&post, foreign.to_string().as_bytes()).await;
    assert_eq!(line, "HTTP/1.1 200 OK");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("7"), &json!(false)));
    assert_eq!(answer["response"]["status"]["code"], 400);
}

#[tokio::test]
async fn it_stops_in_good_order() {
    let world = World::new().await;
    let mut server = Server::start(single(&world)).await;
    let (mut idle, _) = server.connect().await;
    server.stop.take().unwrap().send(()).unwrap();
    tokio::time::timeout(common::DEADLINE, &mut server.serving).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    let mut rest = Vec::new();
    let _ = idle.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("tls.crt"), files.path().join("tls.key"));
    let open = async || Certificates::open(certificate.clone(), key.clone()).await.unwrap_err().to_string();
    assert_eq!(open().await, format!("cannot read {}", certificate.display()));
    std::fs::write(&certificate, "nonsense").unwrap();
    std::fs::write(&key, "nonsense").unwrap();
    assert!(open().await.contains("tls"), "{}", open().await);
    let pair = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(vec!["a".to_owned()]).unwrap().self_signed(&pair).unwrap();
    std::fs::write(&certificate, signed.pem()).unwrap();
    std::fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert!(open().await.ends_with("cannot be used together"), "{}", open().await);
}
