//! What a hook answers, and what the client is told.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// All warnings of one request together, in characters: what fits into headers that every proxy takes.
const MAX_WARNINGS: usize = 4096;
/// A warning that would not fit is cut to this many characters.
const CUT_WARNING: usize = 256;
/// All audit annotations of one request together, in bytes.
const MAX_ANNOTATIONS: usize = 64 << 10;
/// The longest message of a denial, in bytes: a few hundred field errors.
const MAX_MESSAGE: usize = 64 << 10;

/// Why a request is refused, as a `Status` tells it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; may be empty.
    pub reason: String,
    /// In words.
    pub message: String,
    /// The `details` of the status (causes, retry after), if the hook gave any.
    pub details: Option<Box<Value>>,
}

impl Denial {
    /// A refusal without details.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None }
    }

    /// The `Status` object that the client gets.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = (**details).clone();
        }
        status
    }

    /// The refusal of the hook `name` as the client sees it.
    pub(super) fn by(mut self, name: &str) -> Self {
        // A refusal with a code that means success would look like one to the client.
        if !(400..600).contains(&self.code) {
            self.code = 400;
        }
        let why = [&self.message, &self.reason].into_iter().find(|text| !text.is_empty());
        self.message = match why {
            Some(why) => {
                format!("admission webhook {name:?} denied the request: {}", cut_bytes(why, MAX_MESSAGE))
            }
            None => format!("admission webhook {name:?} denied the request without explanation"),
        };
        self
    }

    /// A fault of a hook or of this server.
    pub(super) fn internal(message: &str) -> Self {
        Self {
            details: Some(Box::new(json!({ "causes": [{ "message": message }] }))),
            ..Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
        }
    }

    /// The caller's deadline is over.
    pub(super) fn timeout() -> Self {
        let message =
            "Timeout: request did not complete within requested timeout - context deadline exceeded";
        Self::new(504, "Timeout", message)
    }
}

/// What a validating hook answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Why the request is refused; none if it may go on.
    pub denied: Option<Denial>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Annotations for the audit log, without the hook's name.
    pub audit_annotations: BTreeMap<String, String>,
}

impl Outcome {
    /// The request may go on.
    pub fn allow() -> Self {
        Self::default()
    }

    /// The request is refused.
    pub fn deny(denial: Denial) -> Self {
        Self { denied: Some(denial), ..Self::default() }
    }

    /// With one more warning.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }
}

/// What a mutating hook does to the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The whole object, anew.
    Object(Value),
    /// A JSON patch (RFC 6902) as JSON text.
    Patch(Vec<u8>),
}

impl Change {
    /// A JSON patch given as a value: a list of operations.
    pub fn patch(operations: &Value) -> Self {
        Self::Patch(serde_json::to_vec(operations).expect("a value serialises into memory"))
    }
}

/// What a mutating hook answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MutationOutcome {
    /// Whether the request may go on, warnings and annotations.
    pub outcome: Outcome,
    /// What is done to the object; none if it stays as it is.
    pub change: Option<Change>,
}

impl From<Outcome> for MutationOutcome {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, change: None }
    }
}

impl From<Change> for MutationOutcome {
    fn from(change: Change) -> Self {
        Self { outcome: Outcome::allow(), change: Some(change) }
    }
}

/// What hooks say beside yes and no, over all calls of a request; bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Warnings for the client, each once.
    pub warnings: Vec<String>,
    /// Audit annotations: `webhook name/key`.
    pub annotations: BTreeMap<String, String>,
}

impl Notes {
    /// Takes over what the hook `name` says. What does not fit is dropped; an annotation that is there stays.
    pub(super) fn add(&mut self, name: &str, outcome: &mut Outcome) {
        for warning in std::mem::take(&mut outcome.warnings) {
            self.warn(warning);
        }
        for (key, value) in std::mem::take(&mut outcome.audit_annotations) {
            self.annotate(format!("{name}/{key}"), value);
        }
    }

    /// Takes over all of `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        for warning in other.warnings {
            self.warn(warning);
        }
        for (key, value) in other.annotations {
            self.annotate(key, value);
        }
    }

    fn warn(&mut self, mut warning: String) {
        if warning.is_empty() || self.warnings.contains(&warning) {
            return;
        }
        let used: usize = self.warnings.iter().map(|warning| warning.chars().count()).sum();
        let room = MAX_WARNINGS - used.min(MAX_WARNINGS);
        if warning.chars().count() > room {
            warning = warning.chars().take(CUT_WARNING).collect();
        }
        if warning.chars().count() <= room {
            self.warnings.push(warning);
        }
    }

    fn annotate(&mut self, key: String, value: String) {
        let used: usize = self.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        if used + key.len() + value.len() <= MAX_ANNOTATIONS {
            self.annotations.entry(key).or_insert(value);
        }
    }
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{denial}")]
pub struct Rejection {
    /// Why.
    pub denial: Denial,
    /// What hooks said up to then: warnings go to the client with a refusal, too.
    pub notes: Box<Notes>,
}

/// The longest beginning of `text` with at most `limit` bytes.
pub(super) fn cut_bytes(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}
