//! Who owns which field: the bookkeeping behind `metadata.managedFields` and server-side apply.
//!
//! Everything here is a pure function of values. [`update`] records who changed what on a create, an
//! update or a patch; [`apply`] merges an applied configuration into the live object, reports
//! conflicts and removes what its manager no longer applies. Both share the same walk over values: a
//! [`Schema`](crate::schema::Schema) says which maps and lists are one value and which are merged item
//! by item.
//!
//! # Guarantees
//!
//! - The same write done twice changes nothing the second time, timestamps included.
//! - A path that is owned exists in the object, as far as ownership was recorded by this module.
//! - `apiVersion`, `kind`, the object's identity and what the server keeps in `metadata` are never owned.
//!
//! # Caveats
//!
//! All versions of a kind are taken to have one shape: entries written in another version take part as
//! they are. Tracking stops at a hundred levels; what lies deeper is one value.

mod apply;
mod check;
mod compare;
mod conflict;
mod entry;
mod extract;
mod fields_v1;
mod last_applied;
mod merge;
mod path;
mod prune;
mod quick;
mod set;
pub(crate) mod shape;
mod update;

#[cfg(test)]
mod tests;

pub use apply::{Applied, ApplyError, apply};
pub use compare::{Changes, compare};
pub use conflict::{Conflict, conflict_message};
pub use entry::{EntryError, ManagedEntry, Operation};
pub use extract::fields_of;
pub use fields_v1::FieldsV1Error;
pub use path::{ElementError, PathElement, path_text};
pub use set::FieldSet;
pub use update::{forget_absent, update};

/// Who writes, and when: what an entry of `managedFields` says about a request.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// The version the request is made in, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to; empty for the resource itself.
    pub subresource: &'a str,
    /// The time of the request in RFC 3339, UTC, whole seconds.
    pub now: &'a str,
}
