//! No command and no error is without a snapshot: a new one fails here until it has them.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory as _;

use super::lint::{snapshots, strip};
use crate::args::Cli;

/// What a command has a snapshot of.
enum Shown {
    /// A view, in every look: a file, a terminal, one with `NO_COLOR`, one of 60 columns.
    View(&'static str),
    /// What the whole program said, into a file and on a terminal of 60 columns.
    Whole(&'static str),
    /// There is no such case, for this reason.
    Never(&'static str),
}

use Shown::{Never, View, Whole};

/// Every command: when all is well, when it is not, when there is nothing, and with more columns.
const COMMANDS: [(&str, [Shown; 4]); 20] = [
    ("deploy", [Whole("deploy"), Whole("deploy-broken"), Whole("deploy-nothing"), View("plan.fits")]),
    ("destroy", [Whole("destroy"), View("error.not-gone"), View("error.not-found"), NO_TABLE]),
    (
        "status",
        [View("status.healthy"), View("status.degraded"), View("workloads.none"), View("workloads.wide")],
    ),
    (
        "workloads list",
        [
            View("workloads.healthy"),
            View("workloads.degraded"),
            View("workloads.none"),
            View("workloads.wide"),
        ],
    ),
    (
        "workloads describe",
        [
            View("describe.workload.healthy"),
            View("describe.workload"),
            View("error.not-found"),
            View("describe.workload.wide"),
        ],
    ),
    (
        "instances list",
        [
            View("instances.healthy"),
            View("instances.degraded"),
            View("instances.none"),
            View("instances.wide"),
        ],
    ),
    (
        "instances describe",
        [
            View("describe.instance.healthy"),
            View("describe.instance.failed"),
            Whole("error.no-instance"),
            NO_TABLE,
        ],
    ),
    ("scale", [Whole("scale"), Whole("scale-nothing"), View("error.not-found-at-all"), NO_TABLE]),
    ("rollout status", [View("rollout.done"), View("rollout.blocked"), View("error.not-found"), NO_TABLE]),
    (
        "rollout history",
        [View("history"), View("history.diff"), View("error.no-revision"), View("history.wide")],
    ),
    ("rollout undo", [Whole("undo"), Whole("error.nothing-to-undo"), View("error.no-revision"), NO_TABLE]),
    (
        "rollout restart",
        [Whole("restart"), Whole("error.restart-paused"), Whole("error.restart-elsewhere"), NO_TABLE],
    ),
    ("rollout pause", [Whole("pause"), Whole("pause-again"), View("error.not-found"), NO_TABLE]),
    ("rollout resume", [Whole("resume"), Whole("resume-again"), View("error.not-found"), NO_TABLE]),
    ("quota", [View("quota.healthy"), View("quota.exceeded"), View("quota.none"), NO_TABLE]),
    ("cities", [View("cities.healthy"), View("cities.degraded"), View("cities.none"), View("cities.wide")]),
    ("instance-types", [View("instance-types"), FIXED, FIXED, FIXED]),
    ("explain", [View("explain.healthy"), View("explain.degraded"), View("error.not-found"), NO_TABLE]),
    (
        "access show",
        [View("access.active"), View("access.activating"), View("access.not-requested"), NO_TABLE],
    ),
    (
        "access request",
        [View("access.active"), View("access.activating"), View("error.not-enabled"), NO_TABLE],
    ),
];

const NO_TABLE: Shown = Never("it has no table that could be wider");
const FIXED: Shown = Never("what there is is written into the program");

/// Commands whose results are not for people.
const OTHERS: [&str; 1] = ["completion"];

fn leaves(command: &clap::Command, before: &str, found: &mut BTreeSet<String>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        let name = format!("{before} {}", sub.get_name()).trim().to_owned();
        match sub.has_subcommands() {
            true => leaves(sub, &name, found),
            false => {
                found.insert(name);
            }
        }
    }
}

#[test]
fn every_command_has_its_snapshots() {
    let mut wanted = BTreeSet::new();
    leaves(&Cli::command(), "", &mut wanted);
    let mut listed: BTreeSet<String> = COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.extend(OTHERS.map(str::to_owned));
    assert_eq!(wanted, listed, "commands, and those that have snapshots");
    let there: BTreeSet<String> = snapshots().into_iter().map(|(name, _)| name).collect();
    for (command, states) in &COMMANDS {
        for shown in states {
            let (name, looks): (_, &[&str]) = match shown {
                View(name) => (*name, &["file", "terminal", "no_colour", "narrow"]),
                Whole(name) => (*name, &["whole", "narrow"]),
                Never(why) => {
                    assert!(!why.is_empty());
                    continue;
                }
            };
            for look in looks {
                assert!(there.contains(&format!("{name}.{look}")), "{command}: no snapshot {name}.{look}");
            }
        }
    }
}

/// Errors that nothing a test can do brings about.
const UNSEEN: [(&str, &str); 6] = [
    ("the system gives no resources", "it needs a machine without memory"),
    ("it cannot be written in that form", "everything that is printed can be written as JSON and YAML"),
    ("the change cannot be written down", "a patch that is made here can be read here"),
    ("the shell is not known", "the command line knows the same shells"),
    ("the document is not an object", "a document without kind and name is refused before"),
    ("what it should be cannot be read", "a manifest that cannot be read is refused before"),
];

/// The first argument's or the second's own words in each call that makes an error, with where it is.
fn errors_in_source() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            for (at, call) in text.match_indices("Failure::new(").chain(text.match_indices("Failure::usage("))
            {
                let arguments = arguments(&text[at + call.len()..]);
                if let Some(words) = own_words(arguments) {
                    found.push((words, name.clone()));
                }
            }
        }
    }
    found
}

