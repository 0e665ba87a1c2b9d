//! Access to the service.

use super::{Look, Tone};
use crate::invocation::Invocation;
use crate::session::Access;

/// Whether the service is enabled.
pub(crate) fn render(access: &Access, place: &str, invocation: &Invocation, look: Look) -> String {
    let (word, tone, more) = match access {
        Access::Active => ("enabled", Tone::Good, String::new()),
        Access::NotGated => {
            ("enabled", Tone::Good, "Access does not have to be requested on this platform.\n".to_owned())
        }
        Access::Activating(said) => {
            let said =
                if said.is_empty() { String::new() } else { format!("{}.\n", said.trim_end_matches('.')) };
            (
                "being activated",
                Tone::Warn,
                format!("{said}It takes a moment; there is nothing for you to do.\n"),
            )
        }
        Access::NotRequested => {
            ("not enabled", Tone::Bad, format!("Ask for it:\n  {}\n", invocation.command("access request")))
        }
    };
    format!("The compute service is {} in {place}.\n{more}", look.paint(tone, word))
}
