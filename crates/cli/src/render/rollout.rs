//! A rollout, as it goes on.

use super::text::{width, wrap};
use super::{Look, Tone, tone_of};
use crate::model::city::{CityView, Phase};
use crate::model::workload::WorkloadView;
use crate::words::{self, time};

/// More instances than this are shown as numbers only.
const MARKS: i64 = 10;

/// After so many seconds it is said what a city waits for; what passes sooner is not worth a line.
pub(crate) const SLOW: i64 = 5;

/// The rows of a rollout: one for each placement and city, and under it what is in the way.
pub(crate) fn rows(view: &WorkloadView, seconds: i64, look: Look) -> Vec<String> {
    let label = |city: &CityView| match view.has_placements() {
        true => format!("{}/{}", city.placement, city.city),
        false => city.city.clone(),
    };
    let widest = view.cities.iter().map(|city| width(&label(city))).max().unwrap_or(0);
    let mut lines = Vec::new();
    for city in &view.cities {
        lines.extend(row(&label(city), widest, city, seconds, look));
    }
    lines
}

/// The lines of one city.
pub(crate) fn row(label: &str, widest: usize, city: &CityView, seconds: i64, look: Look) -> Vec<String> {
    let phase = city.phase.say();
    let mut line = format!(
        "  {label}{}  {}{}  {}/{} ready",
        " ".repeat(widest.saturating_sub(width(label))),
        look.paint(tone_of(phase), phase),
        " ".repeat("updating".len() - phase.len()),
        city.ready,
        city.desired,
    );
    if city.phase != Phase::Leaving {
        line.push_str(&format!(", {}/{} up to date", city.updated, city.desired));
    } else {
        line.push_str(&format!(", {} left", city.replicas));
    }
    let marks = marks(city);
    if look.width.is_none_or(|columns| columns >= 80) && !marks.is_empty() {
        line.push_str(&format!("  {}", look.paint(Tone::Good, &marks)));
    }
    line.push_str(&format!("  {}", look.paint(Tone::Dim, &time::short(seconds))));
    let mut lines = vec![line];
    // What is said before the change is taken up is about what was before it.
    let trouble = city.trouble.as_ref().filter(|_| city.phase != Phase::Waiting);
    if let Some(trouble) = trouble {
        let meaning = words::of(&trouble.reason);
        let head = super::workloads::capital(&trouble.what);
        let message = if trouble.message.is_empty() { meaning.advice } else { &trouble.message };
        let text = wrap(&format!("{head}: {message}"), "      ", look);
        lines.extend(text.lines().map(|line| look.paint(Tone::Warn, line)));
    } else if let Some(wait) = city.waits.as_ref().filter(|_| seconds >= SLOW) {
        let text =
            wrap(&format!("{}: {}", super::workloads::capital(&wait.what), wait.message), "      ", look);
        lines.extend(text.lines().map(|line| look.paint(Tone::Dim, line)));
    }
    lines
}

/// A mark for each instance.
fn marks(city: &CityView) -> String {
    let total = city.desired.max(city.ready);
    if total > MARKS {
        return String::new();
    }
    (0..total).map(|at| if at < city.ready { '●' } else { '○' }).collect()
}
