//! Server-side apply.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Writer;
use super::check::check;
use super::compare::{Changes, compare};
use super::conflict::{Conflict, conflict_message};
use super::entry::{ManagedEntry, Operation};
use super::extract::fields_of;
use super::last_applied;
use super::merge::merge;
use super::prune::prune;
use super::set::FieldSet;
use super::shape::Shape;
use super::update::{managed_fields, set_managed_fields};
use crate::field_error::FieldError;
use crate::schema::Schema;

/// The manager that owns what an object had before it was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What an apply made of the object.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object, `managedFields` included.
    pub object: Value,
    /// Whether it differs from the live one.
    pub changed: bool,
}

/// Why a configuration cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers own fields that would get another value; force takes them over.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration cannot be an object's; answered with 400.
    #[error("{0}")]
    BadRequest(String),
    /// Lists of the configuration repeat an entry or leave out what it is told apart by.
    #[error("{}", join(.0))]
    Invalid(Vec<FieldError>),
}

fn join(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Applies a configuration to the live object (`None` to create it).
///
/// The configuration's fields are set, and become the manager's; with the same value they are shared
/// with their other owners. What the manager applied before and does not now is removed unless somebody
/// else owns it. When nothing changes, the object is the live one, times included.
///
/// # Errors
///
/// [`ApplyError::Conflicts`] when a field would change that somebody else owns, unless `force` is given;
/// the others when the configuration itself is at fault.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    schema: &Schema,
    writer: Writer<'_>,
    force: bool,
) -> Result<Applied, ApplyError> {
    validate(applied, schema)?;
    let shape = Shape::root(schema);
    let mut others =
        live.and_then(managed_fields).and_then(|raw| ManagedEntry::read_all(raw).ok()).unwrap_or_default();
    let is_first = others.is_empty();
    if let (Some(live), true) = (live, is_first) {
        let fields = compare(&Value::Null, live, schema).added;
        let before = Writer { manager: BEFORE_FIRST_APPLY, ..writer };
        others.push(ManagedEntry::of(&before, Operation::Update, fields));
    }
    for entry in &mut others {
        shape.reconcile(&mut entry.fields);
    }
    let own =
        others.iter().position(|entry| entry.is_of(&writer, Operation::Apply)).map(|at| others.remove(at));
    let fields = fields_of(applied, schema);

    let mut object = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    merge(&mut object, applied, shape);
    if let Some(own) = &own {
        let mut managed = fields.clone();
        others.iter().for_each(|entry| managed.union(entry.fields.clone()));
        prune(&mut object, shape, &own.fields, &managed);
    }

    let is_same = live == Some(&object);
    if !is_same {
        let changes = compare(live.unwrap_or(&Value::Null), &object, schema);
        settle(&mut others, changes, live, schema, writer, force)?;
    }
    last_applied::sync(&mut object, applied, writer.manager);
    let is_kept = own
        .as_ref()
        .map_or(fields.is_empty(), |own| own.fields == fields && own.api_version == writer.api_version);
    if is_same && is_kept && !is_first {
        let changed = live != Some(&object);
        return Ok(Applied { object, changed });
    }
    others.push(ManagedEntry::of(&writer, Operation::Apply, fields));
    set_managed_fields(&mut object, ManagedEntry::write_all(others).map(Cow::Owned));
    let changed = live != Some(&object);
    Ok(Applied { object, changed })
}

fn validate(applied: &Value, schema: &Schema) -> Result<(), ApplyError> {
    let Some(fields) = applied.as_object() else {
        return Err(ApplyError::BadRequest("the applied configuration must be an object".to_owned()));
    };
    let managed = fields.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if managed.is_some_and(|managed| !managed.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let errors = check(applied, Shape::root(schema));
    if errors.is_empty() { Ok(()) } else { Err(ApplyError::Invalid(errors)) }
}

/// Takes what changed from its other owners, or reports that it is theirs.
fn settle(
    others: &mut [ManagedEntry],
    changes: Changes,
    live: Option<&Value>,
    schema: &Schema,
    writer: Writer<'_>,
    force: bool,
) -> Result<(), ApplyError> {
    let (written, removed) = changes.written();
    let mut disputed: Vec<(&ManagedEntry, FieldSet)> = Vec::new();
    if !force {
        disputed.extend(others.iter().map(|entry| (entry, entry.fields.intersection(&written))));
        disputed.retain(|(_, fields)| !fields.is_empty());
    }
    if !disputed.is_empty()
        && let Some(claimed) = live.and_then(|live| last_applied::claimed(live, schema, writer.manager))
    {
        disputed.iter_mut().for_each(|(_, fields)| fields.difference(&claimed));
        disputed.retain(|(_, fields)| !fields.is_empty());
    }
    if !disputed.is_empty() {
        return Err(ApplyError::Conflicts(
            disputed.iter().map(|(entry, fields)| Conflict::new(entry, fields)).collect(),
        ));
    }
    for entry in others {
        entry.fields.subtract(&removed);
        entry.fields.subtract(&written);
    }
    Ok(())
}
