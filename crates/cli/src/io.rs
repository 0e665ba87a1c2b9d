//! Where text goes: results to stdout, everything else to stderr; and what the terminal is like.

use std::io::IsTerminal as _;

use crate::render::Look;

/// Streams and what they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// How results look.
    pub(crate) out: Look,
    /// How everything else looks.
    pub(crate) err: Look,
    /// Whether somebody can be asked.
    pub(crate) can_ask: bool,
    /// Whether what is on stderr can be redrawn.
    pub(crate) can_redraw: bool,
}

impl Io {
    /// The streams of this process.
    pub(crate) fn of_process() -> Self {
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).or(width);
        // https://no-color.org: set and not empty.
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let look =
            |terminal: bool| Look { width: width.filter(|_| terminal), colour: terminal && !no_colour };
        Self {
            out: look(out),
            err: look(err),
            can_ask: std::io::stdin().is_terminal() && err,
            can_redraw: err && std::env::var("TERM").is_ok_and(|term| term != "dumb"),
        }
    }

    /// Prints a result.
    pub(crate) fn print(&self, text: &str) {
        write_all(&mut std::io::stdout().lock(), text);
    }

    /// Says something that is no result.
    pub(crate) fn say(&self, text: &str) {
        write_all(&mut std::io::stderr().lock(), text);
    }
}

/// A reader that has gone is no fault of ours: what is written to it is lost, as it wants.
fn write_all(stream: &mut dyn std::io::Write, text: &str) {
    let mut text = text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}
