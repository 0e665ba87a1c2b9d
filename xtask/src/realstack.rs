//! `cargo xtask realstack`: a real Kubernetes and a real Karmada on this machine, and the tests that run on it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use compute_realstack::{DEFAULT_KUBERNETES, Options, Running, STATE_VARIABLE, Say, Up};
use etcetera::base_strategy::{BaseStrategy as _, choose_base_strategy};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What to do with the stack.
#[derive(Subcommand)]
pub(crate) enum Chore {
    /// Start the stack, and leave it running. Its programs are built first, if they are not in the cache.
    Up {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        version: Version,
    },
    /// Stop the stack and remove its data; its logs stay.
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Start the stack unless it is up, run the tests on it, and take it down.
    Test {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        version: Version,
        /// Leave the stack up afterwards.
        #[arg(long)]
        keep: bool,
        /// What to pass to the tests: `-- --test-threads 1 some_name`.
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
}

#[derive(Args)]
pub(crate) struct Place {
    /// The stack's state folder [default: realstack in the target folder].
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Version {
    /// Which minor of Kubernetes.
    #[arg(long, value_name = "1.NN", default_value = DEFAULT_KUBERNETES)]
    kubernetes: String,
}

/// Runs the chore; the exit code is the tests' own.
pub(crate) fn run(chore: Chore) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match chore {
            Chore::Up { place, version } => {
                let up = up(&place, version).await?;
                tell(&up.running);
                Ok(ExitCode::SUCCESS)
            }
            Chore::Down { place } => down(&place).await.map(|()| ExitCode::SUCCESS),
            Chore::Test { place, version, keep, arguments } => test(&place, version, keep, &arguments).await,
        }
    })
}

impl Place {
    /// An absolute path: processes and tests work elsewhere.
    fn folder(&self) -> Result<PathBuf> {
        let folder = match (&self.dir, std::env::var_os("CARGO_TARGET_DIR")) {
            (Some(dir), _) => dir.clone(),
            (None, Some(target)) => PathBuf::from(target).join("realstack"),
            (None, None) => super::root().join("target/realstack"),
        };
        Ok(std::path::absolute(folder)?)
    }
}

async fn up(place: &Place, version: Version) -> Result<Up> {
    let options = Options {
        dir: place.folder()?,
        modules: super::root().join("tools/realstack"),
        cache: choose_base_strategy()?.cache_dir().join("compute-realstack"),
        kubernetes: version.kubernetes,
    };
    let begun = Instant::now();
    let say: Say = Arc::new(move |line| {
        // Nobody may be reading any more; that is no reason to stop half way.
        let _ = writeln!(std::io::stderr(), "{:6.1} s  {line}", begun.elapsed().as_secs_f64());
    });
    let mut interrupts = Interrupts::new()?;
    let brought = tokio::select! {
        biased;
        () = interrupts.next() => None,
        up = compute_realstack::up(&options, &say) => Some(up?),
    };
    let Some(up) = brought else {
        compute_realstack::down(&options.dir).await?;
        bail!("interrupted; nothing is left running");
    };
    say(if up.started { "the stack is up" } else { "the stack is up already" });
    Ok(up)
}

/// Says what is there and how to look at it.
fn tell(running: &Running) {
    let versions = running.versions();
    println!("Kubernetes {}, Karmada {}, etcd {}", versions.kubernetes, versions.karmada, versions.etcd);
    let servers = [("management", running.management()), ("hub", running.hub())].into_iter();
    let cells = running.cells().values().map(|cell| (cell.cluster.as_str(), &cell.server));
    for (name, server) in servers.chain(cells) {
        println!("{name:<11} {}  --kubeconfig {}", server.url, server.kubeconfig.display());
    }
    println!("kubectl     {}", running.kubectl().display());
    println!("logs        {}", running.dir().join("logs").display());
}

async fn down(place: &Place) -> Result<()> {
    let folder = place.folder()?;
    match compute_realstack::down(&folder).await? {
        0 => eprintln!("no stack was up in {}", folder.display()),
        ended => eprintln!("{ended} processes ended; logs are left in {}", folder.join("logs").display()),
    }
    Ok(())
}

async fn test(place: &Place, version: Version, keep: bool, arguments: &[OsString]) -> Result<ExitCode> {
    // First, so that the stack does not idle while tests are compiled, and does not come up for tests that are not.
    let built = run_here(cargo(&["build", "--bins", "--test", "live", "--test", "realstack"], &[])).await?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let up = up(place, version).await?;
    // From here on an interrupt ends the tests, which get it too, and never this command before it has cleared up.
    let outcome = run_tests(&up.running, arguments).await;
    if keep {
        eprintln!("the stack is left up; `cargo xtask realstack down` ends it");
    } else {
        down(place).await?;
    }
    outcome
}

/// Starts the stack unless it is up, runs a program on it, and takes it down.
pub(crate) fn run_program(program: std::process::Command) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let place = Place { dir: None };
        let up = up(&place, Version { kubernetes: DEFAULT_KUBERNETES.to_owned() }).await?;
        let outcome = run_on(&up.running, program.into()).await;
        down(&place).await?;
        outcome
    })
}

/// First whether the stack itself is as it should be and takes what is deployed, unless certain tests are asked for; then what is tested on it.
async fn run_tests(running: &Running, arguments: &[OsString]) -> Result<ExitCode> {
    if arguments.is_empty() {
        let own = run_on(running, cargo(&["test", "--test", "live"], &[])).await?;
        if own != ExitCode::SUCCESS {
            return Ok(own);
        }
        tokio::task::block_in_place(|| super::config::apply_all(running))?;
    }
    run_on(running, cargo(&["test", "--test", "realstack"], arguments)).await
}

/// A command of cargo's. It is for the whole workspace: features are then those of every other build, and little is built twice.
fn cargo(command: &[&str], arguments: &[OsString]) -> Command {
    let mut cargo = Command::from(super::cargo());
    cargo.args(command).arg("--workspace");
    if !arguments.is_empty() {
        cargo.arg("--").args(arguments);
    }
    cargo
}

/// Runs a program on the stack; its exit code.
async fn run_on(running: &Running, mut program: Command) -> Result<ExitCode> {
    program.env(STATE_VARIABLE, running.dir());
    run_here(program).await
}

/// Runs a program in the project's folder; its exit code.
async fn run_here(mut program: Command) -> Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let mut started =
        program.current_dir(super::root()).kill_on_drop(true).spawn().context("cannot run a program")?;
    let status = tokio::select! {
        biased;
        status = started.wait() => status?,
        () = interrupts.next() => {
            started.kill().await?;
            bail!("interrupted");
        }
    };
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What asks this command to end.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn new() -> Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
