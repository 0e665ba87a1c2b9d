//! The command line, and the order of the measurements.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand, ValueEnum};

use crate::budget::{self, Budget};
use crate::child::Role;
use crate::report::{self, Section};
use crate::table::Table;
use crate::{command_line, cpu, disk, flood, machine, memory, pipeline, reads, real, start, watch, writes};

/// Measures the platform against its budgets.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Cli {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// Measure the embedded API server, print the figures and write them to docs/benchmarks.md.
    Apiserver(Options),
    /// Measure the way from a Workload to available instances, print the figures and write them to docs/benchmarks.md.
    Pipeline(PipelineOptions),
    /// Measure the same on a real Kubernetes and a real Karmada, print the figures and write them to docs/benchmarks.md.
    Realstack(RealOptions),
    /// Measure the command line, print the figures and write them to docs/benchmarks.md.
    Cli(CommandLineOptions),
    /// Run one load of the processor-time section alone and say what an operation took: for a profiler.
    #[command(hide = true)]
    Profile {
        /// What the 64 clients do.
        load: cpu::Profiled,
        /// For how long, in seconds.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Where data is kept.
        #[arg(long, default_value = ".")]
        folder: PathBuf,
    },
    /// Do a part of a measurement in a process of its own.
    #[command(hide = true)]
    Child {
        /// What to do, as JSON.
        role: String,
    },
}

