//! `destroy`.

use std::time::Duration;

use clap_complete::engine::ArgValueCompleter;
use compute_api::names;
use compute_api::quota::ResourceClaim;
use compute_core::meta;
use kube::api::{DeleteParams, Preconditions};
use tokio::time::Instant;

use super::{ask, follow, print};
use crate::args::Output;
use crate::failure::{Exit, Failure, Result, from_kube};
use crate::session::Session;
use crate::words::{self, time};
use crate::{complete, fetch};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute destroy hello
  datumctl-compute destroy hello -y";

/// How often it is looked what is left.
const EVERY: Duration = Duration::from_millis(300);

/// What to destroy.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: String,
    /// Skip the confirmation
    #[arg(long, short = 'y')]
    yes: bool,
    /// Do not wait until everything is gone
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    patience: follow::Patience,
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let name = &options.name;
    let what = format!("cannot destroy {name}");
    let read = async {
        tokio::try_join!(fetch::required(session, name, &what), fetch::instances(session, Some(name)))
    };
    let (found, instances) = session.gated(read).await?;
    let count = words::count(i64::try_from(instances.len()).unwrap_or(i64::MAX), "instance");
    if !options.yes {
        if !session.io.can_ask {
            return Err(Failure::usage(what, "this needs confirmation, and there is no terminal to ask on")
                .next(format!("destroy {name} -y"), "destroy it without being asked"));
        }
        session.say(&format!(
            "This destroys {name} in {} with {count}. It cannot be undone.\n",
            session.place()
        ));
        if ask::typed("Type the name of the workload to confirm:")?.trim() != name {
            return Err(another_name(name));
        }
    }
    let uid = found.object.metadata.uid.clone();
    let only_this = DeleteParams {
        preconditions: Some(Preconditions { uid: uid.clone(), ..Preconditions::default() }),
        ..DeleteParams::default()
    };
    match fetch::raw_workloads(session).delete(name, &only_this).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(from_kube(what, &error)),
    }
    if options.no_wait {
        session.tell(&format!("{name} is being destroyed.\n"));
        return outcome(session, name, false);
    }
    let claims: Vec<String> =
        instances.iter().map(|one| names::claim_name(meta::name(&one.metadata))).collect();
    gone(session, options, uid.as_deref().unwrap_or_default(), claims).await
}

/// The failure when another name is typed.
pub(crate) fn another_name(name: &str) -> Failure {
    Failure::new(format!("cannot destroy {name}"), "the name you typed does not match; nothing was destroyed")
        .advice("run the command again if you mean it")
}

/// The failure when it is not gone in time.
pub(crate) fn not_gone(name: &str, patience: &follow::Patience, left: &str) -> Failure {
    let seconds = i64::try_from(patience.timeout.as_secs()).unwrap_or(i64::MAX);
    Failure::new(
        format!("{name} was not gone within {}", time::short(seconds)),
        format!("{left}; it continues by itself"),
    )
    .exit(Exit::TimedOut)
    .next(format!("instances --workload {name}"), "see what is left")
    .next("cities", "see whether each city answers")
}

/// Claims that are held; who may not see them waits for the rest.
async fn claims_held(session: &Session) -> Result<Vec<ResourceClaim>> {
    match fetch::claims(session).await {
        Err(failure) if failure.exit == Exit::NotAllowed => Ok(Vec::new()),
        other => other,
    }
}

/// What is left of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Left {
    workload: bool,
    instances: usize,
    claims: usize,
}

async fn look(session: &Session, name: &str, uid: &str, claims: &mut Vec<String>) -> Result<Left> {
    let read = async {
        tokio::try_join!(
            fetch::workload(session, name),
            fetch::instances(session, Some(name)),
            claims_held(session)
        )
    };
    let (workload, instances, held) = read.await?;
    let instances: Vec<_> = instances
        .iter()
        .filter(|one| {
            meta::label(&one.metadata, compute_api::labels::WORKLOAD_UID).is_none_or(|of| of == uid)
        })
        .collect();
    // Some may have been made after the first look.
    for one in &instances {
        let claim = names::claim_name(meta::name(&one.metadata));
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    }
    let held = held.iter().filter(|claim| claims.iter().any(|name| name == meta::name(&claim.metadata)));
    Ok(Left {
        // Another of the same name is not the one that was destroyed.
        workload: workload.is_some_and(|found| meta::uid(&found.workload.metadata) == uid),
        instances: instances.len(),
        claims: held.count(),
    })
}

/// Waits until the workload, its instances and what they held of the quota are gone.
async fn gone(session: &Session, options: &Options, uid: &str, mut claims: Vec<String>) -> Result<()> {
    let name = &options.name;
    let began = Instant::now();
    let bar = session.io.can_redraw.then(follow::spinner);
    let mut last = None;
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let mut heard = Instant::now();
    loop {
        let left = match look(session, name, uid, &mut claims).await {
            Ok(left) => left,
            // A server that does not answer may be back in a moment.
            Err(failure) if failure.exit == Exit::NotAllowed || heard.elapsed() > follow::GONE => {
                return Err(failure);
            }
            Err(_) => {
                tokio::time::sleep(EVERY).await;
                continue;
            }
        };
        heard = Instant::now();
        if left == Left::default() {
            break;
        }
        let text = describe(&left);
        match &bar {
            Some(bar) => bar.set_message(format!("{name}: {text}")),
            None if last.as_ref() != Some(&left) => session.io.say(&format!("{text}\n")),
            None => {}
        }
        if began.elapsed() > options.patience.timeout {
            return Err(not_gone(name, &options.patience, &text));
        }
        last = Some(left);
        tokio::select! {
            biased;
            _ = &mut interrupt => {
                if let Some(bar) = &bar {
                    bar.finish_and_clear();
                }
                let command = session.invocation.command(&format!("status {name}"));
                session.say(&format!("\nStopped waiting; it continues to be destroyed. See it with:\n  {command}\n"));
                return Ok(());
            }
            () = tokio::time::sleep(EVERY) => {}
        }
    }
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    session.tell(&format!("{name} is destroyed; its instances are gone and their quota is released.\n"));
    outcome(session, name, true)
}

/// What was done, for programs.
fn outcome(session: &Session, name: &str, is_gone: bool) -> Result<()> {
    match session.output {
        Output::Json | Output::Yaml => {
            print::value(session, &serde_json::json!({ "workload": name, "gone": is_gone }))
        }
        Output::Name => {
            print::names(session, [name]);
            Ok(())
        }
        Output::Table | Output::Wide => Ok(()),
    }
}

fn describe(left: &Left) -> String {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    match left {
        Left { instances: 1.., .. } => {
            format!("{} left to stop", words::count(number(left.instances), "instance"))
        }
        Left { claims: 1.., .. } => {
            format!("giving back the quota of {}", words::count(number(left.claims), "instance"))
        }
        _ => "clearing up".to_owned(),
    }
}
