//! `rollout pause` and `rollout resume`.

use serde_json::Value;

use super::{Following, Name};
use crate::change::{self, Change, Meanwhile, Wanted, Written};
use crate::commands::deploy;
use crate::failure::Result;
use crate::fetch;
use crate::session::Session;

/// What to let go on.
#[derive(clap::Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    which: Name,
    #[command(flatten)]
    following: Following,
}

/// Lets instances stay as they are.
pub(crate) async fn run(session: &Session, name: &str) -> Result<()> {
    let text = match set(session, name, true).await?.changes.is_empty() {
        false => format!(
            "{name} is paused: instances stay as they are. Resume it with:\n  {}\n",
            session.invocation.command(&format!("rollout resume {name}"))
        ),
        true => format!("{name} is already paused.\n"),
    };
    session.tell(&text);
    deploy::unchanged(session, name).await
}

/// Lets a paused rollout go on.
pub(crate) async fn resume(session: &Session, options: &Resume) -> Result<()> {
    let name = &options.which.name;
    let written = set(session, name, false).await?;
    if written.changes.is_empty() {
        session.tell(&format!("{name} is not paused; nothing to change.\n"));
        return deploy::unchanged(session, name).await;
    }
    session.tell(&format!("{name} is resumed.\n"));
    deploy::after(session, &written.workload, &options.following).await.map(drop)
}

/// Sets it.
async fn set(session: &Session, name: &str, paused: bool) -> Result<Written> {
    let word = if paused { "pause" } else { "resume" };
    let what = format!("cannot {word} {name}");
    let found = session.gated(fetch::required(session, name, &what)).await?;
    let change = Change { name, action: word.to_owned(), what, meanwhile: Meanwhile::OnTop };
    change::make(session, &change, Some(found), |base| {
        let mut spec = base.map(|base| base.spec().clone()).unwrap_or_default();
        spec["paused"] = Value::from(paused);
        Ok(Wanted::spec(spec))
    })
    .await
}
