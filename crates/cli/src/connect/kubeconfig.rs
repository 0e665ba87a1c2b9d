//! With a kubeconfig: a context of it, and the project that `--project` names.

use std::path::Path;

use compute_api::milo::project_control_plane_path;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::{Connection, Wish, exchange};
use crate::failure::{Failure, Result, from_kube};

/// What contexts of projects are called in the kubeconfig of a platform on this machine.
const PROJECT_PREFIX: &str = "project-";

/// Whether there is a kubeconfig where one is by default.
pub(super) fn default_exists() -> bool {
    etcetera::home_dir().is_ok_and(|home| home.join(".kube/config").exists())
}

/// The way that a kubeconfig names: the given one, or that of the environment.
pub(super) async fn connect(wish: &Wish, path: Option<&Path>) -> Result<Connection> {
    let what = "cannot read the kubeconfig";
    let read = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let config = read.map_err(|error| {
        Failure::usage(what, describe(&error)).advice("check --kubeconfig or $KUBECONFIG")
    })?;
    of(wish, config).await
}

/// The way that this kubeconfig names.
pub(super) async fn of(wish: &Wish, config: Kubeconfig) -> Result<Connection> {
    let contexts: Vec<&str> = config.contexts.iter().map(|context| context.name.as_str()).collect();
    // A context of the project's own, else the project's path on the server of the chosen context.
    let own = wish.project.as_ref().map(|project| format!("{PROJECT_PREFIX}{project}"));
    let own = own.filter(|own| wish.context.is_none() && contexts.contains(&own.as_str()));
    let context = wish.context.clone().or(own.clone()).or(config.current_context.clone());
    let Some(context) = context.filter(|context| contexts.contains(&context.as_str())) else {
        let named = wish
            .context
            .as_deref()
            .map_or("none is current".to_owned(), |name| format!("{name:?} is not in it"));
        return Err(Failure::usage("cannot choose a context of the kubeconfig", named)
            .advice(format!("name one with --context: {}", contexts.join(", "))));
    };
    let named = config.contexts.iter().find(|one| one.name == context).and_then(|one| one.context.as_ref());
    let namespace = wish.namespace.clone().or_else(|| named.and_then(|one| one.namespace.clone()));
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let read = kube::Config::from_custom_kubeconfig(config, &options).await;
    let mut config = read.map_err(|error| unusable(&context, describe(&error)))?;
    let mut project = project_of(&config.cluster_url.to_string());
    if let (Some(wanted), None) = (&wish.project, &own)
        && project.as_ref() != Some(wanted)
    {
        config.cluster_url =
            address_of(&config.cluster_url.to_string(), wanted).parse().map_err(|_| no_name(wanted))?;
        project = Some(wanted.clone());
    }
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    let refused = |error: kube::Error| from_kube("cannot reach the project", &error);
    let client = exchange::client(config, wish.patience, None, &namespace).map_err(refused)?;
    Ok(Connection { client, project, namespace })
}

/// The failure when a context leads nowhere.
pub(super) fn unusable(context: &str, why: String) -> Failure {
    Failure::usage(format!("cannot use context {context:?} of the kubeconfig"), why)
        .advice("fix the kubeconfig, or choose another context with --context")
}

/// The failure when a project's name cannot be one.
pub(super) fn no_name(project: &str) -> Failure {
    Failure::usage("cannot reach the project", format!("{project:?} is not a valid project name"))
        .advice("check --project")
}

/// The project in an address, if it is that of a project's control plane.
fn project_of(address: &str) -> Option<String> {
    let (before, after) = split_path();
    let (_, rest) = address.split_once(before.as_str())?;
    rest.split_once(after.as_str()).map(|(project, _)| project.to_owned())
}

/// The address of a project's control plane on the same server.
fn address_of(address: &str, project: &str) -> String {
    let server = address.split_once("/apis/").map_or(address, |(server, _)| server);
    format!("{}{}", server.trim_end_matches('/'), project_control_plane_path(project))
}

fn split_path() -> (String, String) {
    let path = project_control_plane_path("\n");
    let (before, after) = path.split_once('\n').unwrap_or_default();
    (before.to_owned(), after.to_owned())
}

fn describe(error: &kube::config::KubeconfigError) -> String {
    if let kube::config::KubeconfigError::ReadConfig(error, path) = error {
        let path = path.display();
        return match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no file {path}"),
            other => format!("{path} cannot be read: {other}"),
        };
    }
    // What such an error shows of the file may be a token.
    if matches!(error, kube::config::KubeconfigError::Parse(_)) {
        return "it is not valid YAML, or not a kubeconfig".to_owned();
    }
    crate::failure::plain(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_read_from_an_address_and_put_into_one() {
        let path = project_control_plane_path("shop");
        let address = format!("https://127.0.0.1:7443{path}");
        assert_eq!(project_of(&address).as_deref(), Some("shop"));
        assert_eq!(project_of(&format!("{address}/")).as_deref(), Some("shop"));
        assert_eq!(project_of("https://127.0.0.1:7443/planes/hub"), None);
        let other = project_control_plane_path("other");
        assert_eq!(address_of(&address, "other"), format!("https://127.0.0.1:7443{other}"));
        assert_eq!(address_of("https://api.datum.net/", "other"), format!("https://api.datum.net{other}"));
    }
}
