//! `deploy`: from options, from questions, or from a file. All three end in the spec of a workload, which [`change`](crate::change)
//! writes.

mod file;
mod flags;
mod questions;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;
use compute_api::compute::{Workload, WorkloadSpec};
use compute_core::meta;

use self::flags::Flags;
pub(crate) use self::flags::in_options;
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
use crate::{complete, render, words};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute deploy hello --image docker.io/library/nginx:1.29 --city DFW,IAD --min 2 --port 80
  datumctl-compute deploy hello --image docker.io/library/nginx:1.30
  datumctl-compute deploy hello --image docker.io/library/nginx:1.30 --dry-run
  datumctl-compute deploy -f workload.yaml

Without a name, on a terminal, it asks.";

/// What to deploy.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload; it is created if there is none of that name
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: Option<String>,
    #[command(flatten)]
    flags: Flags,
    /// Deploy what a manifest says; - reads it from stdin
    #[arg(long, short = 'f', value_name = "FILE", value_hint = clap::ValueHint::FilePath,
        conflicts_with_all = ["name", "image", "city", "min", "max", "instance_type", "port", "env", "unset_env", "network"])]
    file: Option<String>,
    /// Skip the confirmation
    #[arg(long, short = 'y')]
    yes: bool,
    /// Show what would change, without changing anything
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
        return dry_run(session, &change, base.as_ref(), &wanted, options.diff).await.map_err(in_options);
    }
    if options.diff == Diff::Full {
        session.io.say(&full_diff(base.as_ref(), &wanted, session));
    }
    if let Some(base) = base.as_ref().filter(|_| !options.yes) {
        may_leave(session, &change, base, &wanted).await?;
    }
    let written =
        change::make(session, &change, base, |base| flags.edit(&name, base)).await.map_err(in_options)?;
    say_written(session, &written);
    let ended = after(session, &written.workload, &options.following).await?;
    let is_written = written.is_new || !written.changes.is_empty();
    if ended == Ended::Done && is_written && !options.yes {
        offer_file(session, &name).await?;
    }
    Ok(())
}

/// Asks before instances go: the cities that are named are all that it is to have.
async fn may_leave(session: &Session, change: &Change<'_>, base: &Found, wanted: &Wanted) -> Result<()> {
    let name = change.name;
    let left = plan::left_cities(&base.workload.spec, &wanted.spec);
    if left.is_empty() {
        return Ok(());
    }
    // What would be refused is not asked about.
    change::rehearse(session, change, Some(base), wanted).await.map_err(in_options)?;
    let cities = words::list(&left);
    if !session.io.can_ask {
        return Err(would_leave(name, &cities));
    }
    session.say(&format!("{name} leaves {cities}: its instances there are stopped.\n"));
    match ask::confirm("Deploy that?", false)? {
        true => Ok(()),
        false => Err(Failure::new(format!("{name} is not deployed"), "you said no; nothing was written")
            .next(format!("status {name}"), "see its cities")),
    }
}

/// The failure when nobody can be asked whether it is to leave cities.
fn would_leave(name: &str, cities: &str) -> Failure {
    Failure::usage(
        format!("cannot deploy {name}"),
        format!("it would leave {cities}, this needs confirmation, and there is no terminal to ask on"),
    )
    .advice("name all its cities with --city, or give -y to leave those")
    .next(format!("status {name}"), "see its cities")
}

/// What was done, in a line.
fn say_written(session: &Session, written: &Written) {
    let name = meta::name(&written.workload.metadata);
    let text = match (written.is_new, written.changes.as_slice()) {
        (true, _) => format!("{name} is created (revision {}).\n", written.revision),
        (false, []) => format!("{name} is already up to date; nothing to change.\n"),
        (false, changes) => {
            format!("{name} is changed (revision {}): {}\n", written.revision, changes.join("; "))
        }
    };
    session.tell(&text);
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
    let is_same = base.is_some_and(|base| change::is_same(base, wanted));
    Ok(Plan { is_same, ..plan::plan(name, base.map(|base| &base.workload), &spec, known) })
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
    let what = format!("{} would not get all its instances", change.name);
    Err(match plan.cities.iter().any(|city| city.obstacle.is_some()) {
        true => city_missing(what),
        false => {
            Failure::new(what, "the project's quota does not cover them").next("quota", "see what is used")
        }
    })
}

