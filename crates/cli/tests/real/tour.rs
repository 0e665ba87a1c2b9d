//! `docs/tour.md` shows what really happens: each command in it is run, and what it prints is compared.
//!
//! `UPDATE_TOUR=1 cargo test -p compute-cli --test real tour` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::{Local, Ran};
use regex::Regex;

const PROMPT: &str = "$ datumctl-compute ";

/// What a command printed, without what differs from run to run: the steps of a rollout in between, times and addresses.
fn shown(ran: &Ran) -> String {
    let step = Regex::new(r"^  \S+  (waiting|updating|blocked|paused|done|leaving) ").unwrap();
    let mut lines: Vec<String> = Vec::new();
    let mut in_step = false;
    for line in ran.err.lines() {
        // What is in the way is below its city.
        in_step = step.is_match(line) || (in_step && line.starts_with("      "));
        let passing =
            line.ends_with("left to stop") || line.starts_with("giving back") || line == "clearing up";
        if !in_step && !passing {
            lines.push(line.to_owned());
        }
    }
    lines.extend(ran.out.lines().map(str::to_owned));
    let mut text = lines.join("\n");
    for (pattern, with) in [
        (r"\b\d+ (second|minute)s? ago\b", "just now"),
        (r"\bfor \d+ (second|minute)s?\b", "for 1 second"),
        (r"\b\d+\.\d+\.\d+\.\d+\b", "10.0.0.4"),
        (r"(?m)  +\d+(s|m\d+s|m)$", "  1s"),
        (r"(?m)\(simulated\)", "(simulated)"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    // Columns are as wide as what was in them.
    Regex::new("  +").unwrap().replace_all(&text, "  ").into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tour_is_what_happens() {
    let local = Local::start().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tour.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut again = String::new();
    let mut in_console = false;
    let mut in_output = false;
    let mut commands = 0;
    for line in page.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
            in_output = false;
        }
        let Some(command) = line.strip_prefix(PROMPT).filter(|_| in_console) else {
            if !in_output || line.starts_with("```") {
                let _ = writeln!(again, "{line}");
            }
            continue;
        };
        let ran = local.run(command).await;
        let _ = writeln!(again, "{line}");
        let text = shown(&ran);
        if !text.is_empty() {
            let _ = writeln!(again, "{text}");
        }
        if ran.code != 0 {
            let _ = writeln!(again, "(exit code {})", ran.code);
        }
        in_output = true;
        commands += 1;
    }
    assert!(commands > 10, "only {commands} commands");
    if std::env::var_os("UPDATE_TOUR").is_some() {
        std::fs::write(&path, again).unwrap();
        return;
    }
    let different: Vec<_> = page.lines().zip(again.lines()).filter(|(a, b)| a != b).take(5).collect();
    assert!(
        page == again,
        "docs/tour.md is stale; run UPDATE_TOUR=1 cargo test -p compute-cli --test real tour\n{different:#?}"
    );
}
