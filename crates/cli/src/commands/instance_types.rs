//! `instance-types`.

use compute_core::quota::size::CATALOG;
use serde_json::json;

use super::print;
use crate::args::Output;
use crate::failure::Result;
use crate::render;
use crate::session::Session;

pub(crate) async fn run(session: &Session) -> Result<()> {
    session.enabled().await?;
    match session.output {
        Output::Json | Output::Yaml => {
            let types: Vec<_> = CATALOG
                .iter()
                .map(|one| json!({ "name": one.name, "vcpuMillis": one.vcpu_millis, "memoryMib": one.memory_mib }))
                .collect();
            print::value(session, &types)?;
        }
        Output::Name => print::names(session, CATALOG.iter().map(|one| one.name)),
        Output::Table | Output::Wide => session.io.print(&render::cities::types(session.io.out)),
    }
    Ok(())
}
