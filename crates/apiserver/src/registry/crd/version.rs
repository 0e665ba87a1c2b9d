//! One version of a custom resource: schema, subresources, columns and selectable fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{list, text};
use crate::field_error::{FieldError, FieldErrorType};
use crate::openapi;
use crate::registry::built_in;
use crate::registry::definition::{Columns, Definition, GroupVersion, Names, PrinterColumn, ScalePaths};
use crate::schema;
use crate::table::json_path::JsonPath;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// The most fields that a version may make selectable.
const MAX_SELECTABLE: usize = 8;

/// The longest deprecation warning, which travels in a header.
const MAX_WARNING: usize = 256;

/// Compiles a version; what is wrong with it goes to `errors`, each at its place below `path`.
pub(super) fn compile(
    version: &Value,
    path: &str,
    gv: GroupVersion,
    names: &Names,
    namespaced: bool,
    errors: &mut Vec<FieldError>,
) -> Option<Definition> {
    let schema_path = format!("{path}.schema.openAPIV3Schema");
    let json_schema = &version["schema"]["openAPIV3Schema"];
    let schema = if json_schema.is_object() {
        schema::compile::compile(json_schema, &schema_path).map_err(|found| errors.extend(found)).ok()
    } else {
        errors.push(FieldError::new(schema_path, FieldErrorType::Required, "schemas are required"));
        None
    };
    let scale = scale(&version["subresources"]["scale"], &format!("{path}.subresources.scale"), errors);
    let columns =
        columns(&version["additionalPrinterColumns"], &format!("{path}.additionalPrinterColumns"), errors);
    let selectable_fields = selectable_fields(
        &version["selectableFields"],
        json_schema,
        &format!("{path}.selectableFields"),
        errors,
    );
    let warning = warning(version, path, &gv, names, errors);

    let openapi = openapi::custom_root(json_schema, &gv, &names.kind);
    Some(Definition {
        kept: true,
        gv,
        names: names.clone(),
        namespaced,
        schema: schema?.into(),
        openapi,
        openapi_components: built_in::components(),
        columns: Columns::Custom(columns),
        status: version["subresources"]["status"].is_object(),
        scale,
        selectable_fields,
        built_in: false,
        warning,
    })
}

fn columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) -> Vec<PrinterColumn> {
    let mut read = Vec::new();
    for (at, column) in list(columns).iter().enumerate() {
        let place = |field: &str| format!("{path}[{at}].{field}");
        let (name, type_, format) = (text(&column["name"]), text(&column["type"]), text(&column["format"]));
        if name.is_empty() {
            errors.push(FieldError::new(place("name"), FieldErrorType::Required, ""));
        }
        let types = || format!("must be one of {}", COLUMN_TYPES.join(","));
        if type_.is_empty() {
            errors.push(FieldError::new(place("type"), FieldErrorType::Required, types()));
        } else if !COLUMN_TYPES.contains(&type_) {
            errors.push(FieldError::invalid(place("type"), &column["type"], types()));
        }
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(place("format"), &column["format"], formats));
        }
        let json_path = text(&column["jsonPath"]);
        if json_path.is_empty() {
            errors.push(FieldError::new(place("jsonPath"), FieldErrorType::Required, ""));
        } else if !json_path.starts_with('.') {
            let why = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(place("jsonPath"), &column["jsonPath"], why));
        }
        read.push(PrinterColumn {
            name: name.to_owned(),
            type_: type_.to_owned(),
            format: format.to_owned(),
            description: text(&column["description"]).to_owned(),
            priority: column["priority"]
                .as_i64()
                .and_then(|priority| priority.try_into().ok())
                .unwrap_or_default(),
            json_path: json_path.to_owned(),
        });
    }
    read
}

