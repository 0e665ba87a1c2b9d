//! Reads a YAML document field by field, strictly: a field that nobody knows is a mistake, and the closest known name is suggested.
//!
//! Null and empty text count as not set, so that an overlay can take a setting back.

use serde_json::{Map, Value};

use super::Mistake;

/// How alike two names must be for one to be taken for the other.
const ALIKE: f64 = 0.7;

/// A mapping, of which fields are taken one by one.
pub(super) struct Section {
    path: String,
    fields: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Section {
    /// The whole document.
    pub(super) fn document(field: &str, text: &str) -> Result<Self, Mistake> {
        let options = serde_saphyr::options! { with_snippet: false };
        let value = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| Mistake::because(field, "is not valid YAML", error.without_snippet()))?;
        match value {
            Value::Object(fields) => Ok(Self { path: String::new(), fields, known: Vec::new() }),
            _ => Err(Mistake::new(field, "must hold a mapping with apiVersion, kind and settings")),
        }
    }

    /// The full name of a field.
    pub(super) fn name_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let is_set = |value: &Value| !value.is_null() && value.as_str() != Some("");
        self.fields.remove(name).filter(is_set)
    }

    fn wrong(&self, name: &str, wanted: &str, found: &Value) -> Mistake {
        Mistake::new(self.name_of(name), format!("must be {wanted}, not {}", shown(found)))
    }

    /// Text.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Mistake> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "text", &other)),
        }
    }

    /// Text, or a number, which is easily written where text is meant.
    pub(super) fn text_or_number(&mut self, name: &'static str) -> Result<Option<String>, Mistake> {
        match self.take(name) {
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::String(text)) => Ok(Some(text)),
            None => Ok(None),
            Some(other) => Err(self.wrong(name, "text", &other)),
        }
    }

    /// True or false.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Mistake> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong(name, "true or false", &other)),
        }
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Option<Vec<String>>, Mistake> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let Value::Array(entries) = value else { return Err(self.wrong(name, "a list", &value)) };
        let mut texts = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            match entry {
                Value::String(text) => texts.push(text),
                other => return Err(self.wrong(&format!("{name}[{index}]"), "text", &other)),
            }
        }
        Ok(Some(texts))
    }

    /// Fields of their own.
    pub(super) fn section(&mut self, name: &'static str) -> Result<Option<Self>, Mistake> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => {
                Ok(Some(Self { path: self.name_of(name), fields, known: Vec::new() }))
            }
            Some(other) => Err(self.wrong(name, "a mapping", &other)),
        }
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), Mistake> {
        let Some(unknown) = self.fields.keys().next() else { return Ok(()) };
        let said = match closest(unknown, self.known.iter().copied()) {
            Some(close) => format!("there is no such field; did you mean {}?", self.name_of(close)),
            None => format!("there is no such field; known are {}", self.known.join(", ")),
        };
        Err(Mistake::new(self.name_of(unknown), said))
    }
}

/// The known name that was probably meant.
pub(super) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let best = known.map(|other| (likeness(other), other)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= ALIKE).map(|(_, other)| other)
}

/// A value as a complaint shows it: what kind it is, and no more of it than fits.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        scalar => scalar.to_string().chars().take(80).collect(),
    }
}
