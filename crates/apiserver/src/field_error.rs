//! One thing that is wrong with one field, in the words Kubernetes uses for it.

use std::fmt;

/// The class of a field error. Its text forms are part of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorType {
    /// The field must be there.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is of the wrong JSON type.
    TypeInvalid,
    /// The value stands twice where it may stand once.
    Duplicate,
    /// The value is none of those allowed.
    NotSupported,
    /// The value may not be set here.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The list has too many entries.
    TooMany,
}

impl FieldErrorType {
    /// The `reason` of a cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where: `spec.containers[0].name`, `metadata.labels[app]`.
    pub path: String,
    /// What class of error.
    pub type_: FieldErrorType,
    /// The bad value as JSON text, for the classes that show it (`Invalid`, `TypeInvalid`, `Duplicate`, `NotSupported`).
    pub bad_value: Option<String>,
    /// What would be right; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An error without a shown value.
    pub fn new(path: impl Into<String>, type_: FieldErrorType, detail: impl Into<String>) -> Self {
        Self { path: path.into(), type_, bad_value: None, detail: detail.into() }
    }

    /// `Invalid` with the value shown (cut to a bounded length).
    pub fn invalid(path: impl Into<String>, value: &serde_json::Value, detail: impl Into<String>) -> Self {
        Self::with_value(path, FieldErrorType::Invalid, value, detail)
    }

    /// An error of any class with the value shown (cut to a bounded length).
    pub fn with_value(
        path: impl Into<String>,
        type_: FieldErrorType,
        value: &serde_json::Value,
        detail: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), type_, bad_value: Some(shown(value)), detail: detail.into() }
    }

    /// The message without the path, as it stands in a cause.
    pub fn message(&self) -> String {
        let mut text = self.type_.words().to_owned();
        if let Some(value) = &self.bad_value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

/// A value as it is shown in an error: scalars in full up to 256 bytes, objects and lists by their type.
pub(crate) fn shown(value: &serde_json::Value) -> String {
    const LIMIT: usize = 256;
    match value {
        serde_json::Value::Object(_) => "\"object\"".to_owned(),
        serde_json::Value::Array(_) => "\"array\"".to_owned(),
        scalar => {
            let mut text = scalar.to_string();
            if text.len() > LIMIT {
                let cut = (0..=LIMIT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                text.truncate(cut);
                text.push('…');
            }
            text
        }
    }
}
