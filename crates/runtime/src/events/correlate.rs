//! What is new, what was told before, and what is told too often. Pure: a function of notices and times.

use std::sync::Arc;
use std::time::Duration;

use compute_api::k8s::{ObjectReference, Timestamp};
use sha2::{Digest as _, Sha256};

use super::recent::Recent;
use super::{Limits, Notice};

/// The longest message that servers take.
const MAX_MESSAGE: usize = 1024;
/// The longest name that servers take.
const MAX_NAME: usize = 253;

/// An object of a plane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct About {
    pub(super) plane: Arc<str>,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// What makes two notices the same Event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) about: Arc<About>,
    pub(super) notice: Notice,
}

impl Key {
    pub(super) fn new(plane: Arc<str>, object: ObjectReference, mut notice: Notice) -> Arc<Self> {
        notice.message.truncate(notice.message.floor_char_boundary(MAX_MESSAGE));
        let about = About {
            plane,
            api_version: object.api_version.unwrap_or_default(),
            kind: object.kind.unwrap_or_default(),
            namespace: object.namespace.unwrap_or_default(),
            name: object.name.unwrap_or_default(),
            uid: object.uid.unwrap_or_default(),
        };
        Arc::new(Self { about: Arc::new(about), notice })
    }

    /// The Event's name: the object's, and a digest of everything else.
    pub(super) fn event_name(&self) -> String {
        let About { plane: _, api_version, kind, namespace, name, uid } = &*self.about;
        let Notice { severity, reason, message } = &self.notice;
        let mut digest = Sha256::new();
        for part in [api_version, kind, namespace, name, uid, severity.as_str(), reason, message.as_str()] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        let digest: String = digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let room = name.floor_char_boundary(MAX_NAME - digest.len() - 1);
        format!("{}.{digest}", name[..room].trim_end_matches(['.', '-']))
    }
}

/// What is to be written of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// The count that the server has, as far as is known; 0 if it has not seen the Event.
    pub(super) written: i32,
    /// How often it was told since.
    pub(super) pending: i32,
    /// When it was told first since then.
    pub(super) first: Timestamp,
    /// When it was told last.
    pub(super) last: Timestamp,
}

/// What to do about a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Queue a write of its Event.
    Queue,
    /// A write is queued already; it takes this one along.
    Merged,
    /// Its object has been told about too often; the next write takes it along.
    Limited,
}

struct Entry {
    occurrence: Occurrence,
    is_queued: bool,
}

struct Bucket {
    tokens: f64,
    at: Timestamp,
}

/// What has been told so far.
pub(super) struct Correlator {
    entries: Recent<Arc<Key>, Entry>,
    buckets: Recent<Arc<About>, Bucket>,
    burst: f64,
    refill: Duration,
}

impl Correlator {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            entries: Recent::new(limits.remembered),
            buckets: Recent::new(limits.remembered),
            burst: f64::from(limits.burst.max(1)),
            refill: limits.refill,
        }
    }

    /// Something was told.
    pub(super) fn told(&mut self, key: &Arc<Key>, now: Timestamp) -> Decision {
        let entry = self.entries.entry(key, || Entry {
            occurrence: Occurrence { written: 0, pending: 0, first: now, last: now },
            is_queued: false,
        });
        if entry.occurrence.pending == 0 {
            entry.occurrence.first = now;
        }
        entry.occurrence.pending = entry.occurrence.pending.saturating_add(1);
        entry.occurrence.last = now;
        if entry.is_queued {
            return Decision::Merged;
        }
        let burst = self.burst;
        let bucket = self.buckets.entry(&key.about, || Bucket { tokens: burst, at: now });
        bucket.fill(now, burst, self.refill);
        if bucket.tokens < 1.0 {
            return Decision::Limited;
        }
        bucket.tokens -= 1.0;
        entry.is_queued = true;
        Decision::Queue
    }

    /// A write begins: what it is to say. None if the Event has been forgotten.
    pub(super) fn begin(&mut self, key: &Arc<Key>) -> Option<Occurrence> {
        let entry = self.entries.get_mut(key)?;
        let occurrence = entry.occurrence;
        entry.occurrence.pending = 0;
        entry.is_queued = false;
        Some(occurrence)
    }

    /// A queued write does not happen.
    pub(super) fn abandon(&mut self, key: &Arc<Key>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.is_queued = false;
        }
    }

    /// A write went through; the server has that count now.
    pub(super) fn written(&mut self, key: &Arc<Key>, count: i32) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.occurrence.written = count;
        }
    }

    /// A write failed: what it was to say is still to be said.
    pub(super) fn failed(&mut self, key: &Arc<Key>, occurrence: Occurrence) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.occurrence.pending = entry.occurrence.pending.saturating_add(occurrence.pending);
            entry.occurrence.first = occurrence.first;
        }
    }
}

impl Bucket {
    fn fill(&mut self, now: Timestamp, burst: f64, refill: Duration) {
        // A clock that went back fills nothing.
        let passed = now.duration_since(self.at).as_secs_f64().max(0.0);
        let refill = refill.as_secs_f64();
        self.tokens = if refill > 0.0 { (self.tokens + passed / refill).min(burst) } else { burst };
        self.at = now;
    }
}

#[cfg(test)]
mod tests;
