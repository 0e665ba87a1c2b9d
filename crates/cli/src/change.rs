//! Writing a workload: on condition that nobody else has written it since it was read, and with its revision written down.
//!
//! Guarantees: what somebody else wrote meanwhile is never lost without a word; a revision's number is given once; a history
//! that cannot be written is said, and does not undo what was done.

mod patch;
mod record;

use std::time::Duration;

use compute_api::annotations::CURRENT_REVISION;
use compute_api::compute::{Workload, WorkloadSpec};
use compute_api::template_hash;
use compute_core::revisions::{self, History, Revision};
use compute_core::{changes, meta};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::failure::{Failure, Result, from_kube};
use crate::fetch::{self, Found};
use crate::session::Session;
use crate::{clock, words};

/// How often a write is tried when others write, too. Each time somebody else got ahead, so this is plenty.
const TRIES: usize = 8;

/// How often it is looked who wrote, and how long after each other.
const LOOKS: usize = 10;
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Who it is if nobody wrote it down.
const SOMEBODY: &str = "somebody else";

/// What to do when somebody else has written meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    /// Make the same change on top of theirs, and say so.
    OnTop,
    /// Leave theirs alone, and say what it is.
    Stop,
}

/// What to write.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The whole spec.
    pub(crate) spec: Value,
    /// Labels and annotations to set beside those that are there.
    pub(crate) metadata: Value,
}

impl Wanted {
    /// A spec alone.
    pub(crate) fn spec(spec: Value) -> Self {
        Self { spec, metadata: Value::Null }
    }
}

/// A change to make.
#[derive(Clone, Debug)]
pub(crate) struct Change<'a> {
    /// The workload's name.
    pub(crate) name: &'a str,
    /// What is done, for the history, such as `deploy`.
    pub(crate) action: String,
    /// What cannot be done if it fails, such as `cannot deploy web`.
    pub(crate) what: String,
    /// What to do when somebody else has written meanwhile.
    pub(crate) meanwhile: Meanwhile,
}

/// What was written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The workload as it is now.
    pub(crate) workload: Workload,
    /// What changed, in words. Empty: nothing, and nothing was written.
    pub(crate) changes: Vec<String>,
    /// Whether it is new.
    pub(crate) is_new: bool,
    /// Its revision.
    pub(crate) revision: i64,
}

/// Makes a change: `edit` says what the workload is to be, given what it is. It is asked again if somebody else writes meanwhile.
pub(crate) async fn make(
    session: &Session,
    change: &Change<'_>,
    base: Option<Found>,
    mut edit: impl FnMut(Option<&Found>) -> Result<Wanted>,
) -> Result<Written> {
    let mut base = base;
    for _ in 0..TRIES {
        if base.as_ref().is_some_and(|base| meta::is_being_deleted(&base.workload.metadata)) {
            return Err(leaving(change));
        }
        let wanted = edit(base.as_ref())?;
        let is_same = base.as_ref().is_some_and(|base| is_same(base, &wanted));
        if let (true, Some(base)) = (is_same, &base) {
            let revision = revisions::current(&base.workload).unwrap_or(0);
            return Ok(Written {
                workload: base.workload.clone(),
                changes: Vec::new(),
                is_new: false,
                revision,
            });
        }
        match write(session, change, base.as_ref(), &wanted).await? {
            Some(written) => return Ok(written),
            None => base = Some(theirs(session, change, base).await?),
        }
    }
    Err(never_ahead(&change.what))
}

/// The failure when it is going away: what is written to it would go with it.
fn leaving(change: &Change<'_>) -> Failure {
    Failure::new(change.what.clone(), "it is being destroyed; nothing was written")
        .advice("run the command again when it is gone")
        .next(format!("status {}", change.name), "see what is left of it")
}

/// The failure when others always get ahead.
fn never_ahead(what: &str) -> Failure {
    Failure::new(what, "it keeps being changed by others; nothing of yours was written")
        .advice("talk to them, or try again in a moment")
}

/// The failure when somebody else's change would be undone.
fn overtaken(change: &Change<'_>, by: &str, what: &str) -> Failure {
    Failure::new(
        change.what.clone(),
        format!("it was changed meanwhile by {by}: {what}; nothing of yours was written"),
    )
    .advice("run the command again to see what it would change now")
    .next(format!("rollout history {}", change.name), "see who changed what")
}

/// Failures that need somebody else at the same moment.
#[cfg(test)]
pub(crate) fn errors_for_tests() -> Vec<(&'static str, Failure)> {
    let change = Change {
        name: "web",
        action: "deploy".to_owned(),
        what: "cannot deploy web".to_owned(),
        meanwhile: Meanwhile::Stop,
    };
    vec![
        ("being-destroyed", leaving(&change)),
        ("never-ahead", never_ahead(&change.what)),
        ("overtaken", overtaken(&change, "bob@example.com", "image 1.4.1 → 1.4.2")),
        ("history-busy", record::others_write()),
    ]
}

