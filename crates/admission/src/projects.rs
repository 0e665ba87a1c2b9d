//! Which project a request is for, and the way to its plane.

use std::sync::Arc;

use compute_api::k8s::UserInfo;
use compute_api::milo::{RESOURCE_MANAGER_GROUP, extra};
use compute_core::admission::Refusal;
use kube::Client;

/// A way to a plane that cannot be taken. Its text is for operators.
pub type ConnectError = Box<dyn std::error::Error + Send + Sync>;

/// How a project is reached, by its name.
pub type Connect = dyn Fn(&str) -> Result<Client, ConnectError> + Send + Sync;

/// The planes of projects.
#[derive(Clone)]
pub enum Projects {
    /// There is one.
    Single(Client),
    /// Each request says which one it is for. The client of one is got by the project's name, which is a DNS label.
    Milo(Arc<Connect>),
}

impl std::fmt::Debug for Projects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Single(_) => "Single",
            Self::Milo(_) => "Milo",
        })
    }
}

/// A request that does not say which project it is for. No retry helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request does not say which project it is for: {0}")]
pub struct NotInProject(String);

/// The project that a caller's request is for, as the platform writes it into the caller's extra information.
///
/// # Errors
///
/// If it is for none, or not for one alone.
pub fn project_of(user: &UserInfo) -> Result<&str, NotInProject> {
    let one = |key: &str| {
        let values = user.extra.as_ref().and_then(|extra| extra.get(key)).map_or(&[][..], Vec::as_slice);
        match values {
            [only] => Ok(only.as_str()),
            [] => Err(NotInProject(format!("{key} is missing"))),
            _ => Err(NotInProject(format!("{key} has several values"))),
        }
    };
    for (key, wanted) in [(extra::PARENT_TYPE, "Project"), (extra::PARENT_API_GROUP, RESOURCE_MANAGER_GROUP)]
    {
        if one(key)? != wanted {
            return Err(NotInProject(format!("{key} is not {wanted}")));
        }
    }
    let name = one(extra::PARENT_NAME)?;
    // It becomes part of a path.
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || name.len() > 63 || !name.bytes().all(is_inner) {
        return Err(NotInProject(format!("{} is not the name of a project", extra::PARENT_NAME)));
    }
    Ok(name)
}

impl Projects {
    /// A client for the project that a caller's request is for.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be reached: a refusal.
    pub fn client(&self, user: &UserInfo) -> Result<Client, Refusal> {
        match self {
            Self::Single(client) => Ok(client.clone()),
            Self::Milo(connect) => {
                let project = project_of(user).map_err(|error| Refusal::bad_request(error.to_string()))?;
                connect(project).map_err(|error| {
                    tracing::warn!(project, %error, "a project cannot be reached for admission");
                    Refusal::unanswered("the project could not be reached")
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(pairs: &[(&str, &[&str])]) -> UserInfo {
        let extra = pairs.iter().map(|(key, values)| {
            ((*key).to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
        });
        UserInfo { extra: Some(extra.collect()), ..UserInfo::default() }
    }

    #[test]
    fn a_request_names_its_project() {
        let group = (extra::PARENT_API_GROUP, &[RESOURCE_MANAGER_GROUP][..]);
        let kind = (extra::PARENT_TYPE, &["Project"][..]);
        let name = (extra::PARENT_NAME, &["demo-1"][..]);
        assert_eq!(project_of(&user(&[group, kind, name])), Ok("demo-1"));
        let says = |pairs: &[(&str, &[&str])]| project_of(&user(pairs)).unwrap_err().to_string();
        let missing =
            "the request does not say which project it is for: iam.miloapis.com/parent-name is missing";
        assert_eq!(says(&[group, kind]), missing);
        assert!(says(&[kind, name]).ends_with("parent-api-group is missing"));
        assert!(
            says(&[group, (extra::PARENT_TYPE, &["Organization"]), name])
                .ends_with("parent-type is not Project")
        );
        assert!(
            says(&[(extra::PARENT_API_GROUP, &["example.com"]), kind, name])
                .ends_with("is not resourcemanager.miloapis.com")
        );
        assert!(says(&[group, kind, (extra::PARENT_NAME, &["a", "b"])]).ends_with("has several values"));
        for bad in ["", "../core", "a/b", "A", "a b", "a%2f"] {
            let said = says(&[group, kind, (extra::PARENT_NAME, &[bad])]);
            assert!(said.ends_with("is not the name of a project"), "{bad}: {said}");
        }
        assert!(project_of(&UserInfo::default()).is_err());
    }
}
