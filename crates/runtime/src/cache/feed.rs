//! Fills a cache from a server: a list, then watches from where it stood, one after the other, until a new list is needed.
//!
//! | what happens | what follows |
//! | --- | --- |
//! | a list fails | another, after a while |
//! | a watch ends when its time is up | another from the last version heard of, at once |
//! | a watch breaks, hangs or is refused | another from the last version heard of, after a while, if the server is not behind that |
//! | the server is behind the last version heard of: it was put back to an older state | a list, of which no version is believed |
//! | the version is too old (410), or the server's answers make no sense three times in a row | a list |
//!
//! A server asked to watch from a version that it has not reached yet may open the watch and stay silent: that is why it is asked where it
//! stands after every interruption. One that was put back and has passed that version again meanwhile cannot be told from one that was not.
//!
//! A watch that is idle holds its connection, a timer and a version, and no buffer. That is why this is not done with the stock
//! watcher, which is several times as large.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, WatchParams};
use kube::client::Body;
use kube::core::Status;
use tokio::time::{Instant, sleep};

use super::decode::{self, Decoded, Event, Page};
use super::fetch::{self, FetchError, Lines};
use super::store::Store;
use super::{Object, ObjectName, Selector};
use crate::backoff::Backoff;
use crate::plane::Plane;

/// Objects in one page of a list: a page is held in memory as a whole.
const PAGE: u32 = 500;
/// How long a watch is asked to last. The server ends it; different lengths keep watches that began together from ending together.
const WATCH_LASTS: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(600));
/// How long after that the server must have ended it. A connection that has died without a word is noticed by then, if the
/// transport did not notice before.
const WATCH_GRACE: Duration = Duration::from_secs(15);
/// How long a server may take to begin a watch.
const WATCH_OPENS: Duration = Duration::from_secs(15);
/// A watch that was quiet for this long was a good one: the next failure is a first one.
const HEALTHY: Duration = Duration::from_secs(10);
/// A watch that ends sooner than this without a word counts as refused, so that a server that always does it is not hammered.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// Refusals in a row after which the version is no longer believed in: it may be from before the server lost its data.
const REFUSALS: u32 = 3;
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(400), max: Duration::from_secs(30) };

/// Fills a cache of `K`.
pub(crate) struct Feed<K> {
    plane: Plane,
    selector: Selector,
    kind: PhantomData<fn() -> K>,
}

/// What went wrong lately.
#[derive(Default)]
struct Trouble {
    failures: u32,
    /// What was logged last, so that a lasting problem is said once.
    said: Option<String>,
}

impl<K: Object> Feed<K> {
    pub(crate) fn new(plane: Plane, selector: Selector) -> Self {
        Self { plane, selector, kind: PhantomData }
    }

    /// Goes on until it is aborted.
    pub(crate) async fn run(self, store: Arc<Store<K>>) {
        let mut trouble = Trouble::default();
        let mut reached = None;
        loop {
            // On the heap for as long as it lasts: this future's size is what an idle watch costs.
            let version = Box::pin(self.list(&store, reached.as_deref(), &mut trouble)).await;
            reached = Some(self.follow(&store, version, &mut trouble).await);
        }
    }

    /// Takes over a whole list, after what was heard of up to the version `reached`; its version.
    async fn list(&self, store: &Store<K>, reached: Option<&str>, trouble: &mut Trouble) -> String {
        let (mut failed, mut page) = (false, Some(PAGE));
        loop {
            let listed = {
                let permit = self.plane.runtime().lists().permit(failed).await;
                self.list_once(store, reached, page, permit.patience).await
            };
            match listed {
                Ok(version) => {
                    store.set_synced();
                    return version;
                }
                Err(error) => {
                    failed = true;
                    if error.is_expired() {
                        // The list was too slow for its pages to be kept. In one piece it cannot expire.
                        page = None;
                    }
                    sleep(self.failed(trouble, "list", &error)).await;
                }
            }
        }
    }

