//! What a change comes to, before it is written.

use super::table::{Cell, Column, Table};
use super::text::wrap;
use super::{Look, Tone};
use crate::model::plan::Plan;
use crate::words;

/// What changes, in words, a line each.
pub(crate) fn changes(plan: &Plan, look: Look) -> String {
    let cities: Vec<String> = plan.cities.iter().map(|city| city.city.clone()).collect();
    if plan.is_new {
        let total: i64 = plan.cities.iter().map(|city| city.then).sum();
        return format!(
            "{} is new: {} in {}\n",
            plan.name,
            words::count(total, "instance"),
            words::list(&cities)
        );
    }
    if plan.changes.is_empty() && plan.is_same {
        return format!("{} is already up to date; nothing to change\n", plan.name);
    }
    if plan.changes.is_empty() {
        return format!("{} changes:\n  labels or annotations\n", plan.name);
    }
    let mut text = format!("{} changes:\n", plan.name);
    for change in &plan.changes {
        text.push_str(&wrap(change, "  ", look));
    }
    text
}

/// The whole plan: where, how many, and whether quota covers it.
pub(crate) fn render(plan: &Plan, look: Look) -> String {
    let mut text = changes(plan, look);
    text.push('\n');
    let mut table = Table::new([
        Column::new("CITY"),
        Column::number("NOW"),
        Column::number("THEN"),
        Column::cut("PLACEMENT"),
    ])
    .indented("  ");
    for city in &plan.cities {
        table.row([
            Cell::from(city.city.as_str()),
            city.now.to_string().into(),
            city.then.to_string().into(),
            city.placement.as_str().into(),
        ]);
        if let Some(obstacle) = &city.obstacle {
            table.note(obstacle.as_str());
        }
    }
    text.push_str(&table.render(look));
    if plan.replaces {
        text.push_str("\n  Instances are replaced one after the other in each city.\n");
    }
    text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Quota")));
    for need in &plan.needs {
        let resource = need.resource;
        let takes = match need.takes {
            0 => "no more".to_owned(),
            takes if takes < 0 => format!("{} less", resource.amount(-takes)),
            takes => format!("{} more", resource.amount(takes)),
        };
        let left = need.left.map_or_else(
            || "remaining quota unknown".to_owned(),
            |left| format!("{} left", resource.amount(left)),
        );
        let (verdict, tone) = match (need.fits(), need.left) {
            (_, None) => ("", Tone::Plain),
            (true, _) => ("fits", Tone::Good),
            (false, _) => ("does not fit", Tone::Bad),
        };
        let line = format!("  {:<9}  {takes}, {left}", resource.name());
        text.push_str(format!("{line}  {}", look.paint(tone, verdict)).trim_end());
        text.push('\n');
    }
    text.push_str("\nNothing was written.\n");
    text
}
