//! Flood: what a quiet plane's client notices when another plane is flooded.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use http::{Method, StatusCode};
use kube::Client;
use kube::api::PostParams;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::budget::Budget;
use crate::child::{self, Child, Role, tell};
use crate::h2::{Connection, drain, retry_after};
use crate::host::{Endpoint, Kept, Remote};
use crate::report::Section;
use crate::stats::{Samples, millis};
use crate::table::{Table, figure};
use crate::{load, sample};

const TEXT: &str = "\
A client of the plane `quiet` sends 200 requests per second over TLS, three gets to one durable create, at fixed times, \
whether or not earlier ones are answered. Server, quiet client and flooding client are \
processes of their own on the same cores; the flooding client runs at nice 19, so that what is seen is the server's \
fairness and not the scheduler's. It keeps 1,000 requests in flight at the plane `loud` (the same mix, over 4 HTTP/2 connections), \
then 10,000 watches (over 10 connections) while that plane is written to twice a second. \
Both clients are ordinary users with a role that allows everything. Whatever is refused with 429 is tried again after the time that the answer names.";

/// When the quiet client sends its next request.
const EVERY: Duration = Duration::from_millis(5);
/// One request in so many is a create.
const CREATES: usize = 4;
/// Objects that gets choose from.
const OBJECTS: usize = 100;
/// Connections of whoever keeps requests in flight.
const FLOOD_CONNECTIONS: usize = 4;
/// Streams of one connection that are watches: what the server allows.
const WATCHES_PER_CONNECTION: usize = 1000;
/// How often the watched plane is written to.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// What a flood came to.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Flooded {
    answered: usize,
    refused: usize,
}

/// How many watches were open when all had been answered once.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    open: usize,
}

/// Measures it.
pub async fn measure(
    folder: &Path,
    each: Duration,
    in_flight: usize,
    watches: usize,
    budgets: &mut Vec<Budget>,
) -> Result<Section> {
    let data = Kept::OnDisk.folder(folder)?;
    let path = data.as_ref().map(|data| data.path().to_owned());
    let remote = Remote::start(path, &["quiet", "loud"]).await?;
    let quiet = remote.endpoint.client("quiet")?;
    load::fill(std::slice::from_ref(&quiet), OBJECTS).await?;
    load::fill(&[remote.endpoint.client("loud")?], OBJECTS).await?;
    let flooder = remote.endpoint.as_user("flood");

    requests(&quiet, "warm-up", each / 4).await?;
    let alone = requests(&quiet, "alone", each).await?;

    let (endpoint, plane) = (flooder.clone(), "loud".to_owned());
    let mut child = Child::start(&Role::FloodRequests { endpoint, plane, in_flight })?;
    child.line::<()>().await?;
    let begin = Instant::now();
    let with_requests = requests(&quiet, "requests", each).await?;
    child.release();
    let by_requests: Flooded = child.line().await?;
    let flood_rate = by_requests.answered as f64 / begin.elapsed().as_secs_f64();
    drop(child);

    let (endpoint, plane) = (flooder, "loud".to_owned());
    let mut child = Child::start(&Role::FloodWatches { endpoint, plane, watches })?;
    let opened: Opened = child.line().await?;
    let with_watches = requests(&quiet, "watches", each).await?;
    child.release();
    let by_watches: Flooded = child.line().await?;

    let head = ["the quiet plane", "requests", "p50 (ms)", "p99 (ms)", "p99 of its quiet value", "the flood"];
    let mut table = Table::new(&head);
    let mut row = |what: &str, samples: &Samples, flood: String| {
        let ratio = samples.p99() / alone.p99();
        let requests = samples.len().to_string();
        let cells = [
            what,
            &requests,
            &figure(samples.p50()),
            &figure(samples.p99()),
            &format!("{ratio:.2} x"),
            &flood,
        ];
        table.row(cells.map(str::to_owned));
        ratio
    };
    row("alone", &alone, "none".to_owned());
    let flood = format!("{} answers/s, {} refused", figure(flood_rate), by_requests.refused);
    let ratio = row(&format!("{in_flight} requests in flight elsewhere"), &with_requests, flood);
    let what = format!("flood of {in_flight} requests, another plane's p99 against its quiet value");
    budgets.push(Budget::at_most(what, ratio, 2.0, "x"));
    let flood = format!("{} open, {} refusals", opened.open, by_watches.refused);
    let ratio = row(&format!("{watches} watches elsewhere"), &with_watches, flood);
    let what = format!("{watches} watches, another plane's p99 against its quiet value");
    budgets.push(Budget::at_most(what, ratio, 2.0, "x"));
    Ok(Section { title: "Flood", text: TEXT, tables: vec![table] })
}

