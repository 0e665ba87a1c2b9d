//! `cities`.

use super::print;
use crate::args::Output;
use crate::failure::Result;
use crate::model::cities;
use crate::session::Session;
use crate::{fetch, render};

pub(crate) async fn run(session: &Session) -> Result<()> {
    let both = async { tokio::try_join!(fetch::bindings(session), fetch::instances(session, None)) };
    let (bindings, instances) = session.gated(both).await?;
    let views = cities::views(&bindings, &instances);
    match session.output {
        Output::Json | Output::Yaml => print::value(session, &views)?,
        Output::Name => {
            let usable = views.iter().filter(|view| view.available);
            print::names(session, usable.map(|view| view.city.as_str()));
        }
        Output::Table | Output::Wide if views.is_empty() => {
            session.io.say(&render::cities::none(&session.place(), &session.invocation));
        }
        Output::Table | Output::Wide => {
            let is_wide = session.output == Output::Wide;
            session.io.print(&render::cities::list(&views, is_wide, session.io.out));
        }
    }
    Ok(())
}
