//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

use super::{Error, MAX_DEPTH};

/// Merges `patch` into `doc`: objects field by field, `null` removes, anything else replaces.
///
/// # Errors
///
/// [`Error::Malformed`] when the patch is not an object, or is nested deeper than a document may be; the
/// document is then of no use any more.
pub fn merge_patch(doc: &mut Value, patch: Value) -> Result<(), Error> {
    match patch {
        Value::Object(_) => merge(doc, patch, MAX_DEPTH),
        _ => Err(Error::Malformed("a merge patch must be an object".to_owned())),
    }
}

fn merge(doc: &mut Value, patch: Value, levels: usize) -> Result<(), Error> {
    let Value::Object(fields) = patch else {
        *doc = patch;
        return Ok(());
    };
    if levels == 0 {
        return Err(Error::Malformed(format!("the patch is nested deeper than {MAX_DEPTH} levels")));
    }
    if !doc.is_object() {
        *doc = Value::Object(Map::new());
    }
    let Value::Object(doc) = doc else { return Ok(()) };
    for (name, value) in fields {
        if value.is_null() {
            doc.remove(&name);
        } else {
            merge(doc.entry(name).or_insert(Value::Null), value, levels - 1)?;
        }
    }
    Ok(())
}