#[derive(clap::Args)]
struct Options {
    /// Fail if a budget is missed, and name each that is; write no file.
    #[arg(long)]
    check: bool,
    /// Write docs/benchmarks.md in spite of --check.
    #[arg(long)]
    write: bool,
    /// Measure this part alone (may be given several times); write no file.
    #[arg(long, value_name = "SECTION", conflicts_with = "write")]
    only: Vec<Topic>,
    /// A tenth of everything, to see that it runs. The figures mean little; write no file.
    #[arg(long, conflicts_with = "write")]
    quick: bool,
    /// Where data is kept while it is measured [default: beside this program]. The disk is part of the figures.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[derive(clap::Args)]
struct PipelineOptions {
    /// Fail if a budget is missed, and name each that is; write no file.
    #[arg(long)]
    check: bool,
    /// Write docs/benchmarks.md in spite of --check.
    #[arg(long)]
    write: bool,
    /// A tenth of everything, to see that it runs. The figures mean little; write no file.
    #[arg(long, conflicts_with = "write")]
    quick: bool,
    /// Where data is kept while it is measured [default: beside this program].
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The program `compute-local` [default: beside this program].
    #[arg(long, value_name = "FILE")]
    compute_local: Option<PathBuf>,
}

#[derive(clap::Args)]
struct CommandLineOptions {
    /// Fail if a budget is missed, and name each that is; write no file.
    #[arg(long)]
    check: bool,
    /// Write docs/benchmarks.md in spite of --check.
    #[arg(long)]
    write: bool,
    /// A tenth of everything, to see that it runs. The figures mean little; write no file.
    #[arg(long, conflicts_with = "write")]
    quick: bool,
    /// The program datumctl-compute, as it ships.
    #[arg(long, value_name = "FILE", default_value = "datumctl-compute")]
    program: PathBuf,
    /// The program kubectl.
    #[arg(long, value_name = "FILE", default_value = "kubectl")]
    kubectl: PathBuf,
}

#[derive(clap::Args)]
struct RealOptions {
    /// A tenth of everything, to see that it runs. The figures mean little; write no file.
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Topic {
    Disk,
    Writes,
    Cpu,
    Reads,
    Watch,
    Memory,
    Start,
    Flood,
}

/// How much is measured.
struct Extent {
    /// How long each steady load runs.
    each: Duration,
    /// How long each phase of the flood runs.
    phase: Duration,
    objects: usize,
    planes: usize,
    busy: usize,
    stored: usize,
    starts: usize,
    watched_writes: usize,
    in_flight: usize,
    watches: usize,
}

impl Extent {
    const FULL: Self = Self {
        each: Duration::from_millis(2500),
        phase: Duration::from_secs(10),
        objects: 10_000,
        planes: 10_000,
        busy: 200,
        stored: 100_000,
        starts: 5,
        watched_writes: 200,
        in_flight: 1_000,
        watches: 10_000,
    };
    const QUICK: Self = Self {
        each: Duration::from_millis(250),
        phase: Duration::from_secs(1),
        objects: 1_000,
        planes: 1_000,
        busy: 20,
        stored: 10_000,
        starts: 2,
        watched_writes: 20,
        in_flight: 100,
        watches: 1_000,
    };
}

/// The program.
pub fn main() -> ExitCode {
    match run(Cli::parse().subject) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(subject: Subject) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match subject {
        Subject::Apiserver(options) => runtime.block_on(apiserver(options)),
        Subject::Pipeline(options) => runtime.block_on(pipeline(options)),
        Subject::Realstack(options) => runtime.block_on(realstack(&options)),
        Subject::Cli(options) => runtime.block_on(command_line(&options)),
        Subject::Profile { load, seconds, folder } => {
            let each = Duration::from_secs(seconds);
            let (operations, spent) = runtime.block_on(load.run(&folder, each))?;
            println!("{operations} operations, {:.1} µs each", spent.as_secs_f64() * 1e6 / operations as f64);
            Ok(ExitCode::SUCCESS)
        }
        Subject::Child { role } => {
            let role: Role = serde_json::from_str(&role).context("not a role")?;
            // What a child still has open when it is done is cut, not waited for.
            let done = runtime.block_on(role.play());
            runtime.shutdown_background();
            done.map(|()| ExitCode::SUCCESS)
        }
    }
}

async fn apiserver(options: Options) -> Result<ExitCode> {
    let extent = if options.quick { Extent::QUICK } else { Extent::FULL };
    let folder = data_folder(options.folder.as_deref())?;
    let wanted = |topic: Topic| options.only.is_empty() || options.only.contains(&topic);

    let machine = machine::describe(folder.path());
    println!("{}", machine.render());
    let (sections, budgets) = measure(folder.path(), &extent, wanted).await?;
    println!("{}", report::budgets_section(&budgets));

    if options.only.is_empty() && !options.quick && (options.write || !options.check) {
        write(report::APISERVER, &machine, &sections, &budgets)?;
    }
    Ok(verdict(&budgets, options.check))
}

async fn pipeline(options: PipelineOptions) -> Result<ExitCode> {
    let extent = if options.quick { pipeline::Extent::QUICK } else { pipeline::Extent::FULL };
    let folder = data_folder(options.folder.as_deref())?;
    let machine = machine::describe(folder.path());
    println!("{}", machine.render());
    let (sections, budgets) = pipeline::measure(folder.path(), &extent, options.compute_local).await?;
    println!("{}", report::budgets_section(&budgets));
    if !options.quick && (options.write || !options.check) {
        write(report::PIPELINE, &machine, &sections, &budgets)?;
    }
    Ok(verdict(&budgets, options.check))
}

async fn realstack(options: &RealOptions) -> Result<ExitCode> {
    let extent = if options.quick { real::Extent::QUICK } else { real::Extent::FULL };
    let folder = data_folder(None)?;
    let machine = machine::describe(folder.path());
    println!("{}", machine.render());
    let sections = real::measure(folder.path(), &extent).await?;
    for section in &sections {
        println!("{}", section.render());
    }
    if !options.quick {
        write(report::REALSTACK, &machine, &sections, &[])?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn command_line(options: &CommandLineOptions) -> Result<ExitCode> {
    let extent = if options.quick { command_line::Extent::QUICK } else { command_line::Extent::FULL };
    let folder = data_folder(None)?;
    let machine = machine::describe(folder.path());
    println!("{}", machine.render());
    let here = std::env::current_exe().context("this program cannot be found")?;
    let programs = command_line::Programs {
        ours: on_path(&options.program),
        platform: here.with_file_name("compute-local"),
        kubectl: on_path(&options.kubectl),
    };
    let (sections, budgets) = command_line::measure(folder.path(), &extent, &programs).await?;
    println!("{}", report::budgets_section(&budgets));
    if !options.quick && (options.write || !options.check) {
        write(report::COMMAND_LINE, &machine, &sections, &budgets)?;
    }
    Ok(verdict(&budgets, options.check))
}

/// A program's own path: what is measured is run without one to look on.
fn on_path(program: &Path) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| program.to_owned())
}

/// A folder for the data, which goes in the end.
fn data_folder(under: Option<&Path>) -> Result<tempfile::TempDir> {
    let program = std::env::current_exe().context("this program cannot be found")?;
    let under = under.or(program.parent()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(under);
    folder.context("cannot make a folder for the data")
}

fn write(subject: report::Subject, machine: &Table, sections: &[Section], budgets: &[Budget]) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(report::PAGE);
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let part = report::part(subject, machine, sections, budgets);
    std::fs::write(path, report::with_part(&page, subject, &part))
        .with_context(|| format!("cannot write {}", report::PAGE))?;
    println!("wrote {}", report::PAGE);
    Ok(())
}

/// Names what is missed, if that is asked for.
fn verdict(budgets: &[Budget], check: bool) -> ExitCode {
    let missed = budget::missed(budgets);
    if !check || missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("{} of {} budgets are missed:", missed.len(), budgets.len());
    for line in missed {
        eprintln!("  {line}");
    }
    ExitCode::FAILURE
}

/// Everything that is wanted, each part printed when it is done.
async fn measure(
    folder: &Path,
    extent: &Extent,
    wanted: impl Fn(Topic) -> bool,
) -> Result<(Vec<Section>, Vec<Budget>)> {
    let (each, mut sections, mut budgets) = (extent.each, Vec::new(), Vec::new());
    let mut done = |section: Section| {
        println!("{}", section.render());
        sections.push(section);
    };
    // Durable writes are held against the disk of the same minutes.
    if wanted(Topic::Disk) || wanted(Topic::Writes) {
        let (limits, section) = tokio::task::block_in_place(|| disk::measure(folder, each))?;
        done(section);
        if wanted(Topic::Writes) {
            done(writes::measure(folder, each, limits, &mut budgets).await.context("writes")?);
        }
    }
    if wanted(Topic::Cpu) {
        done(cpu::measure(folder, each).await.context("processor time")?);
    }
    if wanted(Topic::Reads) {
        done(reads::measure(folder, each, extent.objects).await.context("reads")?);
    }
    if wanted(Topic::Watch) {
        done(watch::measure(folder, extent.watched_writes, &mut budgets).await.context("watch")?);
    }
    if wanted(Topic::Memory) {
        let (objects, planes, busy) = (extent.objects, extent.planes, extent.busy);
        done(memory::measure(folder, objects, planes, busy, &mut budgets).await.context("memory")?);
    }
    if wanted(Topic::Start) {
        done(start::measure(folder, extent.stored, extent.starts, &mut budgets).await.context("start")?);
    }
    if wanted(Topic::Flood) {
        let (in_flight, watches) = (extent.in_flight, extent.watches);
        done(flood::measure(folder, extent.phase, in_flight, watches, &mut budgets).await.context("flood")?);
    }
    Ok((sections, budgets))
}
