//! What is wrong with a command line, in the form of every other error; and help that calls the program as it was called.

use clap::error::ErrorKind;

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
        let failure = failure(&error.to_string());
        io.say(&render::failure::render(&failure, Some(PLACE), invocation, io.err));
        return;
    }
    let look = if error.use_stderr() { io.err } else { io.out };
    let text = error.render();
    let text = if look.colour { text.ansi().to_string() } else { text.to_string() };
    let text = invocation.spelled(&text);
    if error.use_stderr() { io.say(&text) } else { io.print(&text) }
}

/// An error in clap's own words: the sentence, tips, and usage are paragraphs of it.
fn failure(text: &str) -> Failure {
    let paragraphs: Vec<&str> = text.split("\n\n").map(str::trim).collect();
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = paragraphs.first().map(|first| joined(first.trim_start_matches("error: "))).unwrap_or_default();
    let tips: Vec<String> = paragraphs
        .iter()
        .flat_map(|paragraph| paragraph.lines())
        .filter_map(|line| line.trim().strip_prefix("tip: "))
        .map(joined)
        .collect();
    let usage = paragraphs.iter().find_map(|paragraph| paragraph.strip_prefix("Usage: "));
    // The names of the command, without those of the program.
    let names: Vec<&str> = usage
        .into_iter()
        .flat_map(str::split_whitespace)
        .skip(1)
        .take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let help = [names.join(" "), "--help".to_owned()].join(" ").trim().to_owned();
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
    let error = crate::args::Cli::try_parse_from(words).err();
    failure(&error.map(|error| error.to_string()).unwrap_or_default())
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
        let failure = of_line("deply");
        assert_eq!(failure.why, ["unrecognized subcommand 'deply'"]);
        assert!(failure.advice.unwrap().contains("'deploy'"));
    }
}
