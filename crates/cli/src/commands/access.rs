//! `access`.

use clap::Subcommand;

use super::{is_for_people, print};
use crate::args::Output;
use crate::failure::{Exit, Failure, Result};
use crate::session::{Access, Session};
use crate::{fetch, render};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute access
  datumctl-compute access request";

/// What to do about access.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Show whether the service is enabled in this project
    Show,
    /// Ask for access to the service
    Request,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let mut access = session.access().await?;
    if matches!(options.verb, Some(Verb::Request)) && access == Access::NotRequested {
        session.request_access().await?;
        access = match session.access().await? {
            // It has been asked for, whatever a stale answer says.
            Access::NotRequested => Access::Activating(String::new()),
            other => other,
        };
    }
    if access == Access::NotGated {
        // A project that does not exist has no gate, either.
        fetch::workloads(session).await?;
    }
    let text = render::access::render(&access, &session.place(), &session.invocation, session.io.out);
    if is_for_people(session.output) {
        session.io.print(&text);
    } else if session.output == Output::Name {
        print::names(session, ["compute"]);
    } else {
        let state = match access {
            Access::Active => "active",
            Access::NotGated => "notGated",
            Access::Activating(_) => "activating",
            Access::NotRequested => "notRequested",
        };
        print::value(session, &serde_json::json!({ "service": "compute", "state": state }))?;
    }
    match access {
        Access::Active | Access::NotGated => Ok(()),
        // What was to be done is done.
        Access::Activating(_) if matches!(options.verb, Some(Verb::Request)) => Ok(()),
        Access::Activating(_) | Access::NotRequested => Err(Failure::silent(Exit::NotAllowed)),
    }
}
