//! JSON patch (RFC 6902), within bounds.
//!
//! A few bytes of patch can double a document with every `copy`, or nest it so deeply that walking it
//! exhausts the stack; so each operation is measured before it runs.

use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::{Error, MAX_DEPTH};

const MAX_OPERATIONS: usize = crate::limits::bounds::PATCH_OPERATIONS;
const MAX_COPIED: usize = crate::limits::bounds::PATCH_COPIES;

/// Applies a JSON patch.
///
/// # Errors
///
/// [`Error::Malformed`] when `patch` is no JSON patch, [`Error::Invalid`] when a test fails or a pointer
/// leads nowhere, [`Error::TooLarge`] when it has too many operations or copies too much.
pub fn json_patch(mut doc: Value, patch: &[u8]) -> Result<Value, Error> {
    let Patch(operations) = serde_json::from_slice(patch)
        .map_err(|error| Error::Malformed(format!("invalid JSON patch: {error}")))?;
    if operations.len() > MAX_OPERATIONS {
        return Err(Error::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut copied = 0;
    for (at, operation) in operations.iter().enumerate() {
        let (levels, size) = placed(&doc, operation);
        copied += size;
        if copied > MAX_COPIED {
            return Err(Error::TooLarge(format!("the JSON patch copies more than {MAX_COPIED} bytes")));
        }
        if levels > MAX_DEPTH {
            return Err(Error::Invalid(format!(
                "operation {at} of the JSON patch nests the document deeper than {MAX_DEPTH} levels"
            )));
        }
        if tests_absence(&doc, operation) {
            continue;
        }
        json_patch::patch_unsafe(&mut doc, std::slice::from_ref(operation)).map_err(|error| {
            Error::Invalid(format!(
                "operation {at} of the JSON patch at {:?}: {}",
                error.path.as_str(),
                error.kind
            ))
        })?;
    }
    Ok(doc)
}

/// Whether the operation tests that a field is absent. To Kubernetes that is `null`, and clients test for it
/// before they add a list.
fn tests_absence(doc: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let parent = test.path.parent().and_then(|parent| doc.pointer(parent.as_str()));
    test.value.is_null() && doc.pointer(test.path.as_str()).is_none() && parent.is_some_and(Value::is_object)
}

/// The depth of what an operation puts into the document, counted from the root, and the bytes it adds to
/// the document beyond those of the patch itself.
fn placed(doc: &Value, operation: &PatchOperation) -> (usize, usize) {
    match operation {
        PatchOperation::Add(add) => (add.path.count() + measure(&add.value).0, 0),
        PatchOperation::Replace(replace) => (replace.path.count() + measure(&replace.value).0, 0),
        PatchOperation::Copy(copy) => {
            let (levels, size) = doc.pointer(copy.from.as_str()).map_or((0, 0), measure);
            (copy.path.count() + levels, size)
        }
        // A value that does not go further down cannot make the document deeper.
        PatchOperation::Move(mov) if mov.path.count() > mov.from.count() => {
            let levels = doc.pointer(mov.from.as_str()).map_or(0, |value| measure(value).0);
            (mov.path.count() + levels, 0)
        }
        PatchOperation::Move(_) | PatchOperation::Remove(_) | PatchOperation::Test(_) => (0, 0),
    }
}

/// The levels of a value and about how many bytes it has as JSON.
fn measure(value: &Value) -> (usize, usize) {
    let nested = |(levels, size): (usize, usize), (name, item): (usize, &Value)| {
        let (below, bytes) = measure(item);
        (levels.max(below), size + name + bytes + 1)
    };
    let (levels, size) = match value {
        Value::Object(map) => map.iter().map(|(name, item)| (name.len() + 3, item)).fold((0, 2), nested),
        Value::Array(items) => items.iter().map(|item| (0, item)).fold((0, 2), nested),
        Value::String(text) => return (0, text.len() + 2),
        _ => return (0, 8),
    };
    (levels + 1, size)
}
