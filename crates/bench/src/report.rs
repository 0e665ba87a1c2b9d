//! What comes out: sections with tables, on the terminal as they are measured and as `docs/benchmarks.md` at the end.

use crate::budget::{self, Budget};
use crate::table::Table;

/// One topic.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// What the figures mean.
    pub text: &'static str,
    /// The figures.
    pub tables: Vec<Table>,
}

impl Section {
    /// As Markdown.
    pub fn render(&self) -> String {
        let tables: Vec<String> = self.tables.iter().map(Table::render).collect();
        format!("## {}\n\n{}\n\n{}", self.title, wrap(self.text), tables.join("\n"))
    }
}

/// What a document is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The word that `cargo xtask bench` takes.
    pub command: &'static str,
    /// The same for people.
    pub title: &'static str,
    /// The document's file, relative to the project.
    pub file: &'static str,
}

/// The embedded API server.
pub const APISERVER: Subject =
    Subject { command: "apiserver", title: "the embedded API server", file: "docs/benchmarks.md" };
/// From a Workload to available instances.
pub const PIPELINE: Subject =
    Subject { command: "pipeline", title: "the pipeline", file: "docs/benchmarks-pipeline.md" };

/// The whole document.
pub fn document(subject: Subject, machine: &Table, sections: &[Section], budgets: &[Budget]) -> String {
    let Subject { command, title, .. } = subject;
    let text = format!(
        "Written by `cargo xtask bench {command}`; change nothing here by hand. `cargo xtask bench {command} --check` measures \
         again and fails if a budget is missed. All figures are of one run on this machine:"
    );
    let sections: Vec<String> = sections.iter().map(Section::render).collect();
    format!(
        "# Benchmarks of {title}\n\n{}\n\n{}\n{}\n{}",
        wrap(&text),
        machine.render(),
        budgets_section(budgets),
        sections.join("\n")
    )
}

/// The budgets beside their figures.
pub fn budgets_section(budgets: &[Budget]) -> String {
    format!("## Budgets\n\n{}", budget::table(budgets).render())
}

/// Breaks lines at spaces.
fn wrap(text: &str) -> String {
    const WIDTH: usize = 140;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == 0 => last.push_str(word),
            Some(last) if line + 1 + word.chars().count() <= WIDTH => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_at_spaces() {
        let text = "word ".repeat(60);
        let wrapped = wrap(text.trim());
        assert!(wrapped.lines().all(|line| line.len() <= 140 && !line.starts_with(' ')), "{wrapped}");
        assert_eq!(wrapped.replace('\n', " "), text.trim());
    }

    #[test]
    fn a_document_has_machine_budgets_and_sections_in_this_order() {
        let mut table = Table::new(&["machine", "is"]);
        table.row(["cores", "2"]);
        let section = Section { title: "Disk", text: "What it means.", tables: vec![table.clone()] };
        let budgets = [Budget::at_most("start", 1.0, 50.0, "ms")];
        let document = document(APISERVER, &table, &[section], &budgets);
        let at = |text: &str| document.find(text).unwrap_or_else(|| panic!("{text} is missing:\n{document}"));
        assert!(at("# Benchmarks") < at("| cores") && at("| cores") < at("## Budgets"));
        assert!(at("## Budgets") < at("## Disk") && at("## Disk") < at("What it means."));
        assert!(document.ends_with("|\n") && !document.contains("\n\n\n"));
    }
}
