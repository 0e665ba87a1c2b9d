//! A layer under a client that notes what is asked, fails or holds requests and breaks streams when told to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_apiserver::PlaneService;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt as _};

/// What happens to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are served.
    #[default]
    Good,
    /// They fail at once.
    Failing,
    /// They get no answer.
    Hanging,
    /// They are answered with this status.
    Answering(u16),
}

/// The way to one plane.
#[derive(Debug)]
pub struct Way {
    mode: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    asked: Mutex<Vec<String>>,
}

impl Way {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            mode: watch::Sender::default(),
            cuts: watch::Sender::default(),
            asked: Mutex::default(),
        })
    }

    /// A client that goes this way.
    pub fn client(self: &Arc<Self>, plane: PlaneService) -> Client {
        Client::new(Faulty { plane, way: self.clone() }, "default")
    }

    /// What happens to requests from now on. Streams break too, unless they are served.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
        if mode != Mode::Good {
            self.cuts.send_modify(|cuts| *cuts += 1);
        }
    }

    /// Everything that was asked since the last time, but for watches: method and path.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

#[derive(Clone)]
struct Faulty {
    plane: PlaneService,
    way: Arc<Way>,
}

impl Service<Request<Body>> for Faulty {
    type Response = Response<Cut>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Cut>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { plane, way } = self.clone();
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if !watches {
            way.asked.lock().push(format!("{} {}", request.method(), request.uri().path()));
        }
        async move {
            let mut cuts = way.cuts.subscribe();
            let mut mode = way.mode.subscribe();
            let now = *mode.wait_for(|mode| *mode != Mode::Hanging).await?;
            match now {
                Mode::Failing | Mode::Hanging => return Err("the connection failed".into()),
                Mode::Answering(code) => {
                    let status = serde_json::json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                        "reason": "", "message": "made up by a test",
                    });
                    let body = Body::from(serde_json::to_vec(&status)?).map_err(Into::into).boxed_unsync();
                    return Ok(Response::builder().status(code).body(Cut { body, cut: changed(cuts) })?);
                }
                Mode::Good => {}
            }
            let response = plane.oneshot(request).await?;
            cuts.mark_unchanged();
            Ok(response.map(|body| Cut { body: body.map_err(Into::into).boxed_unsync(), cut: changed(cuts) }))
        }
        .boxed()
    }
}

/// A body that breaks off when it is told to.
struct Cut {
    body: UnsyncBoxBody<Bytes, BoxError>,
    cut: BoxFuture<'static, ()>,
}

fn changed(mut cuts: watch::Receiver<u64>) -> BoxFuture<'static, ()> {
    async move {
        if cuts.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    .boxed()
}

impl http_body::Body for Cut {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.cut.poll_unpin(context).is_ready() {
            return Poll::Ready(Some(Err("the stream was cut".into())));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
