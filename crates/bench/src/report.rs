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

/// The whole document.
pub fn document(machine: &Table, sections: &[Section], budgets: &[Budget]) -> String {
    const HEAD: &str = "\
# Benchmarks of the embedded API server

Written by `cargo xtask bench apiserver`; change nothing here by hand. `cargo xtask bench apiserver --check` measures \
again and fails if a budget is missed. All figures are of one run on this machine:";
    let sections: Vec<String> = sections.iter().map(Section::render).collect();
    let head: Vec<String> = HEAD.split("\n\n").map(wrap).collect();
    format!(
        "{}\n\n{}\n{}\n{}",
        head.join("\n\n"),
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
        let document = document(&table, &[section], &budgets);
        let at = |text: &str| document.find(text).unwrap_or_else(|| panic!("{text} is missing:\n{document}"));
        assert!(at("# Benchmarks") < at("| cores") && at("| cores") < at("## Budgets"));
        assert!(at("## Budgets") < at("## Disk") && at("## Disk") < at("What it means."));
        assert!(document.ends_with("|\n") && !document.contains("\n\n\n"));
    }
}
