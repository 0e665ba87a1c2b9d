//! Request bodies in the Protobuf encoding of Kubernetes, which typed Go clients (`kubectl create configmap`, controllers)
//! send for built-in kinds and do not let themselves be talked out of.
//!
//! A body becomes the JSON that the same client would have sent, so that nothing behind this module knows of Protobuf.
//! Answers are JSON: every client that sends Protobuf takes it. Fields that the table does not know are left out, as
//! Protobuf has it.

mod table;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock::rfc3339;
use table::{Form, Message, Presence, TABLE};
use wire::{Reader, Wire};

/// What the body starts with.
const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may be nested. The same bound as for JSON.
const MAX_DEPTH: usize = crate::limits::bounds::NESTING;

/// A body that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protobuf: {0}")]
pub(super) struct Malformed(&'static str);

type Result<T> = std::result::Result<T, Malformed>;

/// The object in `bytes`; none if its kind has no Protobuf form here.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<Value>> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or(Malformed("the body does not start as it should"))?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Reader::new(envelope) {
        match field? {
            (1, Wire::Bytes(types)) => {
                for field in Reader::new(types) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = string(text)?,
                        (2, Wire::Bytes(text)) => kind = string(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(object)) => raw = object,
            _ => {}
        }
    }
    let Some(root) = TABLE.root(&api_version, &kind) else { return Ok(None) };
    let mut object = message(root, raw, 0)?;
    object.insert("apiVersion".to_owned(), Value::String(api_version));
    object.insert("kind".to_owned(), Value::String(kind));
    Ok(Some(Value::Object(object)))
}

fn string(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed("a text is not UTF-8"))?;
    Ok(text.to_owned())
}

