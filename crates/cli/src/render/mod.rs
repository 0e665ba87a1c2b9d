//! Text from what is known. Pure: width and colour are parameters.

pub(crate) mod access;
pub(crate) mod chain;
pub(crate) mod cities;
pub(crate) mod failure;
pub(crate) mod history;
pub(crate) mod instances;
pub(crate) mod plan;
pub(crate) mod quota;
pub(crate) mod rollout;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod workloads;

#[cfg(test)]
mod tests;

use anstyle::{AnsiColor, Style};

/// What a stream can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Columns; `None` if lines may be of any length, as in a file.
    pub(crate) width: Option<usize>,
    /// Whether it shows colours.
    pub(crate) colour: bool,
}

/// What a piece of text tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// It is on its way, or not as it should be.
    Warn,
    /// It needs somebody.
    Bad,
    /// Not so important.
    Dim,
    /// A heading.
    Strong,
}

impl Look {
    /// Text in a tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            _ if !self.colour || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tone::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Tone::Dim => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// The tone of a status, by its first word.
pub(crate) fn tone_of(status: &str) -> Tone {
    match status.split([' ', '(']).next().unwrap_or_default() {
        "Available" | "done" | "Active" => Tone::Good,
        "Failed" | "Unavailable" | "Not" | "blocked" => Tone::Bad,
        "Leaving" | "Scaled" => Tone::Dim,
        _ => Tone::Warn,
    }
}
