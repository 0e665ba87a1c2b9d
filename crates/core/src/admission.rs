//! What may be written: which Workloads are good, and who may write Instances in a project.
//!
//! [`open`] takes a write of a Workload and says at once that it is accepted, or that it cannot even be read, or gives a
//! [`Case`]. The case says what has to be looked up ([`Case::needs`]), and judges once that is known ([`Case::judge`]).
//! [`defaults`] is what is filled in before. [`guard`] decides about Instances. What a refusal looks like on the wire is a
//! [`Refusal`].
//!
//! # Guarantees
//!
//! * Everything that is wrong with an object is said at once, each with the path of its field.
//! * An update that leaves `spec` as it is, and any update of an object that is being deleted, is accepted.
//! * What changes by itself (networks, access, offered cities) is judged only for what an update adds.
//! * What was to be looked up and is missing among the [`Facts`] is refused, never let through.

use compute_api::compute::Workload;
use serde_json::Value;

use crate::meta;

pub mod decode;
pub mod defaults;
pub mod error;
pub mod facts;
pub mod guard;

mod containers;
mod env;
mod path;
mod placements;
mod references;
mod ssh_keys;
mod syntax;
mod template;
mod volumes;

pub use error::{FieldError, Reason, Refusal};
pub use facts::{Facts, Needs, NetworkFact};

use error::Errors;
use path::Path;

/// What a workload is called in refusals.
const KIND: &str = "Workload";

/// What becomes of a write at first sight.
#[derive(Debug)]
pub enum Opened {
    /// It is accepted, whatever is in it.
    Accepted,
    /// It cannot be read.
    Refused(Vec<FieldError>),
    /// It has to be judged.
    Case(Box<Case>),
}

/// A write of a Workload that has to be judged.
#[derive(Debug)]
pub struct Case {
    workload: Workload,
    old: Option<Workload>,
    namespace: String,
}

/// Looks at a write of a Workload in a namespace: the object as it would be stored, and as it is stored, if it is.
pub fn open(object: &Value, old: Option<&Value>, namespace: &str) -> Opened {
    if is_exempt(object, old) {
        return Opened::Accepted;
    }
    let workload = match decode::workload(object) {
        Ok(workload) => workload,
        Err(errors) => return Opened::Refused(errors),
    };
    // What cannot be read has nothing that the update could keep.
    let old = old.and_then(|old| decode::workload(old).ok());
    if old.as_ref().is_some_and(|old| old.spec == workload.spec) {
        return Opened::Accepted;
    }
    Opened::Case(Box::new(Case { workload, old, namespace: namespace.to_owned() }))
}

/// Whether a write is accepted whatever its spec says: an update that does not touch it, or of something that is on its way out and
/// whose finalizers must come off.
pub fn is_exempt(object: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return false };
    let leaves = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    leaves(object) || leaves(old) || object["spec"] == old["spec"]
}

impl Case {
    /// What has to be looked up.
    pub fn needs(&self) -> Needs {
        references::needs(&self.workload, self.old.as_ref(), &self.namespace)
    }

    /// Everything that is wrong.
    pub fn judge(&self, facts: &Facts) -> Vec<FieldError> {
        let mut errors = Errors::default();
        let name = meta::name(&self.workload.metadata);
        if name.len() > syntax::MAX_LABEL {
            errors.too_long(&Path::new("metadata").child("name"), syntax::MAX_LABEL);
        }
        let spec = Path::new("spec");
        template::check(&self.workload.spec.template, &spec.child("template"), &self.namespace, &mut errors);
        placements::check(&self.workload.spec.placements, &spec.child("placements"), &mut errors);
        references::judge(&self.workload, self.old.as_ref(), &self.namespace, facts, &mut errors);
        errors.into_list()
    }

    /// The name of the workload; empty if it is going to be generated.
    pub fn name(&self) -> &str {
        meta::name(&self.workload.metadata)
    }
}

/// The refusal of a Workload for what is wrong with it.
pub fn invalid(name: &str, errors: &[FieldError]) -> Refusal {
    Refusal::invalid(KIND, compute_api::compute::GROUP, name, errors)
}

#[cfg(test)]
mod tests;
