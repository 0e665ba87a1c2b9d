//! Label and field selectors: parsed once per request, matched against the parsed fields of an object.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

use crate::limits::bounds;
use crate::store::Object;

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
            if text.len() > bounds::SELECTOR {
                return Err(SelectorError(format!("selector is longer than {} bytes", bounds::SELECTOR)));
            }
        }
        let (labels, fields) = (labels.parse::<LabelSelector>()?, FieldSelector::parse(fields, known)?);
        if labels.terms().max(fields.terms()) > bounds::SELECTOR_TERMS {
            return Err(SelectorError(format!(
                "selector has more than {} requirements",
                bounds::SELECTOR_TERMS
            )));
        }
        Ok(Self { labels, fields })
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
