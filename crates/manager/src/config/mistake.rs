//! A mistake in the configuration, told in one line.

/// A mistake in the configuration. Its text is one line: the field, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {said}")]
pub struct Mistake {
    field: String,
    said: String,
}

impl Mistake {
    /// What is wrong with a field.
    pub fn new(field: impl Into<String>, said: impl AsRef<str>) -> Self {
        // What others say may go over several lines.
        let words: Vec<_> = said.as_ref().split_whitespace().collect();
        Self { field: field.into(), said: words.join(" ") }
    }

    /// The field.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What others found wrong with a field, with all causes.
    pub(crate) fn because(field: impl Into<String>, what: &str, error: &dyn std::error::Error) -> Self {
        let mut said = format!("{what}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Some errors repeat their cause in their own text.
            if !said.ends_with(&next) {
                said.push_str(": ");
                said.push_str(&next);
            }
            cause = error.source();
        }
        Self::new(field, said)
    }
}
