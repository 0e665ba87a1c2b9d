//! Workloads: in a list, and one by itself.

use compute_api::k8s::{Condition, Timestamp};
use compute_core::revisions::Revision;

use super::table::{Cell, Column, Table};
use super::text::{headline, pairs, steps, wrap};
use super::{Look, Tone, tone_of};
use crate::failure::Step;
use crate::invocation::Invocation;
use crate::model::city::CityView;
use crate::model::workload::WorkloadView;
use crate::words::{self, time};

/// Workloads in a table.
pub(crate) fn list(views: &[WorkloadView], is_wide: bool, now: Timestamp, look: Look) -> String {
    let mut columns = vec![
        Column::new("NAME"),
        Column::new("STATUS"),
        Column::number("READY"),
        Column::number("UP-TO-DATE"),
        Column::number("DESIRED"),
        Column::cut("CITIES"),
    ];
    if is_wide {
        columns.extend([
            Column::cut("IMAGE"),
            Column::new("TYPE").or_drop(3),
            Column::number("REVISION").or_drop(2),
        ]);
    }
    columns.push(Column::new("AGE").or_drop(1));
    let mut table = Table::new(columns);
    for view in views {
        let cities: Vec<_> =
            view.cities.iter().map(|city| format!("{} {}/{}", city.city, city.ready, city.desired)).collect();
        let mut cells = vec![
            Cell::from(view.name.as_str()),
            Cell::status(view.health.say()),
            view.ready.to_string().into(),
            view.updated.to_string().into(),
            view.desired.to_string().into(),
            cities.join("  ").into(),
        ];
        if is_wide {
            let revision = view.revision.map(|number| number.to_string()).unwrap_or_default();
            cells.extend([
                view.images.join(", ").into(),
                view.instance_type.as_str().into(),
                revision.into(),
            ]);
        }
        cells.push(Cell::toned(view.created.map_or_else(String::new, |at| time::age(at, now)), Tone::Dim));
        table.row(cells);
        if tone_of(view.health.say()) != Tone::Good || view.paused {
            table.note(view.because.clone());
        }
    }
    table.render(look)
}

/// What is said when there is none.
pub(crate) fn none(place: &str, invocation: &Invocation) -> String {
    let hello = "deploy hello --image docker.io/library/nginx:1.29 --city DFW --port 80";
    format!("No workloads in {place}. Deploy one:\n  {}\n", invocation.command(hello))
}

/// The cities of a workload in a table, with what is in the way below each.
fn cities(view: &WorkloadView, look: Look) -> String {
    let mut columns = vec![];
    if view.has_placements() {
        columns.push(Column::new("PLACEMENT"));
    }
    columns.extend([
        Column::new("CITY"),
        Column::number("READY"),
        Column::number("UP-TO-DATE"),
        Column::cut("STATUS"),
    ]);
    let mut table = Table::new(columns).indented("  ");
    for city in &view.cities {
        let mut cells: Vec<Cell> = Vec::new();
        if view.has_placements() {
            cells.push(city.placement.as_str().into());
        }
        cells.extend([
            city.city.as_str().into(),
            Cell::from(format!("{}/{}", city.ready, city.desired)),
            format!("{}/{}", city.updated, city.desired).into(),
            Cell::status(city.status()),
        ]);
        table.row(cells);
    }
    table.render(look)
}

/// What is wrong: what, where, since when, why, whose move it is.
fn wrong(view: &WorkloadView, now: Timestamp, look: Look) -> String {
    let mut text = String::new();
    let mut told: Vec<(&str, &str)> = Vec::new();
    for city in &view.cities {
        let Some(trouble) = &city.trouble else { continue };
        if told.contains(&(trouble.what.as_str(), trouble.message.as_str())) {
            continue;
        }
        told.push((&trouble.what, &trouble.message));
        let same: Vec<&CityView> = view
            .cities
            .iter()
            .filter(|other| {
                other
                    .trouble
                    .as_ref()
                    .is_some_and(|one| one.what == trouble.what && one.message == trouble.message)
            })
            .collect();
        let places: Vec<String> = same.iter().map(|city| city.city.clone()).collect();
        let since = same.iter().filter_map(|city| city.trouble.as_ref()?.since).min();
        let since = since.map(|since| format!(", {}", time::lasting(since, now))).unwrap_or_default();
        let head = format!("{} in {}{since}", capital(&trouble.what), words::list(&places));
        let head = wrap(&head, "  ", look);
        text.extend(head.lines().map(|line| format!("{}\n", look.paint(Tone::Bad, line))));
        text.push_str(&wrap(&trouble.message, "    ", look));
        let meaning = words::of(&trouble.reason);
        text.push_str(&wrap(&format!("{}. {}", meaning.mover.say(), meaning.advice), "    ", look));
    }
    text
}

