//! Which requests a hook wants to see: operations, groups, versions, resources and scope.

use super::request::{AdmissionRequest, GroupVersionResource, Operation};

/// Whether namespaced or cluster-scoped resources are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Both.
    #[default]
    All,
    /// Cluster-scoped ones, and namespaces.
    Cluster,
    /// Those in namespaces.
    Namespaced,
}

/// One rule: a request matches if each part does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The operations; [`Operation::ALL`] for any.
    pub operations: Vec<Operation>,
    /// API groups; `*` for any.
    pub api_groups: Vec<String>,
    /// Versions; `*` for any.
    pub api_versions: Vec<String>,
    /// `pods`, `pods/status`, `pods/*` (pods and their subresources), `*` (all, but no subresources),
    /// `*/status`, `*/*`.
    pub resources: Vec<String>,
    /// Scope.
    pub scope: Scope,
}

impl Rule {
    /// A rule for these operations on these resources of one group, in any version and scope.
    pub fn new(operations: &[Operation], group: &str, resources: &[&str]) -> Self {
        Self {
            operations: operations.to_vec(),
            api_groups: vec![group.to_owned()],
            api_versions: vec!["*".to_owned()],
            resources: resources.iter().map(|resource| (*resource).to_owned()).collect(),
            scope: Scope::All,
        }
    }

    fn matches(&self, request: &AdmissionRequest, resource: &GroupVersionResource) -> bool {
        let named = |list: &[String], name: &str| list.iter().any(|entry| entry == "*" || entry == name);
        self.operations.contains(&request.operation)
            && named(&self.api_groups, &resource.group)
            && named(&self.api_versions, &resource.version)
            && self.resources.iter().any(|entry| covers(entry, &resource.resource, &request.subresource))
            && self.in_scope(request, resource)
    }

    fn in_scope(&self, request: &AdmissionRequest, resource: &GroupVersionResource) -> bool {
        let namespaced = !request.namespace.is_empty() && !resource.is_namespaces();
        match self.scope {
            Scope::All => true,
            Scope::Cluster => !namespaced,
            Scope::Namespaced => namespaced,
        }
    }
}

/// Whether an entry such as `pods/*` covers a resource and subresource.
fn covers(entry: &str, resource: &str, subresource: &str) -> bool {
    let (wanted, part) = entry.split_once('/').unwrap_or((entry, ""));
    (wanted == "*" || wanted == resource) && (part == "*" || part == subresource)
}

/// Rules of which one must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// Whether a request is wanted.
    pub fn matches(&self, request: &AdmissionRequest) -> bool {
        self.matches_as(request, &request.resource)
    }

    /// Whether a request is wanted if its resource is taken to be `resource`.
    pub(super) fn matches_as(&self, request: &AdmissionRequest, resource: &GroupVersionResource) -> bool {
        self.0.iter().any(|rule| rule.matches(request, resource))
    }
}
