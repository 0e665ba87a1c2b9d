//! List: whole or in pages, at the present or a given revision, with selectors.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{Target, check_not_future};
use crate::error::{ApiError, Result};
use crate::selector::Selector;
use crate::store::{Object, ObjectKey};

/// How `resourceVersion` of a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// At least this revision; the present one always is.
    NotOlderThan,
    /// Exactly this revision.
    Exact,
}

/// Arguments of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    /// What to pick.
    pub(crate) selector: Selector,
    /// Page size; 0 is no limit.
    pub(crate) limit: usize,
    /// Where the last page ended.
    pub(crate) continue_token: Option<String>,
    /// A revision, and how it is meant.
    pub(crate) version: Option<(u64, VersionMatch)>,
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The objects.
    pub(crate) objects: Vec<Arc<Object>>,
    /// The revision of the whole list; the same on every page.
    pub(crate) revision: u64,
    /// Where the next page starts, if there is one.
    pub(crate) continue_token: Option<String>,
    /// How many objects come after this page; not known with selectors.
    pub(crate) remaining: Option<usize>,
}

/// What a continue token carries. Opaque to clients.
#[derive(Default, Serialize, Deserialize)]
struct Continue {
    #[serde(rename = "rv")]
    revision: u64,
    #[serde(rename = "ns")]
    namespace: String,
    #[serde(rename = "n")]
    name: String,
}

impl Continue {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("plain fields always serialise"))
    }

    fn decode(token: &str) -> Result<Self> {
        let decoded =
            URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        decoded.ok_or_else(|| ApiError::BadRequest("continue key is not valid".to_owned()))
    }
}

/// Lists a resource.
pub(crate) fn list(target: &Target, options: &ListOptions) -> Result<Listed> {
    let store = &target.plane.store;
    let table = &target.resource.table;
    let namespace = options.namespace.as_deref();
    let wanted = |object: &Object| options.selector.matches(object);
    let (objects, revision, after) = match (&options.continue_token, options.version) {
        (Some(token), _) => {
            let from = Continue::decode(token)?;
            let after = ObjectKey::new(&from.namespace, &from.name);
            let present =
                || Continue { revision: store.revision(), ..Continue::decode(token).unwrap_or_default() };
            let objects = store.list_at(table, namespace, from.revision).map_err(|_| ApiError::Expired {
                message: "The provided continue parameter is too old to display a consistent list result. You can \
                          start a new list without the continue parameter, or use the continue token in this response \
                          to retrieve the remainder of the results. Continuing with the provided token results in an \
                          inconsistent list."
                    .to_owned(),
                continue_token: Some(present().encode()),
            })?;
            (objects.into_iter().filter(|o| wanted(o)).collect(), from.revision, Some(after))
        }
        (None, Some((revision, VersionMatch::Exact))) => {
            check_not_future(target, Some(revision))?;
            let objects = store.list_at(table, namespace, revision).map_err(|too_old| ApiError::Expired {
                message: too_old.to_string(),
                continue_token: None,
            })?;
            (objects.into_iter().filter(|o| wanted(o)).collect(), revision, None)
        }
        (None, version) => {
            check_not_future(target, version.map(|(revision, _)| revision))?;
            let (objects, revision) = store.list(table, namespace, wanted);
            (objects, revision, None)
        }
    };
    Ok(page(objects, revision, after.as_ref(), options))
}

fn page(
    mut objects: Vec<Arc<Object>>,
    revision: u64,
    after: Option<&ObjectKey>,
    options: &ListOptions,
) -> Listed {
    if let Some(after) = after {
        let start = objects.partition_point(|object| object.meta.key <= *after);
        objects.drain(..start);
    }
    let rest = if options.limit == 0 { 0 } else { objects.len().saturating_sub(options.limit) };
    if rest > 0 {
        objects.truncate(options.limit);
    }
    let last = objects.last().filter(|_| rest > 0).map(|object| Continue {
        revision,
        namespace: object.meta.key.namespace.to_string(),
        name: object.meta.key.name.to_string(),
    });
    Listed {
        objects,
        revision,
        continue_token: last.map(|last| last.encode()),
        remaining: (rest > 0 && options.selector.is_everything()).then_some(rest),
    }
}
