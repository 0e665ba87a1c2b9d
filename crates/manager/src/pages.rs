//! A small HTTP server for pages that other machines read: health and metrics.
//!
//! # Guarantees
//!
//! Whatever clients do, they hold a bounded number of connections for a bounded time. Nothing that they send is read but the head of a request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use compute_admission::Certificates;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Connections at once. Probes and scrapers keep one each.
const CONNECTIONS: usize = 128;
/// How long a handshake and a head may take, and a connection may be idle between requests.
const HEAD: Duration = Duration::from_secs(30);
/// How often the files of a certificate are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A socket that is out of descriptors gets them back when others end.
const PAUSE: Duration = Duration::from_millis(50);

/// A page.
pub(crate) struct Page {
    pub(crate) code: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn text(code: StatusCode, text: impl Into<String>) -> Self {
        Self { code, content_type: "text/plain; charset=utf-8", text: text.into() }
    }
}

/// Gives the page under a path.
pub(crate) type Pages = Arc<dyn Fn(&str) -> Option<Page> + Send + Sync>;

/// Serves pages until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    certificates: Option<Certificates>,
    pages: Pages,
    stop: CancellationToken,
) -> Result<(), std::io::Error> {
    let mut following = JoinSet::new();
    let acceptor = match certificates {
        None => None,
        Some(certificates) => {
            let config = certificates.config().map_err(std::io::Error::other)?;
            following.spawn(certificates.follow(LOOK_EVERY));
            Some(TlsAcceptor::from(config))
        }
    };
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    open.spawn(connection(acceptor.clone(), stream, pages.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection is not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
}

async fn connection(acceptor: Option<TlsAcceptor>, stream: TcpStream, pages: Pages) {
    match acceptor {
        None => answer(stream, pages).await,
        Some(acceptor) => match tokio::time::timeout(HEAD, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => answer(stream, pages).await,
            Ok(Err(error)) => tracing::debug!(%error, "handshake failed"),
            Err(_) => tracing::debug!("handshake timed out"),
        },
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, pages: Pages) {
    let service = service_fn(|request: Request<Incoming>| {
        let page = match *request.method() {
            http::Method::GET | http::Method::HEAD => pages(request.uri().path()),
            _ => Some(Page::text(StatusCode::METHOD_NOT_ALLOWED, "pages are read with GET\n")),
        };
        let page = page.unwrap_or_else(|| Page::text(StatusCode::NOT_FOUND, "there is nothing here\n"));
        let mut response = Response::new(Full::new(Bytes::from(page.text)));
        *response.status_mut() = page.code;
        let content_type = http::HeaderValue::from_static(page.content_type);
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "connection ended");
    }
}
