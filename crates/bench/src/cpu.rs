//! Processor time of one operation: what limits 64 writers once they share their syncs, and the one figure that does not depend on what else
//! the machine does meanwhile.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::ValueEnum as _;
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::api::PostParams;
use rustix::time::{ClockId, clock_gettime};

use crate::host::{Kept, Local, PLANE, Site, Transport};
use crate::report::Section;
use crate::table::{Table, figure};
use crate::writes::{self, Verb};
use crate::{disk, load, sample};

const TEXT: &str = "\
Processor time of the whole process (user and kernel, all threads), divided by the operations that it did: 64 `kube` clients in the \
server's process, as above. `the client alone` has the same clients and a service that reads each request and answers with the bytes of \
an object at once: what is left when the server costs nothing. `the storage engine alone` writes durable batches of 64 objects of 2 KiB. \
The last column is what the machine's cores could do at that price if nothing else limited them.";

const CLIENTS: usize = 64;

/// A load whose price is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Profiled {
    /// Creates, on disk.
    Create,
    /// Creates, in memory.
    CreateInMemory,
    /// Creates without a server.
    ClientAlone,
    /// Status patches, on disk.
    PatchStatus,
    /// Status patches, in memory.
    PatchStatusInMemory,
    /// Batches to the storage engine.
    EngineAlone,
}

impl Profiled {
    fn words(self) -> &'static str {
        match self {
            Self::Create => "create, on disk",
            Self::CreateInMemory => "create, in memory",
            Self::ClientAlone => "create, the client alone",
            Self::PatchStatus => "status patch, on disk",
            Self::PatchStatusInMemory => "status patch, in memory",
            Self::EngineAlone => "the storage engine alone",
        }
    }

    /// Runs it, and says how many operations were done and what they took.
    pub async fn run(self, folder: &Path, each: Duration) -> Result<(usize, Duration)> {
        match self {
            Self::Create => writes(Verb::Create, Kept::OnDisk, folder, each).await,
            Self::CreateInMemory => writes(Verb::Create, Kept::InMemory, folder, each).await,
            Self::ClientAlone => client_alone(each).await,
            Self::PatchStatus => writes(Verb::PatchStatus, Kept::OnDisk, folder, each).await,
            Self::PatchStatusInMemory => writes(Verb::PatchStatus, Kept::InMemory, folder, each).await,
            Self::EngineAlone => {
                let before = spent();
                let objects = tokio::task::block_in_place(|| disk::engine_objects(folder, each))?;
                Ok((objects, spent().saturating_sub(before)))
            }
        }
    }
}

/// Measures it.
pub async fn measure(folder: &Path, each: Duration) -> Result<Section> {
    let mut table = Table::new(&["processor time", "operations", "per operation (µs)", "all cores (1/s)"]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    for load in Profiled::value_variants() {
        let (operations, spent) = load.run(folder, each).await?;
        let each = spent.as_secs_f64() * 1e6 / operations.max(1) as f64;
        table.row([
            load.words().to_owned(),
            operations.to_string(),
            figure(each),
            figure(cores * 1e6 / each),
        ]);
    }
    Ok(Section { title: "Processor time", text: TEXT, tables: vec![table] })
}

/// Processor time of this process since its start.
fn spent() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

async fn writes(verb: Verb, kept: Kept, folder: &Path, each: Duration) -> Result<(usize, Duration)> {
    let site = Site::new(Transport::InProcess, kept, folder).await?;
    let clients = site.clients(CLIENTS)?;
    let before = spent();
    let load = writes::run(verb, clients, each).await?;
    Ok((load.all, spent().saturating_sub(before)))
}

/// The clients without a server.
async fn client_alone(each: Duration) -> Result<(usize, Duration)> {
    let local = Local::open(None).await?;
    let server = local.client(&local.plane(PLANE).await?);
    load::fill(std::slice::from_ref(&server), 1).await?;
    let stored = http::Request::get(format!("{}/{}", sample::PATH, load::name(0))).body(Vec::new())?;
    let answer = Bytes::from(server.request_text(stored).await?);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let answer = answer.clone();
        async move {
            let _ = request.into_body().collect().await;
            Ok::<_, Infallible>(http::Response::new(Full::new(answer)))
        }
    });
    let clients = (0..CLIENTS).map(|_| Client::new(service.clone(), "default")).collect();
    let before = spent();
    let model = sample::sample("w00-00000000", 0);
    let load = load::run(clients, each, move |client, writer, round| {
        let sample = load::renamed(&model, format!("w{writer:02}-{round:08}"));
        async move {
            sample::api(&client).create(&PostParams::default(), &sample).await?;
            // Without a server nothing ever waits; the clients take turns all the same.
            tokio::task::yield_now().await;
            Ok(())
        }
    })
    .await?;
    Ok((load.all, spent().saturating_sub(before)))
}
