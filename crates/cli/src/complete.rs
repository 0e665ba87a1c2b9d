//! Completion: scripts for shells, and live names of what is in the project. What cannot be read in a moment is not completed.

use std::ffi::OsStr;
use std::sync::mpsc;
use std::time::Duration;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use compute_core::{location, meta};

use crate::args::Way;
use crate::failure::Result;
use crate::fetch;
use crate::invocation::Invocation;
use crate::io::Io;
use crate::session::Session;

/// The variable by which a shell asks for candidates.
pub(crate) const VARIABLE: &str = "DATUMCTL_COMPUTE_COMPLETE";
/// The name of this program.
const PROGRAM: &str = "datumctl-compute";
/// How long a person waits after a tab.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The script for a shell.
pub(crate) fn script(shell: &str) -> Option<String> {
    let mut text = Vec::new();
    let shells = Shells::builtins();
    shells.completer(shell)?.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Names of workloads.
pub(crate) fn workloads(current: &OsStr) -> Vec<CompletionCandidate> {
    live(current, async |session| {
        let all = fetch::workloads(session).await?;
        Ok(all.iter().map(|one| meta::name(&one.metadata).to_owned()).collect())
    })
}

/// Names of instances.
pub(crate) fn instances(current: &OsStr) -> Vec<CompletionCandidate> {
    live(current, async |session| {
        let all = fetch::instances(session, None).await?;
        Ok(all.iter().map(|one| meta::name(&one.metadata).to_owned()).collect())
    })
}

/// Cities that the project can use.
pub(crate) fn cities(current: &OsStr) -> Vec<CompletionCandidate> {
    live(current, async |session| {
        let all = fetch::bindings(session).await?;
        Ok(location::Offered::of(&all).cities().map(str::to_owned).collect())
    })
}

/// Contexts of the kubeconfig.
pub(crate) fn contexts(current: &OsStr) -> Vec<CompletionCandidate> {
    let config = kube::config::Kubeconfig::read().unwrap_or_default();
    matching(current, config.contexts.into_iter().map(|context| context.name).collect())
}

/// What begins like what is typed. Of several with commas, the last counts.
fn matching(current: &OsStr, names: Vec<String>) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let (before, typed) =
        typed.rsplit_once(',').map_or((String::new(), &*typed), |(a, b)| (format!("{a},"), b));
    let begins =
        |name: &String| name.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed));
    names.into_iter().filter(begins).map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
}

/// The options that were typed before the word that is being completed.
fn typed_way() -> Way {
    let words: Vec<String> = std::env::args().collect();
    let value = |names: &[&str]| {
        words.iter().enumerate().find_map(|(at, word)| {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(a, b)| (a, Some(b)));
            names.contains(&name).then(|| value.map(str::to_owned).or_else(|| words.get(at + 1).cloned()))?
        })
    };
    Way {
        project: value(&["--project"]),
        namespace: value(&["--namespace", "-n"]),
        kubeconfig: value(&["--kubeconfig"]).map(Into::into),
        context: value(&["--context"]),
        ..Way::default()
    }
}

/// Names that the project has. On a thread of its own: a program that gives credentials may block it, and a person does not wait for that.
fn live(
    current: &OsStr,
    names: impl AsyncFnOnce(&Session) -> Result<Vec<String>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (found, awaited) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let names = runtime.block_on(async {
            let session = Session::open(&typed_way(), Io::of_process(), Invocation::default()).await?;
            names(&session).await
        });
        found.send(names.ok()?).ok()
    });
    matching(current, awaited.recv_timeout(PATIENCE).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script() {
        for shell in ["bash", "zsh", "fish", "powershell"] {
            let script = script(shell).unwrap();
            assert!(script.contains(PROGRAM) && script.contains(VARIABLE), "{shell}");
        }
    }

    #[test]
    fn the_last_of_several_is_completed() {
        let names = vec!["DFW".to_owned(), "IAD".to_owned()];
        let found = |typed: &str| -> Vec<String> {
            let all = matching(OsStr::new(typed), names.clone());
            all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(found("d"), ["DFW"]);
        assert_eq!(found("DFW,"), ["DFW,DFW", "DFW,IAD"]);
        assert_eq!(found("x"), [""; 0]);
    }
}
