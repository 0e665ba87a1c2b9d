//! How a host can be unusable, and how a request to it can fail.

use std::io;
use std::sync::Arc;

use compute_api::kube;

/// Why a host cannot be used as configured. No retry helps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The address lacks a scheme or a host, or has a scheme other than `http` and `https`.
    #[error("{0:?} is not the address of an API server")]
    Address(String),
    /// The TLS server name is no name.
    #[error("{0:?} is not a name that a certificate can have")]
    ServerName(String),
    /// Certificate, key or authority cannot be used.
    #[error("the certificates cannot be used")]
    Tls(#[source] Box<kube::Error>),
    /// An extra header or an impersonation cannot be sent.
    #[error("the extra headers cannot be sent")]
    Headers(#[source] kube::Error),
    /// The user agent cannot be sent.
    #[error("the user agent cannot be sent")]
    UserAgent(#[source] http::header::InvalidHeaderValue),
    /// The token file cannot be read.
    #[error("the token file {path:?} cannot be read")]
    TokenFile {
        /// Where it should be.
        path: String,
        /// Why it cannot be read.
        #[source]
        source: io::Error,
    },
    /// The token or the password has characters that no header can carry.
    #[error("the token or password has characters that cannot be sent")]
    Credentials,
    /// The configuration asks for a credential plugin.
    #[error(
        "credential plugins (exec, auth-provider) are not supported; use a token, a token file or a certificate"
    )]
    Plugin,
    /// The configuration asks for a proxy.
    #[error("proxies are not supported")]
    Proxy,
}

/// Why no connection could be opened. The next attempt may work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host does not take connections.
    #[error("cannot connect to {address}")]
    Tcp {
        /// Host and port.
        address: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The certificates cannot be read (any more).
    #[error("the certificates cannot be used")]
    Certificates(#[source] Box<kube::Error>),
    /// The handshake failed: among others, the host's certificate is not of the authority that we trust.
    #[error("TLS handshake with {address} failed")]
    Tls {
        /// Host and port.
        address: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The host does not speak HTTP/2 although it said so.
    #[error("HTTP/2 handshake failed")]
    Http2(#[source] h2::Error),
    /// The host does not speak HTTP/1.1.
    #[error("HTTP/1.1 handshake failed")]
    Http1(#[source] hyper::Error),
    /// It took too long.
    #[error("no connection to {address} in time")]
    Timeout {
        /// Host and port.
        address: String,
    },
    /// The process ends.
    #[error("the connection pool is closed")]
    Closed,
}

/// Why a request has no answer. An answer that says no is not an error here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection could be had; nothing was sent.
    #[error("no connection")]
    Connect(#[source] Arc<ConnectError>),
    /// The request's own body failed; nothing was sent.
    #[error("the request's body cannot be read")]
    RequestBody(#[source] Box<kube::Error>),
    /// Prefix and path do not make an address; nothing was sent.
    #[error("the request's path cannot be sent")]
    Path(#[source] http::Error),
    /// The stream or its connection broke.
    #[error("the HTTP/2 stream broke")]
    Http2(#[source] h2::Error),
    /// The connection broke.
    #[error("the HTTP/1.1 exchange broke")]
    Http1(#[source] hyper::Error),
    /// The connection was found closed before the request went out.
    #[error("the connection was already closed")]
    Unsent,
    /// No answer in time. The request may have been carried out.
    #[error("no answer in time")]
    HeadTimeout,
}

impl Error {
    /// Whether no handler can have seen the request, so that it can be sent again without a thought.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Connect(_) | Self::RequestBody(_) | Self::Path(_) | Self::Unsent => true,
            // A server resets with REFUSED_STREAM, or names a last stream below ours in a GOAWAY, before any work. The
            // library gives a GOAWAY as the cause only to streams beyond the last.
            Self::Http2(error) => {
                error.is_remote()
                    && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
            }
            Self::Http1(_) | Self::HeadTimeout => false,
        }
    }

    /// Whether the connection takes no more requests.
    pub(super) fn is_going_away(&self) -> bool {
        match self {
            Self::Unsent => true,
            Self::Http2(error) => error.is_go_away(),
            _ => false,
        }
    }
}
