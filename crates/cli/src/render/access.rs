//! Access to the service.

use super::{Look, Tone};
use crate::invocation::Invocation;
use crate::session::Access;

/// Whether the service is enabled.
pub(crate) fn render(access: &Access, place: &str, invocation: &Invocation, look: Look) -> String {
    let (word, tone, more) = match access {
        Access::Active => ("enabled", Tone::Good, String::new()),
        Access::NotGated => ("enabled", Tone::Good, "This platform asks for no request.\n".to_owned()),
        Access::Activating(said) => {
            let said =
                if said.is_empty() { String::new() } else { format!("{}.\n", said.trim_end_matches('.')) };
            (
                "being activated",
                Tone::Warn,
                format!("{said}It takes a moment, and nothing is asked of you.\n"),
            )
        }
        Access::NotRequested => {
            ("not enabled", Tone::Bad, format!("Ask for it:\n  {}\n", invocation.command("access request")))
        }
    };
    format!("The compute service is {} in {place}.\n{more}", look.paint(tone, word))
}
