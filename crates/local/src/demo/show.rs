//! What the demo prints: a heading per step, and under it a line per city that is redrawn on a terminal, or appended when it changes elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

/// How a city is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct City {
    /// Instances that are ready.
    pub(super) ready: i64,
    /// Instances that are up to date.
    pub(super) updated: i64,
    /// Instances that are wanted.
    pub(super) desired: i64,
    /// What is in the way, as the platform says it.
    pub(super) trouble: Option<Trouble>,
}

/// What is in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trouble {
    /// In one word.
    pub(super) reason: String,
    /// In a sentence.
    pub(super) message: String,
}

/// Prints the demo.
pub(super) struct Show {
    silent: bool,
    terminal: bool,
    /// Lines of the present step that are redrawn.
    drawn: usize,
    last: BTreeMap<String, City>,
    steps: Vec<(String, Duration)>,
}

impl Show {
    /// Prints to a terminal, or to something that is not one.
    pub(super) fn new(terminal: bool) -> Self {
        Self { silent: false, terminal, drawn: 0, last: BTreeMap::new(), steps: Vec::new() }
    }

    /// Prints nothing.
    pub(super) fn silent() -> Self {
        Self { silent: true, ..Self::new(false) }
    }

    /// Begins a step.
    pub(super) fn step(&mut self, text: &str) {
        self.drawn = 0;
        self.last.clear();
        let number = self.steps.len() + 1;
        self.print(&format!("\n{number}. {text}\n"));
        self.steps.push((text.to_owned(), Duration::ZERO));
    }

    /// Shows the cities of the present step, if they have changed.
    pub(super) fn cities(&mut self, cities: &BTreeMap<String, City>, at: Duration) {
        if *cities == self.last {
            return;
        }
        let mut text = String::new();
        if self.terminal {
            // Back to the first line of the step, and over all of them.
            for _ in 0..std::mem::take(&mut self.drawn) {
                text.push_str("\x1b[1A\x1b[2K");
            }
            for (city, now) in cities {
                let lines = lines(city, now, at);
                self.drawn += lines.lines().count();
                text.push_str(&lines);
            }
        } else {
            for (city, now) in cities.iter().filter(|(city, now)| self.last.get(*city) != Some(*now)) {
                text.push_str(&lines(city, now, at));
            }
        }
        self.last = cities.clone();
        self.print(&text);
    }

    /// Ends a step.
    pub(super) fn done(&mut self, text: &str, took: Duration) {
        self.print(&format!("   {text} ({})\n", seconds(took)));
        if let Some(step) = self.steps.last_mut() {
            step.1 = took;
        }
    }

    /// Prints what is not part of a step.
    pub(super) fn print(&self, text: &str) {
        if self.silent {
            return;
        }
        let mut out = std::io::stdout().lock();
        // Nobody reads on: the demo goes on to clean up.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// The steps with how long each took.
    pub(super) fn steps(&self) -> &[(String, Duration)] {
        &self.steps
    }
}

/// A city's line, and under it what is in the way.
fn lines(city: &str, now: &City, at: Duration) -> String {
    let mut text = format!(
        "   {city:<6} {bar}  {ready}/{desired} ready",
        bar = bar(now),
        ready = now.ready,
        desired = now.desired,
    );
    if now.updated != now.desired || now.ready != now.desired {
        let _ = write!(text, ", {}/{} up to date", now.updated, now.desired);
    }
    let _ = writeln!(text, "  {}", seconds(at));
    if let Some(trouble) = &now.trouble {
        let _ = writeln!(text, "          {}: {}", trouble.reason, trouble.message);
    }
    text
}

/// One mark per instance.
fn bar(now: &City) -> String {
    let total = now.desired.max(now.ready).clamp(0, 10);
    (0..total).map(|i| if i < now.ready { '●' } else { '○' }).collect()
}

/// A time for people.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// A table whose columns line up: the first to the left, the others to the right.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let mut text = String::new();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        text.push_str("  ");
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let _ =
                if column == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_city_shows_its_counts_and_what_is_in_the_way() {
        let trouble = Trouble { reason: "ImageUnavailable".into(), message: "no such image".into() };
        let city = City { ready: 1, updated: 0, desired: 2, trouble: Some(trouble) };
        assert_eq!(
            lines("DFW", &city, Duration::from_millis(1234)),
            "   DFW    ●○  1/2 ready, 0/2 up to date  1.2 s\n          ImageUnavailable: no such image\n"
        );
    }

    #[test]
    fn a_table_lines_up() {
        let rows = [vec!["core".to_owned(), "7".to_owned()], vec!["hub".to_owned(), "12".to_owned()]];
        assert_eq!(table(&["plane", "now"], &rows), "  plane  now\n  core     7\n  hub     12\n");
    }
}
