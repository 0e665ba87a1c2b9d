//! The API servers that a stack is put onto: management, hub and cells.
//!
//! They are what `cargo xtask realstack up` has started, or, where there is none of that, planes of an embedded server behind TLS, on which
//! everything but Kubernetes and Karmada themselves can be tried out.

use std::collections::BTreeMap;
use std::path::Path;

use compute_apiserver::{Access, ApiServer, Authority, Identity, Options, PlaneName, Tls};
use compute_local::planes::{self, Role};
use compute_realstack::{Running, Server};
use kube::config::AuthInfo;
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An API server. Clones share their connections.
#[derive(Clone)]
pub struct Endpoint {
    /// Its address, with a path if it is under one.
    pub url: String,
    /// The authority of its certificate.
    pub ca_pem: String,
    /// The token of one who may do everything there.
    pub admin_token: String,
    bare: Client,
    admin: Client,
}

impl Endpoint {
    /// A server at an address.
    pub fn new(url: &str, ca_pem: &str, admin_token: &str) -> Self {
        let mut config = Config::new(url.parse().unwrap());
        config.root_cert = Some(pem::certificates(ca_pem));
        let bare = Client::try_from(config.clone()).unwrap();
        config.auth_info = AuthInfo { token: Some(admin_token.to_owned().into()), ..AuthInfo::default() };
        Self {
            url: url.to_owned(),
            ca_pem: ca_pem.to_owned(),
            admin_token: admin_token.to_owned(),
            bare,
            admin: Client::try_from(config).unwrap(),
        }
    }

    /// A client that shows no credentials.
    pub fn bare(&self) -> Client {
        self.bare.clone()
    }

    /// A client that may do everything.
    pub fn admin(&self) -> Client {
        self.admin.clone()
    }
}

mod pem {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    pub(super) fn certificates(text: &str) -> Vec<Vec<u8>> {
        CertificateDer::pem_slice_iter(text.as_bytes()).map(|der| der.unwrap().to_vec()).collect()
    }
}

/// A cell.
#[derive(Clone)]
pub struct CellEndpoint {
    /// Its API server.
    pub server: Endpoint,
    /// The name of its `Cluster` on the hub.
    pub cluster: String,
}

/// The API servers that a stack is put onto.
pub struct Foundation {
    /// Where one project is, and the management role's own cluster.
    pub management: Endpoint,
    /// The hub.
    pub hub: Endpoint,
    /// The cells, by city.
    pub cells: BTreeMap<String, CellEndpoint>,
    /// What serves them.
    pub engine: Engine,
}

/// What serves a foundation.
pub enum Engine {
    /// The embedded server; the stand-in for propagation is needed.
    Embedded {
        /// Serves until it is aborted.
        serving: JoinHandle<()>,
    },
    /// Kubernetes and Karmada.
    Real(Box<Running>),
}

impl Foundation {
    /// What `cargo xtask realstack up` has started, as it is described in a folder.
    pub fn real(dir: &Path) -> Self {
        let running = Running::open(dir).unwrap();
        let endpoint = |server: &Server| Endpoint::new(&server.url, &server.ca_pem, &server.admin_token);
        let cells = running.cells().iter().map(|(city, cell)| {
            let server = endpoint(&cell.server);
            (city.clone(), CellEndpoint { server, cluster: cell.cluster.clone() })
        });
        Self {
            management: endpoint(running.management()),
            hub: endpoint(running.hub()),
            cells: cells.collect(),
            engine: Engine::Real(Box::new(running)),
        }
    }

    /// The processes behind it, if they can be stopped and started.
    pub fn running(&self) -> Option<&Running> {
        match &self.engine {
            Engine::Real(running) => Some(running),
            Engine::Embedded { .. } => None,
        }
    }

    /// Planes of an embedded server of their own.
    pub async fn embedded(cities: &[&str]) -> Self {
        let server = ApiServer::new(Options::default());
        let name = |text: &str| PlaneName::new(text).unwrap();
        let blank = server.template(&[]).await.unwrap();
        // Karmada brings its kinds; the rest is installed as on a real one.
        let karmada = planes::objects(Role::Hub).unwrap().into_iter();
        let karmada: Vec<_> = karmada.filter(super::install::is_karmadas).collect();
        let hub = server.template(&karmada).await.unwrap();
        server.create_plane(name("management"), &blank).await.unwrap();
        server.create_plane(name("hub"), &hub).await.unwrap();
        let authority = Authority::generate("foundation").unwrap();
        let issued = authority.issue_server(&["127.0.0.1".to_owned()]).unwrap();
        let tls = Tls::from_pem(&issued.certificate, &issued.key).unwrap();
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let endpoint = |plane: &str| {
            let token = format!("admin-of-{plane}");
            let access = Access::Planes([name(plane)].into());
            server.tokens().add(&token, Identity::superuser("admin"), access);
            Endpoint::new(&format!("https://{address}/planes/{plane}"), authority.certificate(), &token)
        };
        let mut cells = BTreeMap::new();
        for city in cities {
            let cluster = planes::cluster_name(city);
            server.create_plane(name(&cluster), &blank).await.unwrap();
            cells.insert((*city).to_owned(), CellEndpoint { server: endpoint(&cluster), cluster });
        }
        let (management, hub) = (endpoint("management"), endpoint("hub"));
        let serving = tokio::spawn(async move {
            if let Err(error) = compute_apiserver::serve(server, socket, tls, std::future::pending()).await {
                tracing::error!(%error, "the foundation is gone");
            }
        });
        Self { management, hub, cells, engine: Engine::Embedded { serving } }
    }
}

impl Drop for Foundation {
    fn drop(&mut self) {
        match &self.engine {
            Engine::Embedded { serving } => serving.abort(),
            Engine::Real(_) => {}
        }
    }
}
