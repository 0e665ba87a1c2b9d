//! Constraints, and what may stand in `allOf`, `anyOf`, `oneOf` and `not`.

use serde_json::{Number, Value};

use super::keywords::Keywords;
use super::{Compiler, MAX_DEPTH};
use crate::schema::Schema;
use crate::schema::constraints::{Bound, Constraints, Format, Nested};
use crate::schema::path::Path;
use crate::schema::regexp::Pattern;

/// Keywords that say something other than which values are valid.
const STRUCTURAL: [(&str, &str); 10] = [
    ("type", "must be empty to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

/// Whether an `anyOf` says what `x-kubernetes-int-or-string` says, in so many words.
fn is_int_or_string(any_of: Option<&Value>) -> bool {
    let only_type = |json: &Value, name: &str| {
        json.as_object().is_some_and(|map| map.len() == 1 && map.get("type").is_some_and(|t| t == name))
    };
    match any_of.and_then(Value::as_array).map(Vec::as_slice) {
        Some([first, second]) => only_type(first, "integer") && only_type(second, "string"),
        _ => false,
    }
}

impl Compiler<'_> {
    /// The constraints of a structural schema.
    pub(super) fn constraints(
        &mut self,
        words: &Keywords<'_>,
        schema: &Schema,
        path: &Path<'_>,
        depth: usize,
    ) -> Constraints {
        self.check_type_keyword(words, path);
        let made = self.value_constraints(words, path, depth, schema.int_or_string);
        let all = made.all_of.iter().chain(&made.any_of).chain(&made.one_of).chain(made.not.as_deref());
        for nested in all {
            self.complete(nested, schema, path);
        }
        made
    }

    /// Everything that a nested schema constrains must be specified outside of it too.
    fn complete(&mut self, nested: &Nested, schema: &Schema, path: &Path<'_>) {
        let because = "because it is defined in a nested value validation";
        let properties = path.field("properties");
        for (name, inner) in &nested.properties {
            match schema.properties.get(name) {
                Some(child) => self.complete(inner, child, &properties.key(name)),
                None if schema.additional_properties.is_some() => {}
                None => self.required(&properties.key(name), because),
            }
        }
        if let Some(inner) = &nested.items {
            match &schema.items {
                Some(items) => self.complete(inner, items, &path.field("items")),
                None => self.required(&path.field("items"), because),
            }
        }
        let deeper = &nested.constraints;
        let all =
            deeper.all_of.iter().chain(&deeper.any_of).chain(&deeper.one_of).chain(deeper.not.as_deref());
        for nested in all {
            self.complete(nested, schema, path);
        }
    }

    fn nested(&mut self, json: &Value, path: &Path<'_>, depth: usize, types_allowed: bool) -> Nested {
        if depth > MAX_DEPTH {
            self.forbidden(path, &format!("must not nest deeper than {MAX_DEPTH} levels"));
            return Nested::default();
        }
        let Some(words) = self.keywords(json, path) else { return Nested::default() };
        self.refused(&words, path);
        for (name, detail) in STRUCTURAL {
            if words.get(name).is_some_and(|value| *value != Value::Bool(false)) {
                self.forbidden(&path.field(name), detail);
            }
        }
        let mut made = Nested {
            constraints: self.value_constraints(&words, path, depth, types_allowed),
            required: self.names(&words, "required"),
            ..Nested::default()
        };
        let properties = path.field("properties");
        if let Some(given) = words.get("properties").and_then(Value::as_object) {
            for (name, json) in given {
                if name == "metadata" {
                    self.forbidden(&properties.key(name), "must not be specified in a nested context");
                }
                let nested = self.nested(json, &properties.key(name), depth + 1, false);
                made.properties.insert(name.clone(), nested);
            }
        }
        if let Some(items) = words.get("items") {
            made.items = Some(Box::new(self.nested(items, &path.field("items"), depth + 1, false)));
        }
        made
    }

    fn value_constraints(
        &mut self,
        words: &Keywords<'_>,
        path: &Path<'_>,
        depth: usize,
        int_or_string: bool,
    ) -> Constraints {
        let mut made = Constraints {
            minimum: self.bound(words, "minimum", "exclusiveMinimum", path),
            maximum: self.bound(words, "maximum", "exclusiveMaximum", path),
            multiple_of: self.read(words, "multipleOf", path, "a positive number", |value| {
                value.as_f64().filter(|factor| *factor > 0.0)
            }),
            min_length: self.count(words, "minLength", path),
            max_length: self.count(words, "maxLength", path),
            pattern: self.pattern(words, path),
            allowed: self
                .read(words, "enum", path, "an array", |value| value.as_array().cloned())
                .unwrap_or_default(),
            format: words.get("format").and_then(Value::as_str).and_then(Format::named),
            min_items: self.count(words, "minItems", path),
            max_items: self.count(words, "maxItems", path),
            min_properties: self.count(words, "minProperties", path),
            max_properties: self.count(words, "maxProperties", path),
            ..Constraints::default()
        };
        made.all_of = self.list(words, "allOf", path, depth, int_or_string);
        if !(int_or_string && is_int_or_string(words.get("anyOf"))) {
            made.any_of = self.list(words, "anyOf", path, depth, false);
        }
        made.one_of = self.list(words, "oneOf", path, depth, false);
        made.not =
            words.get("not").map(|json| Box::new(self.nested(json, &path.field("not"), depth + 1, false)));
        made
    }

    fn list(
        &mut self,
        words: &Keywords<'_>,
        name: &str,
        path: &Path<'_>,
        depth: usize,
        int_or_string: bool,
    ) -> Vec<Nested> {
        let at = path.field(name);
        let given = self.read(words, name, path, "an array", Value::as_array);
        let nested = given.into_iter().flatten().enumerate().map(|(index, json)| {
            // The first of an `allOf` may say in words that this is an int or a string.
            self.nested(json, &at.index(index), depth + 1, int_or_string && index == 0)
        });
        nested.collect()
    }

    fn bound(&mut self, words: &Keywords<'_>, name: &str, exclusive: &str, path: &Path<'_>) -> Option<Bound> {
        let number = |value: &Value| match value {
            Value::Number(number) => Some(Number::clone(number)),
            _ => None,
        };
        let value = self.read(words, name, path, "a number", number)?;
        Some(Bound { value, exclusive: self.flag(words, exclusive) })
    }

    fn pattern(&mut self, words: &Keywords<'_>, path: &Path<'_>) -> Option<Pattern> {
        let source = self.read(words, "pattern", path, "a string", Value::as_str)?;
        match Pattern::compile(source) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let detail = format!("must be a valid regular expression, but isn't: {error}");
                self.invalid(&path.field("pattern"), &Value::from(source), &detail);
                None
            }
        }
    }
}
