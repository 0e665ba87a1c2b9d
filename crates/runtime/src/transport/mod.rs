//! One host, many planes, few connections.
//!
//! A [`SharedHost`] is an API server that serves many planes under path prefixes. [`SharedHost::client`] gives a
//! plain [`Client`] for one of them; all clients of a host share its HTTP/2 connections, watches and short requests
//! alike.
//!
//! # Guarantees
//! - A further connection is opened only when every open one carries as many streams as the server allows on it
//!   (`SETTINGS_MAX_CONCURRENT_STREAMS`, which the first frame of each connection tells).
//! - A connection that no longer answers pings is given up, and its streams end with an error; one that the server
//!   wants to close (GOAWAY) gets no new streams and ends with its last one; one that nobody uses is closed.
//! - Streams do not hold each other up: the connection's flow control is out of the way, only each stream has
//!   a window. A reader that stops reading stops its own stream and costs at most that window.
//! - A request that certainly has not reached a handler (no connection, a refused stream, a stream beyond a
//!   GOAWAY's last) is sent again on another connection, a few times. Every other failure is the caller's to judge.
//! - A server that does not speak HTTP/2 is spoken to in HTTP/1.1, one request a connection at a time.
//!
//! # Layout
//! `pool` decides which connection a request takes and when to open another; `connect` makes one; `multiplexed`
//! (HTTP/2) and `single` (HTTP/1.1) run one; `credentials` says who is calling, `certificates` when to say it anew; `body` is what comes back.

mod body;
mod certificates;
mod connect;
mod credentials;
mod error;
mod multiplexed;
mod pool;
mod service;
mod single;

use std::sync::Arc;
use std::time::Duration;

use compute_api::kube::client::ConfigExt as _;
use compute_api::kube::client::middleware::ExtraHeadersLayer;
use compute_api::kube::{Client, Config};
use http::HeaderValue;
use http::uri::{Authority, Scheme};
use tower::Layer as _;

pub use body::HostBody;
pub use error::{ConfigError, ConnectError, Error};
pub use pool::Stats;
pub use service::PlaneService;

use connect::Connector;
use credentials::Credentials;
use pool::Pool;

/// How connections to a host are kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long it may take until a new connection is usable: name lookup, TCP, TLS and the server's first frame.
    pub connect_timeout: Duration,
    /// How long the head of an answer may take. Long enough for the longest list, since its head comes after the work.
    pub head_timeout: Duration,
    /// How often a connection is asked whether it still lives. Also keeps middle boxes from forgetting it.
    pub ping_interval: Duration,
    /// How long the answer to that may take.
    pub ping_timeout: Duration,
    /// How long a connection without streams is kept.
    pub idle_timeout: Duration,
    /// Streams on one connection even if the server allows more: what one lost connection takes with it.
    pub max_streams: usize,
    /// What the host is told about who is calling, if its configuration says nothing.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(60),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(90),
            max_streams: 1000,
            user_agent: concat!("datum-compute/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// An API server that all planes of one address are reached through. Cheap to clone; connections are opened when
/// they are needed, and close soon after the last clone and the last client are gone.
#[derive(Clone)]
pub struct SharedHost(Arc<Host>);

struct Host {
    scheme: Scheme,
    authority: Authority,
    /// The path under which the host serves, without a slash at its end.
    path: String,
    user_agent: HeaderValue,
    head_timeout: Duration,
    credentials: Credentials,
    extra_headers: ExtraHeadersLayer,
    default_namespace: String,
    pool: Arc<Pool>,
}

impl SharedHost {
    /// A host as a kubeconfig or the environment of a pod describes it: address, authority, client certificate and token
    /// (those in files are read again when they change), impersonation. Nothing is sent yet.
    ///
    /// # Errors
    /// What is configured cannot be used: see [`ConfigError`]. Credential plugins and proxies are not supported.
    pub fn new(config: Config, options: &Options) -> Result<Self, ConfigError> {
        let url = config.cluster_url.clone();
        let scheme = url.scheme().cloned().ok_or_else(|| ConfigError::Address(url.to_string()))?;
        let authority = url.authority().cloned().ok_or_else(|| ConfigError::Address(url.to_string()))?;
        if config.proxy_url.is_some() {
            return Err(ConfigError::Proxy);
        }
        let credentials = Credentials::new(&config.auth_info)?;
        let extra_headers = config.extra_headers_layer().map_err(ConfigError::Headers)?;
        let user_agent = HeaderValue::from_str(&options.user_agent).map_err(ConfigError::UserAgent)?;
        let default_namespace = config.default_namespace.clone();
        let head_timeout = options.head_timeout;
        let connector = Connector::new(config, &scheme, &authority, options)?;
        Ok(Self(Arc::new(Host {
            path: url.path().trim_end_matches('/').to_owned(),
            scheme,
            authority,
            user_agent,
            head_timeout,
            credentials,
            extra_headers,
            default_namespace,
            pool: Pool::new(connector, options),
        })))
    }

    /// A client for the plane under `path_prefix`, such as
    /// `/apis/resourcemanager.miloapis.com/v1alpha1/projects/<name>/control-plane`; empty for the host's own.
    ///
    /// # Memory Usage
    /// A stream takes about 1.7 KiB, its share of the connection included. A [`Client`] takes about 6 KiB, for a
    /// channel in which it queues requests; clones of it share that. A watch that the client decodes itself
    /// ([`Api::watch`](compute_api::kube::Api::watch)) takes another 8 KiB for its read buffer: whoever holds thousands
    /// reads the body of [`Client::send`] instead. The example `idle_watches` measures all of this.
    pub fn client(&self, path_prefix: &str) -> Client {
        let service = self.0.extra_headers.layer(self.service(path_prefix));
        Client::new(service, self.0.default_namespace.clone())
    }

    /// What a client for that plane is built on; a few bytes. It does not add the configuration's extra headers.
    pub fn service(&self, path_prefix: &str) -> PlaneService {
        let prefix = path_prefix.trim_matches('/');
        let prefix =
            if prefix.is_empty() { self.0.path.clone() } else { format!("{}/{prefix}", self.0.path) };
        PlaneService::new(self.clone(), prefix.into())
    }

    /// What the host's connections carry now.
    pub fn stats(&self) -> Stats {
        self.0.pool.stats()
    }
}

impl std::fmt::Debug for SharedHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedHost({}://{}{})", self.0.scheme, self.0.authority, self.0.path)
    }
}
