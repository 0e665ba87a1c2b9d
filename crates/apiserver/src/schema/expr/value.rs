//! The values that rules compute with.
//!
//! Objects and lists of the checked object are not converted: a [`Val`] borrows them together with
//! their schema, and a part becomes a value of its own when a rule reaches for it. Everything else is
//! a scalar or shared, so cloning a value is cheap.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map as JsonMap, Value};

use super::eval::{Budget, EvalError};
use super::net::{Cidr, Ip};
use super::quantity::Quantity;
use super::semver::Semver;
use super::url::Url;
use crate::schema::constraints::{Format, format};
use crate::schema::regexp::Pattern;
use crate::schema::{ListType, Schema, Type};

/// Text that is borrowed from the object or the rule, or shared.
#[derive(Clone)]
pub enum Text<'a> {
    /// Borrowed.
    Ref(&'a str),
    /// Made by the rule.
    Own(Arc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Ref(text) => text,
            Self::Own(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A list.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// Of the checked object, with the schema of the list.
    Json(&'a [Value], Option<&'a Schema>),
    /// Made by the rule.
    Own(Arc<Vec<Val<'a>>>),
}

/// An object or map.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// Of the checked object, with the schema of the object.
    Json(&'a JsonMap<String, Value>, Option<&'a Schema>),
    /// Made by the rule; few entries, in the order given.
    Own(Arc<Vec<(Val<'a>, Val<'a>)>>),
}

/// A value in an expression.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each variant is the type of the expression language of the same name")]
pub enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Str(Text<'a>),
    Bytes(Arc<[u8]>),
    List(List<'a>),
    Map(Map<'a>),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Type(&'static str),
    Optional(Option<Arc<Val<'a>>>),
    Quantity(Quantity),
    Url(Arc<Url>),
    Ip(Ip),
    Cidr(Cidr),
    Semver(Arc<Semver>),
    /// A named format of the `format` library.
    Format(&'static str),
    /// A constant pattern, compiled with the expression; stands where its text would.
    Pattern(Arc<Pattern>),
}

impl<'a> Val<'a> {
    /// A value of the checked object, read as its schema says.
    pub fn from_json(value: &'a Value, schema: Option<&'a Schema>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match schema.and_then(|schema| schema.type_) {
                Some(Type::Number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
                Some(Type::Integer) if number.is_f64() => {
                    Self::Int(number.as_f64().unwrap_or_default() as i64)
                }
                _ => match (number.as_i64(), number.as_u64()) {
                    (Some(value), _) => Self::Int(value),
                    (None, Some(value)) => Self::Uint(value),
                    (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
                },
            },
            Value::String(text) => Self::formatted(text, schema.and_then(Schema::format))
                .unwrap_or_else(|| Self::Str(Text::Ref(text))),
            Value::Array(entries) => Self::List(List::Json(entries, schema)),
            Value::Object(fields) => Self::Map(Map::Json(fields, schema)),
        }
    }

    fn formatted(text: &str, format: Option<Format>) -> Option<Self> {
        match format? {
            Format::DateTime => format::date_time(text).map(Self::Timestamp),
            Format::Date => format::date(text).map(Self::Timestamp),
            Format::Duration => format::duration(text).map(Self::Duration),
            Format::Byte => format::byte(text).map(|bytes| Self::Bytes(bytes.into())),
            _ => None,
        }
    }

    /// Text made by the rule.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Str(Text::Own(text.into()))
    }

    /// A list made by the rule.
    pub fn list(entries: Vec<Val<'a>>) -> Self {
        Self::List(List::Own(Arc::new(entries)))
    }

    /// A present optional.
    pub fn some(value: Val<'a>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Str(_) | Self::Pattern(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// Whether the value is the zero of its type; such a value makes no optional.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::Str(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.len() == 0,
            Self::Map(map) => map.len() == 0,
            Self::Duration(value) => value.is_zero(),
            Self::Optional(value) => value.is_none(),
            _ => false,
        }
    }
}

impl<'a> List<'a> {
    /// The number of entries.
    #[allow(clippy::len_without_is_empty, reason = "emptiness is asked of no list here")]
    pub fn len(&self) -> usize {
        match self {
            Self::Json(entries, _) => entries.len(),
            Self::Own(entries) => entries.len(),
        }
    }

    /// The entry at `index`.
    pub fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Json(entries, schema) => {
                let items = schema.and_then(|schema| schema.items.as_deref());
                entries.get(index).map(|entry| Val::from_json(entry, items))
            }
            Self::Own(entries) => entries.get(index).cloned(),
        }
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = Val<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// How entries of the list are told apart.
    pub fn list_type(&self) -> &'a ListType {
        match self {
            Self::Json(_, Some(schema)) => &schema.list_type,
            _ => &ListType::Atomic,
        }
    }
}

impl<'a> Map<'a> {
    /// The number of entries.
    #[allow(clippy::len_without_is_empty, reason = "emptiness is asked of no map here")]
    pub fn len(&self) -> usize {
        match self {
            Self::Json(fields, _) => fields.len(),
            Self::Own(entries) => entries.len(),
        }
    }

    /// The entry under a name.
    pub fn get_str(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Self::Json(fields, schema) => {
                fields.get(name).map(|field| Val::from_json(field, schema.and_then(|s| s.child(name))))
            }
            Self::Own(entries) => entries
                .iter()
                .find(|(key, _)| matches!(key, Val::Str(key) if &**key == name))
                .map(|(_, value)| value.clone()),
        }
    }

    /// The entry under any key.
    pub fn get(&self, key: &Val<'a>, budget: &mut Budget) -> Result<Option<Val<'a>>, EvalError> {
        match (self, key) {
            (_, Val::Str(key)) => Ok(self.get_str(key)),
            (Self::Json(..), _) => Ok(None),
            (Self::Own(entries), key) => {
                for (candidate, value) in entries.iter() {
                    if equal(candidate, key, budget)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    /// All keys.
    pub fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Self::Json(fields, _) => fields.keys().map(|key| Val::Str(Text::Ref(key))).collect(),
            Self::Own(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// All entries.
    pub fn entries(&self) -> Vec<(Val<'a>, Val<'a>)> {
        match self {
            Self::Json(fields, schema) => fields
                .iter()
                .map(|(name, field)| {
                    let schema = schema.and_then(|schema| schema.child(name));
                    (Val::Str(Text::Ref(name)), Val::from_json(field, schema))
                })
                .collect(),
            Self::Own(entries) => entries.to_vec(),
        }
    }
}

/// Compares two numbers of any types; `None` if one is no number (or is NaN).
fn compare_numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    use Val::{Double, Int, Uint};
    let float_to_int = |float: f64, whole: i128| {
        // Beyond 2^64 a double is farther out than any integer; within, its floor is exact.
        if float.is_nan() {
            return None;
        }
        if float.abs() > 1.9e19 {
            return float.partial_cmp(&0.0);
        }
        let floor = float.floor();
        Some((floor as i128).cmp(&whole).then(if float > floor {
            Ordering::Greater
        } else {
            Ordering::Equal
        }))
    };
    match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(b)),
        (Uint(a), Uint(b)) => Some(a.cmp(b)),
        (Int(a), Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Uint(a), Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Double(a), Int(b)) => float_to_int(*a, i128::from(*b)),
        (Double(a), Uint(b)) => float_to_int(*a, i128::from(*b)),
        (Int(a), Double(b)) => float_to_int(*b, i128::from(*a)).map(Ordering::reverse),
        (Uint(a), Double(b)) => float_to_int(*b, i128::from(*a)).map(Ordering::reverse),
        _ => None,
    }
}

/// Orders two values with `<`; `None` where the types have no order.
pub(super) fn compare(a: &Val<'_>, b: &Val<'_>, budget: &mut Budget) -> Result<Option<Ordering>, EvalError> {
    Ok(match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Str(a), Val::Str(b)) => {
            budget.charge_bytes(a.len().min(b.len()))?;
            Some(a.as_bytes().cmp(b.as_bytes()))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            budget.charge_bytes(a.len().min(b.len()))?;
            Some(a.cmp(b))
        }
        (Val::Timestamp(a), Val::Timestamp(b)) => Some(a.cmp(b)),
        (Val::Duration(a), Val::Duration(b)) => Some(a.cmp(b)),
        _ => compare_numbers(a, b),
    })
}

/// Whether two values are the same. Values of different types are not, but for numbers.
///
/// The recursion is bounded by the nesting of parsed JSON and of the expression.
pub(super) fn equal(a: &Val<'_>, b: &Val<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    budget.charge(1)?;
    Ok(match (a, b) {
        (Val::Null, Val::Null) => true,
        (Val::Type(a), Val::Type(b)) => a == b,
        (Val::Quantity(a), Val::Quantity(b)) => a == b,
        (Val::Url(a), Val::Url(b)) => a == b,
        (Val::Ip(a), Val::Ip(b)) => a == b,
        (Val::Cidr(a), Val::Cidr(b)) => a == b,
        (Val::Semver(a), Val::Semver(b)) => a.compare(b) == Ordering::Equal,
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => equal(a, b, budget)?,
            (a, b) => a.is_none() && b.is_none(),
        },
        (Val::Str(a), Val::Str(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            budget.charge_bytes(a.len())?;
            **a == **b
        }
        (Val::List(a), Val::List(b)) => lists_equal(a, b, budget)?,
        (Val::Map(a), Val::Map(b)) => maps_equal(a, b, budget)?,
        _ => compare(a, b, budget)? == Some(Ordering::Equal),
    })
}

fn lists_equal(a: &List<'_>, b: &List<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if *a.list_type() == ListType::Atomic || *b.list_type() == ListType::Atomic {
        for (a, b) in a.iter().zip(b.iter()) {
            if !equal(&a, &b, budget)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    // Sets and keyed lists are equal in any order. Mostly the order is the same, so the entry at the
    // same place is tried first.
    for (index, entry) in a.iter().enumerate() {
        let same_place = b.get(index);
        let mut found = match &same_place {
            Some(other) => equal(&entry, other, budget)?,
            None => false,
        };
        let mut rest = b.iter();
        while !found && let Some(other) = rest.next() {
            found = equal(&entry, &other, budget)?;
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_equal(a: &Map<'_>, b: &Map<'_>, budget: &mut Budget) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    budget.charge(a.len() as u64)?;
    for (key, value) in a.entries() {
        let same = match b.get(&key, budget)? {
            Some(other) => equal(&value, &other, budget)?,
            None => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
