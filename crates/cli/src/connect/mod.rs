//! Finding the project to work in, and the way into it.
//!
//! In this order: what `--kubeconfig` or `--context` name; datumctl, if it started us; `$KUBECONFIG`; the platform that runs on this
//! machine; `~/.kube/config`. Every way has bounded time and nothing of it is kept.

mod exchange;
mod helper;
mod kubeconfig;
mod local;
mod plugin;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use helper::HelperFailed;

use crate::failure::{Failure, Result};

/// What was asked for, by options and by the environment.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// `--project`.
    pub(crate) project: Option<String>,
    /// `--namespace`.
    pub(crate) namespace: Option<String>,
    /// `--kubeconfig`.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub(crate) context: Option<String>,
    /// `--request-timeout`.
    pub(crate) patience: Duration,
}

/// How long a server may take to begin its answer to a read: with all else, people know within five seconds.
pub(crate) const PATIENCE: Duration = Duration::from_millis(4500);

impl Default for Wish {
    fn default() -> Self {
        Self { project: None, namespace: None, kubeconfig: None, context: None, patience: PATIENCE }
    }
}

impl Wish {
    /// The options that lead to the same place again.
    pub(crate) fn options(&self) -> Vec<String> {
        let path = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        let given = [
            ("--project", self.project.clone()),
            ("--namespace", self.namespace.clone()),
            ("--kubeconfig", path),
            ("--context", self.context.clone()),
        ];
        given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
    }
}

/// A way into a project.
pub(crate) struct Connection {
    /// Speaks to the project.
    pub(crate) client: kube::Client,
    /// The project's name, if it is known.
    pub(crate) project: Option<String>,
    /// The namespace to work in.
    pub(crate) namespace: String,
}

/// Whether datumctl started this program.
pub(crate) fn is_plugin() -> bool {
    plugin::Environment::read().is_some() || std::env::var_os("DATUM_PLUGIN_API_VERSION").is_some()
}

/// Finds the way into the project.
pub(crate) async fn connect(wish: &Wish) -> Result<Connection> {
    let is_given = std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
    // A context may also be one of the platform that runs here.
    let has_contexts = is_given || kubeconfig::default_exists() || local::find().is_none();
    if wish.kubeconfig.is_some() || (wish.context.is_some() && has_contexts) {
        return kubeconfig::connect(wish, wish.kubeconfig.as_deref()).await;
    }
    if let Some(environment) = plugin::Environment::read() {
        return plugin::connect(wish, environment);
    }
    if is_given {
        return kubeconfig::connect(wish, None).await;
    }
    if let Some(running) = local::find() {
        return local::connect(wish, &running).await;
    }
    if kubeconfig::default_exists() {
        return kubeconfig::connect(wish, None).await;
    }
    Err(nowhere())
}

pub(crate) fn nowhere() -> Failure {
    Failure::usage(
        "cannot tell which project to work in",
        "datumctl did not start this program, there is no kubeconfig, and no platform runs on this machine",
    )
    .other("datumctl login", "sign in; then use `datumctl compute`")
    .other("compute-local up", "run a platform of your own on this machine")
}

/// Failures that need a machine like that.
#[cfg(test)]
pub(crate) fn errors_for_tests() -> Vec<(&'static str, Failure)> {
    vec![
        ("nowhere", nowhere()),
        ("context-unusable", kubeconfig::unusable("work", "its cluster is not in the file".to_owned())),
        ("no-project-name", kubeconfig::no_name("a b")),
        ("bad-address", plugin::bad_address()),
        ("no-such-project", local::no_such_project("shop", &["demo".to_owned()])),
        ("none-selected", plugin::none_selected()),
        ("in-between", local::in_between()),
        ("helper-silent", helper::silent().0),
        ("helper-cannot-run", helper::cannot_run(&std::io::ErrorKind::NotFound.into()).0),
        ("helper-says", helper::says("session expired").0),
        ("helper-empty", helper::gave_nothing().0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_given_again() {
        let wish =
            Wish { project: Some("shop".to_owned()), namespace: Some("a".to_owned()), ..Wish::default() };
        assert_eq!(wish.options(), ["--project", "shop", "--namespace", "a"]);
        assert_eq!(Wish::default().options(), [""; 0]);
    }
}
