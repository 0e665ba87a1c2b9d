//! `compute-local up`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use compute_apiserver::audit::{FileSink, Rotation, Sink};
use compute_apiserver::{ApiServer, Authority, Tls};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::data_dir::{DataDir, Running};
use crate::{backup_server, kubeconfig, planes};

pub(crate) const EXAMPLES: &str = "Examples:
  compute-local up                          three cities, port 7443
  compute-local up --cities DFW             one city
  compute-local up --ephemeral              keep nothing after the end
  compute-local up --listen 127.0.0.1:0     any free port
  compute-local up --audit-log off          write no audit log";

/// The context that kubectl starts with.
const CURRENT: &str = "project-demo";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Cities to run a cell for, by code
    #[arg(long, value_delimiter = ',', value_parser = city, default_value = "DFW,IAD,LHR")]
    cities: Vec<String>,
    /// Address to serve on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// Keep state in memory alone; it goes when the platform stops
    #[arg(long)]
    ephemeral: bool,
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
fn city(code: &str) -> Result<String, String> {
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

    let url = format!("https://{}", reachable(address));
    let server_options = compute_apiserver::Options {
        routes: vec![planes::project_route()],
        audit: audit(dir, options.audit_log.as_deref())?,
        ..compute_apiserver::Options::default()
    };
    let random = server_options.random.clone();
    let planes_dir = dir.planes();
    let server = if options.ephemeral {
        ApiServer::new(server_options)
    } else {
        ApiServer::open(server_options, &planes_dir).context("cannot open the platform's state")?
    };
    let contexts = planes::make(&server, &random, &url, &cities).await?;
    let backups = backup_server::start(&lock, server.clone());

    let config = kubeconfig::render(&contexts, CURRENT, authority.certificate())?;
    dir.write_private(&dir.kubeconfig(), config.as_bytes())?;
    let contexts: Vec<String> = contexts.into_iter().map(|context| context.name).collect();
    lock.announce(&Running { pid: std::process::id(), url: url.clone(), contexts: contexts.clone() })?;
    let state = match options.ephemeral {
        true => "in memory; it goes when the platform stops".to_owned(),
        false => format!("kept in {}", planes_dir.display()),
    };
    print!("{}", welcome(&url, &contexts, &state, &dir.kubeconfig()));

    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        eprintln!("stopping");
    };
    compute_apiserver::serve(server, listener, tls, stop).await?;
    drop(backups);
    drop(lock);
    Ok(())
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

fn welcome(url: &str, contexts: &[String], state: &str, kubeconfig: &Path) -> String {
    format!(
        "The platform is up at {url}\n\n  planes:  {}\n  state:   {state}\n\n\
         Use it from another terminal:\n\n  export KUBECONFIG={}\n  kubectl get workloads\n  \
         kubectl --context hub get workloaddeployments -A\n\nCtrl-C stops it.\n",
        contexts.join(", "),
        kubeconfig.display(),
    )
}
