//! Credentials over the network: static tokens, client certificates, tokens of service accounts; each until it ends, and
//! only in its planes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use compute_apiserver::{
    Access, ApiServer, Authority, Clock, Identity, Issued, Options, PlaneName, Tls, serve,
};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::common::{plane, refused, soon};
use super::request;

/// A clock that a test sets.
#[derive(Clone, Default)]
struct SetClock(Arc<AtomicI64>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

impl SetClock {
    fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

async fn server() -> (ApiServer, SetClock) {
    let clock = SetClock(Arc::new(AtomicI64::new(2_000_000_000)));
    let server = ApiServer::new(Options { clock: Arc::new(clock.clone()), ..Options::default() });
    for name in ["a", "b"] {
        plane(&server, name).await;
        let access = Access::Planes([PlaneName::new(name).unwrap()].into());
        server.tokens().add(&format!("root-{name}"), Identity::superuser("root"), access);
    }
    (server, clock)
}

async fn ask(
    server: &ApiServer,
    token: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> (StatusCode, Value) {
    let bearer = format!("Bearer {token}");
    let headers: &[(&str, &str)] = if token.is_empty() { &[] } else { &[("authorization", &bearer)] };
    let request: Request<Full<bytes::Bytes>> = request(method, path, body, headers);
    let response = server.network_service().oneshot(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// A token for a new service account `s` of plane `a`.
async fn service_account_token(server: &ApiServer, request: &Value) -> Value {
    let accounts = "/planes/a/api/v1/namespaces/default/serviceaccounts";
    ask(server, "root-a", Method::POST, accounts, &json!({ "metadata": { "name": "s" } })).await;
    let (status, answer) = ask(server, "root-a", Method::POST, &format!("{accounts}/s/token"), request).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    answer
}

const WHO: &str = "apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The code that a token gets for asking who it is.
async fn who(server: &ApiServer, token: &str, plane: &str) -> StatusCode {
    ask(server, token, Method::POST, &format!("/planes/{plane}/{WHO}"), &json!({})).await.0
}

#[tokio::test]
async fn a_token_ends_everywhere_when_it_expires() {
    let (server, clock) = server().await;
    let expires = clock.now() + jiff::SignedDuration::from_secs(60);
    server.tokens().add_until("short", Identity::superuser("ann"), Access::AllPlanes, expires);
    for plane in ["a", "b"] {
        assert_eq!(who(&server, "short", plane).await, StatusCode::CREATED);
    }
    assert_eq!(who(&server, "short", "missing").await, StatusCode::NOT_FOUND);
    clock.advance(60);
    for plane in ["a", "b", "missing"] {
        assert_eq!(who(&server, "short", plane).await, StatusCode::UNAUTHORIZED);
        for token in ["", "unknown", "x.y.z"] {
            assert_eq!(who(&server, token, plane).await, StatusCode::UNAUTHORIZED, "{token} {plane}");
        }
    }
}

#[tokio::test]
async fn a_service_account_token_counts_in_its_plane_until_it_ends() {
    let (server, clock) = server().await;
    let answer = service_account_token(&server, &json!({ "spec": { "expirationSeconds": 600 } })).await;
    assert_eq!(answer["kind"], "TokenRequest");
    let token = answer["status"]["token"].as_str().unwrap();
    let (_, answer) = ask(&server, token, Method::POST, &format!("/planes/a/{WHO}"), &json!({})).await;
    let user = &answer["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:s");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    assert_eq!(user["groups"], json!(groups));
    assert!(!user["uid"].as_str().unwrap().is_empty());

    // It may do what its roles say, which is nothing yet.
    let maps = "/planes/a/api/v1/namespaces/default/configmaps";
    assert_eq!(ask(&server, token, Method::GET, maps, &Value::Null).await.0, StatusCode::FORBIDDEN);
    let binding = json!({
        "metadata": { "name": "s" }, "subjects": [{ "kind": "ServiceAccount", "name": "s", "namespace": "default" }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
    });
    let bindings = "/planes/a/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    ask(&server, "root-a", Method::POST, bindings, &binding).await;
    assert_eq!(ask(&server, token, Method::GET, maps, &Value::Null).await.0, StatusCode::OK);

    // The other plane has such a service account, too, and does not take the token; nor does a plane that is not there.
    let accounts = "/planes/b/api/v1/namespaces/default/serviceaccounts";
    ask(&server, "root-b", Method::POST, accounts, &json!({ "metadata": { "name": "s" } })).await;
    for plane in ["b", "missing", "core"] {
        assert_eq!(who(&server, token, plane).await, StatusCode::FORBIDDEN, "{plane}");
    }
    let altered =
        format!("{}{}", &token[..token.len() - 4], if token.ends_with("AAAA") { "BBBB" } else { "AAAA" });
    assert_eq!(who(&server, &altered, "a").await, StatusCode::UNAUTHORIZED);

    clock.advance(600);
    for plane in ["a", "b", "missing"] {
        assert_eq!(who(&server, token, plane).await, StatusCode::UNAUTHORIZED, "{plane}");
    }
}

#[tokio::test]
async fn a_service_account_token_ends_with_what_it_stands_for() {
    let (server, _) = server().await;
    let secrets = "/planes/a/api/v1/namespaces/default/secrets";
    let (_, secret) =
        ask(&server, "root-a", Method::POST, secrets, &json!({ "metadata": { "name": "k" } })).await;
    let reference = |uid: &Value| json!({ "apiVersion": "v1", "kind": "Secret", "name": "k", "uid": uid });
    let request = json!({ "spec": { "boundObjectRef": reference(&secret["metadata"]["uid"]) } });
    let bound = service_account_token(&server, &request).await;
    let bound = bound["status"]["token"].as_str().unwrap();
    let plain = service_account_token(&server, &json!({})).await;
    let plain = plain["status"]["token"].as_str().unwrap();
    assert_eq!(who(&server, bound, "a").await, StatusCode::CREATED);
    ask(&server, "root-a", Method::DELETE, &format!("{secrets}/k"), &Value::Null).await;
    ask(&server, "root-a", Method::POST, secrets, &json!({ "metadata": { "name": "k" } })).await;
    assert_eq!(who(&server, bound, "a").await, StatusCode::UNAUTHORIZED, "another secret of that name");
    assert_eq!(who(&server, plain, "a").await, StatusCode::CREATED);
    let accounts = "/planes/a/api/v1/namespaces/default/serviceaccounts";
    ask(&server, "root-a", Method::DELETE, &format!("{accounts}/s"), &Value::Null).await;
    assert_eq!(who(&server, plain, "a").await, StatusCode::UNAUTHORIZED);
    ask(&server, "root-a", Method::POST, accounts, &json!({ "metadata": { "name": "s" } })).await;
    assert_eq!(who(&server, plain, "a").await, StatusCode::UNAUTHORIZED, "another account of that name");

    let token = format!("{accounts}/s/token");
    for (request, field) in [
        (json!({ "spec": { "expirationSeconds": 10 } }), "spec.expirationSeconds"),
        (json!({ "spec": { "expirationSeconds": "x" } }), "spec.expirationSeconds"),
        (json!({ "spec": { "audiences": "x" } }), "spec.audiences"),
        (
            json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Lease", "name": "k" } } }),
            "spec.boundObjectRef.kind",
        ),
        (
            json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": "k" } } }),
            "spec.boundObjectRef.name",
        ),
        (json!({ "spec": { "boundObjectRef": reference(&json!("old")) } }), "spec.boundObjectRef.uid"),
    ] {
        let (status, answer) = ask(&server, "root-a", Method::POST, &token, &request).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        assert_eq!(answer["details"]["causes"][0]["field"], field, "{answer}");
    }
}

#[tokio::test]
async fn tokens_are_reviewed_for_their_audience() {
    let (server, _) = server().await;
    let made = service_account_token(&server, &json!({ "spec": { "audiences": ["vault"] } })).await;
    let token = made["status"]["token"].as_str().unwrap();
    assert_eq!(who(&server, token, "a").await, StatusCode::UNAUTHORIZED, "it is not for the API");
    let reviewed = async |plane: &str, token: &str, audiences: Value| {
        let path = format!("/planes/{plane}/apis/authentication.k8s.io/v1/tokenreviews");
        let review = json!({ "spec": { "token": token, "audiences": audiences } });
        let (status, answer) = ask(&server, &format!("root-{plane}"), Method::POST, &path, &review).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        assert!(!answer.to_string().contains(token), "the answer shows the token");
        answer["status"].clone()
    };
    let status = reviewed("a", token, json!(["vault", "other"])).await;
    assert_eq!(
        (&status["authenticated"], &status["audiences"]),
        (&json!(true), &json!(["vault"])),
        "{status}"
    );
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:s");
    for (plane, token, audiences) in [
        ("a", token, json!(["other"])),
        ("a", token, Value::Null),
        ("b", token, json!(["vault"])),
        ("a", "unknown", Value::Null),
        ("a", "root-b", Value::Null),
    ] {
        let status = reviewed(plane, token, audiences.clone()).await;
        assert_ne!(status["authenticated"], true, "{plane} {token} {audiences}");
    }
    assert_eq!(reviewed("a", "root-a", Value::Null).await["user"]["username"], "root");
}

#[tokio::test]
async fn a_service_account_token_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = async || {
        let server = ApiServer::open(Options::default(), folder.path()).unwrap();
        plane(&server, "a").await;
        let access = Access::Planes([PlaneName::new("a").unwrap()].into());
        server.tokens().add("root-a", Identity::superuser("root"), access);
        server
    };
    let server = open().await;
    let made = service_account_token(&server, &json!({})).await;
    let token = made["status"]["token"].as_str().unwrap();
    assert_eq!(who(&server, token, "a").await, StatusCode::CREATED);
    let bindings = "/planes/a/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let path = format!("{bindings}/system:basic-user");
    assert_eq!(ask(&server, "root-a", Method::DELETE, &path, &Value::Null).await.0, StatusCode::OK);
    assert_eq!(who(&server, token, "a").await, StatusCode::FORBIDDEN);
    drop(server);
    let server = open().await;
    assert_eq!(
        who(&server, token, "a").await,
        StatusCode::FORBIDDEN,
        "known, and what was taken away stays so"
    );
    assert_eq!(who(&server, "x.y.z", "a").await, StatusCode::UNAUTHORIZED);
}

/// A client with a certificate.
fn client(address: std::net::SocketAddr, plane: &str, authority: &str, issued: Option<&Issued>) -> Client {
    let mut config = Config::new(format!("https://{address}/planes/{plane}").parse().unwrap());
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).unwrap();
    config.root_cert = Some(vec![certificate.to_vec()]);
    if let Some(issued) = issued {
        use base64::Engine as _;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        config.auth_info.client_certificate_data = Some(encode(&issued.certificate));
        config.auth_info.client_key_data = Some(encode(&issued.key).into());
    }
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_client_certificate_says_who_one_is() {
    let (server, clock) = server().await;
    let authority = Authority::generate("clients").unwrap();
    let issued = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
    let access = Access::Planes([PlaneName::new("a").unwrap()].into());
    let tls = Tls::from_pem_with_clients(&issued.certificate, &issued.key, authority.certificate(), access)
        .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve(server.clone(), listener, tls, std::future::pending()));
    let list = async |client: Client| {
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        soon("an answer", maps.list(&Default::default())).await
    };
    let later = clock.now() + jiff::SignedDuration::from_secs(3600);
    let ann = authority.issue_client("ann", Some("viewers"), later).unwrap();
    let as_ann = client(address, "a", authority.certificate(), Some(&ann));
    let (code, _) = refused(list(as_ann.clone()).await);
    assert_eq!(code, 403, "known, but without a role");
    let binding = json!({
        "metadata": { "name": "v" }, "subjects": [{ "kind": "Group", "name": "viewers" }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
    });
    let bindings = "/planes/a/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    ask(&server, "root-a", Method::POST, bindings, &binding).await;
    list(as_ann.clone()).await.unwrap();
    for plane in ["b", "missing"] {
        let (code, _) = refused(list(client(address, plane, authority.certificate(), Some(&ann))).await);
        assert_eq!(code, 403, "the authority's certificates do not open plane {plane}");
    }
    let (code, _) = refused(list(client(address, "a", authority.certificate(), None)).await);
    assert_eq!(code, 401, "no certificate");
    let stranger = Authority::generate("strangers").unwrap();
    let forged = stranger.issue_client("root", Some("system:masters"), later).unwrap();
    let refused_handshake = list(client(address, "a", authority.certificate(), Some(&forged))).await;
    assert!(!matches!(refused_handshake, Ok(_) | Err(kube::Error::Api(_))), "{refused_handshake:?}");

    // An open connection does not outlive the certificate.
    clock.advance(3600);
    let (code, _) = refused(list(as_ann).await);
    assert_eq!(code, 401);
    serving.abort();
}
