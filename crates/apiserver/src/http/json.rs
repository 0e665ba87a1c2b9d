//! JSON that notices fields that stand twice. `serde_json` alone lets the last one win without a word, which strict
//! field validation must not.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::limits::bounds;

/// Names of doubled fields are reported up to this many.
const MOST: usize = 16;

/// Parses `bytes`; the paths of fields that stand twice come along. Nesting is bounded by the
/// parser ([`bounds::NESTING`]).
pub(super) fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed { path: Path { parent: None, step: Step::Root }, duplicates: &mut duplicates };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates))
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
}

#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if self.parent.is_some_and(|parent| !matches!(parent.step, Step::Root)) => {
                write!(f, ".{name}")
            }
            Step::Field(name) => f.write_str(name),
            Step::Index(at) => write!(f, "[{at}]"),
        }
    }
}

struct Seed<'a> {
    path: Path<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path { parent: Some(&self.path), step: Step::Index(list.len()) };
            match access.next_element_seed(Seed { path, duplicates: &mut *self.duplicates })? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = Path { parent: Some(&self.path), step: Step::Field(&key) };
            let value = access.next_value_seed(Seed { path, duplicates: &mut *self.duplicates })?;
            if key.len() > bounds::FIELD_NAME {
                let most = bounds::FIELD_NAME;
                return Err(A::Error::custom(format_args!("a field name is longer than {most} bytes")));
            }
            match map.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut place) => {
                    if self.duplicates.len() < MOST {
                        let path = Path { parent: Some(&self.path), step: Step::Field(place.key()) };
                        self.duplicates.push(path.to_string());
                    }
                    place.insert(value);
                }
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doubled_fields_are_found_and_the_last_wins() {
        let (value, doubled) = parse(br#"{"a":1,"b":[{"c":1,"c":2.5}],"a":-1,"d":null,"e":true}"#).unwrap();
        assert_eq!(value, json!({"a": -1, "b": [{"c": 2.5}], "d": null, "e": true}));
        assert_eq!(doubled, ["b[0].c", "a"]);
    }

    #[test]
    fn deep_nesting_and_rubbish_are_errors() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse(deep.as_bytes()).is_err());
        for bad in [&b"{"[..], b"{} x", b"\xff", b"", b"{\"a\":\"\xff\"}"] {
            assert!(parse(bad).is_err());
        }
    }
}
