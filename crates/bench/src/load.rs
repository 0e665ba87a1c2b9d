//! A closed loop: so many workers, each of which does the same thing again as soon as it is done.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;
use kube::Client;
use kube::api::{ObjectMeta, PostParams};
use tokio::task::JoinSet;

use crate::sample;
use crate::stats::{Load, Samples};

/// What is done before anything counts, as a part of the whole: connections open, caches fill.
const WARM_UP: f64 = 0.2;

/// Runs `work(worker, round)` in one task per client for `each`, and a little before.
pub async fn run<F, Fut>(clients: Vec<Client>, each: Duration, work: F) -> Result<Load>
where
    F: Fn(Client, usize, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let begin = Instant::now() + each.mul_f64(WARM_UP);
    let end = begin + each;
    let mut workers = JoinSet::new();
    for (worker, client) in clients.into_iter().enumerate() {
        let work = work.clone();
        workers.spawn(async move {
            let mut samples = Samples::default();
            let mut all = 0;
            for round in 0.. {
                let before = Instant::now();
                if before >= end {
                    break;
                }
                all += 1;
                work(client.clone(), worker, round).await?;
                if before >= begin {
                    samples.push(before.elapsed());
                }
            }
            anyhow::Ok((samples, all))
        });
    }
    let (mut samples, mut all) = (Samples::default(), 0);
    while let Some(done) = workers.join_next().await {
        let (its, rounds) = done??;
        samples.extend(its);
        all += rounds;
    }
    Ok(Load { all, ..Load::over(samples, begin.elapsed()) })
}

/// Creates `count` samples through `clients`, and waits until they are there.
pub async fn fill(clients: &[Client], count: usize) -> Result<()> {
    let mut workers = JoinSet::new();
    let step = clients.len();
    for (worker, client) in clients.iter().enumerate() {
        let api = sample::api(client);
        workers.spawn(async move {
            for number in (worker..count).step_by(step) {
                let sample = sample::sample(&name(number), number);
                api.create(&PostParams::default(), &sample).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}

/// The name of the sample of that number.
pub fn name(number: usize) -> String {
    format!("sample-{number:06}")
}

/// A copy of `sample` by another name, made without building it anew.
pub fn renamed(sample: &sample::Sample, name: String) -> sample::Sample {
    let metadata = ObjectMeta { name: Some(name), ..sample.metadata.clone() };
    sample::Sample { metadata, ..sample.clone() }
}
