//! `deploy`: from options, from questions, or from a file. All three end in the spec of a workload, which [`change`](crate::change)
//! writes.

mod file;
mod flags;
mod questions;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use compute_api::compute::WorkloadSpec;
use compute_core::meta;

use self::flags::Flags;
use super::follow::{self, Ended};
use super::rollout::Following;
use super::{ask, is_for_people, print};
use crate::args::Output;
use crate::change::{self, Change, Meanwhile, Wanted, Written};
use crate::failure::{Failure, Result};
use crate::fetch::{self, Found};
use crate::model::instance;
use crate::model::plan::{self, Known, Plan};
use crate::session::Session;
use crate::{complete, render};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute deploy hello --image docker.io/library/nginx:1.29 --city DFW,IAD --min 2 --port 80
  datumctl-compute deploy hello --image docker.io/library/nginx:1.30
  datumctl-compute deploy hello --image docker.io/library/nginx:1.30 --dry-run
  datumctl-compute deploy -f workload.yaml

Without a name, on a terminal, it asks.";

/// What to deploy.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload; it is made if there is none of that name
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: Option<String>,
    #[command(flatten)]
    flags: Flags,
    /// Deploy what a manifest says; - reads it from stdin
    #[arg(long, short = 'f', value_name = "FILE", value_hint = clap::ValueHint::FilePath,
        conflicts_with_all = ["name", "image", "city", "min", "max", "instance_type", "port", "env", "unset_env", "network"])]
    file: Option<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
    /// Show what it comes to, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// How changes are shown
    #[arg(long, value_enum, default_value_t)]
    diff: Diff,
    #[command(flatten)]
    following: Following,
}

/// How changes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Diff {
    /// In words
    #[default]
    Words,
    /// Line by line, as YAML
    Full,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    if let Some(path) = &options.file {
        return file::run(session, options, path).await;
    }
    if options.name.is_none() && !session.io.can_ask {
        return Err(Failure::usage("cannot deploy", "no name is given, and there is nobody to ask")
            .advice("give a name, an image and a city")
            .next("deploy --help", "see examples"));
    }
    session.enabled().await?;
    let asked;
    let (name, flags) = match &options.name {
        Some(name) => (name.clone(), &options.flags),
        None => {
            asked = questions::ask(session, &options.flags).await?;
            (asked.0, &asked.1)
        }
    };
    let base = fetch::workload(session, &name).await?;
    if base.is_none() {
        flags.check_new(session, &name).await?;
    }
    let change = Change {
        name: &name,
        action: "deploy".to_owned(),
        what: format!("cannot deploy {name}"),
        // What is not named by an option stays as others made it.
        meanwhile: Meanwhile::OnTop,
    };
    let wanted = flags.edit(&name, base.as_ref())?;
    if options.dry_run {
        return dry_run(session, &change, base.as_ref(), &wanted, options.diff)
            .await
            .map_err(flags::in_options);
    }
    if options.diff == Diff::Full {
        session.io.say(&full_diff(base.as_ref(), &wanted, session));
    }
    let written = change::make(session, &change, base, |base| flags.edit(&name, base))
        .await
        .map_err(flags::in_options)?;
    say_written(session, &written);
    after(session, &name, &options.following).await?;
    offer_file(session, &name).await
}

/// What was done, in a line.
fn say_written(session: &Session, written: &Written) {
    let name = meta::name(&written.workload.metadata);
    let text = match (written.is_new, written.changes.as_slice()) {
        (true, _) => format!("{name} is created (revision {}).\n", written.revision),
        (false, []) => format!("{name} is like that already: nothing changes.\n"),
        (false, changes) => {
            format!("{name} is changed (revision {}): {}\n", written.revision, changes.join("; "))
        }
    };
    session.say(&text);
}

/// What is known of the project, for a plan. What cannot be read is left out of it.
async fn plan_of(session: &Session, name: &str, base: Option<&Found>, wanted: &Wanted) -> Result<Plan> {
    let spec: WorkloadSpec = serde_json::from_value(wanted.spec.clone()).map_err(|_| {
        Failure::usage(format!("cannot deploy {name}"), "what it should be cannot be read")
            .advice("check the manifest")
    })?;
    let (deployments, bindings, buckets) = tokio::join!(
        fetch::deployments(session, Some(name)),
        fetch::bindings(session),
        fetch::buckets(session)
    );
    let (deployments, buckets) = (deployments.unwrap_or_default(), buckets.unwrap_or_default());
    let known = Known { deployments: &deployments, bindings: bindings.as_deref().ok(), buckets: &buckets };
    Ok(plan::plan(name, base.map(|base| &base.workload), &spec, known))
}