/// A sentence's first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A workload's name and its health.
pub(crate) fn headline_of(view: &WorkloadView, look: Look) -> String {
    headline(&view.name, &view.health_line(), tone_of(view.health.say()), look)
}

/// A workload by itself: its health, what it is, its cities, and what to do if something is wrong.
pub(crate) fn status(
    view: &WorkloadView,
    revision: Option<&Revision>,
    next: &[Step],
    invocation: &Invocation,
    now: Timestamp,
    look: Look,
) -> String {
    let mut text = headline_of(view, look);
    text.push('\n');
    text.push_str(&pairs(&facts(view, revision, now), "  ", look));
    text.push('\n');
    text.push_str(&cities(view, look));
    let wrong = wrong(view, now, look);
    if !wrong.is_empty() {
        text.push_str(&format!("\n{}\n{wrong}", look.paint(Tone::Strong, "What is wrong")));
    }
    let waits = waits(view, look);
    if !waits.is_empty() {
        text.push_str(&format!("\n{}\n{waits}", look.paint(Tone::Strong, "What it waits for")));
    }
    if !next.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Next steps")));
        text.push_str(&steps(next, invocation, "  ", look));
    }
    text
}

/// What passes by itself, city by city.
fn waits(view: &WorkloadView, look: Look) -> String {
    let waiting = view.cities.iter().filter_map(|city| Some((city, city.waits.as_ref()?)));
    waiting
        .map(|(city, wait)| {
            let head = wrap(&format!("{} in {}", capital(&wait.what), city.city), "  ", look);
            let meaning = words::of(&wait.reason);
            let advice = format!("{}. {}", meaning.mover.say(), meaning.advice);
            format!("{head}{}{}", wrap(&wait.message, "    ", look), wrap(&advice, "    ", look))
        })
        .collect()
}

fn facts(view: &WorkloadView, revision: Option<&Revision>, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if !view.images.is_empty() {
        facts.push(("Image", view.images.join(", ")));
    }
    if !view.instance_type.is_empty() {
        facts.push(("Type", view.instance_type.clone()));
    }
    let said = revision.map(|revision| {
        let by = revision.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        format!("{}, {}{by}", revision.number, time::ago(revision.at, now))
    });
    if let Some(text) = said.or_else(|| view.revision.map(|number| number.to_string())) {
        facts.push(("Revision", text));
    }
    if view.paused {
        facts.push(("Rollout", "paused: instances stay as they are until it is resumed".to_owned()));
    }
    facts
}

/// Everything about a workload: its status, its instances, and its conditions as they are stored.
pub(crate) fn describe(
    status: &str,
    instances: &str,
    conditions: &[(String, Condition)],
    look: Look,
) -> String {
    let mut text = status.to_owned();
    text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Instances")));
    text.push_str(
        &instances.lines().map(|line| format!("{}\n", format!("  {line}").trim_end())).collect::<String>(),
    );
    if !conditions.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Conditions")));
        let mut table = Table::new([
            Column::new("OBJECT"),
            Column::new("CONDITION"),
            Column::new("STATUS"),
            Column::new("REASON"),
            Column::cut("MESSAGE"),
        ])
        .indented("  ");
        for (of, said) in conditions {
            table.row([
                Cell::from(of.as_str()),
                said.type_.as_str().into(),
                said.status.as_str().into(),
                said.reason.as_str().into(),
                said.message.as_str().into(),
            ]);
        }
        text.push_str(&table.render(look));
    }
    text
}
