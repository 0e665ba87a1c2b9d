//! What is known about the type of an expression before it is evaluated.
//!
//! The check is partial by design: it finds fields that do not exist and operators that can never
//! apply, and holds its peace (`Dyn`) about everything else.

use super::functions::Returns;
use crate::schema::constraints::Format;
use crate::schema::{Schema, Type};

/// The type of an expression, as far as it is known.
#[derive(Clone, Debug)]
pub enum Known<'s> {
    /// Anything.
    Dyn,
    /// A scalar of this type.
    Scalar(Scalar),
    /// An object or list that this schema describes.
    Schema(&'s Schema),
    /// The metadata of an object: rules see only two fields of it.
    Metadata(&'s Schema),
    /// A list of such entries.
    List(Box<Known<'s>>),
    /// A map of unknown entries.
    Map,
    /// An optional of such a value.
    Optional(Box<Known<'s>>),
    /// A value with functions but without fields or operators (URL, quantity, …).
    Object,
}

/// The types of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the type of the expression language of the same name")]
pub enum Scalar {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
}

impl Scalar {
    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// The name that errors show.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
        }
    }
}

impl<'s> Known<'s> {
    /// The type of a value that a schema describes. A value that may be null may be compared with null,
    /// so nothing is said about scalars of that kind.
    pub fn of(schema: &'s Schema) -> Self {
        let scalar = match (schema.type_, schema.format()) {
            (Some(Type::Object | Type::Array), _) => return Self::Schema(schema),
            (None, _) => return Self::Dyn,
            (Some(Type::Boolean), _) => Scalar::Bool,
            (Some(Type::Integer), _) => Scalar::Int,
            (Some(Type::Number), _) => Scalar::Double,
            (Some(Type::String), Some(Format::DateTime | Format::Date)) => Scalar::Timestamp,
            (Some(Type::String), Some(Format::Duration)) => Scalar::Duration,
            (Some(Type::String), Some(Format::Byte)) => Scalar::Bytes,
            (Some(Type::String), _) => Scalar::String,
        };
        if schema.nullable { Self::Dyn } else { Self::Scalar(scalar) }
    }

    /// The type that a function returns.
    pub(super) fn returned(returns: Returns) -> Self {
        Self::Scalar(match returns {
            Returns::Anything => return Self::Dyn,
            Returns::Optional => return Self::Optional(Box::new(Self::Dyn)),
            Returns::List => return Self::List(Box::new(Self::Dyn)),
            Returns::Map => return Self::Map,
            Returns::Object => return Self::Object,
            Returns::Bool => Scalar::Bool,
            Returns::Int => Scalar::Int,
            Returns::Uint => Scalar::Uint,
            Returns::Double => Scalar::Double,
            Returns::String => Scalar::String,
            Returns::Bytes => Scalar::Bytes,
            Returns::Timestamp => Scalar::Timestamp,
            Returns::Duration => Scalar::Duration,
        })
    }

    /// The type of the field `name`; `None` if there can be no such field.
    ///
    /// `root` says that this is the object itself or an embedded one, whose metadata is mostly hidden.
    pub fn field(&self, name: &str, root: bool) -> Option<Known<'s>> {
        match self {
            Self::Dyn | Self::Map => Some(Self::Dyn),
            Self::Optional(inner) => inner.field(name, root).map(|known| match known {
                already @ Self::Optional(_) => already,
                plain => Self::Optional(Box::new(plain)),
            }),
            Self::Schema(schema) => match schema.child(name) {
                Some(child) if name == "metadata" && (root || schema.embedded_resource) => {
                    Some(Self::Metadata(child))
                }
                Some(child) => Some(Self::of(child)),
                None if schema.preserve_unknown_fields && schema.properties.is_empty() => Some(Self::Dyn),
                None => None,
            },
            Self::Metadata(schema) if matches!(name, "name" | "generateName") => {
                schema.properties.get(name).map(|child| Self::of(child))
            }
            Self::Metadata(_) | Self::Scalar(_) | Self::List(_) | Self::Object => None,
        }
    }

    /// The type of an entry: of a list, or of a map by key.
    pub fn entry(&self) -> Known<'s> {
        match self {
            Self::Schema(Schema { items: Some(items), .. }) => Self::of(items),
            Self::Schema(Schema { additional_properties: Some(values), .. }) => Self::of(values),
            Self::List(entry) => (**entry).clone(),
            _ => Self::Dyn,
        }
    }

    /// The type of what a loop with one variable goes over: entries of a list, keys of a map.
    pub fn loop_entry(&self) -> Known<'s> {
        match self {
            Self::Schema(schema) if schema.type_ == Some(Type::Object) => Self::Scalar(Scalar::String),
            _ => self.entry(),
        }
    }

    /// Whether this can be a value of type `scalar`.
    pub fn may_be(&self, scalar: Scalar) -> bool {
        match self {
            Self::Dyn => true,
            Self::Scalar(known) => *known == scalar,
            _ => false,
        }
    }

    /// Whether values of the two types can be equal, or be ordered.
    pub fn comparable(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => a == b || (a.is_number() && b.is_number()),
            _ => true,
        }
    }

    /// The result of arithmetic on the two; `None` if there can be none.
    pub fn arithmetic(&self, other: &Self) -> Option<Known<'s>> {
        use Scalar::{Bool, Duration, Timestamp};
        Some(match (self, other) {
            (Self::Scalar(Bool), _) | (_, Self::Scalar(Bool)) => return None,
            (Self::Scalar(Timestamp | Duration), _) | (_, Self::Scalar(Timestamp | Duration)) => Self::Dyn,
            (Self::Scalar(a), Self::Scalar(b)) if a == b => Self::Scalar(*a),
            (Self::Scalar(_), Self::Scalar(_)) => return None,
            _ => Self::Dyn,
        })
    }

    /// The name that errors show.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Dyn => "dyn",
            Self::Scalar(scalar) => scalar.name(),
            Self::Schema(schema) if schema.type_ == Some(Type::Array) => "list",
            Self::List(_) => "list",
            Self::Schema(_) | Self::Metadata(_) | Self::Object => "object",
            Self::Map => "map",
            Self::Optional(_) => "optional_type",
        }
    }
}
