//! Under datumctl: the project and the server from the environment, tokens from its credentials helper.

use std::sync::Arc;

use compute_api::milo::project_control_plane_path;

use super::helper::Tokens;
use super::{Connection, Wish, exchange};
use crate::failure::{Failure, Result, from_kube};

/// What datumctl tells a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Environment {
    host: String,
    helper: String,
    project: Option<String>,
    session: Option<String>,
}

impl Environment {
    /// What the environment says; `None` if datumctl did not start this program.
    pub(super) fn read() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(read: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let value =
            |name: &str| read(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        Some(Self {
            host: value("DATUM_API_HOST")?,
            helper: value("DATUM_CREDENTIALS_HELPER")?,
            project: value("DATUM_PROJECT"),
            session: value("DATUM_SESSION"),
        })
    }

    /// Where a project's control plane is.
    fn address(&self, project: &str) -> String {
        let host = self.host.trim_end_matches('/');
        let scheme = if host.contains("://") { "" } else { "https://" };
        format!("{scheme}{host}{}", project_control_plane_path(project))
    }
}

/// The failure when datumctl has no project.
pub(super) fn none_selected() -> Failure {
    Failure::usage("cannot tell which project to work in", "datumctl has none selected")
        .advice("select one, or name it with --project")
        .other("datumctl ctx use", "select a project")
}

/// The failure when datumctl gives no address.
pub(super) fn bad_address() -> Failure {
    Failure::usage("cannot reach the service", "datumctl gave an invalid address")
        .advice("check the host that you signed in to")
}

/// The way into the project that datumctl, or `--project`, names.
pub(super) fn connect(wish: &Wish, environment: Environment) -> Result<Connection> {
    let Some(project) = wish.project.clone().or_else(|| environment.project.clone()) else {
        return Err(none_selected());
    };
    let address = environment.address(&project);
    let Ok(uri) = address.parse() else {
        return Err(bad_address());
    };
    let config = kube::Config::new(uri);
    let namespace = wish.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let refused = |error: kube::Error| from_kube("cannot reach the service", &error);
    let tokens = Arc::new(Tokens::new(environment.helper, environment.session));
    let client = exchange::client(config, wish.patience, Some(tokens), &namespace).map_err(refused)?;
    Ok(Connection { client, project: Some(project), namespace })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &'static [(&str, &str)]) -> Option<Environment> {
        Environment::of(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn both_host_and_helper_make_a_plugin() {
        assert_eq!(environment(&[("DATUM_API_HOST", "api.datum.net")]), None);
        assert_eq!(environment(&[("DATUM_CREDENTIALS_HELPER", "x"), ("DATUM_API_HOST", " ")]), None);
        let found = environment(&[
            ("DATUM_API_HOST", "api.datum.net"),
            ("DATUM_CREDENTIALS_HELPER", "/bin/datumctl"),
            ("DATUM_PROJECT", "shop"),
        ])
        .unwrap();
        assert_eq!(
            found.address("shop"),
            "https://api.datum.net/apis/resourcemanager.miloapis.com/v1alpha1/projects/shop/control-plane"
        );
        let odd = Environment { host: "http://localhost:1/".to_owned(), ..found };
        assert!(odd.address("a").starts_with("http://localhost:1/apis/"));
    }
}
