//! `instances describe`.

use compute_api::compute::Instance;

use crate::args::Output;
use crate::commands::print;
use crate::failure::{Failure, Result, Step, from_kube};
use crate::model::{chain, instance};
use crate::render;
use crate::session::Session;

pub(crate) async fn run(session: &Session, name: &str) -> Result<()> {
    let what = format!("cannot describe instance {name}");
    let read = async {
        session.api::<Instance>().get_opt(name).await.map_err(|error| from_kube(what.clone(), &error))
    };
    let Some(found) = session.gated(read).await? else {
        return Err(Failure::new(what, format!("there is no instance {name:?}"))
            .next("instances", "list the instances"));
    };
    match session.output {
        Output::Json | Output::Yaml => return print::value(session, &print::object(&found)),
        Output::Name => print::names(session, [name]),
        Output::Table | Output::Wide => {
            let view = instance::view(&found);
            let conditions = found.status.as_ref().map_or(&[][..], |status| &status.conditions);
            let mut next = Vec::new();
            if let Some(workload) = chain::workload_of(&found).filter(|_| !view.reason.is_empty()) {
                next.push(Step::new(format!("status {workload}"), "see the whole workload, and what to do"));
            }
            session.io.print(&render::instances::describe(
                &view,
                conditions,
                &next,
                &session.invocation,
                session.now,
                session.io.out,
            ));
        }
    }
    Ok(())
}
