//! What `config/` and `docs/operations/` say, held against the code that they speak of. Needs no tool and no server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod lua;
mod metrics;
mod service;
mod webhooks;

use std::path::PathBuf;

use serde_json::Value;

/// The root of the workspace.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The objects of a YAML file.
fn objects(path: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The only object of a YAML file.
fn object(path: &str) -> Value {
    let [object] = <[Value; 1]>::try_from(objects(path)).unwrap();
    object
}
