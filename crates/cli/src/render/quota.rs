//! Quota as bars.

use super::text::wrap;
use super::{Look, Tone};
use crate::invocation::Invocation;
use crate::model::quota::{QuotaView, Usage};
use crate::words;

/// How long a bar is.
const BAR: i64 = 20;

/// Usage as bars, and who waits for how much.
pub(crate) fn render(view: &QuotaView, place: &str, invocation: &Invocation, look: Look) -> String {
    let mut text = format!("Quota of {place}\n\n");
    let amounts: Vec<String> = view.usage.iter().map(amount).collect();
    let widest = amounts.iter().map(String::len).max().unwrap_or(0);
    for (usage, amount) in view.usage.iter().zip(&amounts) {
        let cities: Vec<_> = usage
            .by_city
            .iter()
            .map(|(city, used)| format!("{city} {}", usage.resource.amount(*used)))
            .collect();
        let line = format!(
            "  {:<9}  {}  {amount:<widest$}  {}",
            usage.resource.name(),
            bar(usage, look),
            look.paint(Tone::Dim, &cities.join("  "))
        );
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    if view.usage.iter().all(|usage| usage.limit.is_none()) {
        text.push_str(&wrap("Nothing says how much the project may use.", "\n  ", look));
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
        text.push_str(&format!("\n{}\n", look.paint(Tone::Bad, &head)));
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

fn bar(usage: &Usage, look: Look) -> String {
    let limit = usage.limit.unwrap_or(0);
    let filled = match limit {
        ..=0 => 0,
        limit => ((i128::from(usage.used) * i128::from(BAR) + i128::from(limit) - 1) / i128::from(limit))
            .clamp(0, i128::from(BAR)),
    };
    let filled = usize::try_from(filled).unwrap_or(0);
    let tone = match usage.used.saturating_mul(10) {
        used if usage.missing > 0 || (limit > 0 && used >= limit.saturating_mul(10)) => Tone::Bad,
        used if limit > 0 && used >= limit.saturating_mul(8) => Tone::Warn,
        _ => Tone::Good,
    };
    let empty = usize::try_from(BAR).unwrap_or(0).saturating_sub(filled);
    format!("{}{}", look.paint(tone, &"█".repeat(filled)), look.paint(Tone::Dim, &"░".repeat(empty)))
}
