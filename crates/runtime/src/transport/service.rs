//! What a client for a plane is built on: a path prefix in front of its host's connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_api::kube::client::Body;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header, request};

use super::SharedHost;
use super::body::HostBody;
use super::error::Error;

/// How often a request that was not sent is tried. Each attempt takes another connection, so that a few are enough
/// even while a server restarts.
const ATTEMPTS: usize = 4;

/// A tower service that sends requests to one plane of a host.
#[derive(Clone, Debug)]
pub struct PlaneService {
    host: SharedHost,
    /// The host's path and the plane's.
    prefix: Arc<str>,
}

impl PlaneService {
    pub(super) fn new(host: SharedHost, prefix: Arc<str>) -> Self {
        Self { host, prefix }
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<HostBody>, Error> {
        let (mut head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(|error| Error::RequestBody(Box::new(error)))?;
        head.uri = self.address(&head.uri).map_err(Error::Path)?;
        let host = &self.host.0;
        head.headers.entry(header::USER_AGENT).or_insert_with(|| host.user_agent.clone());
        if !body.is_empty() {
            head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        host.pool.renew(false).await;
        let token = host.credentials.header().await;
        if let Some(token) = &token {
            head.headers.insert(header::AUTHORIZATION, token.clone());
        }
        let answer = self.attempts(&head, &body).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // What was refused for who asked was not carried out. If there are newer credentials in the files, they count.
        let is_renewed = host.pool.renew(true).await;
        let token = host.credentials.renewed(token.as_ref()).await;
        if !is_renewed && token.is_none() {
            return Ok(answer);
        }
        drop(answer);
        if let Some(token) = token {
            head.headers.insert(header::AUTHORIZATION, token);
        }
        self.attempts(&head, &body).await
    }

    async fn attempts(&self, head: &request::Parts, body: &Bytes) -> Result<Response<HostBody>, Error> {
        let host = &self.host.0;
        for _ in 1..ATTEMPTS {
            let lease = host.pool.acquire().await.map_err(Error::Connect)?;
            match lease.send(head.clone(), body.clone(), host.head_timeout).await {
                Err(error) if error.is_unsent() => {
                    tracing::debug!(%error, "not sent; another connection is tried");
                }
                result => return result,
            }
        }
        let lease = host.pool.acquire().await.map_err(Error::Connect)?;
        lease.send(head.clone(), body.clone(), host.head_timeout).await
    }

    fn address(&self, uri: &Uri) -> Result<Uri, http::Error> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Uri::builder()
            .scheme(self.host.0.scheme.clone())
            .authority(self.host.0.authority.clone())
            .path_and_query(format!("{}{path}", self.prefix))
            .build()
    }
}

impl tower::Service<Request<Body>> for PlaneService {
    type Response = Response<HostBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
