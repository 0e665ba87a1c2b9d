//! What is filled in on a Workload before it is judged and stored.
//!
//! Only what people see on the Workload they wrote; no schema default is ever added inside the template, since that would change the
//! hash of stored ones.

use compute_api::compute::POLICY_ORDERED_READY;
use serde_json::{Value, json};

use super::is_exempt;

/// A value that a Workload gets where it has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Where, as a JSON pointer. What is around it is there.
    pub pointer: String,
    /// What.
    pub value: Value,
}

impl Filled {
    /// As an operation of a JSON patch.
    pub fn to_operation(&self) -> Value {
        json!({ "op": "add", "path": self.pointer, "value": self.value })
    }
}

/// What a Workload gets: for each placement, the way its instances are managed. Nothing if the write does not touch the spec.
pub fn of(object: &Value, old: Option<&Value>) -> Vec<Filled> {
    if is_exempt(object, old) {
        return Vec::new();
    }
    let placements = object["spec"]["placements"].as_array().map_or(&[][..], Vec::as_slice);
    let is_missing = |settings: &Value| {
        settings.is_object() && matches!(&settings["instanceManagementPolicy"], Value::Null)
            || settings["instanceManagementPolicy"] == ""
    };
    placements
        .iter()
        .enumerate()
        .filter(|(_, placement)| is_missing(&placement["scaleSettings"]))
        .map(|(at, _)| Filled {
            pointer: format!("/spec/placements/{at}/scaleSettings/instanceManagementPolicy"),
            value: Value::from(POLICY_ORDERED_READY),
        })
        .collect()
}