fn scale(scale: &Value, path: &str, errors: &mut Vec<FieldError>) -> Option<ScalePaths> {
    if scale.is_null() {
        return None;
    }
    let mut read = |field: &str, under: &[&str], why: &str| -> Option<Vec<String>> {
        let (place, value) = (format!("{path}.{field}"), &scale[field]);
        if text(value).is_empty() {
            errors.push(FieldError::new(place, FieldErrorType::Required, ""));
            return None;
        }
        match plain_path(text(value)) {
            Err(why) => {
                errors.push(FieldError::invalid(place, value, why));
                None
            }
            Ok(fields) if fields.len() > 1 && under.contains(&fields[0].as_str()) => Some(fields),
            Ok(_) => {
                errors.push(FieldError::invalid(place, value, why));
                None
            }
        }
    };
    let spec_replicas = read("specReplicasPath", &["spec"], "should be a json path under .spec");
    let status_replicas = read("statusReplicasPath", &["status"], "should be a json path under .status");
    let selector = if text(&scale["labelSelectorPath"]).is_empty() {
        None
    } else {
        let why = "should be a json path under either .spec or .status";
        read("labelSelectorPath", &["spec", "status"], why)
    };
    Some(ScalePaths { spec_replicas: spec_replicas?, status_replicas: status_replicas?, selector })
}

fn selectable_fields(
    fields: &Value,
    schema: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> Vec<String> {
    let fields = list(fields);
    if fields.len() > MAX_SELECTABLE {
        let why = format!("must have at most {MAX_SELECTABLE} items");
        errors.push(FieldError::new(path, FieldErrorType::TooMany, why));
    }
    let mut seen = BTreeSet::new();
    let mut read = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let (place, value) = (format!("{path}[{at}].jsonPath"), &field["jsonPath"]);
        let json_path = text(value);
        if json_path.is_empty() {
            errors.push(FieldError::new(place, FieldErrorType::Required, ""));
            continue;
        }
        if !seen.insert(json_path) {
            errors.push(FieldError::with_value(place, FieldErrorType::Duplicate, value, ""));
            continue;
        }
        let names = match plain_path(json_path) {
            Ok(names) => names,
            Err(why) => {
                errors.push(FieldError::invalid(place, value, why));
                continue;
            }
        };
        let wrong = if names.first().is_some_and(|first| first == "metadata") {
            Some("must not point to fields in metadata")
        } else {
            let found = names.iter().try_fold(schema, |schema, name| schema["properties"].get(name));
            match found.map(|schema| text(&schema["type"])) {
                Some("string" | "boolean" | "integer") => None,
                Some(_) => Some("is an invalid path: must be a field of type string, boolean or integer"),
                None => Some("is an invalid path: does not refer to a valid field"),
            }
        };
        match wrong {
            Some(wrong) => errors.push(FieldError::invalid(place, value, wrong)),
            None => read.push(names.join(".")),
        }
    }
    read
}

/// The field names of a path that has nothing else in it.
fn plain_path(json_path: &str) -> Result<Vec<String>, &'static str> {
    if !json_path.starts_with('.') {
        return Err("must be a simple json path starting with .");
    }
    let fields = JsonPath::parse(json_path).ok().and_then(|path| path.plain_fields());
    fields
        .filter(|fields| !fields.is_empty())
        .ok_or("must be a json path of plain fields in the dot notation")
}

fn warning(
    version: &Value,
    path: &str,
    gv: &GroupVersion,
    names: &Names,
    errors: &mut Vec<FieldError>,
) -> Option<String> {
    let deprecated = version["deprecated"] == Value::Bool(true);
    let given = &version["deprecationWarning"];
    let place = format!("{path}.deprecationWarning");
    match given.as_str() {
        None => {}
        Some(_) if !deprecated => {
            errors.push(FieldError::invalid(place, given, "can only be set for deprecated versions"));
        }
        Some(text) if text.len() > MAX_WARNING => {
            let why = format!("may not be more than {MAX_WARNING} bytes");
            errors.push(FieldError::new(place, FieldErrorType::TooLong, why));
        }
        Some(text) if text.is_empty() || text.chars().any(char::is_control) => {
            errors.push(FieldError::invalid(
                place,
                given,
                "must only contain printable characters, and not be empty",
            ));
        }
        Some(text) => return Some(text.to_owned()),
    }
    deprecated.then(|| format!("{gv} {} is deprecated", names.kind))
}
