//! The host of core and projects, in the topology of Milo: core at the root, projects under a path of their own.
//!
//! The embedded server has core and most projects; one project at a time is a real API server, which is reached under the same path as any.

use compute_apiserver::{ApiServer, Identity, PlaneName, PlaneTemplate};
use compute_local::planes;
use kube::Client;
use parking_lot::Mutex;

use super::way::{self, Credentials, Way};

/// The host of core and projects.
pub struct Milo {
    /// Core and most projects.
    pub server: ApiServer,
    /// What a project of the embedded server is made from.
    pub template: PlaneTemplate,
    /// The API server that one project is on: a client without credentials, and the token of one who may speak for others.
    pub real: (Client, String),
    /// Which project that is.
    pub on_real: Mutex<Option<String>>,
}

impl Milo {
    /// The project that a path leads to, if any, and the path within its plane.
    pub fn split(path: &str) -> (Option<&str>, &str) {
        let route = planes::project_route();
        let inside = path.strip_prefix(&route.before).and_then(|rest| rest.split_once('/'));
        let Some((project, rest)) = inside else { return (None, path) };
        let after = route.after.trim_start_matches('/');
        match rest.strip_prefix(after) {
            Some("") => (Some(project), "/"),
            Some(rest) if rest.starts_with('/') => (Some(project), rest),
            _ => (None, path),
        }
    }

    /// Whether a project is the one on the real server.
    pub fn is_on_real(&self, project: &str) -> bool {
        self.on_real.lock().as_deref() == Some(project)
    }

    /// The way to a project or to core, as somebody. None if there can be no such project.
    pub fn way(&self, project: Option<&str>, identity: &Identity) -> Option<(PlaneName, Way)> {
        let Some(project) = project else {
            let plane = planes::core();
            let way = way::embedded(&self.server, &plane, identity.clone());
            return Some((plane, way));
        };
        let plane = planes::project(project).ok()?;
        let identity = way::in_project(identity.clone(), project);
        let way = if self.is_on_real(project) {
            let (client, token) = &self.real;
            way::remote(client, Credentials::Vouched { token: token.clone(), identity })
        } else {
            way::with_context(way::embedded(&self.server, &plane, identity.clone()), identity)
        };
        Some((plane, way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_core_or_into_a_project() {
        let project = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/demo";
        for (path, expected) in [
            (format!("{project}/control-plane/api/v1/pods"), (Some("demo"), "/api/v1/pods")),
            (format!("{project}/control-plane"), (Some("demo"), "/")),
            (format!("{project}/control-planes/api"), (None, "")),
            (project.to_owned(), (None, "")),
            (format!("{project}/status"), (None, "")),
            ("/api/v1/namespaces".to_owned(), (None, "")),
        ] {
            let expected = if expected.0.is_none() { (None, path.as_str()) } else { expected };
            assert_eq!(Milo::split(&path), expected);
        }
    }
}