/// The quiet client: an open loop.
async fn requests(client: &Client, run: &str, each: Duration) -> Result<Samples> {
    let begin = Instant::now();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut tasks = JoinSet::new();
    for number in 0..(each.as_nanos() / EVERY.as_nanos()) as usize {
        ticks.tick().await;
        let api = sample::api(client);
        let name = format!("{run}-{number:06}");
        let sent = Instant::now();
        tasks.spawn(async move {
            if number.is_multiple_of(CREATES) {
                api.create(&PostParams::default(), &sample::sample(&name, number)).await?;
            } else {
                api.get(&load::name(number % OBJECTS)).await?;
            }
            anyhow::Ok(sent.elapsed())
        });
    }
    let mut samples = Samples::default();
    while let Some(done) = tasks.join_next().await {
        samples.push(done??);
    }
    if begin.elapsed() > each * 4 {
        bail!(
            "the quiet plane took {:.0} ms for {:.0} ms of requests",
            millis(begin.elapsed()),
            millis(each)
        );
    }
    Ok(samples)
}

/// Leaves the cores to the server and to whoever is measured.
fn step_back() -> Result<()> {
    rustix::process::nice(19)?;
    Ok(())
}

#[derive(Default)]
struct Count {
    answered: AtomicUsize,
    refused: AtomicUsize,
}

impl Count {
    fn tell(&self) -> Result<()> {
        tell(&Flooded { answered: self.answered.load(Relaxed), refused: self.refused.load(Relaxed) })
    }
}

/// The child's side: so many requests in flight, until nobody wants them any more.
pub async fn keep_requests(endpoint: Endpoint, plane: String, in_flight: usize) -> Result<()> {
    step_back()?;
    let count = Arc::new(Count::default());
    let mut tasks = JoinSet::new();
    for at in 0..FLOOD_CONNECTIONS {
        let connection = Connection::open(&endpoint, &plane).await?;
        for stream in (at..in_flight).step_by(FLOOD_CONNECTIONS) {
            tasks.spawn(keep_asking(connection.clone(), count.clone(), stream));
        }
    }
    tell(&())?;
    tokio::select! {
        Some(failed) = tasks.join_next() => failed?,
        () = child::orphaned() => count.tell(),
    }
}

async fn keep_asking(connection: Connection, count: Arc<Count>, stream: usize) -> Result<()> {
    for round in 0.. {
        let (method, path, body) = if round % CREATES == 0 {
            let name = format!("flood-{stream:04}-{round:06}");
            let body = serde_json::to_vec(&sample::sample(&name, stream))?;
            (Method::POST, sample::PATH.to_owned(), body.into())
        } else {
            let name = load::name((stream + round) % OBJECTS);
            (Method::GET, format!("{}/{name}", sample::PATH), Bytes::new())
        };
        loop {
            let response = connection.send(method.clone(), &path, body.clone()).await?;
            let wait = (response.status() == StatusCode::TOO_MANY_REQUESTS).then(|| retry_after(&response));
            drain(response.into_body()).await?;
            let Some(wait) = wait else { break };
            count.refused.fetch_add(1, Relaxed);
            tokio::time::sleep(wait).await;
        }
        count.answered.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// The child's side: so many watches of one plane, until nobody wants them any more.
pub async fn keep_watches(endpoint: Endpoint, plane: String, watches: usize) -> Result<()> {
    step_back()?;
    let writer = endpoint.client(&plane)?;
    let list = http::Request::get(format!("{}?limit=1", sample::PATH)).body(Vec::new())?;
    let list: Value = writer.request(list).await?;
    let from = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let path: Arc<str> = format!("{}?watch=true&resourceVersion={from}", sample::PATH).into();
    let count = Arc::new(Count::default());
    let (tried, mut all_tried) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for first in (0..watches).step_by(WATCHES_PER_CONNECTION) {
        let connection = Connection::open(&endpoint, &plane).await?;
        for _ in first..watches.min(first + WATCHES_PER_CONNECTION) {
            tasks.spawn(keep_watching(connection.clone(), path.clone(), count.clone(), tried.clone()));
        }
    }
    let mut open = 0;
    for _ in 0..watches {
        tokio::select! {
            Some(is_open) = all_tried.recv() => open += usize::from(is_open),
            Some(failed) = tasks.join_next() => failed??,
        }
    }
    tell(&Opened { open })?;
    tasks.spawn(keep_writing(writer));
    tokio::select! {
        Some(failed) = tasks.join_next() => failed?,
        () = child::orphaned() => count.tell(),
    }
}

async fn keep_watching(
    connection: Connection,
    path: Arc<str>,
    count: Arc<Count>,
    tried: tokio::sync::mpsc::UnboundedSender<bool>,
) -> Result<()> {
    loop {
        let response = connection.send(Method::GET, &path, Bytes::new()).await?;
        let is_open = response.status() == StatusCode::OK;
        // The parent counts the first answer of each watch alone; it may be gone by then.
        let _ = tried.send(is_open);
        if is_open {
            count.answered.fetch_add(1, Relaxed);
            drain(response.into_body()).await?;
            continue;
        }
        count.refused.fetch_add(1, Relaxed);
        let wait = retry_after(&response);
        drain(response.into_body()).await?;
        tokio::time::sleep(wait).await;
    }
}

async fn keep_writing(writer: Client) -> Result<()> {
    let api = sample::api(&writer);
    let mut ticks = tokio::time::interval(WRITE_EVERY);
    for number in 0.. {
        ticks.tick().await;
        let object = sample::sample(&format!("watched-{number:06}"), number);
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.code == StatusCode::TOO_MANY_REQUESTS.as_u16() => {}
            done => drop(done?),
        }
    }
    Ok(())
}
