//! `rollout undo`.

use compute_api::annotations::RESTARTED_AT;
use compute_api::compute::WorkloadSpec;
use compute_core::restart;
use serde_json::{Value, json};

use super::history::no_revision;
use super::{Following, Name};
use crate::change::{self, Change, Meanwhile, Wanted};
use crate::commands::deploy;
use crate::failure::{Failure, Result};
use crate::fetch::{self, Found};
use crate::session::Session;

/// Where to go back to.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    which: Name,
    /// The revision to go back to [default: the last one that was different]
    #[arg(long, value_name = "REVISION")]
    to_revision: Option<i64>,
    #[command(flatten)]
    following: Following,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let name = &options.which.name;
    let what = format!("cannot undo {name}");
    let read = async {
        let found = fetch::required(session, name, &what).await?;
        let (_, history) = fetch::history(session, &found.workload).await?;
        Ok((found, history))
    };
    let (found, history) = session.gated(read).await?;
    let target = match options.to_revision {
        Some(number) => history.get(number).ok_or_else(|| no_revision(name, &what, number))?,
        None => history.last_other(&found.workload.spec).ok_or_else(|| {
            Failure::new(&what, "its history has nothing that is different from what it is now")
                .next(format!("rollout history {name}"), "list the revisions")
        })?,
    };
    let change = Change {
        name,
        action: format!("undo to revision {}", target.number),
        what,
        meanwhile: Meanwhile::Stop,
    };
    let spec = target.spec.clone();
    let written =
        change::make(session, &change, Some(found), |base| Ok(Wanted::spec(back(&spec, base)))).await?;
    if written.changes.is_empty() {
        session.tell(&format!(
            "{name} is already as it was in revision {}; nothing to change.\n",
            target.number
        ));
        return deploy::unchanged(session, name).await;
    }
    session.tell(&format!(
        "{name} is rolled back to revision {} (as revision {}): {}\n",
        target.number,
        written.revision,
        written.changes.join("; ")
    ));
    deploy::after(session, &written.workload, &options.following).await.map(drop)
}

/// An earlier spec, but for what is not undone: a pause, and restarts, which would only restart everything again.
fn back(spec: &Value, base: Option<&Found>) -> Value {
    let mut spec = spec.clone();
    let Some(base) = base else { return spec };
    let paused = &base.spec()["paused"];
    match paused.is_null() {
        true => {
            spec.as_object_mut().map(|fields| fields.remove("paused"));
        }
        false => spec["paused"] = paused.clone(),
    }
    let restarted = |spec: &Value| {
        let read: Option<WorkloadSpec> = serde_json::from_value(spec.clone()).ok();
        read.and_then(|spec| spec.template.annotation(RESTARTED_AT).map(str::to_owned))
    };
    let (then, now) = (restarted(&spec), restarted(base.spec()));
    if let Some(later) = restart::later(then.as_deref(), now.as_deref()) {
        if !spec["template"]["metadata"].is_object() {
            spec["template"]["metadata"] = json!({});
        }
        if !spec["template"]["metadata"]["annotations"].is_object() {
            spec["template"]["metadata"]["annotations"] = json!({});
        }
        spec["template"]["metadata"]["annotations"][RESTARTED_AT] = Value::from(later);
    }
    spec
}
