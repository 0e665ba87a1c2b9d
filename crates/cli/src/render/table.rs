//! Tables whose columns line up and fit the terminal: what may be left out goes first, then what may be cut.

use super::text::{cut, width};
use super::{Look, Tone};

/// What may be done to a column that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Give {
    /// Nothing.
    Never,
    /// It may be cut.
    Cut,
    /// It may be left out; the highest number goes first.
    Drop(u8),
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    head: &'static str,
    give: Give,
    right: bool,
}

impl Column {
    /// A column that is always there, whole.
    pub(crate) const fn new(head: &'static str) -> Self {
        Self { head, give: Give::Never, right: false }
    }

    /// A column of numbers.
    pub(crate) const fn number(head: &'static str) -> Self {
        Self { head, give: Give::Never, right: true }
    }

    /// A column that may be cut.
    pub(crate) const fn cut(head: &'static str) -> Self {
        Self { head, give: Give::Cut, right: false }
    }

    /// The same, but it may be left out; the highest number goes first.
    pub(crate) const fn or_drop(mut self, order: u8) -> Self {
        self.give = Give::Drop(order);
        self
    }
}

/// A cell: text and its tone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell(String, Tone);

impl Cell {
    /// Text in a tone.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self(text.into(), tone)
    }

    /// A status in its own tone.
    pub(crate) fn status(text: impl Into<String>) -> Self {
        let text = text.into();
        let tone = super::tone_of(&text);
        Self(text, tone)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self(text.into(), Tone::Plain)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    indent: &'static str,
}

#[derive(Clone, Debug)]
struct Row {
    cells: Vec<Cell>,
    /// Lines below it, such as why something is as it is.
    notes: Vec<String>,
}

/// What is between columns.
const GAP: usize = 2;
/// A column is cut to no less than this.
const LEAST: usize = 12;

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), indent: "" }
    }

    /// The same, after an indent.
    pub(crate) fn indented(mut self, indent: &'static str) -> Self {
        self.indent = indent;
        self
    }

    /// Adds a row with one cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(Row { cells: cells.into(), notes: Vec::new() });
    }

    /// Adds a line below the last row.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        if let Some(row) = self.rows.last_mut() {
            row.notes.push(note.into());
        }
    }

    /// The text.
    pub(crate) fn render(&self, look: Look) -> String {
        let widths = self.widths(look);
        let shown: Vec<usize> = (0..self.columns.len()).filter(|at| widths[*at].is_some()).collect();
        let line = |cells: &dyn Fn(usize) -> (String, Tone)| {
            let mut line = self.indent.to_owned();
            for (place, at) in shown.iter().enumerate() {
                let (text, tone) = cells(*at);
                let most = widths[*at].unwrap_or(0);
                let text = cut(&text, most);
                let pad = " ".repeat(most.saturating_sub(width(&text)));
                let painted = look.paint(tone, &text);
                let last = place + 1 == shown.len();
                match (self.columns[*at].right, last) {
                    (true, _) => line.push_str(&format!("{pad}{painted}")),
                    (false, true) => line.push_str(&painted),
                    (false, false) => line.push_str(&format!("{painted}{pad}")),
                }
                if !last {
                    line.push_str(&" ".repeat(GAP));
                }
            }
            format!("{}\n", line.trim_end())
        };
        let mut text = line(&|at| (self.columns[at].head.to_owned(), Tone::Dim));
        for row in &self.rows {
            text.push_str(&line(&|at| {
                let cell = row.cells.get(at).cloned().unwrap_or_default();
                (cell.0, cell.1)
            }));
            for note in &row.notes {
                text.push_str(&super::text::wrap(note, &format!("{}    ", self.indent), look));
            }
        }
        text
    }

    /// How wide each column is; `None` if it is left out.
    fn widths(&self, look: Look) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = self.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| width(&cell.0));
                cells.chain([width(column.head)]).max()
            })
            .collect();
        let Some(most) = look.width else { return widths };
        let total = |widths: &[Option<usize>]| {
            let shown: Vec<usize> = widths.iter().filter_map(|width| *width).collect();
            self.indent.len() + shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
        };
        while total(&widths) > most {
            let droppable = self.columns.iter().enumerate().filter_map(|(at, column)| match column.give {
                Give::Drop(order) if widths[at].is_some() => Some((order, at)),
                _ => None,
            });
            let Some((_, at)) = droppable.max() else { break };
            widths[at] = None;
        }
        for (at, column) in self.columns.iter().enumerate().rev() {
            let over = total(&widths).saturating_sub(most);
            if over > 0
                && column.give == Give::Cut
                && let Some(wide) = widths[at]
            {
                widths[at] = Some(wide.saturating_sub(over).max(LEAST.min(wide)));
            }
        }
        // Cut columns that are still too much go, from the right.
        for (at, column) in self.columns.iter().enumerate().rev() {
            if total(&widths) > most && column.give == Give::Cut {
                widths[at] = None;
            }
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::new("NAME"),
            Column::number("READY"),
            Column::cut("IMAGE"),
            Column::new("AGE").or_drop(1),
        ]);
        table.row(["web".into(), "10".into(), "ghcr.io/example/web:1.4.2".into(), Cell::from("3m")]);
        table.note("why it is so");
        table.row(["b".into(), "1".into(), "x".into(), Cell::from("10d")]);
        table
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            table().render(Look { width: None, colour: false }),
            "NAME  READY  IMAGE                      AGE\n\
             web      10  ghcr.io/example/web:1.4.2  3m\n    why it is so\n\
             b         1  x                          10d\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out_then_cut() {
        assert_eq!(
            table().render(Look { width: Some(30), colour: false }),
            "NAME  READY  IMAGE\nweb      10  ghcr.io/example/…\n    why it is so\nb         1  x\n"
        );
    }
}
