//! A layer under a client that notes what is asked, fails or holds requests and breaks streams when told to: the faulty way to a ledger,
//! and to any other plane.

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
use tokio::time::Instant;
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
    /// They are open, and what they tell meanwhile is lost for good.
    Losing(&'static str),
}

/// What happens to requests of one method whose path ends with this, before [`Mode`] is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub method: &'static str,
    pub path: &'static str,
    pub manner: Manner,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It is answered with this status, about a resource of this kind.
    Answer(u16, &'static str),
    /// It gets no answer, and has no effect.
    Hang,
    /// It has its effect, and gets no answer.
    Lose,
    /// It has its effect, and the connection fails.
    Break,
}

/// The way to one plane.
#[derive(Debug)]
pub struct Way {
    mode: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    watches: watch::Sender<Watches>,
    faults: Mutex<Vec<Fault>>,
    asked: Mutex<Vec<(Instant, String)>>,
}

impl Way {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            mode: watch::Sender::default(),
            cuts: watch::Sender::default(),
            watches: watch::Sender::default(),
            faults: Mutex::default(),
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

    /// What happens to some requests from now on. The first that fits counts.
    pub fn set_faults(&self, faults: &[Fault]) {
        *self.faults.lock() = faults.to_vec();
    }

    /// Everything is served again.
    pub fn mend(&self) {
        self.set_faults(&[]);
        self.set_watches(Watches::Good);
        self.set(Mode::Good);
    }

    /// Everything that was asked since the last time, but for watches: method and path.
    pub fn take_asked(&self) -> Vec<String> {
        self.take_asked_at().into_iter().map(|(_, asked)| asked).collect()
    }

    /// The same with the times.
    pub fn take_asked_at(&self) -> Vec<(Instant, String)> {
        std::mem::take(&mut *self.asked.lock())
    }

    /// How often since the last time something was asked of one method whose path ends with this.
    pub fn count(&self, method: &str, path: &str) -> usize {
        let asked = self.take_asked();
        asked.iter().filter(|asked| asked.starts_with(method) && asked.ends_with(path)).count()
    }

    fn fault(&self, method: &str, path: &str) -> Option<Manner> {
        let faults = self.faults.lock();
        let found = faults.iter().find(|fault| fault.method == method && path.ends_with(fault.path));
        found.map(|fault| fault.manner)
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
            let asked = format!("{} {}", request.method(), request.uri().path());
            way.asked.lock().push((Instant::now(), asked));
        }
        let path = request.uri().path().to_owned();
        let fault = if watches { None } else { way.fault(request.method().as_str(), &path) };
        async move {
            let mut cuts = way.cuts.subscribe();
            match fault {
                Some(Manner::Answer(code, kind)) => return refusal(code, kind),
                Some(Manner::Hang) => return futures::future::pending().await,
                Some(Manner::Lose) => {
                    plane.oneshot(request).await?.into_body().collect().await?;
                    return futures::future::pending().await;
                }
                Some(Manner::Break) => {
                    plane.oneshot(request).await?.into_body().collect().await?;
                    return Err("the connection failed".into());
                }
                None => {}
            }
            let mut mode = way.mode.subscribe();
            let now = *mode.wait_for(|mode| *mode != Mode::Hanging).await?;
            match now {
                Mode::Failing | Mode::Hanging => return Err("the connection failed".into()),
                Mode::Answering(code) => return refusal(code, "resourceclaims"),
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

/// An answer that refuses something.
fn refusal(code: u16, kind: &str) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "",
        "message": "made up by a test", "details": { "kind": kind, "name": "x" },
    });
    let body = Body::from(serde_json::to_vec(&status)?).map_err(Into::into).boxed_unsync();
    Ok(Response::builder().status(code).body(body)?)
}

/// A body that breaks off, holds what it has, or loses it, when it is told to.
fn faulty(
    body: UnsyncBoxBody<Bytes, BoxError>,
    cuts: watch::Receiver<u64>,
    silent: Option<(watch::Receiver<Watches>, String)>,
) -> UnsyncBoxBody<Bytes, BoxError> {
    let frames = stream::unfold((body, cuts, silent), async |(mut body, mut cuts, mut silent)| {
        let next = async {
            loop {
                let frame = body.frame().await?;
                let Some((watches, path)) = &mut silent else { return Some(frame) };
                if matches!(*watches.borrow(), Watches::Losing(end) if path.ends_with(end)) {
                    continue;
                }
                let is_heard =
                    |watches: &Watches| !matches!(watches, Watches::Silent(end) if path.ends_with(end));
                let _ = watches.wait_for(is_heard).await;
                return Some(frame);
            }
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
