//! List: whole or in pages, at the present or a given revision, with selectors.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::{Target, check_not_future};
use crate::error::{ApiError, Result};
use crate::selector::Selector;
use crate::store::{Object, ObjectKey, Page};

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
#[derive(Clone, Serialize, Deserialize)]
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
    let from = options.continue_token.as_deref().map(Continue::decode).transpose()?;
    let after = from.as_ref().map(|from| ObjectKey::new(&from.namespace, &from.name));
    let revision = match (&from, options.version) {
        (Some(from), _) => from.revision,
        (None, Some((revision, how))) => {
            check_not_future(target, Some(revision))?;
            if how == VersionMatch::Exact { revision } else { PRESENT }
        }
        (None, None) => PRESENT,
    };
    let page = Page {
        namespace: options.namespace.as_deref(),
        revision,
        after: after.as_ref(),
        limit: options.limit,
    };
    let wanted = |object: &Object| options.selector.matches(object);
    let store = &target.plane.store;
    let (objects, more, revision) = store.page(&target.resource.table, page, wanted).map_err(|too_old| match &from {
        None => ApiError::Expired { message: too_old.to_string(), continue_token: None },
        Some(from) => ApiError::Expired {
            message: "The provided continue parameter is too old to display a consistent list result. You can start a \
                      new list without the continue parameter, or use the continue token in this response to retrieve \
                      the remainder of the results. Continuing with the provided token results in an inconsistent list."
                .to_owned(),
            continue_token: Some(Continue { revision: store.revision(), ..from.clone() }.encode()),
        },
    })?;
    let last = objects.last().filter(|_| more > 0).map(|object| Continue {
        revision,
        namespace: object.meta.key.namespace.to_string(),
        name: object.meta.key.name.to_string(),
    });
    Ok(Listed {
        continue_token: last.map(|last| last.encode()),
        remaining: (more > 0 && options.selector.is_everything()).then_some(more),
        objects,
        revision,
    })
}

/// Stands for the present revision, which the store names when it has shut out writers.
const PRESENT: u64 = 0;
