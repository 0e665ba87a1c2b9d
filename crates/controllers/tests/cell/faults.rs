//! A layer under a client that notes what is asked, fails or holds requests and breaks streams when told to.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_apiserver::PlaneService;
use futures::future::BoxFuture;
use futures::{FutureExt as _, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
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

/// What happens to watches whose path ends with this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watches {
    /// They are served.
    #[default]
    Good,
    /// They are broken, and fail.
    Broken(&'static str),
    /// They are open and tell nothing.
    Silent(&'static str),
}

/// The way to one plane.
#[derive(Debug)]
pub struct Way {
    mode: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    watches: watch::Sender<Watches>,
    asked: Mutex<Vec<String>>,
}

impl Way {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            mode: watch::Sender::default(),
            cuts: watch::Sender::default(),
            watches: watch::Sender::default(),
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

    /// What happens to watches from now on, while requests are served.
    pub fn set_watches(&self, watches: Watches) {
        self.watches.send_replace(watches);
        if matches!(watches, Watches::Broken(_)) {
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
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { plane, way } = self.clone();
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if !watches {
            way.asked.lock().push(format!("{} {}", request.method(), request.uri().path()));
        }
        let path = request.uri().path().to_owned();
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
                    return Ok(Response::builder().status(code).body(body)?);
                }
                Mode::Good => {}
            }
            let silent = way.watches.subscribe();
            if let Watches::Broken(end) = *silent.borrow()
                && watches
                && path.ends_with(end)
            {
                return Err("the watch failed".into());
            }
            let response = plane.oneshot(request).await?;
            cuts.mark_unchanged();
            let silent = watches.then_some((silent, path));
            Ok(response.map(|body| faulty(body.map_err(Into::into).boxed_unsync(), cuts, silent)))
        }
        .boxed()
    }
}

/// A body that breaks off, or holds what it has, when it is told to.
fn faulty(
    body: UnsyncBoxBody<Bytes, BoxError>,
    cuts: watch::Receiver<u64>,
    silent: Option<(watch::Receiver<Watches>, String)>,
) -> UnsyncBoxBody<Bytes, BoxError> {
    let frames = stream::unfold((body, cuts, silent), async |(mut body, mut cuts, mut silent)| {
        let next = async {
            let frame = body.frame().await?;
            if let Some((watches, path)) = &mut silent {
                let is_heard =
                    |watches: &Watches| !matches!(watches, Watches::Silent(end) if path.ends_with(end));
                let _ = watches.wait_for(is_heard).await;
            }
            Some(frame)
        };
        let frame = tokio::select! {
            biased;
            Ok(()) = cuts.changed() => Some(Err("the stream was cut".into())),
            frame = next => frame,
        };
        frame.map(|frame| (frame, (body, cuts, silent)))
    });
    StreamBody::new(frames).boxed_unsync()
}
