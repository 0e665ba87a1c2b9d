//! Reads: gets, and lists of many objects, whole and by label.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use kube::Client;

use crate::host::{Kept, Site, Transport};
use crate::report::Section;
use crate::stats::Samples;
use crate::table::{Table, figure};
use crate::{load, sample};

const TEXT: &str = "\
Gets are decoded by the client. A list is timed until its last byte has arrived and is not decoded: that would measure \
the client. Reads never touch the disk; the objects are 2 KiB each.";

const READERS: [usize; 3] = [1, 16, 64];

/// Measures them over `objects` objects.
pub async fn measure(folder: &Path, each: Duration, objects: usize) -> Result<Section> {
    let mut gets = Table::new(&["get", "readers", "gets/s", "p50 (ms)", "p99 (ms)"]);
    let mut lists = Table::new(&["list", "objects", "MiB", "p50 (ms)", "p99 (ms)"]);
    for transport in Transport::ALL {
        let site = Site::new(transport, Kept::InMemory, folder).await?;
        load::fill(&site.clients(4)?, objects).await?;
        for readers in READERS {
            let load = load::run(site.clients(readers)?, each, move |client, reader, round| async move {
                let number = (reader * 7919 + round * 104_729) % objects;
                sample::api(&client).get(&load::name(number)).await?;
                Ok(())
            })
            .await?;
            let (p50, p99) = (load.samples.p50(), load.samples.p99());
            gets.row([
                transport.words().to_owned(),
                readers.to_string(),
                figure(load.rate),
                figure(p50),
                figure(p99),
            ]);
        }
        let client = site.client()?;
        let by_label = format!("?labelSelector={}%3D7", sample::SHARD.replace('/', "%2F"));
        for (what, query, found) in [("whole", "", objects), ("by a label", &by_label, objects / 100)] {
            let (samples, bytes) = list(&client, query, each).await?;
            lists.row([
                format!("{what}, {}", transport.words()),
                found.to_string(),
                figure(bytes as f64 / f64::from(1 << 20)),
                figure(samples.p50()),
                figure(samples.p99()),
            ]);
        }
    }
    Ok(Section { title: "Reads", text: TEXT, tables: vec![gets, lists] })
}

async fn list(client: &Client, query: &str, each: Duration) -> Result<(Samples, usize)> {
    let mut samples = Samples::default();
    let mut bytes = 0;
    let end = Instant::now() + each;
    while Instant::now() < end || samples.len() < 3 {
        let request = http::Request::get(format!("{}{query}", sample::PATH)).body(Vec::new())?;
        let before = Instant::now();
        bytes = client.request_text(request).await?.len();
        samples.push(before.elapsed());
    }
    Ok((samples, bytes))
}
