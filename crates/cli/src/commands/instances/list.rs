//! `instances list`.

use compute_api::labels;
use compute_core::{location, meta};

use super::Filter;
use crate::args::Output;
use crate::commands::print;
use crate::failure::Result;
use crate::model::instance;
use crate::session::Session;
use crate::{fetch, render};

pub(crate) async fn run(session: &Session, filter: &Filter) -> Result<()> {
    let mut instances = session.gated(fetch::instances(session, filter.workload.as_deref())).await?;
    if let Some(city) = &filter.city {
        let is_there = |code: &str| location::same_city(code, city);
        instances.retain(|one| meta::label(&one.metadata, labels::CITY_CODE).is_some_and(is_there));
    }
    if let Some(name) = filter.workload.as_ref().filter(|_| instances.is_empty()) {
        // A name that is wrong is told apart from a workload without instances.
        fetch::required(session, name, &format!("cannot list the instances of {name}")).await?;
    }
    match session.output {
        Output::Json | Output::Yaml => print::objects(session, &instances)?,
        Output::Name => print::names(session, instances.iter().map(|one| meta::name(&one.metadata))),
        Output::Table | Output::Wide if instances.is_empty() => {
            let which = [
                filter.workload.as_ref().map(|name| format!(" of {name}")),
                filter.city.as_ref().map(|city| format!(" in {}", city.to_uppercase())),
            ];
            let which: String = which.into_iter().flatten().collect();
            session.io.say(&render::instances::none(&which, &session.place(), &session.invocation));
        }
        Output::Table | Output::Wide => {
            let is_wide = session.output == Output::Wide;
            let views = instance::views(&instances);
            session.io.print(&render::instances::list(&views, is_wide, session.now, session.io.out));
        }
    }
    Ok(())
}