/// Shows what it comes to. The service is asked, too, and writes nothing.
async fn dry_run(
    session: &Session,
    change: &Change<'_>,
    base: Option<&Found>,
    wanted: &Wanted,
    diff: Diff,
) -> Result<()> {
    let plan = plan_of(session, change.name, base, wanted).await?;
    change::rehearse(session, change, base, wanted).await?;
    match session.output {
        Output::Json | Output::Yaml => print::value(session, &plan)?,
        Output::Name => print::names(session, [change.name]),
        Output::Table | Output::Wide => {
            if diff == Diff::Full {
                session.io.print(&full_diff(base, wanted, session));
            }
            session.io.print(&render::plan::render(&plan, session.io.out));
        }
    }
    if plan.can_be() {
        return Ok(());
    }
    Err(Failure::new(
        format!("{} would not get all its instances", change.name),
        "the project's quota does not cover them",
    )
    .next("quota", "see what is used"))
}

/// Every line that changes.
fn full_diff(base: Option<&Found>, wanted: &Wanted, session: &Session) -> String {
    let yaml = |value: &serde_json::Value| serde_saphyr::to_string(value).unwrap_or_default();
    let before = base.map(|base| yaml(base.spec())).unwrap_or_default();
    render::history::diff(&before, &yaml(&wanted.spec), session.io.err)
}

/// Follows what was begun, and shows what came of it.
pub(crate) async fn after(session: &Session, name: &str, following: &Following) -> Result<()> {
    if following.no_wait && !following.wait {
        if is_for_people(session.output) {
            let command = session.invocation.command(&format!("rollout status {name}"));
            session.say(&format!("Not following. See how it goes:\n  {command}\n"));
            return Ok(());
        }
    } else if follow::follow(session, name, &following.patience).await? == Ended::Detached {
        return Ok(());
    }
    match session.output {
        Output::Json | Output::Yaml => {
            let found = fetch::required(session, name, &format!("cannot show {name}")).await?;
            print::value(session, &print::object(&found.workload))
        }
        Output::Name => {
            print::names(session, [name]);
            Ok(())
        }
        Output::Table | Output::Wide => {
            let views = instance::views(&fetch::instances(session, Some(name)).await?);
            if !views.is_empty() {
                let is_wide = session.output == Output::Wide;
                session.io.print(&render::instances::list(
                    &views,
                    is_wide,
                    crate::clock::now(),
                    session.io.out,
                ));
            }
            Ok(())
        }
    }
}

/// Offers to save what was deployed, so that it can be kept with the code.
async fn offer_file(session: &Session, name: &str) -> Result<()> {
    let path = std::path::Path::new("workload.yaml");
    if !session.io.can_ask || !is_for_people(session.output) || path.exists() {
        return Ok(());
    }
    if !ask::confirm("Save it as workload.yaml, to keep with your code?", false)? {
        return Ok(());
    }
    let found = fetch::required(session, name, &format!("cannot save {name}")).await?;
    let text = file::manifest_of(&found);
    match std::fs::write(path, text) {
        Ok(()) => {
            let command = session.invocation.command("deploy -f workload.yaml");
            session.say(&format!("Saved. Change it and deploy it with:\n  {command}\n"));
            Ok(())
        }
        Err(error) => Err(not_saved(name, &error)),
    }
}

/// The failure when the file cannot be written.
fn not_saved(name: &str, error: &std::io::Error) -> Failure {
    Failure::new("cannot save workload.yaml", format!("the file cannot be written: {}", error.kind()))
        .next(format!("workloads describe {name} -o yaml"), "print it instead")
}

/// Failures that need a person at a terminal.
#[cfg(test)]
pub(crate) fn errors_for_tests() -> Vec<(&'static str, Failure)> {
    vec![
        ("no-name", flags::no_name("Web_1")),
        ("said-no", file::said_no("workload.yaml")),
        ("no-city", questions::no_city()),
        ("not-saved", not_saved("web", &std::io::ErrorKind::PermissionDenied.into())),
        ("several-containers", flags::several_containers("web")),
        ("virtual-machine", flags::virtual_machine("web")),
        ("several-placements", flags::several_placements("web")),
    ]
}
