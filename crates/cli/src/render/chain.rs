//! How it comes to that.

use compute_api::k8s::Timestamp;

use super::text::{steps, width, wrap};
use super::{Look, Tone};
use crate::failure::Step;
use crate::invocation::Invocation;
use crate::model::chain::Chain;
use crate::model::city::Wait;
use crate::model::workload::WorkloadView;
use crate::words::{self, time};

/// The chain, from the workload down to the cause.
pub(crate) fn render(
    chain: &Chain,
    next: &[Step],
    invocation: &Invocation,
    now: Timestamp,
    look: Look,
) -> String {
    let mut text = String::new();
    for link in &chain.links {
        let indent = "  ".repeat(link.depth);
        let (mark, tone) = if link.is_well { ("✓", Tone::Good) } else { ("✗", Tone::Bad) };
        let since = link.since.map(|since| format!(" ({})", time::lasting(since, now))).unwrap_or_default();
        let mark = look.paint(tone, mark);
        let line = format!("{}: {}", link.what, link.says);
        let fits = look.width.is_none_or(|columns| width(&format!("{indent}  {line}{since}")) <= columns);
        if fits {
            text.push_str(&format!("{indent}{mark} {line}{}\n", look.paint(Tone::Dim, &since)));
        } else {
            let lines = wrap(&format!("{line}{since}"), &format!("{indent}  "), look);
            text.push_str(&format!("{indent}{mark} {}", lines.trim_start()));
        }
        // What is well needs no sentence.
        if let Some(message) = link.message.as_ref().filter(|_| !link.is_well) {
            text.push_str(&wrap(message, &format!("{indent}    "), look));
        }
    }
    match &chain.cause {
        None => text.push_str(&waits(&chain.workload, look)),
        Some(cause) => {
            text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "The cause")));
            text.push_str(&wrap(&format!("{}: {}", cause.place, cause.what), "  ", look));
            text.push_str(&wrap(&cause.message, "    ", look));
            text.push_str(&wrap(&format!("{}. {}", cause.mover.say(), cause.advice), "    ", look));
        }
    }
    if !next.is_empty() {
        text.push_str(&format!("\n{}\n", look.paint(Tone::Strong, "Next steps")));
        text.push_str(&steps(next, invocation, "  ", look));
    }
    text
}

/// What it waits for that passes by itself, if it is not done.
fn waits(view: &WorkloadView, look: Look) -> String {
    if view.is_done() {
        return "\nNothing is in the way.\n".to_owned();
    }
    let mut found: Vec<(&Wait, Vec<String>)> = Vec::new();
    for (city, wait) in view.cities.iter().filter_map(|city| Some((city, city.waits.as_ref()?))) {
        match found.iter_mut().find(|(known, _)| *known == wait) {
            Some((_, cities)) => cities.push(city.city.clone()),
            None => found.push((wait, vec![city.city.clone()])),
        }
    }
    if found.is_empty() {
        return "\nNo problem found; still in progress.\n".to_owned();
    }
    let mut text = format!("\n{}\n", look.paint(Tone::Strong, "What it waits for"));
    for (wait, cities) in found {
        let meaning = words::of(&wait.reason);
        text.push_str(&wrap(&format!("{} in {}", wait.what, words::list(&cities)), "  ", look));
        text.push_str(&wrap(&wait.message, "    ", look));
        text.push_str(&wrap(&format!("{}. {}", meaning.mover.say(), meaning.advice), "    ", look));
    }
    text
}
