//! `docs/tour.md` shows what really happens: each command in it is typed into a terminal, and what that shows is compared.
//!
//! `UPDATE_TOUR=1 cargo test -p compute-cli --test real tour` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::Local;
use crate::terminal::Terminal;
use regex::Regex;

const PROMPT: &str = "$ datumctl-compute ";
/// What a person answers.
const ANSWERS: [(&str, &str); 2] =
    [("Save it as workload.yaml", "y"), ("Type the name of the workload", "web")];
/// What a tour of this program has to have in it, in this order.
const STOPS: [&str; 7] = [
    "deploy web --image ghcr.io/example/web:1.0",
    "deploy web --image registry.invalid",
    "status web",
    "explain web",
    "rollout undo web",
    "rollout history web",
    "destroy web",
];

/// What is the same in every run: all but times, addresses, and how wide columns and where lines end by them.
pub fn essence(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in [
        (r"\b\d+\s+(second|minute)s?\s+ago\b", "just now"),
        (r"\bfor\s+\d+\s+(second|minute)s?\b", "for a while"),
        (r"\b\d+\.\d+\.\d+\.\d+\b", "address"),
        (r"(?m)  +\d+(s|m\d+s|m)$", "  age"),
        (r"\s+", " "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_is_what_happens() {
    let local = Local::start().await;
    let terminal = Terminal::open(&local, 120, 50).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tour.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let update = std::env::var_os("UPDATE_TOUR").is_some();
    let mut again = String::new();
    let mut commands: Vec<String> = Vec::new();
    let mut lines = page.lines().peekable();
    let mut in_console = false;
    while let Some(line) = lines.next() {
        let _ = writeln!(again, "{line}");
        if line.starts_with("```") {
            in_console = line == "```console";
        }
        let Some(command) = line.strip_prefix(PROMPT).filter(|_| in_console) else { continue };
        let mut recorded = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(PROMPT) && !line.starts_with("```")) {
            let _ = writeln!(recorded, "{line}");
        }
        let happened = terminal.run(&line[2..], &ANSWERS).await;
        let is_same = essence(&recorded) == essence(&happened);
        assert!(
            is_same || update,
            "docs/tour.md is stale; run UPDATE_TOUR=1 cargo test -p compute-cli --test real tour\n{command}\n\
             recorded:\n{recorded}\nhappened:\n{happened}"
        );
        again.push_str(&happened);
        commands.push(command.to_owned());
    }
    let mut left = commands.iter();
    for stop in STOPS {
        assert!(left.any(|command| command.starts_with(stop)), "no {stop} in its place: {commands:#?}");
    }
    if update {
        std::fs::write(&path, again).unwrap();
    }
}

#[test]
fn only_what_differs_from_run_to_run_is_left_out() {
    let one = "web-0  DFW  Available  10.0.0.7  4s\nRevision  1, 3 seconds ago by ann\n";
    let other = "web-0  DFW  Available  10.0.0.19   12s\nRevision  1, 1 minute ago by ann\n";
    assert_eq!(essence(one), essence(other));
    for (from, to) in [("Available", "Failed"), ("ann", "bob"), ("web-0", "web-1"), ("DFW", "IAD")] {
        assert_ne!(essence(one), essence(&one.replace(from, to)));
    }
}
