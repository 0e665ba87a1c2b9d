//! What people have been told about objects, so that a pass over an unchanged object tells nothing.

use std::collections::BTreeMap;

use compute_runtime::Key;
use compute_runtime::events::{Notice, Recorder};
use kube::Resource;
use parking_lot::Mutex;

/// What was told last about each matter of each object.
#[derive(Default)]
pub(super) struct Told(Mutex<BTreeMap<Key, Matters>>);

/// Reason and message by matter.
type Matters = BTreeMap<String, (String, String)>;

impl Told {
    /// Warns about a matter, if that is news.
    pub(super) fn warn<K: Resource<DynamicType = ()>>(
        &self,
        recorder: &Recorder,
        (key, object): (&Key, &K),
        (matter, reason): (&str, &str),
        message: impl Into<String>,
    ) {
        let message = message.into();
        let mut told = self.0.lock();
        let matters = told.entry(key.clone()).or_default();
        if matters.get(matter).is_some_and(|told| (told.0.as_str(), &told.1) == (reason, &message)) {
            return;
        }
        tracing::warn!(%key, reason, message);
        recorder.tell(object, Notice::warning(reason, message.as_str()));
        matters.insert(matter.to_owned(), (reason.to_owned(), message));
    }

    /// The matter is settled: if it comes up again, that is news.
    pub(super) fn settled(&self, key: &Key, matter: &str) {
        let mut told = self.0.lock();
        if let Some(matters) = told.get_mut(key) {
            matters.remove(matter);
            if matters.is_empty() {
                told.remove(key);
            }
        }
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}
