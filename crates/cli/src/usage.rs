//! What is wrong with a command line, in the form of every other error; and help that calls the program as it was called.

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use crate::args::Cli;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::io::Io;
use crate::render;

/// Where such an error happens.
const PLACE: &str = "on the command line";

/// Says what clap found. Help and version are results.
pub(crate) fn say(error: &clap::Error, invocation: &Invocation, io: Io) {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_help {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let failure = failure(&error.to_string(), words.iter().map(String::as_str));
        io.say(&render::failure::render(&failure, Some(PLACE), invocation, io.err));
        return;
    }
    let look = if error.use_stderr() { io.err } else { io.out };
    let text = error.render();
    let text = if look.colour { text.ansi().to_string() } else { text.to_string() };
    let text = invocation.spelled(&text);
    if error.use_stderr() { io.say(&text) } else { io.print(&text) }
}

/// The command that a line is about, as far as it can be told.
fn command_of<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut command = Cli::command();
    let mut names = Vec::new();
    for word in words {
        let Some(found) = command.find_subcommand(word).cloned() else { continue };
        names.push(found.get_name().to_owned());
        command = found;
    }
    names
}

/// An error in clap's own words: the sentence and tips are paragraphs of it.
fn failure<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> Failure {
    let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).collect();
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = paragraphs.first().map(|first| joined(first.trim_start_matches("error: "))).unwrap_or_default();
    let tips: Vec<String> = paragraphs
        .iter()
        .flat_map(|paragraph| paragraph.lines())
        .filter_map(|line| line.trim().strip_prefix("tip: "))
        .map(joined)
        .collect();
    let mut help = command_of(words);
    help.push("--help".to_owned());
    let help = help.join(" ");
    let failure = Failure::usage("cannot read the command", why).next(help, "see how it is used");
    match tips.is_empty() {
        true => failure,
        false => failure.advice(tips.join("; ")),
    }
}

/// What is wrong with a command line that is given as words.
#[cfg(test)]
pub(crate) fn of_line(line: &str) -> Failure {
    use clap::Parser as _;
    let words = std::iter::once("datumctl-compute").chain(line.split_whitespace());
    let error = Cli::try_parse_from(words).err();
    failure(&error.map(|error| error.to_string()).unwrap_or_default(), line.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_is_put_in_our_words() {
        let failure = of_line("scale web");
        assert_eq!(failure.why, ["the following required arguments were not provided: --min <N>"]);
        assert_eq!(failure.next[0].command, "scale --help");
        let failure = of_line("rollout histroy web");
        assert_eq!(failure.next[0].command, "rollout --help");
        assert_eq!(of_line("deploy web --env X").next[0].command, "deploy --help");
        let failure = of_line("deply");
        assert_eq!(failure.why, ["unrecognized subcommand 'deply'"]);
        assert!(failure.advice.unwrap().contains("'deploy'"));
    }
}
