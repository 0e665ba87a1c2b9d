//! A layer under a client that counts what is asked, and fails, delays or hangs requests and cuts streams when told to.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use compute_apiserver::PlaneService;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt as _};

/// What a request asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    List,
    Watch,
    Other,
}

/// What happens to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Good,
    Failing,
    Hanging,
    Slow(Duration),
}

/// Faults on the way to one plane.
pub struct Faults {
    mode: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    /// Watches to answer with 410.
    expired: AtomicUsize,
    asked: Mutex<Vec<Asked>>,
    lists_in_flight: Arc<InFlight>,
    streams: Arc<AtomicUsize>,
    /// The plane that stands in for the one that was there first.
    restored: Mutex<Option<PlaneService>>,
    /// Streams opened before this many freezes give nothing any more.
    freezes: watch::Sender<u64>,
}

/// Lists in flight, now and at most; may be shared by planes.
#[derive(Debug, Default)]
pub struct InFlight {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl InFlight {
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Faults {
    /// Faults that count lists in flight together with others.
    pub fn counting(lists_in_flight: Arc<InFlight>) -> Arc<Self> {
        Arc::new(Self {
            mode: watch::Sender::default(),
            cuts: watch::Sender::default(),
            expired: AtomicUsize::new(0),
            asked: Mutex::default(),
            lists_in_flight,
            streams: Arc::default(),
            restored: Mutex::default(),
            freezes: watch::Sender::default(),
        })
    }

    /// A client to a plane with these faults on the way.
    pub fn client(self: &Arc<Self>, plane: PlaneService) -> Client {
        Client::new(Faulty { plane, faults: self.clone() }, "default")
    }

    /// Nothing is wrong, from now on, also for requests that hang.
    pub fn good(&self) {
        self.mode.send_replace(Mode::Good);
    }

    /// Requests fail at once.
    pub fn failing(&self) {
        self.mode.send_replace(Mode::Failing);
    }

    /// Requests get no answer.
    pub fn hanging(&self) {
        self.mode.send_replace(Mode::Hanging);
    }

    /// Requests take this long.
    pub fn slow(&self, delay: Duration) {
        self.mode.send_replace(Mode::Slow(delay));
    }

    /// Breaks all streams.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// All streams stay open and give nothing any more.
    pub fn freeze(&self) {
        self.freezes.send_modify(|freezes| *freezes += 1);
    }

    /// The plane is put back to an older state, which is that of another plane. As with some servers, a watch from a version that it
    /// has not reached yet is opened and stays silent.
    pub fn restore(&self, plane: PlaneService) {
        *self.restored.lock() = Some(plane);
        self.cut();
    }

    /// Bodies that are being read, or waited for.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::SeqCst)
    }

    /// The next so many watches find their version too old.
    pub fn expire(&self, watches: usize) {
        self.expired.store(watches, Ordering::SeqCst);
    }

    /// How many requests asked for this.
    pub fn count(&self, asked: Asked) -> usize {
        self.asked.lock().iter().filter(|other| **other == asked).count()
    }

    async fn pass(&self, asked: Asked) -> Result<(), BoxError> {
        let mut mode = self.mode.subscribe();
        loop {
            let now = *mode.borrow_and_update();
            match now {
                Mode::Good => return Ok(()),
                Mode::Failing => return Err("the connection failed".into()),
                Mode::Slow(delay) => {
                    tokio::time::sleep(delay).await;
                    return Ok(());
                }
                Mode::Hanging => {
                    mode.changed().await?;
                    if asked == Asked::Watch {
                        return Err("the connection failed".into());
                    }
                }
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
        let asked = match request.method().as_str() {
            "GET" if query.contains("watch=true") => Asked::Watch,
            "GET" if query.contains("limit=") => Asked::List,
            _ => Asked::Other,
        };
        faults.asked.lock().push(asked);
        async move {
            let counted = (asked == Asked::List).then(|| Counted::new(faults.lists_in_flight.clone()));
            let (mut cuts, freezes) = (faults.cuts.subscribe(), faults.freezes.subscribe());
            let open = Open::new(faults.streams.clone());
            faults.pass(asked).await?;
            let expired = &faults.expired;
            if asked == Asked::Watch
                && expired.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
            {
                let status = serde_json::json!({ "kind": "Status", "code": 410, "reason": "Expired" });
                let body = Body::from(serde_json::to_vec(&status)?).map_err(Into::into).boxed_unsync();
                return Ok(Response::builder().status(410).body(Cut {
                    body,
                    cut: changed(cuts),
                    freezes,
                    _counted: counted,
                    _open: open,
                })?);
            }
            let restored = faults.restored.lock().clone();
            let is_restored = restored.is_some();
            let response = restored.unwrap_or(plane).oneshot(request).await?;
            cuts.mark_unchanged();
            if is_restored && asked == Asked::Watch && !response.status().is_success() {
                let silent = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, BoxError>>());
                return Ok(Response::new(Cut {
                    body: silent.boxed_unsync(),
                    cut: changed(cuts),
                    freezes,
                    _counted: counted,
                    _open: open,
                }));
            }
            Ok(response.map(|body| Cut {
                body: body.map_err(Into::into).boxed_unsync(),
                cut: changed(cuts),
                freezes,
                _counted: counted,
                _open: open,
            }))
        }
        .boxed()
    }
}

struct Counted(Arc<InFlight>);

impl Counted {
    fn new(in_flight: Arc<InFlight>) -> Self {
        let now = in_flight.now.fetch_add(1, Ordering::SeqCst) + 1;
        in_flight.most.fetch_max(now, Ordering::SeqCst);
        Self(in_flight)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body that can be cut and frozen.
struct Cut {
    body: UnsyncBoxBody<Bytes, BoxError>,
    cut: BoxFuture<'static, ()>,
    freezes: watch::Receiver<u64>,
    _counted: Option<Counted>,
    _open: Open,
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
        if self.freezes.has_changed().unwrap_or(true) {
            return Poll::Pending;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
