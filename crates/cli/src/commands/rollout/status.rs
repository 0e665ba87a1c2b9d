//! `rollout status`.

use super::Name;
use crate::args::Output;
use crate::commands::follow::{self, Ended, Patience};
use crate::commands::{is_for_people, print};
use crate::failure::Result;
use crate::model::workload;
use crate::session::Session;
use crate::{fetch, render};

/// Which rollout, and whether to follow it.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    which: Name,
    #[command(flatten)]
    way: Way,
}

/// Whether to follow a rollout.
#[derive(clap::Args)]
pub(crate) struct Way {
    /// Follow until it is done [default on a terminal]
    #[arg(long, overrides_with = "no_watch")]
    watch: bool,
    /// Show how far it is, once
    #[arg(long)]
    no_watch: bool,
    #[command(flatten)]
    patience: Patience,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    of(session, &options.which.name, &options.way).await
}

/// Shows the rollout of a workload, or follows it.
pub(super) async fn of(session: &Session, name: &str, way: &Way) -> Result<()> {
    let what = format!("cannot show the rollout of {name}");
    let read = async || {
        tokio::try_join!(
            fetch::required(session, name, &what),
            fetch::deployments(session, Some(name)),
            fetch::instances(session, Some(name))
        )
    };
    let (found, deployments, instances) = session.gated(read()).await?;
    let watches = way.watch || (!way.no_watch && session.io.can_redraw && is_for_people(session.output));
    if watches {
        if follow::follow(session, name, &way.patience, None).await? == Ended::Done {
            session.tell(&format!("{name} is rolled out.\n"));
        }
        if is_for_people(session.output) {
            return Ok(());
        }
    }
    let (found, deployments, instances) = match watches {
        // It has got on since it was read.
        true => read().await?,
        false => (found, deployments, instances),
    };
    let view = workload::view(&found.workload, &deployments, &instances);
    match session.output {
        Output::Json | Output::Yaml => return print::value(session, &view),
        Output::Name => {
            print::names(session, [name]);
            return Ok(());
        }
        Output::Table | Output::Wide => {}
    }
    let seconds = view.created.map_or(0, |created| session.now.duration_since(created).as_secs().max(0));
    let rows = render::rollout::rows(&view, seconds, session.io.out).join("\n");
    let head = render::workloads::headline_of(&view, session.io.out);
    session.io.print(&format!("{head}{rows}\n"));
    Ok(())
}
