//! `scale`.

use clap_complete::engine::ArgValueCompleter;
use compute_core::location;
use serde_json::Value;

use super::deploy;
use super::rollout::Following;
use crate::change::{self, Change, Meanwhile, Wanted};
use crate::failure::{Failure, Result};
use crate::fetch::Found;
use crate::session::Session;
use crate::{complete, fetch};

pub(crate) const EXAMPLES: &str = "Examples:
  datumctl-compute scale hello --min 3
  datumctl-compute scale hello --min 2 --max 6
  datumctl-compute scale hello --min 1 --placement main";

/// What to scale, and to how many.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The workload
    #[arg(value_name = "WORKLOAD", add = ArgValueCompleter::new(complete::workloads))]
    name: String,
    /// Minimum instances in each city
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=1000))]
    min: i64,
    /// Maximum instances in each city
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=1000))]
    max: Option<i64>,
    /// Only this placement [default: all of them]
    #[arg(long, value_name = "NAME")]
    placement: Option<String>,
    /// Only this city, which must be alone in its placement
    #[arg(long, value_name = "CODE", conflicts_with = "placement", add = ArgValueCompleter::new(complete::cities))]
    city: Option<String>,
    #[command(flatten)]
    following: Following,
}

impl Options {
    /// The options that say which part of it, to be given again.
    fn which(&self) -> String {
        let part =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!(" {name} {value}"));
        let parts = [part("--placement", &self.placement), part("--city", &self.city)];
        parts.into_iter().flatten().collect()
    }
}

pub(crate) async fn run(session: &Session, options: &Options) -> Result<()> {
    let name = &options.name;
    let what = format!("cannot scale {name}");
    let found = session.gated(fetch::required(session, name, &what)).await?;
    let change = Change { name, action: "scale".to_owned(), what, meanwhile: Meanwhile::OnTop };
    let written = change::make(session, &change, Some(found), |base| edit(options, base))
        .await
        .map_err(deploy::in_options)?;
    if written.changes.is_empty() {
        session.tell(&format!("{name} already has that scale; nothing to change.\n"));
        return deploy::unchanged(session, name).await;
    }
    session.tell(&format!(
        "{name} is scaled (revision {}): {}\n",
        written.revision,
        written.changes.join("; ")
    ));
    deploy::after(session, &written.workload, &options.following).await.map(drop)
}

fn edit(options: &Options, base: Option<&Found>) -> Result<Wanted> {
    let Some(base) = base else { return Ok(Wanted::spec(Value::Null)) };
    let chosen = choose(options, base)?;
    let mut spec = base.spec().clone();
    let placements = spec["placements"].as_array_mut().into_iter().flatten();
    for placement in placements {
        if !chosen.contains(&placement["name"].as_str().unwrap_or_default().to_owned()) {
            continue;
        }
        let settings = &mut placement["scaleSettings"];
        settings["minReplicas"] = Value::from(options.min);
        match (options.max, settings["maxReplicas"].as_i64()) {
            (Some(most), _) => settings["maxReplicas"] = Value::from(most),
            (None, Some(most)) if most < options.min => {
                return Err(Failure::usage(
                    format!("cannot scale {}", options.name),
                    format!("--min {} is more than the most that it may have, which is {most}", options.min),
                )
                .next(
                    format!(
                        "scale {}{} --min {} --max {}",
                        options.name,
                        options.which(),
                        options.min,
                        options.min
                    ),
                    "raise both",
                ));
            }
            (None, _) => {}
        }
    }
    Ok(Wanted::spec(spec))
}

/// The placements that are meant.
fn choose(options: &Options, base: &Found) -> Result<Vec<String>> {
    let placements = &base.workload.spec.placements;
    let what = format!("cannot scale {}", options.name);
    if let Some(name) = &options.placement {
        if placements.iter().any(|one| one.name == *name) {
            return Ok(vec![name.clone()]);
        }
        let names: Vec<_> = placements.iter().map(|one| one.name.clone()).collect();
        return Err(Failure::usage(what, format!("it has no placement {name:?}"))
            .advice(format!("name one of its placements: {}", names.join(", "))));
    }
    let Some(city) = &options.city else {
        return Ok(placements.iter().map(|one| one.name.clone()).collect());
    };
    let of_city: Vec<_> = placements
        .iter()
        .filter(|one| one.city_codes.iter().any(|code| location::same_city(code, city)))
        .collect();
    match of_city.as_slice() {
        [] => Err(Failure::usage(what, format!("it has no instances in {city}"))
            .next(format!("status {}", options.name), "see its cities")),
        [alone] if alone.city_codes.len() == 1 => Ok(vec![alone.name.clone()]),
        [shared, ..] => {
            let most = options.max.map(|most| format!(" --max {most}")).unwrap_or_default();
            let others: Vec<_> =
                shared.city_codes.iter().filter(|code| !location::same_city(code, city)).cloned().collect();
            Err(Failure::usage(
                what,
                format!(
                    "{city} shares placement {} with {}, and a placement has one number for all its cities",
                    shared.name,
                    others.join(", ")
                ),
            )
            .advice(format!("give {city} a placement of its own in a manifest, or scale the whole placement"))
            .next(
                format!("scale {} --placement {} --min {}{most}", options.name, shared.name, options.min),
                "scale every city of the placement",
            ))
        }
    }
}