/// Whether a workload is what is wanted already.
pub(crate) fn is_same(base: &Found, wanted: &Wanted) -> bool {
    let spec: Result<WorkloadSpec, _> = serde_json::from_value(wanted.spec.clone());
    let same = template_hash::same_content(base.spec(), &wanted.spec)
        || spec.is_ok_and(|spec| {
            changes::same(&base.workload.spec, &spec) && without_defaults(base.spec(), &wanted.spec)
        });
    same && same_metadata(base, &wanted.metadata)
}

/// Whether what is stored has nothing beyond what is wanted but what the service fills in.
fn without_defaults(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            stored.iter().all(|(key, value)| match wanted.get(key) {
                Some(wanted) => without_defaults(value, wanted),
                None => key == "instanceManagementPolicy" || key == "paused" || value.is_null(),
            })
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(a, b)| without_defaults(a, b))
        }
        _ => true,
    }
}

fn same_metadata(base: &Found, wanted: &Value) -> bool {
    let held =
        json!({ "labels": base.object.metadata.labels, "annotations": base.object.metadata.annotations });
    ["labels", "annotations"].iter().all(|part| {
        let pairs = wanted[part].as_object();
        // A file may have been saved with its revision; that is not its to set.
        let is_held =
            |key: &String, value: &Value| key == CURRENT_REVISION || held[part].get(key) == Some(value);
        pairs.is_none_or(|pairs| pairs.iter().all(|(key, value)| is_held(key, value)))
    })
}

/// Writes once; `None` if somebody else got ahead.
async fn write(
    session: &Session,
    change: &Change<'_>,
    base: Option<&Found>,
    wanted: &Wanted,
) -> Result<Option<Written>> {
    let history = match base {
        Some(base) => fetch::readable_history(session, &base.workload).await?,
        None => History::default(),
    };
    let now = clock::now();
    let next = revisions::next(&history, base.map(|base| (&base.workload, base.spec())), now);
    let stored = match base {
        None => create(session, change, wanted, next.number, false).await?,
        Some(base) => update(session, &change.what, base, Some(wanted), next.number, false).await?,
    };
    let Some(stored) = stored else { return Ok(None) };
    let differences = match base {
        Some(base) => changes::between(&base.workload.spec, &stored.workload.spec),
        None => Vec::new(),
    };
    let mut changes: Vec<String> = differences.iter().map(ToString::to_string).collect();
    if changes.is_empty() && base.is_some() {
        changes.push("labels or annotations changed".to_owned());
    }
    let revision = Revision {
        number: next.number,
        at: now,
        by: fetch::who(session).await,
        action: Some(change.action.clone()),
        changes: if base.is_some() { changes.clone() } else { Vec::new() },
        template_hash: template_hash::of(&stored.workload.spec.template),
        spec: stored.spec().clone(),
    };
    let revisions: Vec<Revision> = next.found.into_iter().chain([revision]).collect();
    if let Err(failure) = record::write_down(session, &stored.workload, &revisions).await {
        say_unrecorded(session, &failure);
    }
    Ok(Some(Written { workload: stored.workload, changes, is_new: base.is_none(), revision: next.number }))
}

/// Says that something is done, though it is not in the history.
pub(crate) fn say_unrecorded(session: &Session, failure: &Failure) {
    session.say(&format!(
        "warning: it is done, but could not be written into the history: {}\n",
        failure.why.join("; ")
    ));
}

/// Writes it down that something was done that is not in the spec, such as the restart of one city.
pub(crate) async fn note(session: &Session, name: &str, action: &str, said: &str) -> Result<()> {
    for _ in 0..TRIES {
        let Some(base) = fetch::workload(session, name).await? else { return Ok(()) };
        let (_, history) = fetch::history(session, &base.workload).await?;
        let now = clock::now();
        let next = revisions::next(&history, Some((&base.workload, base.spec())), now);
        if update(session, "cannot write the history", &base, None, next.number, false).await?.is_none() {
            continue;
        }
        let revision = Revision {
            number: next.number,
            at: now,
            by: fetch::who(session).await,
            action: Some(action.to_owned()),
            changes: vec![said.to_owned()],
            template_hash: template_hash::of(&base.workload.spec.template),
            spec: base.spec().clone(),
        };
        let revisions: Vec<Revision> = next.found.into_iter().chain([revision]).collect();
        return record::write_down(session, &base.workload, &revisions).await;
    }
    Err(never_ahead("cannot write the history"))
}