/// The failure of a plan with a city that the project cannot use.
fn city_missing(what: String) -> Failure {
    Failure::new(what, "one of its cities cannot be used by this project").next("cities", "see the cities")
}

/// Every line that changes.
fn full_diff(base: Option<&Found>, wanted: &Wanted, session: &Session) -> String {
    let yaml = |value: &serde_json::Value| serde_saphyr::to_string(value).unwrap_or_default();
    let before = base.map(|base| yaml(base.spec())).unwrap_or_default();
    render::history::diff(&before, &yaml(&wanted.spec), session.io.err)
}

/// Follows what was begun, and shows what came of it.
pub(crate) async fn after(session: &Session, written: &Workload, following: &Following) -> Result<Ended> {
    let ended = watch(session, written, following).await?;
    if ended != Ended::Detached && (ended != Ended::Unfollowed || !is_for_people(session.output)) {
        show(session, &[meta::name(&written.metadata)]).await?;
    }
    Ok(ended)
}

/// Follows what was begun.
async fn watch(session: &Session, written: &Workload, following: &Following) -> Result<Ended> {
    let name = meta::name(&written.metadata);
    if !following.no_wait || following.wait {
        return follow::follow(session, name, &following.patience, Some(written)).await;
    }
    let command = session.invocation.command(&format!("rollout status {name}"));
    session.say(&format!("Not following. See how it goes:\n  {command}\n"));
    Ok(Ended::Unfollowed)
}

/// Shows workloads as they are now: their instances, or in the form that was asked for.
pub(crate) async fn show(session: &Session, names: &[&str]) -> Result<()> {
    match session.output {
        Output::Json | Output::Yaml => {
            let mut stored = Vec::new();
            for name in names {
                let found = fetch::required(session, name, &format!("cannot show {name}")).await?;
                stored.push(print::stored(&found));
            }
            match stored.as_slice() {
                [one] => print::value(session, one),
                all => print::list(session, all),
            }
        }
        Output::Name => {
            print::names(session, names.iter().copied());
            Ok(())
        }
        Output::Table | Output::Wide => {
            let mut all = Vec::new();
            for name in names {
                all.extend(fetch::instances(session, Some(name)).await?);
            }
            let views = instance::views(&all);
            if !views.is_empty() {
                let is_wide = session.output == Output::Wide;
                let now = crate::clock::now();
                session.io.print(&render::instances::list(&views, is_wide, now, session.io.out));
            }
            Ok(())
        }
    }
}

/// Shows a workload that has not changed, in the form that was asked for. People have been told.
pub(crate) async fn unchanged(session: &Session, name: &str) -> Result<()> {
    if is_for_people(session.output) { Ok(()) } else { show(session, &[name]).await }
}

/// Offers to save what was deployed, so that it can be kept with the code.
async fn offer_file(session: &Session, name: &str) -> Result<()> {
    let path = std::path::Path::new("workload.yaml");
    if !session.io.can_ask || !is_for_people(session.output) || path.exists() {
        return Ok(());
    }
    // It is deployed, whatever the answer.
    if !ask::confirm("Save it as workload.yaml, to keep with your code?", false).unwrap_or(false) {
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
        ("city-missing", city_missing("web would not get all its instances".to_owned())),
        ("would-leave", would_leave("web", "IAD and LHR")),
        ("said-no", file::said_no("workload.yaml")),
        ("no-city", questions::no_city()),
        ("exists", questions::exists("web")),
        ("not-saved", not_saved("web", &std::io::ErrorKind::PermissionDenied.into())),
        ("several-containers", flags::several_containers("web")),
        ("virtual-machine", flags::virtual_machine("web")),
        ("several-placements", flags::several_placements("web")),
    ]
}
