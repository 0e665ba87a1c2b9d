//! Watch: the changes of a resource as an endless stream.
//!
//! A watch holds a revision and a wake-up, nothing more: it reads the shared history when it is woken, so a slow client
//! costs no memory, and one that falls out of the window is told so (410) and lists anew.
//! Guarantees: events come in revision order, none is missing and none comes twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use tokio::time::{Instant, sleep_until};

use super::Target;
use crate::error::{ApiError, Result};
use crate::selector::Selector;
use crate::store::{Change, Event, Object, TooOld};

/// How many changes are taken from the history at once.
const BATCH: usize = 256;
/// How often a quiet watch hears where the server is, if it asked for bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Arguments of a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchOptions {
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    /// What to pick.
    pub(crate) selector: Selector,
    /// Start after this revision; `None` and 0 start with the present objects.
    pub(crate) from: Option<u64>,
    /// Whether bookmarks are wanted.
    pub(crate) bookmarks: bool,
    /// Whether to start with the present objects and mark their end by a bookmark.
    pub(crate) initial_events: Option<bool>,
    /// When to end the stream.
    pub(crate) timeout: Duration,
}

/// One item of the stream.
#[derive(Debug)]
pub(crate) enum WatchEvent {
    /// A change that looks as it is.
    Whole(Arc<Event>),
    /// An object came into view.
    Added(Arc<Object>),
    /// An object left the view without being deleted: its state before, and the revision of the change.
    Left(Arc<Object>, u64),
    /// Where the server is.
    Bookmark {
        /// Everything up to here has been sent.
        revision: u64,
        /// Whether this ends the initial objects.
        initial_end: bool,
    },
    /// The stream ends with an error.
    Error(ApiError),
}

struct Watch {
    target: Target,
    options: WatchOptions,
    woken: tokio::sync::watch::Receiver<()>,
    ready: VecDeque<WatchEvent>,
    /// Everything up to here has been queued.
    revision: u64,
    ends: Instant,
    bookmark: Instant,
    over: bool,
}

/// Starts a watch. A revision that is too old is told by an event of the stream, not by the answer's code: clients list
/// anew on the former and try the same again on the latter.
pub(crate) fn watch(
    target: Target,
    options: WatchOptions,
) -> Result<impl Stream<Item = WatchEvent> + Send + 'static> {
    let store = &target.plane.store;
    // Subscribed before anything is read: a change in between wakes us for nothing at worst.
    let woken = store.subscribe(&target.resource.table);
    let mut ready = VecDeque::new();
    let from = options.from.filter(|revision| *revision != 0);
    let initial = options.initial_events.unwrap_or(from.is_none());
    let revision = match from {
        Some(revision) if !initial => {
            if let Err(too_old) = store.changes_after(&target.resource.table, revision, 0) {
                ready.push_back(WatchEvent::Error(expired(too_old)));
            }
            revision
        }
        _ => {
            super::check_not_future(&target, from)?;
            let wanted = |object: &Object| options.selector.matches(object);
            if initial {
                let (objects, revision) =
                    store.list(&target.resource.table, options.namespace.as_deref(), wanted);
                ready.extend(objects.into_iter().map(WatchEvent::Added));
                revision
            } else {
                store.list(&target.resource.table, options.namespace.as_deref(), |_| false).1
            }
        }
    };
    if options.initial_events == Some(true) && options.bookmarks {
        ready.push_back(WatchEvent::Bookmark { revision, initial_end: true });
    }
    let over = matches!(ready.front(), Some(WatchEvent::Error(_)));
    let now = Instant::now();
    let ends = now + options.timeout;
    let watch = Watch { target, options, woken, ready, revision, ends, bookmark: now + BOOKMARK_EVERY, over };
    Ok(futures::stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    }))
}

fn expired(too_old: TooOld) -> ApiError {
    ApiError::Expired { message: too_old.to_string(), continue_token: None }
}

impl Watch {
    async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                // A watch that starts with many objects lets others run in between.
                tokio::task::consume_budget().await;
                return Some(event);
            }
            let now = Instant::now();
            if self.over || now >= self.ends {
                return None;
            }
            // Seen before reading, so that a change during the read wakes us again.
            self.woken.borrow_and_update();
            self.fill();
            if !self.ready.is_empty() || self.over {
                continue;
            }
            tokio::select! {
                biased;
                woken = self.woken.changed() => if woken.is_err() {
                    return None;
                },
                () = sleep_until(self.ends) => return None,
                () = sleep_until(self.bookmark), if self.options.bookmarks => {
                    self.fill();
                    self.bookmark = Instant::now() + BOOKMARK_EVERY;
                    self.ready.push_back(WatchEvent::Bookmark { revision: self.revision, initial_end: false });
                }
            }
        }
    }

    /// Queues what has happened since the last look.
    fn fill(&mut self) {
        loop {
            match self.target.plane.store.changes_after(&self.target.resource.table, self.revision, BATCH) {
                Ok((events, complete_to)) => {
                    self.revision = complete_to;
                    let full = events.len() == BATCH;
                    let seen = events.iter().filter_map(|event| self.seen(event)).collect::<Vec<_>>();
                    self.ready.extend(seen);
                    if !full || !self.ready.is_empty() {
                        return;
                    }
                }
                Err(too_old) => {
                    self.ready.push_back(WatchEvent::Error(expired(too_old)));
                    self.over = true;
                    return;
                }
            }
        }
    }

    /// What a change looks like through the namespace and the selector of this watch.
    fn seen(&self, event: &Arc<Event>) -> Option<WatchEvent> {
        let namespace = self.options.namespace.as_deref();
        if namespace.is_some_and(|namespace| *namespace != *event.object.meta.key.namespace) {
            return None;
        }
        let matches = |object: &Object| self.options.selector.matches(object);
        let before = event.before.as_ref().filter(|object| matches(object));
        let after = (event.change != Change::Deleted && matches(&event.object)).then(|| event.object.clone());
        match (before, after) {
            (None, None) => None,
            (None, Some(_)) if event.change == Change::Added => Some(WatchEvent::Whole(event.clone())),
            (None, Some(after)) => Some(WatchEvent::Added(after)),
            (Some(_), Some(_)) => Some(WatchEvent::Whole(event.clone())),
            (Some(_), None) if event.change == Change::Deleted && matches(&event.object) => {
                Some(WatchEvent::Whole(event.clone()))
            }
            (Some(before), None) => Some(WatchEvent::Left(before.clone(), event.revision())),
        }
    }
}