/// Whether the service would take it. Nothing is written.
pub(crate) async fn rehearse(
    session: &Session,
    change: &Change<'_>,
    base: Option<&Found>,
    wanted: &Wanted,
) -> Result<Found> {
    let mut base = base.cloned();
    for _ in 0..TRIES {
        let done = match &base {
            None => create(session, change, wanted, 1, true).await?,
            Some(base) => {
                let number = revisions::current(&base.workload).unwrap_or(0) + 1;
                update(session, &change.what, base, Some(wanted), number, true).await?
            }
        };
        match done {
            Some(found) => return Ok(found),
            None => base = Some(theirs(session, change, base).await?),
        }
    }
    Err(never_ahead(&change.what))
}

/// Makes a workload; `None` if somebody else got ahead.
async fn create(
    session: &Session,
    change: &Change<'_>,
    wanted: &Wanted,
    revision: i64,
    dry_run: bool,
) -> Result<Option<Found>> {
    let kind = kube::api::ApiResource::erase::<Workload>(&());
    let mut object = DynamicObject::new(change.name, &kind);
    let texts = |part: &str| serde_json::from_value(wanted.metadata[part].clone()).unwrap_or_default();
    object.metadata.labels = texts("labels");
    object.metadata.annotations = texts("annotations");
    object
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(CURRENT_REVISION.to_owned(), revision.to_string());
    object.data = json!({ "spec": wanted.spec });
    let params = PostParams { dry_run, ..PostParams::default() };
    match fetch::raw_workloads(session).create(&params, &object).await {
        Ok(stored) => Found::of(stored).map(Some),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(from_kube(change.what.clone(), &error)),
    }
}

/// Changes a workload on condition that nobody else did; `None` if somebody did.
async fn update(
    session: &Session,
    what: &str,
    base: &Found,
    wanted: Option<&Wanted>,
    revision: i64,
    dry_run: bool,
) -> Result<Option<Found>> {
    let name = meta::name(&base.workload.metadata);
    let operations = serde_json::from_value(patch::operations(base, wanted, revision));
    let operations = operations.map_err(|_| {
        Failure::new(what, "the change cannot be written down").advice("tell whoever made this program")
    })?;
    let params = PatchParams { dry_run, ..PatchParams::default() };
    let patch: Patch<DynamicObject> = Patch::Json(operations);
    let refused = match fetch::raw_workloads(session).patch(name, &params, &patch).await {
        Ok(stored) => return Found::of(stored).map(Some),
        Err(error) => error,
    };
    // A condition that does not hold and a workload that is not good are refused alike: look which it is.
    if let kube::Error::Api(status) = &refused
        && matches!(status.code, 404 | 409 | 422)
    {
        match fetch::workload(session, name).await? {
            None => return Err(fetch::not_found(name, what, &[])),
            Some(now) if !patch::still_holds(base, &now, wanted) => return Ok(None),
            Some(_) => {}
        }
    }
    Err(from_kube(what, &refused))
}

/// Who wrote what was found. They write it down a moment after they have written it; with another tool, nobody does.
async fn whose(session: &Session, found: &Found, base: Option<&Found>) -> Result<String> {
    let known = base.and_then(|base| revisions::current(&base.workload));
    let theirs = revisions::current(&found.workload);
    let theirs = theirs.filter(|number| known.is_none_or(|known| *number > known));
    for _ in 0..LOOKS {
        let Some(number) = theirs else { break };
        let history = fetch::readable_history(session, &found.workload).await?;
        if let Some(revision) = history.get(number) {
            return Ok(revision.by.clone().unwrap_or_else(|| SOMEBODY.to_owned()));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(SOMEBODY.to_owned())
}

/// What somebody else made of the workload meanwhile, after it has been said.
async fn theirs(session: &Session, change: &Change<'_>, base: Option<Found>) -> Result<Found> {
    let found = fetch::required(session, change.name, &change.what).await?;
    let by = whose(session, &found, base.as_ref()).await?;
    let what: Vec<String> = match &base {
        Some(base) => changes::between(&base.workload.spec, &found.workload.spec)
            .iter()
            .map(ToString::to_string)
            .collect(),
        None => vec!["it was created".to_owned()],
    };
    if what.is_empty() {
        // Only what the service keeps about it has changed.
        return Ok(found);
    }
    let what = words::list(&what);
    match change.meanwhile {
        Meanwhile::OnTop => {
            let name = change.name;
            session.say(&format!(
                "{name} was changed meanwhile by {by} ({what}); your change comes on top of that.\n"
            ));
            Ok(found)
        }
        Meanwhile::Stop => Err(overtaken(change, &by, &what)),
    }
}
