//! Events: one set of objects that two groups serve, each with names of its own for the same facts.
//!
//! They are kept as core objects; `events.k8s.io` is a view of them, in both directions.

use serde_json::Value;

use super::definition::Definition;

/// What the core group calls a field, and what `events.k8s.io` calls it.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

/// Whether a kind is the view.
pub(super) fn is_view(def: &Definition) -> bool {
    def.gv.group == "events.k8s.io" && def.names.plural == "events"
}

/// The name of a field of the core object in the group of `def`.
pub(crate) fn field_name(def: &Definition, core: &'static str) -> &'static str {
    let found = NAMES.iter().find(|(name, _)| *name == core).filter(|_| is_view(def));
    found.map_or(core, |(_, name)| name)
}

/// Gives the fields of a view their core names.
pub(crate) fn to_core(object: &mut Value) {
    rename(object, NAMES.map(|(core, view)| (view, core)));
}

/// Gives the fields of a core object the names of the view.
pub(crate) fn to_view(object: &mut Value) {
    rename(object, NAMES);
}

fn rename(object: &mut Value, names: [(&str, &str); 7]) {
    let Some(fields) = object.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn there_and_back() {
        let core = json!({ "message": "m", "involvedObject": { "name": "a" }, "count": 2, "reason": "r", "metadata": {} });
        let mut object = core.clone();
        to_view(&mut object);
        let view = json!({ "note": "m", "regarding": { "name": "a" }, "deprecatedCount": 2, "reason": "r", "metadata": {} });
        assert_eq!(object, view);
        to_core(&mut object);
        assert_eq!(object, core);
    }

    #[test]
    fn both_groups_select_by_the_same_facts_in_the_same_order() {
        // Values of selectable fields are kept by position.
        let find = |group: &str| {
            let found = super::super::built_in::definitions();
            found.into_iter().find(|def| def.gv.group == group && def.names.plural == "events").unwrap()
        };
        let (core, view) = (find(""), find("events.k8s.io"));
        for (core, view) in core.selectable_fields.iter().zip(&view.selectable_fields) {
            let (first, rest) = core.split_at(core.find('.').unwrap_or(core.len()));
            let renamed = NAMES.iter().find(|(name, _)| *name == first).map_or(first, |(_, name)| name);
            assert_eq!(format!("{renamed}{rest}"), *view);
        }
    }
}
