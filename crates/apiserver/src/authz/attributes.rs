//! What a request is to authorization: who, which verb, and on what. Everything is borrowed, so describing a request
//! allocates nothing.

use std::fmt;

use crate::auth::{Extra, Identity};
use crate::meta::NameRule;

static NO_EXTRA: Extra = Extra::new();

/// Names that Kubernetes gives a meaning.
pub mod names {
    /// May do everything, whatever the policy says.
    pub const MASTERS: &str = "system:masters";
    /// Everyone who has proved who they are.
    pub const AUTHENTICATED: &str = "system:authenticated";
    /// Everyone who has not.
    pub const UNAUTHENTICATED: &str = "system:unauthenticated";
    /// The user name of those who have not.
    pub const ANONYMOUS: &str = "system:anonymous";
    /// All service accounts; with `:<namespace>` after it, those of a namespace.
    pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// User name.
    pub user: &'a str,
    /// Unique id of the user; may be empty.
    pub uid: &'a str,
    /// Groups. Those of a service account are implied by its user name.
    pub groups: &'a [String],
    /// Further facts.
    pub extra: &'a Extra,
}

impl<'a> Caller<'a> {
    /// A caller of whom only name and groups are known.
    pub fn new(user: &'a str, groups: &'a [String]) -> Self {
        Self { user, uid: "", groups, extra: &NO_EXTRA }
    }

    /// Whether the caller may do everything, whatever the policy says.
    pub fn is_superuser(&self) -> bool {
        self.has_group(names::MASTERS)
    }

    pub(super) fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|have| have == group)
    }

    /// As a value that outlives the request.
    pub fn to_identity(&self) -> Identity {
        Identity {
            user: self.user.to_owned(),
            uid: self.uid.to_owned(),
            groups: self.groups.to_vec(),
            extra: self.extra.clone(),
        }
    }
}

/// Namespace and name of a service account, from the user name that stands for it.
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let sound = NameRule::Label.problem(namespace).is_none() && NameRule::Subdomain.problem(name).is_none();
    sound.then_some((namespace, name))
}

/// A resource that a request is about. Absent parts are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// API version. No rule looks at it.
    pub version: &'a str,
    /// Plural name.
    pub resource: &'a str,
    /// Subresource.
    pub subresource: &'a str,
    /// Namespace; empty for the whole plane.
    pub namespace: &'a str,
    /// Name of the object; empty for collections and creates.
    pub name: &'a str,
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A resource.
    Resource(ResourceAttributes<'a>),
    /// Any other path: discovery, health, documents.
    Path(&'a str),
}

/// One request as authorization sees it.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who asks.
    pub caller: Caller<'a>,
    /// `get`, `list`, `create`…; for other paths the method in lower case.
    pub verb: &'a str,
    /// On what.
    pub target: Target<'a>,
}

impl<'a> Attributes<'a> {
    /// A request about a resource.
    pub fn resource(caller: Caller<'a>, verb: &'a str, resource: ResourceAttributes<'a>) -> Self {
        Self { caller, verb, target: Target::Resource(resource) }
    }

    /// A request about any other path.
    pub fn path(caller: Caller<'a>, verb: &'a str, path: &'a str) -> Self {
        Self { caller, verb, target: Target::Path(path) }
    }

    /// The namespace; empty for the whole plane.
    pub fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource(resource) => resource.namespace,
            Target::Path(_) => "",
        }
    }

    /// The whole message of a refusal, as clients show it. `reason` is what [`super::Decision::reason`] says; may
    /// be empty.
    pub fn forbidden_message(&self, reason: &str) -> String {
        let subject = match self.target {
            Target::Path(_) => "forbidden".to_owned(),
            Target::Resource(ResourceAttributes { group, resource, name, .. }) => {
                let dot = if group.is_empty() { "" } else { "." };
                match name {
                    "" => format!("{resource}{dot}{group} is forbidden"),
                    name => format!("{resource}{dot}{group} {name:?} is forbidden"),
                }
            }
        };
        // Paths and names come from the caller and may end up in a page that a browser shows.
        let what = self.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        match reason {
            "" => format!("{subject}: {what}"),
            reason => format!("{subject}: {what}: {reason}"),
        }
    }
}

/// What the caller cannot do, in Kubernetes' words.
impl fmt::Display for Attributes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User {:?} cannot {} ", self.caller.user, self.verb)?;
        match self.target {
            Target::Path(path) => write!(f, "path {path:?}"),
            Target::Resource(ResourceAttributes { group, resource, subresource, namespace, .. }) => {
                match subresource {
                    "" => write!(f, "resource {resource:?}")?,
                    subresource => {
                        write!(f, "resource {:?}", format_args!("{resource}/{subresource}").to_string())?
                    }
                }
                write!(f, " in API group {group:?} ")?;
                match namespace {
                    "" => f.write_str("at the cluster scope"),
                    namespace => write!(f, "in the namespace {namespace:?}"),
                }
            }
        }
    }
}