    async fn list_once(
        &self,
        store: &Store<K>,
        reached: Option<&str>,
        page: Option<u32>,
        patience: Duration,
    ) -> Result<String, FetchError> {
        let mut listed = BTreeSet::new();
        let mut params = self.list_params(page);
        loop {
            let bytes = self.page(&params, patience).await?;
            let Page { metadata, items } = serde_json::from_slice(&bytes)?;
            // The same version may stand for something else after the server was put back.
            let goes_on = reached.is_none_or(|reached| !is_behind(metadata.resource_version(), reached));
            for item in items.into_iter().flatten() {
                match decode::object::<K>(item) {
                    Decoded::Object(object) => {
                        listed.insert(ObjectName::of(&object));
                        if goes_on { store.put(object) } else { store.replace(object) }
                    }
                    Decoded::Unreadable { name, version, error } => {
                        self.unreadable(store, &name, version, &error);
                        listed.insert(name);
                    }
                    Decoded::Nameless { error } => self.nameless(&error),
                }
            }
            params.continue_token = metadata.continue_token.clone().filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                store.retain(&listed);
                return Ok(metadata.resource_version.unwrap_or_default());
            }
        }
    }

    fn list_params(&self, limit: Option<u32>) -> ListParams {
        ListParams {
            label_selector: self.selector.labels.clone(),
            field_selector: self.selector.fields.clone(),
            limit,
            ..ListParams::default()
        }
    }

    async fn page(&self, params: &ListParams, patience: Duration) -> Result<Vec<u8>, FetchError> {
        let resource = kube::core::Request::new(K::url_path(&(), None));
        let request = match K::metadata_api() {
            true => resource.list_metadata(params)?,
            false => resource.list(params)?,
        };
        let body = fetch::open(self.plane.client(), request, patience).await?;
        fetch::read(body, patience).await
    }

    /// Whether the server has not reached a version yet.
    async fn is_server_behind(&self, version: &str) -> Result<bool, FetchError> {
        let bytes = self.page(&self.list_params(Some(1)), WATCH_OPENS).await?;
        let Page { metadata, .. } = serde_json::from_slice(&bytes)?;
        Ok(is_behind(metadata.resource_version(), version))
    }

    /// Watches from a version until a list is needed; the version that it came to.
    async fn follow(&self, store: &Store<K>, mut version: String, trouble: &mut Trouble) -> String {
        let mut interrupted = true;
        let mut follows_a_list = true;
        let mut refusals = 0;
        loop {
            let (least, most) = WATCH_LASTS;
            let lasts = self.plane.runtime().random().between(least, most);
            let (mut heard, mut lived) = (false, Duration::ZERO);
            let resumes = interrupted && !std::mem::take(&mut follows_a_list);
            let ended = match Box::pin(self.open(&version, lasts, resumes)).await {
                Ok(None) => {
                    let (plane, kind) = (self.plane.id(), K::kind(&()));
                    tracing::warn!(%plane, %kind, version, "the server was put back to an older state");
                    return version;
                }
                Ok(Some(body)) => {
                    if std::mem::take(&mut interrupted) {
                        store.set_connected();
                    }
                    let began = Instant::now();
                    let deadline = began + lasts + WATCH_GRACE;
                    let ended = self.read(store, body, deadline, |newer| {
                        version = newer;
                        heard = true;
                        self.recovered(trouble);
                    });
                    let ended = ended.await;
                    lived = began.elapsed();
                    ended
                }
                Err(error) => Err(error),
            };
            if heard || lived >= HEALTHY {
                self.recovered(trouble);
                refusals = 0;
            }
            let delay = match ended {
                Ok(()) if heard || lived >= TOO_SHORT => continue,
                Ok(()) => self.failed(trouble, "watch", "it ended at once without a word"),
                Err(error) => {
                    if !std::mem::replace(&mut interrupted, true) {
                        store.set_disconnected();
                        self.plane.runtime().metrics().watch_restarted(&K::kind(&()));
                    }
                    if error.is_answer() {
                        refusals += 1;
                    }
                    let delay = self.failed(trouble, "watch", &error).max(error.retry_after());
                    if error.is_expired() || refusals >= REFUSALS {
                        sleep(delay).await;
                        return version;
                    }
                    delay
                }
            };
            sleep(delay).await;
        }
    }

    /// Opens a watch. `None` if it would resume one that was interrupted, and the server is behind it.
    async fn open(&self, version: &str, lasts: Duration, resumes: bool) -> Result<Option<Body>, FetchError> {
        let params = WatchParams {
            label_selector: self.selector.labels.clone(),
            field_selector: self.selector.fields.clone(),
            timeout: Some(u32::try_from(lasts.as_secs()).unwrap_or(u32::MAX)),
            ..WatchParams::default()
        };
        let resource = kube::core::Request::new(K::url_path(&(), None));
        let request = match K::metadata_api() {
            true => resource.watch_metadata(&params, version)?,
            false => resource.watch(&params, version)?,
        };
        let body = fetch::open(self.plane.client(), request, WATCH_OPENS).await?;
        // Asked only now: a server that is down is asked for one thing at a time.
        let behind = resumes && self.is_server_behind(version).await?;
        Ok((!behind).then_some(body))
    }

    /// Takes over events until the server ends the watch. Says which version each led to.
    async fn read(
        &self,
        store: &Store<K>,
        mut body: Body,
        deadline: Instant,
        mut reached: impl FnMut(String),
    ) -> Result<(), FetchError> {
        let mut lines = Lines::default();
        while let Some(data) = fetch::piece(&mut body, deadline).await? {
            lines.push(&data, |line| {
                if let Some(version) = self.event(store, line)? {
                    reached(version);
                }
                Ok::<(), FetchError>(())
            })?;
        }
        Ok(())
    }

    /// Takes over one event; the version that it leads to.
    fn event(&self, store: &Store<K>, line: &[u8]) -> Result<Option<String>, FetchError> {
        if line.is_empty() {
            return Ok(None);
        }
        let Event { kind, object } = serde_json::from_slice(line)?;
        Ok(match &*kind {
            "ADDED" | "MODIFIED" => match decode::object::<K>(object) {
                Decoded::Object(object) => {
                    let version = object.meta().resource_version.clone();
                    store.put(object);
                    version
                }
                Decoded::Unreadable { name, version, error } => {
                    self.unreadable(store, &name, version.clone(), &error);
                    version
                }
                Decoded::Nameless { error } => {
                    self.nameless(&error);
                    None
                }
            },
            "DELETED" => match decode::head(object) {
                Some((name, version)) => {
                    store.remove(name);
                    version
                }
                None => {
                    self.nameless("it was deleted, and has no name");
                    None
                }
            },
            "BOOKMARK" => decode::bookmark(object),
            "ERROR" => {
                return Err(FetchError::Refused(Box::new(serde_json::from_str::<Status>(object.get())?)));
            }
            other => {
                tracing::debug!(plane = %self.plane.id(), kind = %K::kind(&()), event = other, "unknown event");
                None
            }
        })
    }

    fn unreadable(&self, store: &Store<K>, name: &ObjectName, version: Option<String>, error: &str) {
        if !store.put_unreadable(name, version) {
            return;
        }
        let kind = K::kind(&());
        self.plane.runtime().metrics().undecodable(&kind);
        tracing::error!(
            plane = %self.plane.id(), kind = %kind, namespace = name.namespace, name = name.name, error,
            "skipped an object that cannot be decoded"
        );
    }

    fn nameless(&self, error: &str) {
        let kind = K::kind(&());
        self.plane.runtime().metrics().undecodable(&kind);
        tracing::error!(plane = %self.plane.id(), kind = %kind, error, "skipped an object that cannot be decoded");
    }

    /// Notes a failure; how long to wait before the next try.
    fn failed(&self, trouble: &mut Trouble, what: &str, error: impl std::fmt::Display) -> Duration {
        trouble.failures = trouble.failures.saturating_add(1);
        let delay = BACKOFF.after(trouble.failures, self.plane.runtime().random());
        let (plane, kind, error) = (self.plane.id(), K::kind(&()), error.to_string());
        // A first failure often mends itself, or is the plane's end, which is about to be told.
        if trouble.failures == 1 || trouble.said.as_ref() == Some(&error) {
            tracing::debug!(%plane, %kind, error, ?delay, "{what} failed");
        } else {
            tracing::warn!(%plane, %kind, error, ?delay, "{what} failed");
            trouble.said = Some(error);
        }
        delay
    }

    fn recovered(&self, trouble: &mut Trouble) {
        trouble.failures = 0;
        if trouble.said.take().is_some() {
            tracing::info!(plane = %self.plane.id(), kind = %K::kind(&()), "watching again");
        }
    }
}

/// Whether one version comes before another. Versions are numbers; of others nothing can be said, so that a list has to tell.
fn is_behind(version: &str, other: &str) -> bool {
    match (version.parse::<u64>(), other.parse::<u64>()) {
        (Ok(version), Ok(other)) => version < other,
        _ => true,
    }
}
