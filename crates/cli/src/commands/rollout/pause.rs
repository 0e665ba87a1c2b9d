//! `rollout pause` and `rollout resume`.

use serde_json::Value;

use super::{Following, Name};
use crate::change::{self, Change, Meanwhile, Wanted};
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
    let text = match set(session, name, true).await? {
        true => format!(
            "{name} is paused: instances stay as they are. Let it go on with:\n  {}\n",
            session.invocation.command(&format!("rollout resume {name}"))
        ),
        false => format!("{name} is paused already: nothing changes.\n"),
    };
    session.tell(&text);
    Ok(())
}

/// Lets a paused rollout go on.
pub(crate) async fn resume(session: &Session, options: &Resume) -> Result<()> {
    let name = &options.which.name;
    if !set(session, name, false).await? {
        session.tell(&format!("{name} is not paused: nothing changes.\n"));
        return Ok(());
    }
    session.tell(&format!("{name} goes on.\n"));
    deploy::after(session, name, &options.following).await
}

/// Sets it; whether that changed anything.
async fn set(session: &Session, name: &str, paused: bool) -> Result<bool> {
    let word = if paused { "pause" } else { "resume" };
    let what = format!("cannot {word} {name}");
    let found = session.gated(fetch::required(session, name, &what)).await?;
    let change = Change { name, action: word.to_owned(), what, meanwhile: Meanwhile::OnTop };
    let written = change::make(session, &change, Some(found), |base| {
        let mut spec = base.map(|base| base.spec().clone()).unwrap_or_default();
        spec["paused"] = Value::from(paused);
        Ok(Wanted::spec(spec))
    });
    Ok(!written.await?.changes.is_empty())
}
