//! The parameters of requests.

use serde_json::{Value, json};

/// One query parameter.
struct Parameter {
    name: &'static str,
    type_: &'static str,
    description: &'static str,
}

const fn parameter(name: &'static str, type_: &'static str, description: &'static str) -> Parameter {
    Parameter { name, type_, description }
}

const PRETTY: Parameter = parameter("pretty", "string", "If 'true', then the output is pretty printed.");
const DRY_RUN: Parameter = parameter(
    "dryRun",
    "string",
    "When present, indicates that modifications should not be persisted. An invalid or unrecognized dryRun \
     directive will result in an error response and no further processing of the request. Valid values are: \
     - All: all dry run stages will be processed",
);
const FIELD_MANAGER: Parameter = parameter(
    "fieldManager",
    "string",
    "fieldManager is a name associated with the actor or entity that is making these changes. The value \
     must be less than or 128 characters long, and only contain printable characters. This field is \
     required for apply requests.",
);
const FIELD_VALIDATION: Parameter = parameter(
    "fieldValidation",
    "string",
    "fieldValidation instructs the server on how to handle objects in the request containing unknown or \
     duplicate fields. Valid values are: - Ignore: drops them silently. - Warn: drops them and sends a \
     warning for each. This is the default. - Strict: fails the request with an error that names them all.",
);
const FORCE: Parameter = parameter(
    "force",
    "boolean",
    "Force is going to \"force\" Apply requests. It means user will re-acquire conflicting fields owned by \
     other people. Force flag must be unset for non-apply patch requests.",
);
const LABEL_SELECTOR: Parameter = parameter(
    "labelSelector",
    "string",
    "A selector to restrict the list of returned objects by their labels. Defaults to everything.",
);
const FIELD_SELECTOR: Parameter = parameter(
    "fieldSelector",
    "string",
    "A selector to restrict the list of returned objects by their fields. Defaults to everything.",
);
const LIMIT: Parameter = parameter(
    "limit",
    "integer",
    "limit is a maximum number of responses to return for a list call. If more items exist, the server sets \
     the `continue` field on the list metadata.",
);
const CONTINUE: Parameter = parameter(
    "continue",
    "string",
    "The continue option should be set when retrieving more results from the server. It is the value that \
     the server returned with the previous part of the list.",
);
const RESOURCE_VERSION: Parameter = parameter(
    "resourceVersion",
    "string",
    "resourceVersion sets a constraint on what resource versions a request may be served from. Defaults to \
        unset",
);
const RESOURCE_VERSION_MATCH: Parameter = parameter(
    "resourceVersionMatch",
    "string",
    "resourceVersionMatch determines how resourceVersion is applied to list calls. Defaults to unset",
);
const TIMEOUT_SECONDS: Parameter = parameter(
    "timeoutSeconds",
    "integer",
    "Timeout for the list/watch call. This limits the duration of the call, regardless of any activity or \
        inactivity.",
);
const WATCH: Parameter = parameter(
    "watch",
    "boolean",
    "Watch for changes to the described resources and return them as a stream of add, update, and remove \
     notifications. Specify resourceVersion.",
);
const BOOKMARKS: Parameter = parameter(
    "allowWatchBookmarks",
    "boolean",
    "allowWatchBookmarks requests watch events with type \"BOOKMARK\". If this is not a watch, this field \
        is ignored.",
);
const INITIAL_EVENTS: Parameter = parameter(
    "sendInitialEvents",
    "boolean",
    "`sendInitialEvents=true` may be set together with `watch=true`. The watch then begins with synthetic \
     events that produce the current state, followed by a bookmark.",
);
const GRACE_PERIOD: Parameter = parameter(
    "gracePeriodSeconds",
    "integer",
    "The duration in seconds before the object should be deleted. Value must be non-negative integer. The \
     value zero indicates delete immediately.",
);
const ORPHAN: Parameter = parameter(
    "orphanDependents",
    "boolean",
    "Deprecated: please use the PropagationPolicy. Should the dependent objects be orphaned.",
);
const PROPAGATION: Parameter = parameter(
    "propagationPolicy",
    "string",
    "Whether and how garbage collection will be performed. Acceptable values are: 'Orphan', 'Background', \
        'Foreground'.",
);

/// What is asked of objects; decides which parameters a request takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    List,
    Create,
    DeleteCollection,
    Get,
    Replace,
    Patch,
    Delete,
}

/// The query parameters that a request takes, besides those of its path.
pub(super) fn of_verb(verb: Verb) -> Value {
    let own: &[&Parameter] = match verb {
        Verb::List => &[
            &BOOKMARKS,
            &CONTINUE,
            &FIELD_SELECTOR,
            &LABEL_SELECTOR,
            &LIMIT,
            &RESOURCE_VERSION,
            &RESOURCE_VERSION_MATCH,
            &INITIAL_EVENTS,
            &TIMEOUT_SECONDS,
            &WATCH,
        ],
        Verb::Create | Verb::Replace => &[&DRY_RUN, &FIELD_MANAGER, &FIELD_VALIDATION],
        Verb::Patch => &[&DRY_RUN, &FIELD_MANAGER, &FIELD_VALIDATION, &FORCE],
        Verb::Get => &[],
        Verb::Delete => &[&DRY_RUN, &GRACE_PERIOD, &ORPHAN, &PROPAGATION],
        Verb::DeleteCollection => &[
            &CONTINUE,
            &DRY_RUN,
            &FIELD_SELECTOR,
            &GRACE_PERIOD,
            &LABEL_SELECTOR,
            &LIMIT,
            &ORPHAN,
            &PROPAGATION,
            &RESOURCE_VERSION,
            &RESOURCE_VERSION_MATCH,
            &INITIAL_EVENTS,
            &TIMEOUT_SECONDS,
        ],
    };
    own.iter().map(|parameter| query(parameter)).collect()
}

/// The parameters of a path: those in braces, and `pretty`, which every request takes.
pub(super) fn of_path(kind: &str, path: &str) -> Value {
    let named = path.contains("{name}").then(|| in_path("name", &format!("name of the {kind}")));
    let namespaced = path
        .contains("{namespace}")
        .then(|| in_path("namespace", "object name and auth scope, such as for teams and projects"));
    named.into_iter().chain(namespaced).chain([query(&PRETTY)]).collect()
}

fn query(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "schema": {"type": parameter.type_, "uniqueItems": true},
    })
}

fn in_path(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "in": "path",
        "description": description,
        "required": true,
        "schema": {"type": "string", "uniqueItems": true},
    })
}
