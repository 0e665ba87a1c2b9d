//! The tasks that a process is made of: named, watched, and stopped together.
//!
//! # Guarantees
//! - A task that ends before it was told to stop, by returning, failing or panicking, ends the whole, with its name and
//!   reason. Nothing dies unseen.
//! - A stop reaches every task at once; each gets the same time to finish what is in hand. What is still running
//!   after that is cut off and named.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why the whole ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// A task that should run on returned.
    #[error("{task} ended early")]
    Early {
        /// The task.
        task: String,
    },
    /// A task failed.
    #[error("{task} failed: {reason}")]
    Failed {
        /// The task.
        task: String,
        /// Its error with all causes.
        reason: String,
    },
    /// A task panicked.
    #[error("{task} panicked: {reason}")]
    Panicked {
        /// The task.
        task: String,
        /// What it said.
        reason: String,
    },
    /// Tasks did not stop in time.
    #[error("did not stop in time: {}", tasks.join(", "))]
    Stuck {
        /// The tasks, in the order of their names.
        tasks: Vec<String>,
    },
}

type Outcome = Result<(), String>;

/// Named tasks that live and end together.
pub struct Tasks {
    running: JoinSet<Outcome>,
    names: BTreeMap<Id, String>,
    stop: CancellationToken,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Self { running: JoinSet::new(), names: BTreeMap::new(), stop: CancellationToken::new() }
    }

    /// Is cancelled when the tasks are to stop. A clone can be cancelled to stop them.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts a task. It gets the token that tells it to stop, and may return only after that.
    pub fn spawn<F, E>(&mut self, name: impl Into<String>, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let task = task(self.stop.clone());
        let handle =
            self.running.spawn(async move { task.await.map_err(|error| chain(error.into().as_ref())) });
        self.names.insert(handle.id(), name.into());
    }

    /// Runs until `stop` is ready or a task ends early; then stops all and gives them `grace` to finish.
    ///
    /// # Errors
    /// The first thing that went wrong: what ended the whole comes before what went wrong while it was stopping.
    pub async fn run(mut self, stop: impl Future<Output = ()>, grace: Duration) -> Result<(), Ended> {
        let mut first = tokio::select! {
            biased;
            () = stop => None,
            () = self.stop.clone().cancelled_owned() => None,
            // Without any task there is nothing to wait for but the stop.
            Some((task, wrong)) = self.next() => Some(wrong.unwrap_or(Ended::Early { task })),
        };
        self.stop.cancel();
        let deadline = Instant::now() + grace;
        loop {
            match tokio::time::timeout_at(deadline, self.next()).await {
                Ok(None) => break,
                Ok(Some((_, outcome))) => first = first.or(outcome),
                Err(_) => {
                    let mut tasks: Vec<_> = std::mem::take(&mut self.names).into_values().collect();
                    tasks.sort();
                    self.running.shutdown().await;
                    first = first.or(Some(Ended::Stuck { tasks }));
                    break;
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// The next task that ended, and what was wrong with it. None when there are no more.
    async fn next(&mut self) -> Option<(String, Option<Ended>)> {
        let (id, ended) = match self.running.join_next_with_id().await? {
            Ok((id, outcome)) => (id, Ok(outcome)),
            Err(error) => (error.id(), Err(error)),
        };
        let task = self.names.remove(&id).unwrap_or_default();
        let wrong = match ended {
            Ok(Ok(())) => None,
            Ok(Err(reason)) => Some(Ended::Failed { task: task.clone(), reason }),
            Err(error) => Some(Ended::Panicked { task: task.clone(), reason: panic_text(error) }),
        };
        if let Some(wrong) = &wrong {
            tracing::debug!(%wrong, "task ended");
        }
        Some((task, wrong))
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names.values()).finish()
    }
}

fn panic_text(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else { return "cut off".to_owned() };
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().map_or("no reason given", |text| text).to_owned(),
    }
}

/// An error and its causes on one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
