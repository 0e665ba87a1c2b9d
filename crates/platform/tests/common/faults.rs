//! A layer under a client that counts what is asked, and fails or hangs requests and cuts streams when told to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use compute_apiserver::PlaneService;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt as _};

/// What a request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A watch, or the list that it begins with.
    Watch,
    /// Whether it is there.
    Probe,
    /// Any other read.
    Read,
    /// A change.
    Write,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Good,
    Failing,
    Hanging,
}

/// Faults on the way to one plane.
#[derive(Debug, Default)]
pub struct Faults {
    mode: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    asked: Mutex<Vec<(Asked, String)>>,
    /// Writes that still come through before requests fail.
    writes_left: Mutex<Option<usize>>,
}

impl Faults {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A client to a plane with these faults on the way.
    pub fn client(self: &Arc<Self>, plane: PlaneService) -> Client {
        Client::new(Faulty { plane, faults: self.clone() }, "default")
    }

    /// Nothing is wrong, from now on, also for requests that hang.
    pub fn mend(&self) {
        *self.writes_left.lock() = None;
        self.mode.send_replace(Mode::Good);
    }

    /// Requests fail at once, and streams break.
    pub fn cut(&self) {
        self.mode.send_replace(Mode::Failing);
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Requests get no answer; streams that are open give what there is.
    pub fn hang(&self) {
        self.mode.send_replace(Mode::Hanging);
    }

    /// After so many more changes, requests fail.
    pub fn cut_after_writes(&self, writes: usize) {
        *self.writes_left.lock() = Some(writes);
    }

    /// How many requests asked for this.
    pub fn count(&self, asked: Asked) -> usize {
        self.asked.lock().iter().filter(|(other, _)| *other == asked).count()
    }

    /// What was asked, but for watches and probes.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.asked.lock();
        let busy = asked.iter().filter(|(asked, _)| matches!(asked, Asked::Read | Asked::Write));
        busy.map(|(_, request)| request.clone()).collect()
    }

    /// Forgets what was asked.
    pub fn forget(&self) {
        self.asked.lock().clear();
    }

    async fn pass(&self, asked: Asked) -> Result<(), BoxError> {
        if asked == Asked::Write
            && let Some(left) = &mut *self.writes_left.lock()
        {
            if *left == 0 {
                self.cut();
            } else {
                *left -= 1;
            }
        }
        let mut mode = self.mode.subscribe();
        loop {
            let now = *mode.borrow_and_update();
            match now {
                Mode::Good => return Ok(()),
                Mode::Failing => return Err("the connection failed".into()),
                Mode::Hanging => mode.changed().await?,
            }
        }
    }
}

#[derive(Clone)]
struct Faulty {
    plane: PlaneService,
    faults: Arc<Faults>,
}

impl Service<Request<Body>> for Faulty {
    type Response = Response<Cut>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Cut>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { plane, faults } = self.clone();
        let query = request.uri().query().unwrap_or_default();
        let asked = if request.method() != Method::GET {
            Asked::Write
        } else if query.contains("watch=true") || query.contains("limit=500") {
            Asked::Watch
        } else if request.uri().path().ends_with("readyz") {
            Asked::Probe
        } else {
            Asked::Read
        };
        let line = format!("{} {}", request.method(), request.uri());
        faults.asked.lock().push((asked, line));
        async move {
            let mut cuts = faults.cuts.subscribe();
            faults.pass(asked).await?;
            let response = plane.oneshot(request).await?;
            cuts.mark_unchanged();
            let cut = async move {
                if cuts.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            Ok(response.map(|body| Cut { body: body.map_err(Into::into).boxed_unsync(), cut: cut.boxed() }))
        }
        .boxed()
    }
}

/// A body that can be cut.
struct Cut {
    body: UnsyncBoxBody<Bytes, BoxError>,
    cut: BoxFuture<'static, ()>,
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