fn message(message: &Message, bytes: &[u8], depth: usize) -> Result<Map<String, Value>> {
    if depth > MAX_DEPTH {
        return Err(Malformed("messages are nested too deep"));
    }
    let mut object = Map::new();
    for sent in Reader::new(bytes) {
        let (number, sent) = sent?;
        let Some(field) = message.field(number) else { continue };
        match &field.form {
            Form::List(form) => {
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                let list = list.as_array_mut().ok_or(Malformed("two fields have one name"))?;
                match (&**form, sent) {
                    (Form::Int, Wire::Bytes(packed)) => {
                        list.extend(wire::packed(packed)?.map(|value| json!(value)))
                    }
                    (form, sent) => list.push(value(form, sent, depth)?),
                }
            }
            Form::Map(form) => {
                let (key, value) = entry(form, sent, depth)?;
                object.entry(field.name).or_insert_with(|| json!({}))[key] = value;
            }
            form => {
                let value = value(form, sent, depth)?;
                match (field.name, value) {
                    ("", Value::Object(inner)) => object.extend(inner),
                    (_, Value::Null) => {}
                    (_, value) if field.presence == Presence::IfNotEmpty && is_empty(&value) => {}
                    (name, value) => {
                        object.insert(name.to_owned(), value);
                    }
                }
            }
        }
    }
    Ok(object)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

/// One entry of a map: a message with the key as field 1 and the value as field 2.
fn entry(form: &Form, sent: Wire<'_>, depth: usize) -> Result<(String, Value)> {
    let (mut key, mut found) = (String::new(), None);
    for field in Reader::new(sent.bytes()?) {
        match field? {
            (1, Wire::Bytes(text)) => key = string(text)?,
            (2, sent) => found = Some(value(form, sent, depth)?),
            _ => {}
        }
    }
    // A value that is empty may have been left out.
    let value = match found {
        Some(value) => value,
        None => value(form, Wire::Bytes(&[]), depth).unwrap_or_default(),
    };
    Ok((key, value))
}

fn value(form: &Form, sent: Wire<'_>, depth: usize) -> Result<Value> {
    let nested =
        |index: usize, bytes: &[u8]| message(TABLE.message(index), bytes, depth + 1).map(Value::Object);
    Ok(match form {
        Form::String => Value::String(string(sent.bytes()?)?),
        Form::Bytes => Value::String(STANDARD.encode(sent.bytes()?)),
        Form::Bool => Value::Bool(sent.int()? != 0),
        Form::Int => json!(sent.int()?),
        Form::Double => number(sent.double()?)?,
        Form::Message(index) => nested(*index, sent.bytes()?)?,
        Form::Time => time(sent.bytes()?)?.map(rfc3339).map_or(Value::Null, Value::String),
        Form::MicroTime => match time(sent.bytes()?)? {
            Some(time) => Value::String(time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
            None => Value::Null,
        },
        Form::Quantity => match Fields::read(sent)?.one {
            Some(text) => Value::String(string(text.bytes()?)?),
            None => json!("0"),
        },
        Form::IntOrString => {
            let fields = Fields::read(sent)?;
            match fields.one.map_or(Ok(0), Wire::int)? {
                0 => json!(fields.two.map_or(Ok(0), Wire::int)?),
                _ => Value::String(string(fields.three.map_or(Ok(&[][..]), Wire::bytes)?)?),
            }
        }
        Form::Json => match Fields::read(sent)?.one {
            Some(raw) => {
                serde_json::from_slice(raw.bytes()?).map_err(|_| Malformed("embedded JSON is malformed"))?
            }
            None => Value::Null,
        },
        Form::Strings => {
            let mut texts = Vec::new();
            for field in Reader::new(sent.bytes()?) {
                if let (1, Wire::Bytes(text)) = field? {
                    texts.push(Value::String(string(text)?));
                }
            }
            Value::Array(texts)
        }
        Form::SchemaOrBool(schema) => {
            let fields = Fields::read(sent)?;
            match fields.two {
                Some(sent) => nested(*schema, sent.bytes()?)?,
                None => Value::Bool(fields.one.map_or(Ok(0), Wire::int)? != 0),
            }
        }
        Form::SchemaOrList(schema, item) => {
            let (mut one, mut many) = (None, Vec::new());
            for field in Reader::new(sent.bytes()?) {
                match field? {
                    (1, sent) => one = Some(nested(*schema, sent.bytes()?)?),
                    (2, sent) => many.push(value(item, sent, depth)?),
                    _ => {}
                }
            }
            one.unwrap_or(Value::Array(many))
        }
        Form::List(_) | Form::Map(_) => return Err(Malformed("a list or map stands inside another")),
    })
}

/// The first three fields of a small message.
#[derive(Default)]
struct Fields<'a> {
    one: Option<Wire<'a>>,
    two: Option<Wire<'a>>,
    three: Option<Wire<'a>>,
}

impl<'a> Fields<'a> {
    fn read(sent: Wire<'a>) -> Result<Self> {
        let mut fields = Self::default();
        for field in Reader::new(sent.bytes()?) {
            match field? {
                (1, sent) => fields.one = Some(sent),
                (2, sent) => fields.two = Some(sent),
                (3, sent) => fields.three = Some(sent),
                _ => {}
            }
        }
        Ok(fields)
    }
}

/// A whole number is written as one, as in the JSON of the same client.
fn number(value: f64) -> Result<Value> {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < WHOLE {
        return Ok(json!(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number).ok_or(Malformed("a number is not finite"))
}

/// Seconds and nanoseconds since 1970; an empty message is no time at all.
fn time(bytes: &[u8]) -> Result<Option<Timestamp>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let fields = Fields::read(Wire::Bytes(bytes))?;
    let seconds = fields.one.map_or(Ok(0), Wire::int)?;
    let nanos = fields.two.map_or(Ok(0), Wire::int)?;
    let nanos = i32::try_from(nanos).map_err(|_| Malformed("a time is out of range"))?;
    Timestamp::new(seconds, nanos).map(Some).map_err(|_| Malformed("a time is out of range"))
}

#[cfg(test)]
mod tests;
