//! Makes one connection to a host: name lookup, TCP, TLS, and the protocol that both sides agree on.
//!
//! Client certificates that are named as files are read for each connection, so that new ones are used once
//! they are there; [`Connector::has_new_certificate`] tells when that is.

use std::sync::Arc;
use std::time::Duration;

use compute_api::kube::Config;
use compute_api::kube::client::ConfigExt as _;
use http::uri::{Authority, Scheme};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Options;
use super::certificates::CertificateFiles;
use super::error::{ConfigError, ConnectError};
use super::multiplexed::{self, Multiplexed};
use super::single::{self, Single};

/// What it takes to reach the host.
pub(super) struct Connector {
    host: String,
    port: u16,
    tls: Option<Tls>,
    connect_timeout: Duration,
    ping_interval: Duration,
    ping_timeout: Duration,
}

struct Tls {
    name: ServerName<'static>,
    settings: TlsSettings,
}

enum TlsSettings {
    /// They hold for every connection.
    Fixed(Arc<ClientConfig>),
    /// Certificate and key are in files that somebody else renews.
    Files(Box<Config>, CertificateFiles),
}

/// A connection that is ready for requests.
pub(super) enum Connection {
    /// HTTP/2.
    Multiplexed(Box<Multiplexed>),
    /// HTTP/1.1.
    Single(Single),
}

impl Connector {
    pub(super) fn new(
        config: Config,
        scheme: &Scheme,
        authority: &Authority,
        options: &Options,
    ) -> Result<Self, ConfigError> {
        let is_secure = *scheme == Scheme::HTTPS;
        if !is_secure && *scheme != Scheme::HTTP {
            return Err(ConfigError::Address(config.cluster_url.to_string()));
        }
        // An IPv6 address stands in brackets in a URL, and without in every other place.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let tls = if is_secure { Some(Tls::new(config, &host)?) } else { None };
        Ok(Self {
            host,
            port,
            tls,
            connect_timeout: options.connect_timeout,
            ping_interval: options.ping_interval,
            ping_timeout: options.ping_timeout,
        })
    }

    /// A connection that is ready for requests, within the time for it.
    pub(super) async fn connect(&self) -> Result<Connection, ConnectError> {
        match tokio::time::timeout(self.connect_timeout, self.attempt()).await {
            Ok(result) => result,
            Err(_) => Err(ConnectError::Timeout { address: self.address() }),
        }
    }

    /// Whether the files of the client certificate hold another one, that a new connection can show. Says so once.
    pub(super) async fn has_new_certificate(&self, at_once: bool) -> bool {
        match self.tls.as_ref().map(|tls| &tls.settings) {
            Some(TlsSettings::Files(config, files)) => {
                files.has_new(at_once, || client_config(config).is_ok()).await
            }
            Some(TlsSettings::Fixed(_)) | None => false,
        }
    }

    async fn attempt(&self) -> Result<Connection, ConnectError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|source| ConnectError::Tcp { address: self.address(), source })?;
        self.prepare(&stream);
        let Some(tls) = &self.tls else {
            return single::handshake(stream).await.map(Connection::Single);
        };
        let stream = TlsConnector::from(tls.config()?)
            .connect(tls.name.clone(), stream)
            .await
            .map_err(|source| ConnectError::Tls { address: self.address(), source })?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            let connection = multiplexed::handshake(stream, self.ping_interval, self.ping_timeout).await?;
            Ok(Connection::Multiplexed(Box::new(connection)))
        } else {
            single::handshake(stream).await.map(Connection::Single)
        }
    }

    /// Small writes go out at once. The system asks for signs of life too: HTTP/1.1 has no pings of its own. A system
    /// that can do neither is no reason not to connect.
    fn prepare(&self, stream: &TcpStream) {
        const SYSTEM_UNIT: Duration = Duration::from_secs(1);
        let keep_alive = socket2::TcpKeepalive::new()
            .with_time(self.ping_interval.max(SYSTEM_UNIT))
            .with_interval((self.ping_timeout / 2).max(SYSTEM_UNIT));
        let set = socket2::SockRef::from(stream).set_tcp_keepalive(&keep_alive);
        if let Err(error) = set.and_then(|()| stream.set_nodelay(true)) {
            tracing::debug!(%error, "socket options not set");
        }
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl Tls {
    fn new(config: Config, host: &str) -> Result<Self, ConfigError> {
        let name = config.tls_server_name.clone().unwrap_or_else(|| host.to_owned());
        let name = ServerName::try_from(name.clone()).map_err(|_| ConfigError::ServerName(name))?;
        // Even if the files are read again for each connection: a mistake in them shows now.
        let fixed = client_config(&config).map_err(|error| ConfigError::Tls(Box::new(error)))?;
        let settings = match CertificateFiles::of(&config.auth_info) {
            Some(files) => TlsSettings::Files(Box::new(config), files),
            None => TlsSettings::Fixed(fixed),
        };
        Ok(Self { name, settings })
    }

    fn config(&self) -> Result<Arc<ClientConfig>, ConnectError> {
        match &self.settings {
            TlsSettings::Fixed(config) => Ok(config.clone()),
            TlsSettings::Files(config, _) => {
                client_config(config).map_err(|error| ConnectError::Certificates(Box::new(error)))
            }
        }
    }
}

fn client_config(config: &Config) -> Result<Arc<ClientConfig>, compute_api::kube::Error> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}
