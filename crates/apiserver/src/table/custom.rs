//! The columns of custom resources: `Name`, then those of the CRD, each the value at a JSONPath.

use jiff::Timestamp;
use serde_json::Value;

use super::json_path::JsonPath;
use super::{CREATED, NAME_COLUMN, age, column_definition, name_cell};
use crate::registry::definition::PrinterColumn;

/// How the value of one column is found and shown.
pub(super) struct Cell {
    /// `None` when the path is not understood; such a column stays empty.
    path: Option<JsonPath>,
    type_: Type,
}

#[derive(Clone, Copy)]
enum Type {
    String,
    Integer,
    Number,
    Boolean,
    Date,
    Unknown,
}

/// The column definitions (with `Name`), and the cells after the name.
pub(super) fn columns(columns: &[PrinterColumn]) -> (Value, Vec<Cell>) {
    let age_alone = [PrinterColumn {
        name: "Age".to_owned(),
        type_: "date".to_owned(),
        format: String::new(),
        description: CREATED.to_owned(),
        priority: 0,
        json_path: ".metadata.creationTimestamp".to_owned(),
    }];
    let columns = if columns.is_empty() { &age_alone[..] } else { columns };

    let name = NAME_COLUMN;
    let mut definitions = vec![column_definition(name.name, name.type_, name.format, name.description, 0)];
    definitions.extend(columns.iter().map(|column| {
        let told = format!("Custom resource definition column (in JSONPath format): {}", column.json_path);
        let description = if column.description.is_empty() { &told } else { &column.description };
        column_definition(&column.name, &column.type_, &column.format, description, column.priority)
    }));
    let cells = columns.iter().map(|column| Cell {
        path: JsonPath::parse(&column.json_path).ok(),
        type_: match column.type_.as_str() {
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "date" => Type::Date,
            _ => Type::Unknown,
        },
    });
    (Value::Array(definitions), cells.collect())
}

/// The row of an object, its name first.
pub(super) fn cells(cells: &[Cell], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut row = Vec::with_capacity(1 + cells.len());
    row.push(name_cell(object));
    row.extend(cells.iter().map(|cell| {
        // A column holds one value: of several results the first is shown.
        let found = cell.path.as_ref().and_then(|path| path.find(object).into_iter().next());
        found.map_or(Value::Null, |value| shown(cell.type_, value, now))
    }));
    row
}

/// A value in a column of a type; `null` when it is of another type.
fn shown(type_: Type, value: &Value, now: Timestamp) -> Value {
    match (type_, value) {
        (Type::String, value) => printed(value).into(),
        (Type::Boolean, Value::Bool(_)) => value.clone(),
        (Type::Integer, Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            // Cut towards zero, as a conversion to an integer does.
            (None, Some(fraction)) => (fraction as i64).into(),
            (None, None) => Value::Null,
        },
        (Type::Number, Value::Number(number)) => match number.as_f64() {
            // A whole number is written without a fraction.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                (float as i64).into()
            }
            _ => value.clone(),
        },
        (Type::Date, Value::String(_)) => age::since(value, now).into(),
        _ => Value::Null,
    }
}

/// A value as text: scalars plainly, lists and objects as JSON.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => printed_float(float),
            _ => number.to_string(),
        },
        // Kubernetes keeps these three out of JSON text; in JSON they can only stand within strings.
        composite => {
            composite.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        }
    }
}

/// The shortest text of a float; very small and very large ones have a two-digit, signed exponent.
fn printed_float(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude == 0.0 || (1e-4..1e21).contains(&magnitude) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}
