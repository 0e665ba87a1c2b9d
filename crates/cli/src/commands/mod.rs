//! The commands: one folder per noun, one file per verb. A command fetches, asks `model`, and prints what `render` makes of it.

mod access;
pub(crate) mod ask;
mod cities;
mod completion;
mod deploy;
mod destroy;
mod explain;
mod follow;
mod instance_types;
mod instances;
mod print;
mod quota;
mod restart;
mod rollout;
mod scale;
mod status;
mod workloads;

use clap::Subcommand;

pub(crate) use follow::duration;

use crate::args::{Cli, Output};
use crate::connect;
use crate::failure::{Exit, Failure, Result};
use crate::invocation::Invocation;
use crate::io::Io;
use crate::session::{Session, place};
use crate::{plugin, render};

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Deploy a workload, or change it, and follow until it is done
    #[command(after_help = deploy::EXAMPLES)]
    Deploy(deploy::Options),
    /// Destroy a workload with all its instances
    #[command(after_help = destroy::EXAMPLES)]
    Destroy(destroy::Options),
    /// Show the health of workloads: what is wrong, where, why, and what to do
    #[command(after_help = status::EXAMPLES)]
    Status(status::Options),
    /// List workloads, or describe one
    #[command(visible_alias = "workload", after_help = workloads::EXAMPLES)]
    Workloads(workloads::Options),
    /// List instances in all cities, or describe one
    #[command(visible_alias = "instance", after_help = instances::EXAMPLES)]
    Instances(instances::Options),
    /// Change how many instances run
    #[command(after_help = scale::EXAMPLES)]
    Scale(scale::Options),
    /// Restart a workload's instances, one after the other
    #[command(hide = true)]
    Restart(restart::Options),
    /// Follow a rollout, see its history, undo, restart, pause or resume it
    #[command(after_help = rollout::EXAMPLES)]
    Rollout(rollout::Options),
    /// Show how much of the project's quota is used, and what is missing
    #[command(after_help = quota::EXAMPLES)]
    Quota(quota::Options),
    /// List the cities that this project can use
    Cities,
    /// List instance types
    InstanceTypes,
    /// Explain why a workload is in its current state, down to the root cause
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Options),
    /// See or ask for access to the service
    #[command(after_help = access::EXAMPLES)]
    Access(access::Options),
    /// Print a script that completes commands, names and cities in your shell
    #[command(after_help = completion::EXAMPLES)]
    Completion(completion::Options),
}

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> Exit {
    let io = Io::of_process();
    if cli.plugin_manifest {
        io.print(&plugin::manifest());
        return Exit::Done;
    }
    let Some(command) = cli.command else {
        io.say(&<Cli as clap::CommandFactory>::command().render_help().to_string());
        return Exit::Usage;
    };
    let invocation = Invocation::new(connect::is_plugin(), cli.way.wish().options());
    let way = cli.way;
    // One command, one thread: a server's answer is all there is to wait for.
    let started = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut known = None;
    let done = match (command, started) {
        (Command::Completion(options), _) => completion::run(&options, io),
        (_, Err(error)) => {
            Err(Failure::new("cannot start", format!("the system gives no resources: {}", error.kind()))
                .advice("close something and try again"))
        }
        (command, Ok(runtime)) => runtime.block_on(async {
            let session = Session::open(&way, io, invocation.clone()).await?;
            known = Some(session.place());
            dispatch(command, &session).await
        }),
    };
    let Err(failure) = done else { return Exit::Done };
    let somewhere = known.or_else(|| way.project.as_deref().map(|project| place(Some(project), "default")));
    let somewhere = somewhere.unwrap_or_else(|| "no project chosen".to_owned());
    io.say(&render::failure::render(&failure, Some(&somewhere), &invocation, io.err));
    failure.exit
}

async fn dispatch(command: Command, session: &Session) -> Result<()> {
    match command {
        Command::Deploy(options) => deploy::run(session, &options).await,
        Command::Destroy(options) => destroy::run(session, &options).await,
        Command::Status(options) => status::run(session, &options).await,
        Command::Workloads(options) => workloads::run(session, &options).await,
        Command::Instances(options) => instances::run(session, &options).await,
        Command::Scale(options) => scale::run(session, &options).await,
        Command::Restart(options) => restart::run(session, &options).await,
        Command::Rollout(options) => rollout::run(session, &options).await,
        Command::Quota(options) => quota::run(session, &options).await,
        Command::Cities => cities::run(session).await,
        Command::InstanceTypes => instance_types::run(session).await,
        Command::Explain(options) => explain::run(session, &options).await,
        Command::Access(options) => access::run(session, &options).await,
        Command::Completion(options) => completion::run(&options, session.io),
    }
}

/// Whether results are for people.
pub(crate) fn is_for_people(output: Output) -> bool {
    matches!(output, Output::Table | Output::Wide)
}

#[cfg(test)]
pub(crate) use follow::{not_getting_on, overtaken};

/// Failures of commands that have no other way to be seen without a server.
#[cfg(test)]
pub(crate) fn errors_for_tests() -> Vec<(&'static str, Failure)> {
    let manifest = |text: &str| crate::manifest::parse(text, "cannot read workload.yaml").err();
    let sample = include_str!("../../../../config/samples/workload.yaml");
    let all = [
        ("manifest-field", manifest(&sample.replace("minReplicas", "minReplica"))),
        ("manifest-kind", manifest("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")),
        ("manifest-empty", manifest("")),
        ("manifest-yaml", manifest("a: [")),
        ("no-revision", Some(rollout::no_revision("web", "cannot undo web", 99))),
    ];
    let patience = follow::Patience { timeout: std::time::Duration::from_secs(90) };
    let more = [
        ("unnamed", rollout::unnamed()),
        ("another-name", destroy::another_name("web")),
        ("not-gone", destroy::not_gone("web", &patience, "2 instances left to stop")),
        ("not-done", follow::timed_out("web", &patience, None)),
        ("leaving", follow::being_destroyed("web")),
        ("interrupted", ask::unanswered(&inquire::InquireError::OperationInterrupted)),
        ("no-terminal", ask::unanswered(&inquire::InquireError::NotTTY)),
        ("usage-missing", crate::usage::of_line("scale web")),
        ("usage-value", crate::usage::of_line("deploy web --env X")),
        ("usage-command", crate::usage::of_line("deply")),
        ("usage-option", crate::usage::of_line("status --wtach")),
        ("usage-conflict", crate::usage::of_line("deploy web -f a.yaml")),
    ];
    let all = all.into_iter().filter_map(|(name, failure)| Some((name, failure?)));
    all.chain(more)
        .chain(deploy::errors_for_tests())
        .chain(crate::change::errors_for_tests())
        .chain(connect::errors_for_tests())
        .collect()
}
