//! Quota as bars.

use super::text::{width, wrap};
use super::{Look, Tone};
use crate::invocation::Invocation;
use crate::model::quota::{QuotaView, Usage};
use crate::words;

/// How long a bar is.
const BAR: usize = 20;

/// Usage as bars, and who waits for how much.
pub(crate) fn render(view: &QuotaView, place: &str, invocation: &Invocation, look: Look) -> String {
    let city = view.city.as_ref().map(|city| format!(", in {}", city.to_uppercase())).unwrap_or_default();
    let mut text = format!("Quota of {place}{city}\n\n");
    let amounts: Vec<String> = view.usage.iter().map(amount).collect();
    let bar_length = if look.width.is_some_and(|columns| columns < 80) { BAR / 2 } else { BAR };
    let widest = amounts.iter().map(String::len).max().unwrap_or(0);
    for (usage, amount) in view.usage.iter().zip(&amounts) {
        let cities: Vec<_> = usage
            .by_city
            .iter()
            .map(|(city, used)| format!("{city} {}", usage.resource.amount(*used)))
            .collect();
        let head = format!("  {:<9}  {}  {amount}", usage.resource.name(), bar(usage, bar_length, look));
        let gap = " ".repeat(widest - amount.len());
        let cities = cities.join("  ");
        let taken = 2 + 9 + 2 + bar_length + 2 + widest + 2 + width(&cities);
        if cities.is_empty() {
            text.push_str(&format!("{head}\n"));
        } else if look.width.is_none_or(|columns| taken <= columns) {
            text.push_str(&format!("{head}{gap}  {}\n", look.paint(Tone::Dim, &cities)));
        } else {
            text.push_str(&format!("{head}\n{}", wrap(&cities, "             ", look)));
        }
    }
    if view.usage.iter().all(|usage| usage.limit.is_none()) {
        text.push_str(&wrap("No quota limits are set for this project.", "\n  ", look));
    }
    let missing: Vec<_> = view
        .usage
        .iter()
        .filter(|usage| usage.missing > 0)
        .map(|usage| match usage.resource {
            crate::model::quota::Resource::Instances => words::count(usage.missing, "instance"),
            resource => {
                let amount = resource.amount(usage.missing);
                let name =
                    if amount == "1" { resource.name().trim_end_matches('s') } else { resource.name() };
                format!("{amount} {name}")
            }
        })
        .collect();
    if !view.waiting.is_empty() {
        let waiting = words::count(i64::try_from(view.waiting.len()).unwrap_or(i64::MAX), "instance");
        let missing =
            if missing.is_empty() { String::new() } else { format!("; missing: {}", words::list(&missing)) };
        let head = format!("{waiting} waiting{missing}");
        let head = wrap(&head, "", look);
        text.push('\n');
        text.extend(head.lines().map(|line| format!("{}\n", look.paint(Tone::Bad, line))));
        let mut told: Vec<&str> = Vec::new();
        for one in &view.waiting {
            text.push_str(&format!("  {} in {}: {}\n", one.instance, one.city, one.what));
            if !told.contains(&one.message.as_str()) {
                told.push(&one.message);
                text.push_str(&wrap(&one.message, "    ", look));
            }
        }
        text.push_str(&format!("\n  {}\n", invocation.command("workloads")));
    }
    text
}

fn amount(usage: &Usage) -> String {
    match usage.limit {
        Some(limit) => format!("{} of {}", usage.resource.amount(usage.used), usage.resource.amount(limit)),
        None => usage.resource.amount(usage.used),
    }
}

fn bar(usage: &Usage, length: usize, look: Look) -> String {
    let limit = usage.limit.unwrap_or(0);
    let long = i128::try_from(length).unwrap_or(0);
    // A little is never shown as nothing.
    let filled = match i128::from(limit) {
        ..=0 => 0,
        limit => ((i128::from(usage.used) * long + limit - 1) / limit).clamp(0, long),
    };
    let filled = usize::try_from(filled).unwrap_or(0);
    let tenths = usage.used.saturating_mul(10);
    let tone = match limit.saturating_mul(8) {
        _ if usage.missing > 0 || (limit > 0 && usage.used >= limit) => Tone::Bad,
        most if limit > 0 && tenths >= most => Tone::Warn,
        _ => Tone::Good,
    };
    let empty = length.saturating_sub(filled);
    format!("{}{}", look.paint(tone, &"█".repeat(filled)), look.paint(Tone::Dim, &"░".repeat(empty)))
}
