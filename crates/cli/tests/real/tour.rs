//! `docs/tour.md` shows what really happens: each command in it is run, and what it prints is compared.
//!
//! `UPDATE_TOUR=1 cargo test -p compute-cli --test real tour` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::{Local, Ran};
use regex::Regex;

const PROMPT: &str = "$ datumctl-compute ";

/// What a command printed, without the steps of a rollout in between, which differ from run to run.
fn shown(ran: &Ran) -> String {
    let step = Regex::new(r"^  \S+  (waiting|updating|blocked|paused|done|leaving) ").unwrap();
    let mut lines: Vec<&str> = Vec::new();
    let mut in_step = false;
    for line in ran.err.lines() {
        // What is in the way is below its city.
        in_step = step.is_match(line) || (in_step && line.starts_with("      "));
        let passing =
            line.ends_with("left to stop") || line.starts_with("giving back") || line == "clearing up";
        if !in_step && !passing {
            lines.push(line);
        }
    }
    lines.extend(ran.out.lines());
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if ran.code != 0 {
        let _ = writeln!(text, "(exit code {})", ran.code);
    }
    text
}

/// What is the same in every run: all but times, addresses, and how wide columns are by them.
fn essence(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in [
        (r"\b\d+ (second|minute)s? ago\b", "just now"),
        (r"\bfor \d+ (second|minute)s?\b", "for a while"),
        (r"\b\d+\.\d+\.\d+\.\d+\b", "address"),
        (r"(?m)  +\d+(s|m\d+s|m)$", "  age"),
        ("  +", "  "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_is_what_happens() {
    let local = Local::start().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tour.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let update = std::env::var_os("UPDATE_TOUR").is_some();
    let mut again = String::new();
    let mut commands = 0;
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
        let happened = shown(&local.run(command).await);
        let is_same = essence(&recorded) == essence(&happened);
        assert!(
            is_same || update,
            "docs/tour.md is stale; run UPDATE_TOUR=1 cargo test -p compute-cli --test real tour\n{command}\n\
             recorded:\n{recorded}\nhappened:\n{happened}"
        );
        again.push_str(if is_same { &recorded } else { &happened });
        commands += 1;
    }
    assert!(commands > 10, "only {commands} commands");
    if update {
        std::fs::write(&path, again).unwrap();
    }
}
