//! One rule of a role, and which requests it allows.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::attributes::{Attributes, ResourceAttributes, Target};
use super::json::nullable;

/// Stands for every verb, group, resource or path.
pub(super) const ALL: &str = "*";

/// One rule of a role: these verbs on these resources, or on these paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Verbs; `*` for all.
    #[serde(deserialize_with = "nullable")]
    pub verbs: Vec<String>,
    /// API groups; `*` for all, empty text for core.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub api_groups: Vec<String>,
    /// Resources: `pods`, `pods/log`, `*/scale` or `*`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub resources: Vec<String>,
    /// Names of objects; none for all.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "nullable")]
    pub resource_names: Vec<String>,
    /// Paths; `*` at the end stands for the rest.
    #[serde(
        rename = "nonResourceURLs",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "nullable"
    )]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// A rule over resources.
    pub fn resources(verbs: &[&str], group: &str, resources: &[&str]) -> Self {
        let (verbs, resources) = (owned(verbs), owned(resources));
        Self { verbs, api_groups: owned(&[group]), resources, ..Self::default() }
    }

    /// A rule over paths.
    pub fn paths(verbs: &[&str], paths: &[&str]) -> Self {
        Self { verbs: owned(verbs), non_resource_urls: owned(paths), ..Self::default() }
    }

    /// The rules that allow everything.
    pub fn full_authority() -> [Self; 2] {
        [Self::resources(&[ALL], ALL, &[ALL]), Self::paths(&[ALL], &[ALL])]
    }

    /// Whether it allows a request, as far as the rule goes: where it holds is the binding's matter.
    pub fn allows(&self, request: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, request.verb)
            && match &request.target {
                Target::Resource(resource) => self.allows_resource(resource),
                Target::Path(path) => self.non_resource_urls.iter().any(|have| path_covers(have, path)),
            }
    }

    fn allows_resource(&self, request: &ResourceAttributes<'_>) -> bool {
        has_or_all(&self.api_groups, request.group)
            && self.resources.iter().any(|have| resource_matches(have, request.resource, request.subresource))
            && (self.resource_names.is_empty() || has(&self.resource_names, request.name))
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|have| have == wanted)
}

pub(super) fn has_or_all(list: &[String], wanted: &str) -> bool {
    list.iter().any(|have| have == ALL || have == wanted)
}

/// Whether a resource of a rule stands for the wanted one. `*` stands for subresources too; `pods` does not.
fn resource_matches(have: &str, resource: &str, subresource: &str) -> bool {
    if have == ALL {
        return true;
    }
    if subresource.is_empty() {
        return have == resource;
    }
    let below = |parent: &str| have.strip_prefix(parent).and_then(|rest| rest.strip_prefix('/'));
    below(resource) == Some(subresource) || below(ALL) == Some(subresource)
}

/// Whether a path of a rule stands for all that `path` does (which may itself end in `*`).
pub(super) fn path_covers(have: &str, path: &str) -> bool {
    have == path || (have.ends_with('*') && path.starts_with(have.trim_end_matches('*')))
}

/// The short form that messages use: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        f.write_str("{")?;
        for (i, (name, values)) in parts.iter().filter(|(_, values)| !values.is_empty()).enumerate() {
            write!(f, "{}{name}:{}", if i == 0 { "" } else { ", " }, Quoted(values))?;
        }
        f.write_str("}")
    }
}

/// A list of quoted texts with blanks between.
pub(super) struct Quoted<'a>(pub(super) &'a [String]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, text) in self.0.iter().enumerate() {
            write!(f, "{}{text:?}", if i == 0 { "" } else { " " })?;
        }
        f.write_str("]")
    }
}
