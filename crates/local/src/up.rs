//! `compute-local up`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use compute_apiserver::audit::{FileSink, Rotation, Sink};
use compute_apiserver::{ApiServer, Authority, Tls};
use compute_local::{Platform, Settings, planes};
use compute_runtime::Runtime;
use compute_runtime::tasks::Tasks;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::access::Access;
use crate::backup_server;
use crate::data_dir::DataDir;

pub(crate) const EXAMPLES: &str = "Examples:
  compute-local up                          three cities, port 7443
  compute-local up --cities DFW             one city
  compute-local up --ephemeral              keep nothing after the end
  compute-local up --listen 127.0.0.1:0     any free port
  compute-local up --audit-log off          write no audit log
  compute-local up --planes-only            API servers alone, to run controllers of your own against";

/// The project that a new platform has.
const FIRST_PROJECT: &str = "demo";
/// How long what is in hand may take when the platform stops.
const GRACE: Duration = Duration::from_secs(8);

/// What runs instances.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum Provider {
    /// The best that this machine has
    #[default]
    Auto,
    /// Nothing runs; instances only look as if
    Simulated,
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Cities to run a cell for, by code
    #[arg(long, value_delimiter = ',', value_parser = city, default_value = "DFW,IAD,LHR")]
    cities: Vec<String>,
    /// Address to serve on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// What runs instances; `auto` takes the best that this machine has
    #[arg(long, value_enum, default_value_t)]
    provider: Provider,
    /// Keep state in memory alone; it goes when the platform stops
    #[arg(long)]
    ephemeral: bool,
    /// Serve the planes with nobody at work on them: what is written stays as it is
    #[arg(long)]
    planes_only: bool,
    /// Where it is written down who did what, never what is in objects; `off` for nowhere [default: audit.log in
    /// the data directory]
    #[arg(long, value_name = "PATH|off")]
    audit_log: Option<PathBuf>,
}

/// Opens the audit log, if there is to be one.
fn audit(dir: &DataDir, given: Option<&Path>) -> Result<Option<Arc<dyn Sink>>> {
    if given == Some(Path::new("off")) {
        return Ok(None);
    }
    let path = given.map_or_else(|| dir.path().join("audit.log"), Path::to_owned);
    Ok(Some(Arc::new(FileSink::open(&path, Rotation::default())?)))
}

/// A city code: letters and digits, as it is part of plane names.
pub(crate) fn city(code: &str) -> Result<String, String> {
    let good = !code.is_empty() && code.len() <= 16 && code.chars().all(|c| c.is_ascii_alphanumeric());
    if good {
        Ok(code.to_uppercase())
    } else {
        Err("a city code is 1 to 16 letters and digits, such as DFW".to_owned())
    }
}

/// Runs the platform until it is told to stop.
pub(crate) async fn run(dir: &DataDir, options: &Options) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut cities = options.cities.clone();
    cities.sort();
    cities.dedup();

    let Some(lock) = dir.lock()? else { bail!("{}", already_running(dir)) };
    let listener = TcpListener::bind(options.listen).await.with_context(|| {
        format!("cannot listen on {} (try `--listen 127.0.0.1:0` for any free port)", options.listen)
    })?;
    let address = listener.local_addr().context("the listening socket has no address")?;
    let authority = Authority::generate("compute-local")?;
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned(), address.ip().to_string()];
    let issued = authority.issue_server(&names)?;
    let tls = Tls::from_pem(&issued.certificate, &issued.key)?;

    let server_options = compute_apiserver::Options {
        routes: vec![planes::project_route()],
        audit: audit(dir, options.audit_log.as_deref())?,
        ..compute_apiserver::Options::default()
    };
    let random = server_options.random.clone();
    let server = match options.ephemeral {
        true => ApiServer::new(server_options),
        false => {
            ApiServer::open(server_options, &dir.planes()).context("cannot open the platform's state")?
        }
    };
    let settings =
        Settings { cities: cities.clone(), admission: !options.planes_only, ..Settings::default() };
    let platform = Platform::new(&server, Runtime::beside_planes(), settings).await?;
    let backups = backup_server::start(&lock, server.clone());
    let changes = platform.projects().changes();
    let mut access = Access {
        server: server.clone(),
        random,
        lock,
        url: format!("https://{}", reachable(address)),
        authority: authority.certificate().to_owned(),
        cities,
        has_rules: !options.planes_only,
        tokens: BTreeMap::new(),
    };

    let mut tasks = Tasks::new();
    if !options.planes_only {
        platform.spawn_all(&mut tasks);
    }
    tasks.spawn("the API server", |stop| {
        compute_apiserver::serve(server, listener, tls, stop.cancelled_owned())
    });
    let first = async {
        let mut names = platform.project_names().await?;
        let is_new = names.is_empty();
        if is_new {
            names.push(FIRST_PROJECT.to_owned());
        }
        if options.planes_only {
            for name in &names {
                platform.make_idle_project(name).await?;
            }
            return Ok(());
        }
        if is_new {
            platform.make_project(FIRST_PROJECT).await?;
        }
        platform.until_projects_are_there().await
    };
    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        eprintln!("stopping");
    };
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        biased;
        () = &mut stop => return Ok(tasks.run(std::future::ready(()), GRACE).await?),
        made = first => made?,
    }
    let contexts = access.write()?;
    let state = state(dir, options.ephemeral);
    print!("{}", welcome(&access.url, &contexts, &state, options.planes_only, &dir.kubeconfig()));
    tasks.spawn("the kubeconfig", |stop| access.follow(changes, stop));
    tasks.run(stop, GRACE).await?;
    drop(backups);
    Ok(())
}

fn state(dir: &DataDir, ephemeral: bool) -> String {
    match ephemeral {
        true => "in memory; it goes when the platform stops".to_owned(),
        false => format!("kept in {}", dir.planes().display()),
    }
}

/// The address as a client on this machine reaches it.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

fn already_running(dir: &DataDir) -> String {
    let which = match dir.running() {
        Some(running) => format!("the platform runs already: process {}, {}", running.pid, running.url),
        None => "the platform is just starting or stopping in another process".to_owned(),
    };
    format!(
        "{which}, data directory {}\n  see it:       compute-local status\n  stop it:      compute-local down\n  \
         run another:  compute-local up --data-dir DIR --listen 127.0.0.1:0",
        dir.path().display()
    )
}

fn welcome(url: &str, contexts: &[String], state: &str, planes_only: bool, kubeconfig: &Path) -> String {
    let work = match planes_only {
        true => "Nobody works on the planes: what is written to them stays as it is.",
        false => "Instances are simulated: they look as if they ran, and nothing does.",
    };
    format!(
        "The platform is up at {url}\n\n  planes:  {}\n  state:   {state}\n\n\
         {work}\n\n\
         Use it from another terminal:\n\n  export KUBECONFIG={}\n  kubectl get workloads\n  \
         kubectl --context hub get workloaddeployments -A\n\nCtrl-C stops it.\n",
        contexts.join(", "),
        kubeconfig.display(),
    )
}
