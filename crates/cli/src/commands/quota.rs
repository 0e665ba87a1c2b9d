//! `quota`.

use clap_complete::engine::ArgValueCompleter;

use super::print;
use crate::args::Output;
use crate::failure::Result;
use crate::model::quota;
use crate::session::Session;
use crate::{complete, fetch, render};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute quota
  datumctl-compute quota --city DFW";

/// Of what.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only what is used in this city
    #[arg(long, value_name = "CODE", add = ArgValueCompleter::new(complete::cities))]
    city: Option<String>,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let read = async {
        tokio::try_join!(fetch::buckets(session), fetch::claims(session), fetch::instances(session, None))
    };
    let (buckets, claims, instances) = session.gated(read).await?;
    let view = quota::view(&buckets, &claims, &instances, options.city.as_deref());
    match session.output {
        Output::Json | Output::Yaml => print::value(session, &view)?,
        Output::Name => print::names(session, view.usage.iter().map(|usage| usage.resource.name())),
        Output::Table | Output::Wide => {
            let text = render::quota::render(&view, &session.place(), &session.invocation, session.io.out);
            session.io.print(&text);
        }
    }
    Ok(())
}
