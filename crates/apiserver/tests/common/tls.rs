//! A server on a loopback socket behind TLS, as `serve` runs it.

use std::net::SocketAddr;

use compute_apiserver::{Access, ApiServer, Authority, Identity, PlaneName, Tls, serve};
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::task::JoinHandle;

/// The bearer token that opens every plane.
pub const TOKEN: &str = "test-token";

/// A server that listens on a port of its own until this is dropped.
pub struct TlsServer {
    server: ApiServer,
    tls: Tls,
    /// The authority's certificate, as PEM.
    pub authority: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Kept beside the one that is served, so that connections wait while nothing is served.
    listener: std::net::TcpListener,
    serving: JoinHandle<()>,
}

impl TlsServer {
    /// Starts to listen; [`TOKEN`] opens every plane.
    pub fn start(server: &ApiServer) -> Self {
        let authority = Authority::generate("test authority").unwrap();
        let issued = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        let tls = Tls::from_pem(&issued.certificate, &issued.key).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        server.tokens().add(TOKEN, Identity::superuser("test"), Access::AllPlanes);
        Self {
            address: listener.local_addr().unwrap(),
            authority: authority.certificate().to_owned(),
            serving: run(server, &tls, &listener),
            server: server.clone(),
            tls,
            listener,
        }
    }

    /// A client for a plane with [`TOKEN`].
    pub fn client(&self, plane: &PlaneName) -> Client {
        self.client_with(plane, Some(TOKEN))
    }

    /// A client for a plane with a token, or none.
    pub fn client_with(&self, plane: &PlaneName, token: Option<&str>) -> Client {
        let url = format!("https://{}/planes/{plane}", self.address);
        let mut config = Config::new(url.parse().unwrap());
        let certificate = CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap();
        config.root_cert = Some(vec![certificate.to_vec()]);
        config.auth_info.token = token.map(|token| token.to_owned().into());
        Client::try_from(config).unwrap()
    }

    /// Breaks every connection without a word; new ones are taken at once.
    pub fn cut(&mut self) {
        self.serving.abort();
        self.serving = run(&self.server, &self.tls, &self.listener);
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn run(server: &ApiServer, tls: &Tls, listener: &std::net::TcpListener) -> JoinHandle<()> {
    let listener = tokio::net::TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
    let (server, tls) = (server.clone(), tls.clone());
    tokio::spawn(async move {
        serve(server, listener, tls, std::future::pending()).await.unwrap();
    })
}
