//! One step of a path into an object, as `FieldsV1` names it.
//!
//! An element keeps keys and values as canonical JSON text: object keys sorted, no white space, whole
//! numbers without a fraction. So two elements that mean the same item are equal as text, and writing
//! one out costs nothing.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// One step of a path into an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathElement {
    /// `f:<name>`: a field of an object.
    Field(String),
    /// `k:<json>`: the entry of a list that has these key fields. Canonical JSON of an object.
    Key(String),
    /// `v:<json>`: the entry of a list that is this value. Canonical JSON.
    Value(String),
    /// `i:<n>`: the n-th entry of a list.
    Index(i64),
}

/// Why a text is no path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementError {
    /// The text has the form of an element, of a class that is not known.
    #[error("unknown path element type in {0:?}")]
    UnknownType(String),
    /// The text does not have the form of an element.
    #[error("malformed path element {0:?}")]
    Malformed(String),
}

impl PathElement {
    /// The field `name`.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// The list entry whose key fields have these values.
    pub fn key(fields: &mut [(&str, &Value)]) -> Self {
        fields.sort_unstable_by_key(|(name, _)| *name);
        let mut text = String::with_capacity(32);
        write_object(fields.iter().copied(), &mut text);
        Self::Key(text)
    }

    /// The list entry that is `value`.
    pub fn value(value: &Value) -> Self {
        let mut text = String::with_capacity(16);
        write_canonical(value, &mut text);
        Self::Value(text)
    }

    /// The form in which `FieldsV1` writes the element.
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(json) => ["k:", json].concat(),
            Self::Value(json) => ["v:", json].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl FromStr for PathElement {
    type Err = ElementError;

    fn from_str(text: &str) -> Result<Self, ElementError> {
        let malformed = || ElementError::Malformed(text.to_owned());
        let (class, rest) = text.split_once(':').ok_or_else(malformed)?;
        match class {
            "f" => Ok(Self::Field(rest.to_owned())),
            "k" => {
                let value: Value = serde_json::from_str(rest).map_err(|_| malformed())?;
                if !value.is_object() {
                    return Err(malformed());
                }
                let mut json = String::with_capacity(rest.len());
                write_canonical(&value, &mut json);
                Ok(Self::Key(json))
            }
            "v" => serde_json::from_str(rest).map(|value| Self::value(&value)).map_err(|_| malformed()),
            "i" => rest.parse().map(Self::Index).map_err(|_| malformed()),
            other if other.len() == 1 => Err(ElementError::UnknownType(text.to_owned())),
            _ => Err(malformed()),
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(json) => {
                let fields: serde_json::Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
                f.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(json) => write!(f, "[={json}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as it is shown to people: `.spec.containers[name="a"].image`.
pub fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().map(|(name, value)| (name.as_str(), value)).collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            write_object(fields.into_iter(), out);
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => match whole(number) {
            Some(whole) => out.push_str(&whole.to_string()),
            None => out.push_str(&number.to_string()),
        },
        Value::String(text) => write_text(text, out),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Null => out.push_str("null"),
    }
}

fn write_object<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut String) {
    out.push('{');
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        write_canonical(value, out);
    }
    out.push('}');
}

fn write_text(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// The whole number that a number written with a fraction stands for: `1.0` and `1` are one value.
fn whole(number: &serde_json::Number) -> Option<i64> {
    /// Up to here every whole number is exact as a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}
