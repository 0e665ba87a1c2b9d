//! Servers to measure, and the two ways to reach them: in this process without a socket, and over TLS in another
//! process, as `serve` runs it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use compute_apiserver::{
    Access, ApiServer, Authority, Identity, Options, PlaneName, PlaneTemplate, Tls, serve,
};
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::child::{self, Child, Role};
use crate::sample;

/// The plane that most measurements use.
pub const PLANE: &str = "bench";
/// The bearer token that opens every plane.
const TOKEN: &str = "bench-token";

/// Whether planes are kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In memory alone.
    InMemory,
    /// On disk.
    OnDisk,
}

impl Kept {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::InMemory => "in memory",
            Self::OnDisk => "on disk",
        }
    }

    /// A new folder for the data, if there is any.
    pub fn folder(self, under: &Path) -> Result<Option<TempDir>> {
        match self {
            Self::InMemory => Ok(None),
            Self::OnDisk => Ok(Some(TempDir::new_in(under).context("cannot make a folder for the data")?)),
        }
    }
}

/// How a client reaches its plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Through a tower service, without a socket.
    InProcess,
    /// Over TLS on loopback, to a server in another process.
    Tls,
}

impl Transport {
    /// Both.
    pub const ALL: [Self; 2] = [Self::InProcess, Self::Tls];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Tls => "TLS",
        }
    }
}

/// A server in this process, and the template of its planes.
pub struct Local {
    /// The server.
    pub server: ApiServer,
    template: PlaneTemplate,
}

impl Local {
    /// Opens the store in `folder`, or a server without one.
    pub async fn open(folder: Option<&Path>) -> Result<Self> {
        let server = match folder {
            Some(folder) => ApiServer::open(Options::default(), folder)?,
            None => ApiServer::new(Options::default()),
        };
        let template = server.template(&[sample::crd()?]).await?;
        Ok(Self { server, template })
    }

    /// Makes a plane, or takes over the one that was found.
    pub async fn plane(&self, name: &str) -> Result<PlaneName> {
        let name = PlaneName::new(name)?;
        self.server.create_plane(name.clone(), &self.template).await?;
        Ok(name)
    }

    /// A client for a plane. Each carries an identity of its own, as separate controllers would.
    pub fn client(&self, plane: &PlaneName) -> Client {
        Client::new(self.server.service(plane, Identity::superuser("bench")), "default")
    }
}

/// Where a server listens and what opens it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    /// `127.0.0.1:port`.
    pub address: std::net::SocketAddr,
    /// The certificate of the authority, as PEM.
    pub authority: String,
    /// The bearer token of whoever uses this.
    pub token: String,
}

impl Endpoint {
    /// The authority's certificate.
    pub fn root(&self) -> Result<CertificateDer<'static>> {
        CertificateDer::from_pem_slice(self.authority.as_bytes()).context("the authority is not PEM")
    }

    /// A client for a plane with connections of its own.
    pub fn client(&self, plane: &str) -> Result<Client> {
        let url = format!("https://{}/planes/{plane}", self.address);
        let mut config = Config::new(url.parse().context("not a URL")?);
        config.root_cert = Some(vec![self.root()?.to_vec()]);
        config.auth_info.token = Some(self.token.clone().into());
        Client::try_from(config).context("cannot make a client")
    }

    /// The same server as someone else, who is known by a token of their own.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        Self { token: token_of(user), ..self.clone() }
    }
}

fn token_of(user: &str) -> String {
    format!("{TOKEN}-{user}")
}

/// A server in another process, reached over TLS.
pub struct Remote {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Ends with this value.
    _child: Child,
}

/// Users that a remote server knows.
pub const USERS: [&str; 2] = ["bench", "flood"];

impl Remote {
    /// Starts a server with these planes.
    pub async fn start(folder: Option<PathBuf>, planes: &[&str]) -> Result<Self> {
        let planes = planes.iter().map(|&name| name.to_owned()).collect();
        let mut child = Child::start(&Role::Serve { folder, planes })?;
        Ok(Self { endpoint: child.line().await?, _child: child })
    }
}

/// What the other process does: serves until nobody wants it any more.
pub async fn serve_planes(folder: Option<PathBuf>, planes: Vec<String>) -> Result<()> {
    let local = Local::open(folder.as_deref()).await?;
    for name in planes {
        local.plane(&name).await?;
    }
    for user in USERS {
        local.server.tokens().add(&token_of(user), Identity::superuser(user), Access::AllPlanes);
    }
    let authority = Authority::generate("bench authority")?;
    let issued = authority.issue_server(&["127.0.0.1".to_owned()])?;
    let tls = Tls::from_pem(&issued.certificate, &issued.key)?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let authority = authority.certificate().to_owned();
    let endpoint = Endpoint { address: listener.local_addr()?, authority, token: token_of(USERS[0]) };
    child::tell(&endpoint)?;
    serve(local.server, listener, tls, child::orphaned()).await?;
    Ok(())
}

/// A plane that is ready to be measured, however it is reached.
pub struct Site {
    way: Way,
    /// Goes last, after whoever has it open.
    _folder: Option<TempDir>,
}

enum Way {
    Local(Local, PlaneName),
    Remote(Box<Remote>),
}

impl Site {
    /// A fresh server with the plane [`PLANE`], its data under `under`.
    pub async fn new(transport: Transport, kept: Kept, under: &Path) -> Result<Self> {
        let folder = kept.folder(under)?;
        let path = folder.as_ref().map(|folder| folder.path().to_owned());
        let way = match transport {
            Transport::InProcess => {
                let local = Local::open(path.as_deref()).await?;
                let plane = local.plane(PLANE).await?;
                Way::Local(local, plane)
            }
            Transport::Tls => Way::Remote(Box::new(Remote::start(path, &[PLANE]).await?)),
        };
        Ok(Self { way, _folder: folder })
    }

    /// A client with connections of its own.
    pub fn client(&self) -> Result<Client> {
        match &self.way {
            Way::Local(local, plane) => Ok(local.client(plane)),
            Way::Remote(remote) => remote.endpoint.client(PLANE),
        }
    }

    /// Several of them.
    pub fn clients(&self, count: usize) -> Result<Vec<Client>> {
        (0..count).map(|_| self.client()).collect()
    }
}
