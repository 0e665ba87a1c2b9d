//! Taking one entry out of a list of somebody else's object: a gate, or a condition that nobody writes any
//! more.
//!
//! Both are JSON patches that test the resource version and the entry, then remove it: if either has changed,
//! nothing happens and the caller looks again.

use compute_api::compute::Instance;
use serde_json::{Value, json};

/// The patch that takes a gate out of an instance's spec. `None` if it has no such gate.
pub fn gate(instance: &Instance, name: &str) -> Option<Value> {
    let index = instance.spec.gates().iter().position(|gate| gate.name == name)?;
    Some(patch(instance, &format!("/spec/controller/schedulingGates/{index}"), "name", name))
}

/// The patch that takes a condition out of an instance's status. `None` if it has no such condition.
pub fn condition(instance: &Instance, type_: &str) -> Option<Value> {
    let conditions = &instance.status.as_ref()?.conditions;
    let index = conditions.iter().position(|condition| condition.type_ == type_)?;
    Some(patch(instance, &format!("/status/conditions/{index}"), "type", type_))
}

fn patch(instance: &Instance, entry: &str, key: &str, value: &str) -> Value {
    json!([
        { "op": "test", "path": "/metadata/resourceVersion", "value": instance.metadata.resource_version },
        { "op": "test", "path": format!("{entry}/{key}"), "value": value },
        { "op": "remove", "path": entry },
    ])
}

#[cfg(test)]
mod tests {
    use compute_api::{
        compute::gates,
        conditions::{RUNNING_RETIRED, Status},
    };

    use super::*;
    use crate::fixtures::{condition as stored_condition, deployment, instance, ready};

    #[test]
    fn the_patch_tests_what_it_removes() {
        let held = instance(&deployment(1), 0);
        assert_eq!(
            gate(&held, gates::QUOTA),
            Some(json!([
                { "op": "test", "path": "/metadata/resourceVersion", "value": "1" },
                { "op": "test", "path": "/spec/controller/schedulingGates/1/name", "value": "Quota" },
                { "op": "remove", "path": "/spec/controller/schedulingGates/1" },
            ]))
        );
        assert_eq!(gate(&held, gates::REFERENCED_DATA), None);
        let mut running = ready(held);
        assert_eq!(condition(&running, RUNNING_RETIRED), None);
        running.status.as_mut().unwrap().conditions.push(stored_condition(
            RUNNING_RETIRED,
            Status::True,
            "Running",
            "",
        ));
        let found = condition(&running, RUNNING_RETIRED).unwrap();
        assert_eq!(
            found[1],
            json!({ "op": "test", "path": "/status/conditions/3/type", "value": "Running" })
        );
    }
}
