//! Conflicts of an apply, in the words Kubernetes uses for them.

use std::fmt;

use super::entry::{ManagedEntry, Operation};
use super::path::path_text;
use super::set::FieldSet;

/// The fields of one other manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the fields.
    pub manager: String,
    /// How it came to own them.
    pub operation: Operation,
    /// The subresource it wrote to; empty for the resource itself.
    pub subresource: String,
    /// The version it wrote in.
    pub api_version: String,
    /// When it last wrote.
    pub time: Option<String>,
    /// The fields, as `.spec.containers[name="a"].image`.
    pub fields: Vec<String>,
}

impl Conflict {
    pub(super) fn new(owner: &ManagedEntry, fields: &FieldSet) -> Self {
        Self {
            manager: owner.manager.clone(),
            operation: owner.operation,
            subresource: owner.subresource.clone(),
            api_version: owner.api_version.clone(),
            time: owner.time.clone(),
            fields: fields.paths().iter().map(|path| path_text(path)).collect(),
        }
    }

    /// The message of the cause (`FieldManagerConflict`) that each field gets.
    pub fn cause(&self) -> String {
        format!("conflict with {self}")
    }
}

/// The manager as it is named in messages: `"kubectl" with subresource "status" using apps/v1`.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// The message of the whole answer.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    let count: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    if let ([conflict], 1) = (conflicts, count) {
        return format!("Apply failed with 1 conflict: {}: {}", conflict.cause(), conflict.fields.concat());
    }
    let mut managers: Vec<_> =
        conflicts.iter().map(|conflict| (conflict.to_string(), &conflict.fields)).collect();
    managers.sort();
    let mut lines = Vec::with_capacity(count + managers.len());
    for (manager, fields) in managers {
        lines.push(format!("conflicts with {manager}:"));
        lines.extend(fields.iter().map(|field| format!("- {field}")));
    }
    format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
}
