//! Runs a reconciler over the keys of a queue.
//!
//! # Guarantees
//!
//! - One pass per key at a time, as many keys at a time as the queue's limits say.
//! - A pass that fails, panics or takes too long is reported once, with its key, and tried again with backoff. It takes nothing else with it.
//! - At shutdown no new pass begins, and those in hand are waited for.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::queue::{Key, Queue, Work};
use crate::write;

/// Why a pass failed. No variants: a pass that fails is tried again, whatever the reason. What no retry can mend is not an error but
/// a condition of the object.
pub type Error = anyhow::Error;

/// What a pass that went well wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something changes.
    Done,
    /// To be called again after a while, if nothing changes before.
    After(Duration),
}

/// Brings one thing at a time to the state that is wanted.
pub trait Reconciler: Send + Sync + 'static {
    /// A short name, for logs and metrics.
    fn name(&self) -> &'static str;

    /// Looks at one key and does what there is to do. Is called again for the same key, and must then do nothing if nothing has
    /// changed. It may be cut short at any await.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from doing so; it is then called again.
    fn reconcile(&self, key: &Key) -> impl Future<Output = Result<Next, Error>> + Send;
}

/// Works on a queue until `shutdown`, and then until what is in hand has ended.
pub async fn run<R: Reconciler>(reconciler: Arc<R>, queue: Queue, shutdown: impl Future<Output = ()>) {
    let mut passes = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    let ending = CancellationToken::new();
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = passes.join_next() => {}
            work = queue.reserve() => {
                passes.spawn(in_turn(reconciler.clone(), work, queue.clone(), ending.clone()));
            }
        }
    }
    ending.cancel();
    while passes.join_next().await.is_some() {}
}

/// One pass when its turn comes, if that is before the end.
async fn in_turn<R: Reconciler>(reconciler: Arc<R>, work: Work, queue: Queue, ending: CancellationToken) {
    let turn = tokio::select! {
        biased;
        () = ending.cancelled() => return,
        turn = queue.runtime().turns().take(queue.limits().urgent) => turn,
    };
    work.begins();
    turn.run(pass(reconciler, work, queue)).await;
}

/// One pass, whatever becomes of it.
async fn pass<R: Reconciler>(reconciler: Arc<R>, work: Work, queue: Queue) {
    let name = reconciler.name();
    let key = work.key();
    let span = tracing::debug_span!("reconcile", controller = name, %key);
    let began = Instant::now();
    let limit = queue.limits().timeout;
    let ended =
        timeout(limit, AssertUnwindSafe(reconciler.reconcile(key)).catch_unwind()).instrument(span).await;
    let result = match ended {
        Ok(Ok(Ok(next))) => {
            match next {
                Next::Done => work.done(),
                Next::After(delay) => work.again_after(delay),
            }
            "success"
        }
        Ok(Ok(Err(error))) => {
            let conflict = is_conflict(&error);
            if conflict && work.failures() < PERSISTENT {
                // Somebody else was faster. The next pass sees what they did.
                tracing::debug!(controller = name, %key, error = format!("{error:#}"), "conflict");
            } else {
                tracing::warn!(controller = name, %key, error = format!("{error:#}"), "failed");
            }
            work.failed();
            if conflict { "conflict" } else { "error" }
        }
        Ok(Err(panic)) => {
            tracing::error!(controller = name, %key, panic = panic_message(&*panic), "panicked");
            work.failed();
            "panic"
        }
        Err(_) => {
            tracing::warn!(controller = name, %key, ?limit, "took too long and was given up");
            work.failed();
            "timeout"
        }
    };
    queue.runtime().metrics().reconciled(name, result, began.elapsed());
}

/// So many conflicts in a row are more than a cache that is a little late.
const PERSISTENT: u32 = 5;

/// Whether a write was refused because something is not as it was when it was decided: the object has changed, has gone or has come.
fn is_conflict(error: &Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => status.code == 409 && status.reason == "Conflict",
        _ => matches!(
            cause.downcast_ref(),
            Some(write::Error::Conflict(_) | write::Error::AlreadyExists(_) | write::Error::NotFound(_))
        ),
    })
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(message), _) => message,
        (_, Some(message)) => message,
        _ => "unknown",
    }
}
