//! Who is calling: tokens, token files that rotate, certificates, impersonation, and what is refused.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine as _;
use compute_apiserver::{Access, ApiServer, Authority, Clock, Identity, Options, SystemClock, Tls, serve};
use compute_runtime::transport::{ConfigError, SharedHost};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::{options, path};
use crate::support::{Front, FrontOptions, TOKEN, plane, server};

/// Whom the server takes the caller for.
async fn whoami(client: &Client) -> kube::Result<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(review.status.unwrap_or_default().user_info.unwrap_or_default().username.unwrap_or_default())
}

fn token(server: &ApiServer, name: &str) {
    server.tokens().add(&format!("token-of-{name}"), Identity::superuser(name), Access::AllPlanes);
}

#[tokio::test]
async fn a_token_says_who_is_calling() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions::default()).await;
    let host = SharedHost::new(front.config(), &options()).unwrap();
    assert_eq!(whoami(&host.client(&path(&plane))).await.unwrap(), "test");

    let mut config = front.config();
    config.auth_info.token = Some("wrong".to_owned().into());
    let host = SharedHost::new(config, &options()).unwrap();
    let error = whoami(&host.client(&path(&plane))).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 401), "{error:?}");
}

#[tokio::test]
async fn a_token_file_is_read_again_when_it_rotates() {
    let server = server();
    let plane = plane(&server, "test").await;
    let front = Front::start(&server, FrontOptions::default()).await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "token-of-first").unwrap();
    let mut config = front.config();
    config.auth_info.token = None;
    config.auth_info.token_file = Some(file.path().to_str().unwrap().to_owned());
    token(&server, "first");
    let host = SharedHost::new(config, &options()).unwrap();
    let client = host.client(&path(&plane));
    assert_eq!(whoami(&client).await.unwrap(), "first");

    // The old token ends: the refused request is sent again with the new one, and nobody notices.
    server.tokens().remove("token-of-first");
    token(&server, "second");
    std::fs::write(file.path(), "token-of-second").unwrap();
    assert_eq!(whoami(&client).await.unwrap(), "second");

    // A file that is gone for a moment changes nothing.
    std::fs::remove_file(file.path()).unwrap();
    assert_eq!(whoami(&client).await.unwrap(), "second");
    server.tokens().remove("token-of-second");
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 401), "{error:?}");
}

