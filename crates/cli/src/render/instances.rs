//! Instances: in a list, and one by itself.

use compute_api::k8s::{Condition, Timestamp};

use super::table::{Cell, Column, Table};
use super::text::{headline, pairs, steps};
use super::{Look, Tone, tone_of};
use crate::failure::Step;
use crate::invocation::Invocation;
use crate::model::instance::{Heap, InstanceView, STARTING, tally};
use crate::words::{self, time};

/// Instances in a table, why one is not available below it, and how many there are.
pub(crate) fn list(views: &[InstanceView], is_wide: bool, now: Timestamp, look: Look) -> String {
    let mut columns = vec![
        Column::new("NAME"),
        Column::new("CITY"),
        Column::cut("STATUS"),
        Column::new("INTERNAL").or_drop(2),
        Column::new("EXTERNAL").or_drop(3),
    ];
    if is_wide {
        columns.extend([
            Column::cut("IMAGE"),
            Column::new("TYPE").or_drop(5),
            Column::new("PLACEMENT").or_drop(4),
        ]);
    }
    columns.push(Column::new("AGE").or_drop(1));
    let mut table = Table::new(columns);
    let mut told: Option<&str> = None;
    for view in views {
        let mut cells = vec![
            Cell::from(view.name.as_str()),
            view.city.as_str().into(),
            Cell::status(view.status.as_str()),
            view.internal.join(", ").into(),
            view.external.join(", ").into(),
        ];
        if is_wide {
            cells.extend([
                view.images.join(", ").into(),
                view.instance_type.as_str().into(),
                view.placement.as_str().into(),
            ]);
        }
        cells.push(Cell::toned(view.created.map_or_else(String::new, |at| time::age(at, now)), Tone::Dim));
        table.row(cells);
        // The same sentence for one after the other is said once.
        let needs_words = view.heap != Heap::Available && view.status != STARTING;
        let message = view.message.as_deref().filter(|said| needs_words && !said.is_empty());
        if let Some(message) = message.filter(|message| told != Some(*message)) {
            table.note(message);
        }
        told = message.or(told);
    }
    format!("{}\n{}\n", table.render(look), tally(views))
}

/// What is said when there is none.
pub(crate) fn none(which: &str, place: &str, invocation: &Invocation) -> String {
    let join = if which.is_empty() { " in" } else { "," };
    format!("No instances{which}{join} {place}.\n  {}\n", invocation.command("workloads"))
}

/// An instance by itself.
pub(crate) fn describe(
    view: &InstanceView,
    conditions: &[Condition],
    next: &[Step],
    invocation: &Invocation,
    now: Timestamp,
    look: Look,
) -> String {
    let mut text = headline(&view.name, &view.detail, tone_of(&view.detail), look);
    text.push('\n');
    let mut facts = Vec::new();
    if let Some(message) = &view.message {
        facts.push(("Why", message.clone()));
    }
    if !view.reason.is_empty() {
        let meaning = words::of(&view.reason);
        facts.push(("What to do", format!("{}. {}", meaning.mover.say(), meaning.advice)));
    }
    if let Some(since) = view.since {
        facts.push(("Since", time::ago(since, now)));
    }
    facts.push(("Workload", view.workload.clone()));
    facts.push(("City", format!("{} (placement {})", view.city, view.placement)));
    facts.push(("Image", view.images.join(", ")));
    facts.push(("Type", view.instance_type.clone()));
    for (name, addresses) in [("Internal", &view.internal), ("External", &view.external)] {
        if !addresses.is_empty() {
            facts.push((name, addresses.join(", ")));
        }
    }
    if let Some(created) = view.created {
        facts.push(("Created", time::ago(created, now)));
    }
    facts.retain(|(_, value)| !value.is_empty());
    text.push_str(&pairs(&facts, "  ", look));
    if !conditions.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Conditions")));
        let mut table = Table::new([
            Column::new("CONDITION"),
            Column::new("STATUS"),
            Column::new("REASON"),
            Column::cut("MESSAGE"),
        ])
        .indented("  ");
        for said in conditions {
            table.row([
                Cell::from(said.type_.as_str()),
                said.status.as_str().into(),
                said.reason.as_str().into(),
                said.message.as_str().into(),
            ]);
        }
        text.push_str(&table.render(look));
    }
    if !next.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Next steps")));
        text.push_str(&steps(next, invocation, "  ", look));
    }
    text
}
