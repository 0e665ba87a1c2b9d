//! Durable writes: creates and status patches by 1, 16 and 64 writers, each in a closed loop.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::budget::Budget;
use crate::disk::Limits;
use crate::host::{Kept, Site, Transport};
use crate::report::Section;
use crate::stats::Load;
use crate::table::{Table, figure};
use crate::{load, sample};

const TEXT: &str = "\
Each writer sends its next write when the last one is acknowledged, that is, on disk. In-process, writers are `kube` \
clients in the server's process; over TLS, the server is another process and each writer has a connection of its own. \
Creates make objects of 2 KiB; status patches are merge patches of such objects, one object per writer. The last column \
holds the rate against the disk's own with one sync per 64 objects, and in brackets against the storage engine's.";

const WRITERS: [usize; 3] = [1, 16, 64];

/// What a writer does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Creates objects.
    Create,
    /// Patches the status of one object.
    PatchStatus,
}

/// Measures them.
pub async fn measure(
    folder: &Path,
    each: Duration,
    disk: Limits,
    budgets: &mut Vec<Budget>,
) -> Result<Section> {
    let head = ["durable writes", "writers", "writes/s", "p50 (ms)", "p99 (ms)", "of the disk's limit"];
    let mut table = Table::new(&head);
    for (verb, what) in [(Verb::Create, "create"), (Verb::PatchStatus, "status patch")] {
        for transport in Transport::ALL {
            for writers in WRITERS {
                let load = writes(verb, transport, writers, folder, each).await?;
                let (p50, p99) = (load.samples.p50(), load.samples.p99());
                let share = |limit: f64| format!("{:.0} %", 100.0 * load.rate / limit);
                table.row([
                    format!("{what}, {}", transport.words()),
                    writers.to_string(),
                    figure(load.rate),
                    figure(p50),
                    figure(p99),
                    format!("{} ({})", share(disk.batched), share(disk.engine_batched)),
                ]);
                match (verb, transport, writers) {
                    (Verb::Create, Transport::InProcess, 64) => budgets.push(Budget::at_least(
                        "64 in-process writers, half of the disk's own batched limit",
                        load.rate,
                        disk.batched / 2.0,
                        "writes/s",
                    )),
                    (Verb::Create, Transport::Tls, 1) => budgets.push(Budget::at_most(
                        "one writer over TLS, p50 above a bare sync",
                        p50 - disk.sync_p50,
                        1.0,
                        "ms",
                    )),
                    _ => {}
                }
            }
        }
    }
    Ok(Section { title: "Durable writes", text: TEXT, tables: vec![table] })
}

async fn writes(
    verb: Verb,
    transport: Transport,
    writers: usize,
    folder: &Path,
    each: Duration,
) -> Result<Load> {
    let site = Site::new(transport, Kept::OnDisk, folder).await?;
    run(verb, site.clients(writers)?, each).await
}

/// Lets each client write in a closed loop.
pub async fn run(verb: Verb, clients: Vec<Client>, each: Duration) -> Result<Load> {
    match verb {
        Verb::Create => {
            let model = sample::sample("w00-00000000", 0);
            load::run(clients, each, move |client, writer, round| {
                let sample = load::renamed(&model, format!("w{writer:02}-{round:08}"));
                async move {
                    sample::api(&client).create(&PostParams::default(), &sample).await?;
                    Ok(())
                }
            })
            .await
        }
        Verb::PatchStatus => {
            load::fill(&clients, clients.len()).await?;
            load::run(clients, each, |client, writer, round| async move {
                let status = json!({ "status": { "replicas": round, "phase": "Running" } });
                let params = PatchParams::default();
                let name = load::name(writer);
                sample::api(&client).patch_status(&name, &params, &Patch::Merge(&status)).await?;
                Ok(())
            })
            .await
        }
    }
}
