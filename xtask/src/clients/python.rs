//! The Python client: the script in `python/` prints one line per check, in the form of [`Report`]; here they are
//! counted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::harness::Report;
use super::process::Process;
use super::server::Server;

/// How long the whole script may take.
const SCRIPT: Duration = Duration::from_secs(300);

/// Runs the script.
pub(super) fn run(python: &Path, server: &Server, report: &mut Report) {
    let script = crate::root().join("xtask/src/clients/python");
    let mut command = Command::new(python);
    // Unbuffered, and no compiled files among the sources.
    command.args(["-u", "-B"]).arg(&script).arg(server.kubeconfig());
    command.env("HOME", server.home()).env_remove("KUBECONFIG");
    let output = Process::start(&mut command, format!("python {}", script.display()), "")
        .and_then(|process| process.wait(SCRIPT));
    let output = match output {
        Ok(output) => output,
        Err(error) => return report.fail("python: the script runs", &format!("{error:#}")),
    };
    let mut failure: Option<(String, String)> = None;
    for line in output.stdout.lines() {
        if let (Some((_, details)), Some(detail)) = (&mut failure, line.strip_prefix("     ")) {
            details.push_str(detail);
            details.push('\n');
            continue;
        }
        if let Some((name, details)) = failure.take() {
            report.fail(&name, &details);
        }
        if let Some(name) = line.strip_prefix("ok   ") {
            report.pass(name);
        } else if let Some(name) = line.strip_prefix("FAIL ") {
            failure = Some((name.to_owned(), String::new()));
        } else if line != "done" {
            println!("{line}");
        }
    }
    if let Some((name, details)) = failure {
        report.fail(&name, &details);
    }
    if output.stdout.lines().last() != Some("done") {
        report.fail("python: the script comes to its end", &output.to_string());
    }
}
