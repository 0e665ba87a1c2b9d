//! The API servers of a stack, as tests and people reach them.

use std::path::PathBuf;

use kube::Client;
use serde::{Deserialize, Serialize};

use crate::certs::{Authority, Certificate};
use crate::{Credential, Error, clients};

/// One API server, and what it takes to be anybody on it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Server {
    /// `https://127.0.0.1:<port>`; it stays the same when the server is stopped and started.
    pub url: String,
    /// The authority that the server's certificate is from.
    pub ca_pem: String,
    /// A token of the user `system:admin` in the group `system:masters`.
    pub admin_token: String,
    /// One JSON line per request that was answered, but for questions about the server's health: who, which verb, on what, which code. A watch has
    /// two, when it begins and when it ends. It never rotates.
    pub audit_log: PathBuf,
    /// An administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// Signs the certificates that the server takes from clients; its certificate is `ca_pem`.
    pub authority: Authority,
}

/// A city's cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Its API server.
    pub server: Server,
    /// The name of its Karmada `Cluster`.
    pub cluster: String,
}

impl Server {
    /// A client that may do everything.
    ///
    /// # Errors
    ///
    /// If the credentials make no client. It must be called inside a Tokio runtime.
    pub fn client(&self) -> Result<Client, Error> {
        self.client_as(Credential::Token(&self.admin_token))
    }

    /// A client with other credentials.
    ///
    /// # Errors
    ///
    /// As of [`Server::client`].
    pub fn client_as(&self, credential: Credential<'_>) -> Result<Client, Error> {
        clients::authenticated(&self.url, &self.ca_pem, credential)
    }

    /// A certificate that makes its holder `user` on this server, in `group` if one is given. It may do what RBAC grants.
    ///
    /// # Errors
    ///
    /// If no key can be made.
    pub fn certificate(&self, user: &str, group: Option<&str>) -> Result<Certificate, Error> {
        self.authority.client(user, group)
    }

    /// A kubeconfig for this server, with one context of that name.
    pub fn kubeconfig_as(&self, name: &str, credential: Credential<'_>) -> String {
        clients::kubeconfig(name, &self.url, &self.ca_pem, credential)
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({})", self.url)
    }
}
