//! `compute-local demo`: the life of a workload in a minute, on a platform of its own that leaves nothing behind.
//!
//! What it shows is read from the planes, as a person would with kubectl; nothing is made up. [`story`] is the script, [`watch`] reads,
//! [`show`] prints.

mod show;
mod story;
mod watch;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use compute_apiserver::ApiServer;
use compute_local::{Platform, Settings, planes};
use compute_runtime::Runtime;
use compute_runtime::tasks::Tasks;

use show::Show;

pub(crate) const EXAMPLES: &str = "Examples:
  compute-local demo                        three cities
  compute-local demo --cities DFW,SYD       two of your choice";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Cities to run a cell for, by code
    #[arg(long, value_delimiter = ',', value_parser = crate::up::city, default_value = "DFW,IAD,LHR")]
    cities: Vec<String>,
}

/// How long an instance takes to start: long enough to watch.
const START_DELAY: Duration = Duration::from_millis(700);
/// How long workers get to finish what is in hand.
const GRACE: Duration = Duration::from_secs(5);

/// Runs the demo to its end.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let mut show = Show::new(std::io::stdout().is_terminal());
    let began = tokio::time::Instant::now();
    let server = ApiServer::new(compute_apiserver::Options {
        routes: vec![planes::project_route()],
        ..compute_apiserver::Options::default()
    });
    let settings =
        Settings { cities: options.cities.clone(), start_delay: START_DELAY, ..Settings::default() };
    let platform =
        Platform::new(&server, Runtime::beside_planes(), settings).await.context("cannot make the planes")?;
    let mut tasks = Tasks::new();
    platform.spawn_all(&mut tasks);
    let stop = tasks.stop_token();
    let running = tokio::spawn(tasks.run(std::future::pending(), GRACE));
    let told = tokio::select! {
        biased;
        told = story::tell(&mut show, &platform, began) => told,
        () = stop.cancelled() => Err(anyhow::anyhow!("the platform stopped")),
    };
    stop.cancel();
    let ended = running.await.context("the platform panicked")?;
    told?;
    ended?;
    Ok(())
}
