//! `rollout history`.

use compute_core::revisions::{self, Revision};
use serde_json::json;

use super::Name;
use crate::args::Output;
use crate::commands::{is_for_people, print};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::{fetch, render};

/// Which history.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    which: Name,
    /// Show what this revision changed, line by line
    #[arg(long, value_name = "REVISION")]
    diff: Option<i64>,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let name = &options.which.name;
    let what = format!("cannot show the history of {name}");
    let read = async {
        let found = fetch::required(session, name, &what).await?;
        let (_, history) = fetch::history(session, &found.workload).await?;
        Ok((found, history))
    };
    let (found, mut history) = session.gated(read).await?;
    // What was done with another tool is shown, too, though nobody has written it down yet.
    let next = revisions::next(&history, Some((&found.workload, found.spec())), session.now);
    history.add(next.found);
    if let Some(number) = options.diff {
        let Some(revision) = history.get(number) else { return Err(no_revision(name, &what, number)) };
        if !is_for_people(session.output) {
            let before = history.before(number).map(|before| &before.spec);
            return print::value(
                session,
                &json!({ "revision": number, "before": before, "after": revision.spec }),
            );
        }
        let before = history.before(number).map(yaml).unwrap_or_default();
        session.io.print(&render::history::diff(&before, &yaml(revision), session.io.out));
        return Ok(());
    }
    let current = history.newest().map(|newest| newest.number);
    match session.output {
        Output::Json | Output::Yaml => {
            let all: Vec<_> = history
                .revisions()
                .map(|one| {
                    json!({ "revision": one.number, "at": one.at, "by": one.by, "action": one.action,
                        "changes": one.changes, "templateHash": one.template_hash })
                })
                .collect();
            print::value(session, &all)?;
        }
        Output::Name => {
            let numbers: Vec<String> = history.revisions().map(|one| one.number.to_string()).collect();
            print::names(session, numbers.iter().map(String::as_str));
        }
        Output::Table | Output::Wide => {
            let is_wide = session.output == Output::Wide;
            session.io.print(&render::history::list(&history, current, is_wide, session.now, session.io.out));
        }
    }
    Ok(())
}

/// A revision's spec, as people read it.
pub(crate) fn yaml(revision: &Revision) -> String {
    serde_saphyr::to_string(&revision.spec).unwrap_or_default()
}

/// The failure when there is no such revision.
pub(crate) fn no_revision(name: &str, what: &str, number: i64) -> Failure {
    Failure::new(what, format!("there is no revision {number}, or it is too old: the last 20 are kept"))
        .next(format!("rollout history {name}"), "list the revisions")
}
