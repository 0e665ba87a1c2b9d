//! Label and field selectors: parsed once per request, matched against the parsed fields of an object.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

use crate::store::Object;

/// Longest accepted selector text. Kubernetes bounds it by the size of a request line; so do we.
const MAX_TEXT: usize = 16 * 1024;

/// A selector that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Both selectors of a request.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selector {
    /// Parses `labelSelector` and `fieldSelector`; `known` are the kind's selectable fields, each with its place in
    /// [`Meta::fields`](crate::store::Meta).
    pub fn parse(labels: &str, fields: &str, known: &[(String, usize)]) -> Result<Self, SelectorError> {
        for text in [labels, fields] {
            if text.len() > MAX_TEXT {
                return Err(SelectorError(format!("selector is longer than {MAX_TEXT} bytes")));
            }
        }
        Ok(Self { labels: labels.parse()?, fields: FieldSelector::parse(fields, known)? })
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether `object` is picked.
    pub fn matches(&self, object: &Object) -> bool {
        self.labels.matches(&object.meta.labels) && self.fields.matches(&object.meta)
    }
}
