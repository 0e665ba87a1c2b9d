//! What comes out: sections with tables, on the terminal as they are measured and as a part of `docs/benchmarks.md` at the end.

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
        format!("### {}\n\n{}\n\n{}", self.title, wrap(self.text), tables.join("\n"))
    }
}

/// The page, relative to the project.
pub const PAGE: &str = "docs/benchmarks.md";

const HEAD: &str = "\
# Benchmarks

Written by `cargo xtask bench`; change nothing here by hand. Each part is of one run, and replaced as a whole.
";

/// What a part of the page is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The word that `cargo xtask bench` takes.
    pub command: &'static str,
    /// The same for people.
    pub title: &'static str,
}

/// The embedded API server.
pub const APISERVER: Subject = Subject { command: "apiserver", title: "The embedded API server" };
/// From a Workload to available instances.
pub const PIPELINE: Subject = Subject { command: "pipeline", title: "The whole platform in one process" };
/// The same on a real Kubernetes and a real Karmada.
pub const REALSTACK: Subject = Subject { command: "realstack", title: "Real Kubernetes and Karmada" };
/// The parts of the page, in their order.
const SUBJECTS: [Subject; 3] = [APISERVER, PIPELINE, REALSTACK];

impl Subject {
    /// The line that its part begins with.
    fn heading(self) -> String {
        format!("## {}\n", self.title)
    }
}

/// The part of the page that is about a subject.
pub fn part(subject: Subject, machine: &Table, sections: &[Section], budgets: &[Budget]) -> String {
    let command = subject.command;
    let check = match budgets {
        [] => String::new(),
        _ => {
            format!(" `cargo xtask bench {command} --check` measures again and fails if a budget is missed.")
        }
    };
    let text = format!("`cargo xtask bench {command}`.{check} All figures are of one run on this machine:");
    let budgets = if budgets.is_empty() { String::new() } else { budgets_section(budgets) + "\n" };
    let sections: Vec<String> = sections.iter().map(Section::render).collect();
    format!(
        "{}\n{}\n\n{}\n{budgets}{}",
        subject.heading(),
        wrap(&text),
        machine.render(),
        sections.join("\n")
    )
}

/// The page with one part replaced, or added in its place.
pub fn with_part(page: &str, subject: Subject, part: &str) -> String {
    let parts = SUBJECTS.iter().filter_map(|other| match other.command == subject.command {
        true => Some(part.trim_end()),
        false => find(page, *other),
    });
    let parts: Vec<&str> = std::iter::once(HEAD.trim_end()).chain(parts).collect();
    parts.join("\n\n") + "\n"
}

/// A subject's part of a page.
fn find(page: &str, subject: Subject) -> Option<&str> {
    let from = page.find(&format!("\n{}", subject.heading()))? + 1;
    let rest = &page[from..];
    let to = rest[1..].find("\n## ").map_or(rest.len(), |at| at + 1);
    Some(rest[..to].trim_end())
}

/// The budgets beside their figures.
pub fn budgets_section(budgets: &[Budget]) -> String {
    format!("### Budgets\n\n{}", budget::table(budgets).render())
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

    fn part_with(section: &'static str, budgets: &[Budget]) -> String {
        let mut table = Table::new(&["machine", "is"]);
        table.row(["cores", "2"]);
        let section = Section { title: section, text: "What it means.", tables: vec![table.clone()] };
        part(APISERVER, &table, &[section], budgets)
    }

    #[test]
    fn a_part_has_machine_budgets_and_sections_in_this_order() {
        let part = part_with("Disk", &[Budget::at_most("start", 1.0, 50.0, "ms")]);
        let at = |text: &str| part.find(text).unwrap_or_else(|| panic!("{text} is missing:\n{part}"));
        assert!(at("## The embedded") < at("| cores") && at("| cores") < at("### Budgets"));
        assert!(at("### Budgets") < at("### Disk") && at("### Disk") < at("What it means."));
        assert!(part.ends_with("|\n") && !part.contains("\n\n\n"));
        let without = part_with("Disk", &[]);
        assert!(!without.contains("udget") && !without.contains("\n\n\n"), "{without}");
    }

    #[test]
    fn a_part_is_replaced_and_the_others_stay() {
        let (first, second) = (part_with("Disk", &[]), part_with("Memory", &[]));
        let other = format!("{}\nmore\n", PIPELINE.heading());
        let page = with_part("", PIPELINE, &other);
        let page = with_part(&page, APISERVER, &first);
        assert!(page.find("Disk") < page.find("more"), "{page}");
        let page = with_part(&page, APISERVER, &second);
        assert!(page.contains("Memory") && page.contains("more") && !page.contains("Disk"), "{page}");
        assert_eq!(with_part(&page, APISERVER, &second), page);
        assert!(!page.contains("\n\n\n") && page.ends_with("more\n"));
    }
}
