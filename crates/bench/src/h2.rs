//! A bare HTTP/2 client over TLS: thousands of streams on few connections, and no work for bodies that nobody reads.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::host::Endpoint;

/// How long to wait after a refusal that does not say it.
const PATIENCE: Duration = Duration::from_secs(1);

/// One connection to one plane. Clones share it.
#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    base: Arc<str>,
    authorization: Arc<str>,
}

impl Connection {
    /// Connects.
    pub async fn open(endpoint: &Endpoint, plane: &str) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(endpoint.root()?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(endpoint.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(endpoint.address.ip());
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (sender, connection) =
            http2::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await?;
        // Whoever uses the connection sees its end as an error of a request.
        tokio::spawn(connection);
        Ok(Self {
            sender,
            base: format!("https://{}/planes/{plane}", endpoint.address).into(),
            authorization: format!("Bearer {}", endpoint.token).into(),
        })
    }

    /// Sends a request and gives the head of its answer.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(AUTHORIZATION, &*self.authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        sender.send_request(request).await.context("the server does not answer")
    }
}

/// Reads a body to its end and forgets it.
pub async fn drain(mut body: Incoming) -> Result<()> {
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(())
}

/// How long a refused client is told to wait.
pub fn retry_after(response: &Response<Incoming>) -> Duration {
    let told = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    told.and_then(|seconds| seconds.parse().ok()).map_or(PATIENCE, Duration::from_secs)
}
