//! The hub namespace that stands for a project's namespace: what it is, and when it goes.

use compute_api::{
    k8s::{Namespace, ObjectMeta},
    names::{self, ProjectNameError},
};

use super::Upstream;
use crate::meta;

/// The hub namespace of a project's namespace, to be applied.
///
/// # Errors
///
/// If the project does not fit into a label. No retry helps.
pub fn hub_namespace(project: &str, namespace: &Namespace) -> Result<Namespace, ProjectNameError> {
    let upstream =
        Upstream { project: project.to_owned(), namespace: meta::name(&namespace.metadata).to_owned() };
    let metadata = ObjectMeta {
        name: Some(names::hub_namespace(meta::uid(&namespace.metadata))),
        labels: Some(upstream.labels()?),
        ..ObjectMeta::default()
    };
    Ok(Namespace { metadata, ..Namespace::default() })
}

/// Whether applying `wanted` would change what is stored.
pub fn differs(stored: Option<&Namespace>, wanted: &Namespace) -> bool {
    stored
        .is_none_or(|stored| !meta::covers(stored.metadata.labels.as_ref(), wanted.metadata.labels.as_ref()))
}

/// What is known of the project behind a hub namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Project {
    /// Core answers that there is no such project.
    Absent,
    /// The project answers that there is no such namespace.
    WithoutNamespace,
    /// The project has a namespace of that name.
    WithNamespace {
        /// Its uid.
        uid: String,
    },
    /// Nobody answers: that the project is not served any more is no answer.
    Unknown,
}

/// What becomes of a hub namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// It goes, on condition that it is still the one that was looked at.
    Remove {
        /// Its uid.
        uid: String,
    },
}

/// Whether a hub namespace has lost what it stands for. What does not carry our labels and our form of name is
/// not ours to remove.
pub fn judge(hub: &Namespace, project: &Project) -> Verdict {
    let stands_for = names::project_namespace_uid(meta::name(&hub.metadata));
    let (Some(stands_for), Some(_)) = (stands_for, Upstream::of(&hub.metadata)) else { return Verdict::Keep };
    let lost = match project {
        Project::Absent | Project::WithoutNamespace => true,
        Project::WithNamespace { uid } => uid != stands_for,
        Project::Unknown => false,
    };
    if lost && !meta::is_being_deleted(&hub.metadata) {
        return Verdict::Remove { uid: meta::uid(&hub.metadata).to_owned() };
    }
    Verdict::Keep
}
