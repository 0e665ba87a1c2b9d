//! An error: what, where, why, next.

use super::text::{steps, wrap};
use super::{Look, Tone};
use crate::failure::Failure;
use crate::invocation::Invocation;

/// An error as text. `place` says where it happened.
pub(crate) fn render(failure: &Failure, place: Option<&str>, invocation: &Invocation, look: Look) -> String {
    if failure.what.is_empty() {
        return String::new();
    }
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let head = wrap(&format!("{}{place}", failure.what), "       ", look);
    let mut text = format!("{} {}", look.paint(Tone::Bad, "error:"), head.trim_start());
    let labelled = |label: &str, body: &str| {
        let wrapped = wrap(body, "         ", look);
        format!("  {}{}{}", look.paint(Tone::Dim, label), " ".repeat(7 - label.len()), wrapped.trim_start())
    };
    for (at, why) in failure.why.iter().filter(|why| !why.is_empty()).enumerate() {
        text.push_str(&labelled(if at == 0 { "why:" } else { "" }, why));
    }
    let mut label = "next:";
    if let Some(advice) = &failure.advice {
        text.push_str(&labelled(label, advice));
        label = "";
    }
    if !failure.next.is_empty() {
        let commands = steps(&failure.next, invocation, "         ", look);
        let first = format!("  {}{}", look.paint(Tone::Dim, label), " ".repeat(7 - label.len()));
        text.push_str(&format!("{first}{}", commands.trim_start()));
    }
    text
}
