//! Every example in help texts and docs works: each is run by a shell, as a person would have it run, and has to end well, or as its page
//! says.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Local, PATIENT, Ran, bare, ended};

const PROGRAM: &str = "datumctl-compute";
/// What a page calls the program.
const NAMES: [&str; 3] = ["datumctl-compute ", "datumctl compute ", "cargo compute "];

/// Runs a line as a shell does, with everything on the path that leads to the program.
async fn shell(local: &Local, line: &str) -> Ran {
    let bin = local.dir.path().join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).unwrap();
        let program = env!("CARGO_BIN_EXE_datumctl-compute");
        let under = format!("#!/bin/sh\n[ \"$1\" = compute ] || exit 99\nshift\nexec '{program}' \"$@\"\n");
        let alone = format!("#!/bin/sh\nexec '{program}' \"$@\"\n");
        for (name, script) in [("datumctl", &under), ("cargo", &under), (PROGRAM, &alone)] {
            std::fs::write(bin.join(name), script).unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let program = bare(local.dir.path());
    let mut command = tokio::process::Command::new("bash");
    for (name, value) in program.as_std().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command
        .args(["-c", line])
        .env("PATH", path)
        .env("KUBECONFIG", local.kubeconfig("ann"))
        .env("DATUMCTL_COMPUTE_REQUEST_TIMEOUT", PATIENT)
        .current_dir(local.dir.path())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true);
    ended(command).await
}

/// A platform, and a manifest where people keep theirs.
async fn platform() -> Local {
    let local = Local::start().await;
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
    let sample = std::fs::read_to_string(format!("{samples}/workload.yaml")).unwrap();
    std::fs::write(local.dir.path().join("workload.yaml"), sample.replace("name: hello", "name: other"))
        .unwrap();
    for folder in [".config/fish/completions", ".local/share/man/man1"] {
        std::fs::create_dir_all(local.dir.path().join(folder)).unwrap();
    }
    local
}

/// The commands in help texts: what begins with the program's name, or has it in a shell's words.
fn in_help(text: &str) -> BTreeSet<String> {
    let is_usage = |line: &str| line.contains('[') || line.contains("<COMMAND>") || line.starts_with("Usage");
    let lines = text.lines().filter(|line| line.starts_with("  ") && line.contains(PROGRAM));
    let shells = ["bash:", "zsh:", "fish:", "powershell:"];
    let plain = |line: &str| {
        let line = line.trim();
        shells.iter().find_map(|shell| line.strip_prefix(shell)).unwrap_or(line).trim().to_owned()
    };
    lines.map(plain).filter(|line| !is_usage(line)).collect()
}

/// What has to be there comes before what uses it.
fn order(line: &str) -> u8 {
    let words = line.strip_prefix(PROGRAM).unwrap_or(line).trim();
    match words {
        _ if words.starts_with("deploy hello") && words.contains("--city") => 0,
        _ if words.starts_with("deploy hello") && !words.contains("dry-run") => 1,
        _ if words.starts_with("rollout pause") => 4,
        _ if words.starts_with("rollout resume") => 5,
        _ if words.starts_with("rollout undo") => 6,
        _ if words.starts_with("destroy") => 9,
        _ => 3,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_in_help_works() {
    let local = platform().await;
    let mut lines: Vec<String> = in_help(&compute_cli::reference::markdown()).into_iter().collect();
    lines.sort_by_key(|line| (order(line), line.clone()));
    assert!(lines.len() > 28, "{lines:#?}");
    for line in lines {
        // Its reader is a shell that few machines have.
        let line = line.split(" | Out-String").next().unwrap_or_default().to_owned();
        // Nobody is asked here.
        let asks = ["deploy -f", "destroy"].iter().any(|verb| line.starts_with(&format!("{PROGRAM} {verb}")));
        let shown = if asks && !line.contains("-y") { format!("{line} -y") } else { line.clone() };
        if line.contains(" destroy hello -y") {
            local.run("deploy hello --image a:1 --city DFW --no-wait").await.ends(0);
        }
        let ran = shell(&local, &shown).await;
        assert_eq!(ran.code, 0, "{line}: {}\n{}", ran.out, ran.err);
    }
}

/// The pages that people read, but the reference, which is made of help texts, and the tour, which has a test of its own.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("ARCHITECTURE.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && !path.ends_with("cli.md")
                && !path.ends_with("tour.md")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What a page has typed, each line with how it ends.
fn typed(page: &str) -> Vec<(String, i32)> {
    let mut found: Vec<(String, i32)> = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let line = line.trim();
        let words = line.strip_prefix("$ ").unwrap_or(line);
        if in_block && NAMES.iter().any(|name| words.starts_with(name)) {
            found.push((words.to_owned(), 0));
        }
        let code = line.strip_prefix("(exit code ").and_then(|rest| rest.strip_suffix(')'));
        if let (Some(code), Some(last)) = (code, found.last_mut()) {
            last.1 = code.parse().unwrap();
        }
    }
    found
}

/// What a page names in passing.
fn named(page: &str) -> BTreeSet<String> {
    let spans = page.split('`').skip(1).step_by(2).filter(|span| !span.contains('\n'));
    let commands = spans.filter(|span| NAMES.iter().any(|name| span.starts_with(name)));
    // What a reader fills in is left out.
    commands.filter(|span| !span.contains('…')).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_in_docs_works() {
    let mut count = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let (typed, named) = (typed(&page), named(&page));
        if typed.is_empty() && named.is_empty() {
            continue;
        }
        // A reader begins at the top, with nothing there.
        let local = platform().await;
        for (line, code) in typed {
            let ran = shell(&local, &line).await;
            assert_eq!(ran.code, code, "{}: {line}: {}\n{}", path.display(), ran.out, ran.err);
            count += 1;
        }
        for line in named {
            let ran = shell(&local, &format!("{line} --help")).await;
            assert_eq!(ran.code, 0, "{}: {line}: {}\n{}", path.display(), ran.out, ran.err);
        }
    }
    assert!(count > 20, "only {count} commands in docs");
}

#[test]
fn examples_are_found() {
    let page = "Say `datumctl compute status` or `x`.\n```console\n$ cargo compute cities\nDFW\n$ datumctl-compute status no\n(exit code 1)\n```\n$ datumctl-compute not this\n";
    assert_eq!(
        typed(page),
        [("cargo compute cities".to_owned(), 0), ("datumctl-compute status no".to_owned(), 1)]
    );
    assert_eq!(named(page).into_iter().collect::<Vec<_>>(), ["datumctl compute status"]);
    let help = "Examples:\n  datumctl-compute a\n  zsh:   echo '<(datumctl-compute completion zsh)' >> x\n  datumctl-compute b [OPTIONS]\n";
    assert_eq!(in_help(help).len(), 2);
}
