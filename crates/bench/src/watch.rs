//! Watch latency: how long after a write its watchers have the event.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{PostParams, WatchEvent, WatchParams};
use tokio::sync::mpsc;

use crate::budget::Budget;
use crate::host::{Kept, Site, Transport};
use crate::report::Section;
use crate::stats::Samples;
use crate::table::{Table, figure};
use crate::{load, sample};

const TEXT: &str = "\
One object of 2 KiB is created at a time, and the next one when every watcher has the last. `from the call`: from just \
before the create is issued until a watcher has the decoded event, which on disk includes the sync. `from the answer`: from the \
moment that the writer has its answer until then; zero if the event was there first. All clients share one process, so \
with 100 watchers most of the time is their decoding of 100 events.";

const WATCHERS: [usize; 2] = [1, 100];
/// A watcher that has no event by then has lost it.
const DEADLINE: Duration = Duration::from_secs(10);

struct Latency {
    from_call: Samples,
    from_answer: Samples,
}

/// Measures it over so many `writes`.
pub async fn measure(folder: &Path, writes: usize, budgets: &mut Vec<Budget>) -> Result<Section> {
    let head =
        ["watch", "watchers", "from the call, p50 (ms)", "p99 (ms)", "from the answer, p50 (ms)", "p99 (ms)"];
    let mut table = Table::new(&head);
    for kept in [Kept::InMemory, Kept::OnDisk] {
        for transport in Transport::ALL {
            for watchers in WATCHERS {
                let latency = latency(transport, kept, watchers, writes, folder).await?;
                let Latency { from_call, from_answer } = latency;
                table.row([
                    format!("{}, {}", transport.words(), kept.words()),
                    watchers.to_string(),
                    figure(from_call.p50()),
                    figure(from_call.p99()),
                    figure(from_answer.p50()),
                    figure(from_answer.p99()),
                ]);
                let what = |of: &str| format!("watch latency p50, {watchers} watcher, {of}");
                if (transport, watchers) == (Transport::Tls, 1) {
                    budgets.push(match kept {
                        Kept::InMemory => {
                            Budget::at_most(what("TLS, in memory, from the call"), from_call.p50(), 0.6, "ms")
                        }
                        Kept::OnDisk => Budget::at_most(
                            what("TLS, on disk, from the answer"),
                            from_answer.p50(),
                            0.6,
                            "ms",
                        ),
                    });
                }
            }
        }
    }
    Ok(Section { title: "Watch latency", text: TEXT, tables: vec![table] })
}

async fn latency(
    transport: Transport,
    kept: Kept,
    watchers: usize,
    writes: usize,
    folder: &Path,
) -> Result<Latency> {
    let site = Site::new(transport, kept, folder).await?;
    let (heard, mut events) = mpsc::unbounded_channel();
    let mut tasks = tokio::task::JoinSet::new();
    let client = site.client()?;
    let api = sample::api(&client);
    let from = api.list(&Default::default()).await?.metadata.resource_version.unwrap_or_default();
    for client in site.clients(watchers)? {
        let stream = sample::api(&client).watch(&WatchParams::default(), &from).await?;
        let heard = heard.clone();
        tasks.spawn(async move {
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                let at = Instant::now();
                let name = event.map(|event| match event {
                    WatchEvent::Added(sample) => sample.name_any(),
                    other => format!("{other:?}"),
                });
                if heard.send((at, name)).is_err() {
                    return;
                }
            }
        });
    }
    let mut latency = Latency { from_call: Samples::default(), from_answer: Samples::default() };
    let model = sample::sample(&load::name(0), 0);
    // The first write opens the writer's connection and does not count.
    for number in 0..=writes {
        let name = load::name(number);
        let object = load::renamed(&model, name.clone());
        let called = Instant::now();
        api.create(&PostParams::default(), &object).await?;
        let answered = Instant::now();
        for _ in 0..watchers {
            let event = tokio::time::timeout(DEADLINE, events.recv()).await;
            let (at, found) = event.context("a watcher has no event")?.context("all watches have ended")?;
            let found = found?;
            if found != name {
                bail!("a watcher got {found} for {name}");
            }
            if number > 0 {
                latency.from_call.push(at.duration_since(called));
                latency.from_answer.push(at.saturating_duration_since(answered));
            }
        }
    }
    Ok(latency)
}