/// Up to the parenthesis that closes the call.
fn arguments(text: &str) -> &str {
    let (mut depth, mut in_text, mut escaped) = (1_usize, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            '(' if !in_text => depth += 1,
            ')' if !in_text => {
                depth -= 1;
                if depth == 0 {
                    return &text[..at];
                }
            }
            _ => {}
        }
    }
    text
}

/// The longest run of plain words in the last text of a call: why it fails.
fn own_words(arguments: &str) -> Option<String> {
    let texts: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
    let last = texts.iter().rev().find(|text| text.len() > 10)?;
    let runs = last.split(['{', '}']).step_by(2);
    runs.max_by_key(|run| run.len()).map(|run| run.trim().to_owned()).filter(|run| run.len() > 10)
}

#[test]
fn every_error_has_a_snapshot() {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: Vec<String> = snapshots()
        .into_iter()
        .filter(|(name, _)| name.starts_with("error."))
        .map(|(_, text)| squeezed(&strip(&text)))
        .collect();
    let errors = errors_in_source();
    assert!(errors.len() > 40, "only {} errors in the source", errors.len());
    let is_shown = |words: &str| shown.iter().any(|text| text.contains(&squeezed(words)));
    let missing: Vec<_> = errors
        .iter()
        .filter(|(words, _)| !is_shown(words) && !UNSEEN.iter().any(|(unseen, _)| words.contains(unseen)))
        .collect();
    assert!(missing.is_empty(), "errors without a snapshot: {missing:#?}");
    for (unseen, why) in UNSEEN {
        let is_there = errors.iter().any(|(words, _)| words.contains(unseen));
        assert!(is_there && !is_shown(unseen) && !why.is_empty(), "{unseen} need not be listed");
    }
}

#[test]
fn errors_are_found_in_source() {
    let call = r#"what, format!("it has ({count}) \"things\" in {city} that nobody wants")) and more"#;
    assert!(arguments(call).ends_with("wants\")"), "{}", arguments(call));
    assert_eq!(own_words("what, \"nothing runs there\"").as_deref(), Some("nothing runs there"));
    assert_eq!(own_words("what, format!(\"{a} shares placement {b}\")").as_deref(), Some("shares placement"));
    assert_eq!(own_words("what, plain(&message)"), None);
}
