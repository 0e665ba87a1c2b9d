//! The history of a Workload: its revisions, how they are kept in a ConfigMap, and what to write down next.
//!
//! The Workload is written first, with the number of its newest revision in an annotation and on condition that nobody else has written
//! it since; so a number is given once, whoever else writes. Then the revision is written down. What was not written down, because its
//! writer died or was another tool, is found by whoever comes next ([`next`]).
//!
//! # Guarantees
//!
//! The newest [`KEPT`] revisions stay, fewer if they are large; the newest always does. An entry that cannot be read is skipped, and never
//! keeps others from being read or written.

use std::collections::BTreeMap;

use compute_api::{
    annotations::CURRENT_REVISION,
    compute::{Workload, WorkloadSpec},
    k8s::Timestamp,
    template_hash,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{changes, meta};

/// How many revisions are kept.
pub const KEPT: usize = 20;
/// The most that a ConfigMap may hold is 1 MiB; its keys and metadata take some.
const MAX_BYTES: usize = 900 * 1024;
const KEY_PREFIX: &str = "revision.";

/// What a Workload was asked to be, from some time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Counts from 1.
    pub number: i64,
    /// Since when.
    pub at: Timestamp,
    /// Who asked for it. Unset: somebody with another tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What was done, such as `deploy` or `undo to revision 3`. Unset: it was found so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// What changed, in words.
    #[serde(default)]
    pub changes: Vec<String>,
    /// Hash of its template.
    pub template_hash: String,
    /// The whole spec, as it was stored.
    pub spec: Value,
}

impl Revision {
    /// The spec, if it can be read.
    pub fn workload_spec(&self) -> Option<WorkloadSpec> {
        serde_json::from_value(self.spec.clone()).ok()
    }
}

/// The revisions of a Workload, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(BTreeMap<i64, Revision>);

impl History {
    /// Reads the data of a ConfigMap.
    pub fn read(data: &BTreeMap<String, String>) -> Self {
        let read = |(key, text): (&String, &String)| {
            key.strip_prefix(KEY_PREFIX)?;
            let revision: Revision = serde_json::from_str(text).ok()?;
            Some((revision.number, revision))
        };
        Self(data.iter().filter_map(read).collect())
    }

    /// The data of a ConfigMap, as much as fits.
    pub fn write(&self) -> BTreeMap<String, String> {
        let mut bytes = 0;
        let mut data = BTreeMap::new();
        for (number, revision) in self.0.iter().rev().take(KEPT) {
            let text = serde_json::to_string(revision).expect("a revision has string keys only");
            bytes += text.len();
            if bytes > MAX_BYTES && !data.is_empty() {
                break;
            }
            data.insert(format!("{KEY_PREFIX}{number}"), text);
        }
        data
    }

    /// Puts revisions in. What was only found never takes the place of what its own writer has written down meanwhile.
    pub fn add(&mut self, revisions: impl IntoIterator<Item = Revision>) {
        for revision in revisions {
            let is_written = self.0.get(&revision.number).is_some_and(|known| known.action.is_some());
            if revision.action.is_some() || !is_written {
                self.0.insert(revision.number, revision);
            }
        }
        while self.0.len() > KEPT {
            self.0.pop_first();
        }
    }

    /// All of them, oldest first.
    pub fn revisions(&self) -> impl DoubleEndedIterator<Item = &Revision> {
        self.0.values()
    }

    /// The revision of that number.
    pub fn get(&self, number: i64) -> Option<&Revision> {
        self.0.get(&number)
    }

    /// The one before.
    pub fn before(&self, number: i64) -> Option<&Revision> {
        self.0.range(..number).next_back().map(|(_, revision)| revision)
    }

    /// The newest.
    pub fn newest(&self) -> Option<&Revision> {
        self.0.values().next_back()
    }

    /// The newest revision that asks for something else than the Workload does now, which is where to go back to.
    pub fn last_other(&self, now: &WorkloadSpec) -> Option<&Revision> {
        self.0.values().rev().find(|revision| {
            revision.workload_spec().is_some_and(|spec| !changes::same_but_restart(&spec, now))
        })
    }
}

/// The number of a Workload's newest revision, as it says itself.
pub fn current(workload: &Workload) -> Option<i64> {
    meta::annotation(&workload.metadata, CURRENT_REVISION)?.parse().ok().filter(|number| *number > 0)
}

/// What to write down with the next write of a Workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// What was found and nobody has written down.
    pub found: Option<Revision>,
    /// The number of the new revision.
    pub number: i64,
}

/// What to write down with the next write. `stored` is the Workload as it is, with its spec as JSON; `None` if it does not exist.
pub fn next(history: &History, stored: Option<(&Workload, &Value)>, now: Timestamp) -> Next {
    let Some((workload, spec)) = stored else { return Next { found: None, number: 1 } };
    let newest = history.newest();
    let known = current(workload).unwrap_or(0).max(newest.map_or(0, |newest| newest.number));
    let newest_spec = newest.and_then(Revision::workload_spec);
    if newest_spec.as_ref().is_some_and(|newest| changes::same(newest, &workload.spec)) {
        return Next { found: None, number: known + 1 };
    }
    // A number that was given and not written down is that of what is there now.
    let lost = current(workload).filter(|number| history.get(*number).is_none());
    let number = lost.filter(|number| *number == known).unwrap_or(known + 1);
    let changes = newest_spec.map_or_else(Vec::new, |before| changes::between(&before, &workload.spec));
    let found = Revision {
        number,
        at: found_at(workload).unwrap_or(now),
        by: None,
        action: None,
        changes: changes.iter().map(ToString::to_string).collect(),
        template_hash: template_hash::of(&workload.spec.template),
        spec: spec.clone(),
    };
    Next { found: Some(found), number: number + 1 }
}

/// When a Workload was last written, as far as it can be told.
fn found_at(workload: &Workload) -> Option<Timestamp> {
    let entries = workload.metadata.managed_fields.as_deref().unwrap_or_default();
    let of_spec = entries.iter().filter(|entry| entry.subresource.as_deref().is_none_or(str::is_empty));
    let times = of_spec.filter_map(|entry| entry.time.as_ref().map(|time| time.0));
    times.max().or_else(|| workload.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

#[cfg(test)]
mod tests;