#[tokio::test]
async fn certificates_in_files_are_read_for_each_connection() {
    let server = server();
    let plane = plane(&server, "test").await;
    let authority = Authority::generate("test authority").unwrap();
    let served = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
    let tls = Tls::from_pem_with_clients(
        &served.certificate,
        &served.key,
        authority.certificate(),
        Access::AllPlanes,
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
    let root = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
    config.root_cert = Some(vec![root.to_vec()]);
    tokio::spawn(serve(server.clone(), listener, tls.unwrap(), std::future::pending()));

    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let issue = |name: &str| {
        let issued = authority.issue_client(name, Some("system:masters"), jiff::Timestamp::MAX).unwrap();
        std::fs::write(&certificate, &issued.certificate).unwrap();
        std::fs::write(&key, &issued.key).unwrap();
        issued
    };
    let first = issue("first");
    config.auth_info.client_certificate = Some(certificate.to_str().unwrap().to_owned());
    config.auth_info.client_key = Some(key.to_str().unwrap().to_owned());
    let host = SharedHost::new(config.clone(), &options()).unwrap();
    assert_eq!(whoami(&host.client(&path(&plane))).await.unwrap(), "first");

    issue("second");
    assert_eq!(
        whoami(&host.client(&path(&plane))).await.unwrap(),
        "first",
        "an open connection is who it was"
    );
    let host = SharedHost::new(config.clone(), &options()).unwrap();
    issue("third");
    assert_eq!(whoami(&host.client(&path(&plane))).await.unwrap(), "third", "a new one is who it is now");

    let base64 = base64::engine::general_purpose::STANDARD;
    config.auth_info = kube::config::AuthInfo {
        client_certificate_data: Some(base64.encode(first.certificate)),
        client_key_data: Some(base64.encode(first.key).into()),
        ..Default::default()
    };
    let host = SharedHost::new(config, &options()).unwrap();
    assert_eq!(whoami(&host.client(&path(&plane))).await.unwrap(), "first");
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_once() {
    let server = server();
    let front = Front::start(&server, FrontOptions::default()).await;
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = front.config();
        change(&mut config);
        SharedHost::new(config, &options()).unwrap_err()
    };
    let error = refused(&|config| config.cluster_url = "/just/a/path".parse().unwrap());
    assert!(matches!(error, ConfigError::Address(_)), "{error:?}");
    let error = refused(&|config| config.cluster_url = "ftp://example.com".parse().unwrap());
    assert!(matches!(error, ConfigError::Address(_)), "{error:?}");
    let error = refused(&|config| config.tls_server_name = Some("not a name".into()));
    assert!(matches!(error, ConfigError::ServerName(_)), "{error:?}");
    let error = refused(&|config| config.proxy_url = Some("http://proxy".parse().unwrap()));
    assert!(matches!(error, ConfigError::Proxy), "{error:?}");
    let error = refused(&|config| config.auth_info.token_file = Some("/nowhere/token".into()));
    assert!(error.to_string().contains("/nowhere/token"), "{error:?}");
    let error = refused(&|config| config.auth_info.token = Some("two\nlines".to_owned().into()));
    assert!(matches!(error, ConfigError::Credentials), "{error:?}");
    let error = refused(&|config| config.auth_info.token = Some(String::new().into()));
    assert!(matches!(error, ConfigError::Credentials), "{error:?}");
    let error =
        refused(&|config| config.auth_info.exec = Some(serde_json::from_str("{\"command\":\"x\"}").unwrap()));
    assert!(matches!(error, ConfigError::Plugin), "{error:?}");
    let error = refused(&|config| config.root_cert = Some(vec![b"no certificate".to_vec()]));
    assert!(matches!(error, ConfigError::Tls(_)), "{error:?}");
    let shown = format!("{:?}", SharedHost::new(front.config(), &options()).unwrap());
    assert!(shown.starts_with("SharedHost(https://127.0.0.1:") && !shown.contains(TOKEN), "{shown}");
}

/// The machine's clock, put forward.
#[derive(Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now(&self) -> jiff::Timestamp {
        SystemClock.now() + jiff::SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn a_certificate_that_has_ended_gives_way_to_the_one_in_the_files() {
    let clock = Arc::new(Ahead::default());
    let server = ApiServer::new(Options { clock: clock.clone(), ..Options::default() });
    let plane = plane(&server, "test").await;
    let authority = Authority::generate("test authority").unwrap();
    let served = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
    let (shown, key) = (&served.certificate, &served.key);
    let tls = Tls::from_pem_with_clients(shown, key, authority.certificate(), Access::AllPlanes).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
    let root = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
    config.root_cert = Some(vec![root.to_vec()]);
    tokio::spawn(serve(server.clone(), listener, tls, std::future::pending()));

    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    config.auth_info.client_certificate = Some(certificate.to_str().unwrap().to_owned());
    config.auth_info.client_key = Some(key.to_str().unwrap().to_owned());
    let issue = |name: &str, until| authority.issue_client(name, Some("system:masters"), until).unwrap();
    let ending = issue("ending", clock.now() + jiff::SignedDuration::from_hours(1));
    std::fs::write(&certificate, &ending.certificate).unwrap();
    std::fs::write(&key, &ending.key).unwrap();
    let host = SharedHost::new(config, &options()).unwrap();
    let client = host.client(&path(&plane));
    assert_eq!(whoami(&client).await.unwrap(), "ending");

    // The connection is open, and refused.
    clock.0.store(2 * 3600, Ordering::Relaxed);
    let error = whoami(&client).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 401), "{error:?}");
    let next = issue("next", jiff::Timestamp::MAX);
    std::fs::write(&certificate, &next.certificate).unwrap();
    let error = whoami(&client).await.unwrap_err();
    assert!(
        matches!(&error, kube::Error::Api(_)),
        "one whose key is not written yet is not shown: {error:?}"
    );
    std::fs::write(&key, &next.key).unwrap();
    assert_eq!(whoami(&client).await.unwrap(), "next", "the refused request is sent again");
}
