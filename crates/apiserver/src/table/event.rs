//! The columns of events. The core and the `events.k8s.io` group name the same facts differently.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, NAME, age, at, column, name_cell, number, text, wide};

pub(super) const COLUMNS: &[Column] = &[
    column("Last Seen", "The time at which the most recent occurrence of this event was recorded."),
    column("Type", "Type of this event (Normal, Warning), new types could be added in the future"),
    column(
        "Reason",
        "This should be a short, machine understandable string that gives the reason for the transition \
            into the object's current status.",
    ),
    column("Object", "The object that this event is about."),
    wide(
        "Subobject",
        "If referring to a piece of an object instead of an entire object, the path of that piece.",
    ),
    wide("Source", "The component reporting this event. Should be a short machine understandable string."),
    column("Message", "A human-readable description of the status of this operation."),
    wide(
        "First Seen",
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
    ),
    wide("Count", "The number of times this event has occurred."),
    Column { format: "name", ..wide("Name", NAME) },
];

/// Where a group keeps the facts.
struct Fields {
    object: &'static str,
    message: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
    source: &'static str,
    reporter: &'static str,
}

const CORE: Fields = Fields {
    object: "involvedObject",
    message: "message",
    first: "firstTimestamp",
    last: "lastTimestamp",
    count: "count",
    source: "source",
    reporter: "reportingComponent",
};

const EVENTS: Fields = Fields {
    object: "regarding",
    message: "note",
    first: "deprecatedFirstTimestamp",
    last: "deprecatedLastTimestamp",
    count: "deprecatedCount",
    source: "deprecatedSource",
    reporter: "reportingController",
};

pub(super) fn core_cells(event: &Value, now: Timestamp) -> Vec<Value> {
    cells(event, &CORE, now)
}

pub(super) fn events_cells(event: &Value, now: Timestamp) -> Vec<Value> {
    cells(event, &EVENTS, now)
}

fn cells(event: &Value, fields: &Fields, now: Timestamp) -> Vec<Value> {
    let first = [fields.first, "eventTime"].map(|field| age::since(at(event, field), now));
    let first = known(first);
    let last = known([age::since(at(event, fields.last), now), first.clone()]);
    let (last, count) = match at(event, "series") {
        // An event that happened once has no count in the newer API.
        Value::Null => (last, number(event, fields.count).max(1)),
        series => (age::since(at(series, "lastObservedTime"), now), number(series, "count")),
    };

    let involved = at(event, fields.object);
    let kind = text(involved, "kind").to_lowercase();
    let object = match text(involved, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        text(event, "type").into(),
        text(event, "reason").into(),
        object.into(),
        text(involved, "fieldPath").into(),
        source(event, fields).into(),
        text(event, fields.message).trim().into(),
        first.into(),
        json!(count),
        name_cell(event),
    ]
}

/// The first of two ages that is known.
fn known([first, second]: [String; 2]) -> String {
    if first == age::UNKNOWN { second } else { first }
}

/// Component and host, from the old fields or else from the new.
fn source(event: &Value, fields: &Fields) -> String {
    let source = at(event, fields.source);
    let either = |old: &'static str, new: &'static str| match text(source, old) {
        "" => text(event, new).to_owned(),
        found => found.to_owned(),
    };
    let (component, host) = (either("component", fields.reporter), either("host", "reportingInstance"));
    if host.is_empty() { component } else { format!("{component}, {host}") }
}
