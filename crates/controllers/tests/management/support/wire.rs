//! What is between the manager and a plane: it notes what is asked, and fails or hangs requests and cuts streams when told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_api::kube::Client;
use compute_api::kube::client::Body;
use compute_apiserver::PlaneService;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt as _};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Good,
    Failing,
    Hanging,
}

/// The way to one plane.
pub struct Wire {
    plane: PlaneService,
    mode: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    /// The kind that can be neither listed nor watched.
    broken: watch::Sender<Option<&'static str>>,
    requests: Mutex<Vec<String>>,
    /// Watches that are open, by what they watch.
    open: Arc<Mutex<Vec<String>>>,
    /// Writes to let through before all fail.
    writes_left: AtomicUsize,
}

impl Wire {
    pub fn new(plane: PlaneService) -> Arc<Self> {
        Arc::new(Self {
            plane,
            mode: watch::Sender::default(),
            cuts: watch::Sender::default(),
            broken: watch::Sender::default(),
            requests: Mutex::default(),
            open: Arc::default(),
            writes_left: AtomicUsize::new(usize::MAX),
        })
    }

    pub fn client(self: &Arc<Self>) -> Client {
        Client::new(Through(self.clone()), "default")
    }

    /// Everything works from now on, also for requests that hang.
    pub fn good(&self) {
        self.writes_left.store(usize::MAX, Ordering::SeqCst);
        self.broken.send_replace(None);
        self.mode.send_replace(Mode::Good);
    }

    /// One kind, by its plural, can be neither listed nor watched any more.
    pub fn break_kind(&self, kind: &'static str) {
        self.broken.send_replace(Some(kind));
    }

    /// Requests fail at once, and streams break.
    pub fn down(&self) {
        self.mode.send_replace(Mode::Failing);
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Requests get no answer.
    pub fn hangs(&self) {
        self.mode.send_replace(Mode::Hanging);
    }

    /// After this many writes every further one fails; the last of them takes effect, but its answer is lost.
    pub fn fail_after_writes(&self, writes: usize) {
        self.writes_left.store(writes, Ordering::SeqCst);
    }

    /// What was asked, but for watches and the lists that they begin with.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    /// The kinds that are being watched, in order.
    pub fn watched(&self) -> Vec<String> {
        let mut watched = self.open.lock().clone();
        watched.sort();
        watched
    }

    async fn pass(&self) -> Result<(), BoxError> {
        let mut mode = self.mode.subscribe();
        let mode = *mode.wait_for(|mode| *mode != Mode::Hanging).await?;
        if mode == Mode::Failing { Err("the connection failed".into()) } else { Ok(()) }
    }
}

type Answer = UnsyncBoxBody<Bytes, BoxError>;

#[derive(Clone)]
struct Through(Arc<Wire>);

/// A watch while it is open.
struct Watching {
    open: Arc<Mutex<Vec<String>>>,
    what: String,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        let at = open.iter().position(|what| *what == self.what).unwrap();
        open.remove(at);
    }
}

impl Service<Request<Body>> for Through {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let wire = self.0.clone();
        let query = request.uri().query().unwrap_or_default();
        let (watches, lists) = (query.contains("watch=true"), query.contains("limit="));
        let path = request.uri().path().to_owned();
        let writes = request.method() != http::Method::GET;
        if !watches && !lists {
            wire.requests.lock().push(format!("{} {path}", request.method()));
        }
        async move {
            let mut cuts = wire.cuts.subscribe();
            wire.pass().await?;
            let what = path.rsplit('/').next().unwrap_or_default().to_owned();
            if (watches || lists) && wire.broken.borrow().is_some_and(|broken| broken == what) {
                return Err("the connection failed".into());
            }
            let left = if writes {
                let left = &wire.writes_left;
                left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).unwrap_or(0)
            } else {
                usize::MAX
            };
            if left == 0 {
                return Err("the connection failed".into());
            }
            let response = wire.plane.clone().oneshot(request).await?;
            if left == 1 {
                return Err("the answer was lost".into());
            }
            let (parts, body) = response.into_parts();
            if !watches {
                let bytes = body.collect().await?.to_bytes();
                return Ok(Response::from_parts(
                    parts,
                    Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
                ));
            }
            wire.open.lock().push(what.clone());
            let watching = Watching { open: wire.open.clone(), what };
            let (mut broken, kind) = (wire.broken.subscribe(), watching.what.clone());
            let cut = async move {
                tokio::select! {
                    biased;
                    _ = cuts.changed() => {}
                    _ = broken.wait_for(|broken| broken.is_some_and(|broken| broken == kind)) => {}
                }
            }
            .boxed();
            let state = (BodyStream::new(body), cut, watching);
            // Ends when the server ends it, and breaks when it is cut.
            let frames = stream::unfold(Some(state), |state| async move {
                let (mut body, mut cut, watching) = state?;
                tokio::select! {
                    biased;
                    () = &mut cut => Some((Err(BoxError::from("the stream was cut")), None)),
                    frame = body.next() => Some((frame?.map_err(BoxError::from), Some((body, cut, watching)))),
                }
            });
            Ok(Response::from_parts(parts, StreamBody::new(frames).boxed_unsync()))
        }
        .boxed()
    }
}
