//! Documents made from the command line's own description: man pages and a reference in Markdown.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::args::Cli;

/// The reference in Markdown.
pub fn markdown() -> String {
    let mut command = Cli::command();
    command.build();
    let mut text = String::from(
        "# datumctl-compute\n\nMade by `cargo xtask cli-docs` from the program's own help; `--check` fails if it is not up to date.\n\
         Under datumctl, each command is `datumctl compute …`.\n",
    );
    section(&command, &mut text);
    text
}

fn section(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut command = command.clone().term_width(100).color(clap::ColorChoice::Never);
    let help = command.render_long_help().to_string();
    let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        section(sub, text);
    }
}

/// The man pages, each with the name of its file.
///
/// # Errors
///
/// If one cannot be written, which memory does not refuse.
pub fn man_pages() -> std::io::Result<Vec<(String, String)>> {
    let mut command = Cli::command();
    command.build();
    let mut pages = Vec::new();
    man(&command, "datumctl-compute", &mut pages)?;
    Ok(pages)
}

fn man(command: &Command, name: &str, pages: &mut Vec<(String, String)>) -> std::io::Result<()> {
    let mut page = Vec::new();
    let named = command.clone().display_name(name.to_owned());
    clap_mangen::Man::new(named).date("").render(&mut page)?;
    pages.push((format!("{name}.1"), String::from_utf8_lossy(&page).into_owned()));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        man(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_makes_sense() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_both() {
        let (text, pages) = (markdown(), man_pages().unwrap());
        for name in ["deploy", "destroy", "status", "workloads", "rollout", "explain", "access", "quota"] {
            assert!(text.contains(&format!("## datumctl-compute {name}\n")), "{name}");
            assert!(pages.iter().any(|(file, _)| *file == format!("datumctl-compute-{name}.1")), "{name}");
        }
    }

    /// `UPDATE_DOCS=1` writes them anew, which is what `cargo xtask cli-docs` does.
    #[test]
    fn the_documents_are_up_to_date() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut wanted = vec![("cli.md".to_owned(), markdown())];
        wanted.extend(man_pages().unwrap().into_iter().map(|(name, page)| (format!("man/{name}"), page)));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let _ = std::fs::remove_dir_all(docs.join("man"));
            std::fs::create_dir_all(docs.join("man")).unwrap();
            for (name, text) in &wanted {
                std::fs::write(docs.join(name), text).unwrap();
            }
        }
        for (name, text) in &wanted {
            let found = std::fs::read_to_string(docs.join(name)).unwrap_or_default();
            assert!(found == *text, "docs/{name} is stale: run `cargo xtask cli-docs`");
        }
        let pages = std::fs::read_dir(docs.join("man")).unwrap().count();
        assert_eq!(pages + 1, wanted.len(), "docs/man has pages of commands that are gone");
    }
}
