//! Reading a manifest: one or more documents, and what is wrong with them before anything is sent.
//!
//! Guarantees: a field that does not exist is an error that names it and what it may have been meant for.

use std::io::Read as _;

use compute_api::compute::API_VERSION;
use compute_api::crds;
use compute_core::admission::decode;
use serde_json::Value;

use crate::failure::{Failure, Result};

/// Kinds that a manifest may hold beside workloads: what workloads name.
const OTHERS: [(&str, &str, &str); 3] = [
    ("v1", "ConfigMap", "config"),
    ("v1", "Secret", "secret"),
    ("networking.datumapis.com/v1alpha", "Network", "network"),
];
/// No manifest is larger; what is, is something else.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A document of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// `v1`.
    pub(crate) api_version: String,
    /// `ConfigMap`.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// All of it.
    pub(crate) object: Value,
}

impl Document {
    /// Whether it is a workload.
    pub(crate) fn is_workload(&self) -> bool {
        self.kind == "Workload" && self.api_version == API_VERSION
    }

    /// What it is, for people.
    pub(crate) fn noun(&self) -> &'static str {
        OTHERS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("workload", |(_, _, noun)| noun)
    }

    /// The group of its kind.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version of its kind.
    pub(crate) fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(self.api_version.as_str(), |(_, version)| version)
    }
}

/// Reads a file, or stdin if the path is `-`.
pub(crate) fn read(path: &str) -> Result<Vec<Document>> {
    let what = format!("cannot read {}", if path == "-" { "the manifest" } else { path });
    let failed = |error: std::io::Error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "the file does not exist".to_owned(),
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            other => format!("the file cannot be read: {other}"),
        };
        Failure::usage(what.clone(), why).advice("check the path that -f gives")
    };
    let mut text = String::new();
    if path == "-" {
        std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text))
            .map_err(failed)?;
    }
    parse(&text, &what)
}

/// The documents of a manifest.
pub(crate) fn parse(text: &str, what: &str) -> Result<Vec<Document>> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let first = error.to_string();
        let first = first.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::usage(what, format!("it is not valid YAML: {first}")).advice("fix that line")
    })?;
    let mut why = Vec::new();
    let mut documents = Vec::new();
    for (at, object) in values.into_iter().enumerate().filter(|(_, value)| !value.is_null()) {
        match document(object) {
            Ok(document) => {
                let wrong = if document.is_workload() { faults(&document.object) } else { Vec::new() };
                why.extend(wrong.into_iter().map(|fault| format!("{}: {fault}", document.name)));
                documents.push(document);
            }
            Err(fault) => why.push(format!("document {}: {fault}", at + 1)),
        }
    }
    if !why.is_empty() {
        return Err(Failure::usage(what, "")
            .because(why)
            .advice("fix that and run the command again; nothing was written"));
    }
    if documents.is_empty() {
        return Err(Failure::usage(what, "there is nothing in it")
            .advice("write a workload into it")
            .next("deploy --help", "see examples"));
    }
    Ok(documents)
}

fn document(object: Value) -> Result<Document, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    if kind.is_empty() || api_version.is_empty() {
        return Err("apiVersion and kind are missing".to_owned());
    }
    let is_ours = kind == "Workload" && api_version == API_VERSION;
    let is_other = OTHERS.iter().any(|(version, known, _)| *version == api_version && *known == kind);
    if !is_ours && !is_other {
        let near = (kind == "Workload").then(|| format!("; write apiVersion: {API_VERSION}"));
        return Err(format!(
            "{kind} of {api_version} is not something to deploy{}",
            near.unwrap_or_default()
        ));
    }
    if name.is_empty() {
        return Err("metadata.name is missing".to_owned());
    }
    Ok(Document { api_version, kind, name, object })
}

/// What is wrong with a workload at first sight: fields that do not exist, and values of a wrong type.
fn faults(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let crds = crds::ours();
    let schema = crds.iter().find(|crd| crd.spec.names.kind == "Workload").and_then(|crd| {
        let version = crd.spec.versions.first()?;
        serde_json::to_value(version.schema.as_ref()?.open_api_v3_schema.as_ref()?).ok()
    });
    if let Some(schema) = schema {
        unknown(&schema["properties"]["spec"], &object["spec"], "spec", &mut found);
        let top = ["apiVersion", "kind", "metadata", "spec", "status"];
        for key in object.as_object().into_iter().flatten().map(|(key, _)| key) {
            if !top.contains(&key.as_str()) {
                found.push(no_field(key, key, top.iter().copied()));
            }
        }
    }
    if let Err(errors) = decode::workload(object) {
        found.extend(errors.iter().map(|error| format!("{}: {}", error.path, error.detail)));
    }
    found
}

/// Adds the fields that a schema does not have.
fn unknown(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    match value {
        Value::Object(fields) => {
            let Some(known) = schema["properties"].as_object() else {
                let each = &schema["additionalProperties"];
                if each.is_object() {
                    fields
                        .iter()
                        .for_each(|(key, value)| unknown(each, value, &format!("{path}[{key}]"), found));
                }
                return;
            };
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                match known.get(key) {
                    Some(schema) => unknown(schema, value, &path, found),
                    None => found.push(no_field(&path, key, known.keys().map(String::as_str))),
                }
            }
        }
        Value::Array(entries) => {
            for (at, entry) in entries.iter().enumerate() {
                unknown(&schema["items"], entry, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

fn no_field<'a>(path: &str, key: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &key.to_lowercase()), name))
        .min();
    match near.filter(|(distance, name)| *distance <= 2.max(name.len() / 3)) {
        Some((_, name)) => format!("{path}: there is no such field; did you mean {name}?"),
        None => format!("{path}: there is no such field"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../../config/samples/configuration.yaml");

    #[test]
    fn several_documents_are_read() {
        let documents = parse(GOOD, "cannot read x").unwrap();
        let nouns: Vec<_> = documents.iter().map(|one| (one.noun(), one.name.as_str())).collect();
        assert_eq!(nouns, [("config", "shop-settings"), ("secret", "shop-secrets"), ("workload", "shop")]);
    }

    #[test]
    fn every_sample_is_good() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            read(path.to_str().unwrap()).unwrap();
        }
    }

    #[test]
    fn a_field_that_does_not_exist_is_named_with_what_it_may_be() {
        let bad = GOOD
            .replace("minReplicas", "minReplica")
            .replace("volumeAttachments", "volumeMount")
            .replace("port: 80", "port: eighty");
        let failure = parse(&bad, "cannot read x").unwrap_err();
        assert_eq!(
            failure.why,
            [
                "shop: spec.placements[0].scaleSettings.minReplica: there is no such field; did you mean minReplicas?",
                "shop: spec.template.spec.runtime.sandbox.containers[0].volumeMount: there is no such field",
                "shop: spec.template.spec.runtime.sandbox.containers[0].ports[0].port: must be a whole number",
            ]
        );
        assert_eq!(failure.exit, crate::failure::Exit::Usage);
    }

    #[test]
    fn other_things_are_not_deployed() {
        let why = |text: &str| parse(text, "cannot read x").unwrap_err().why;
        assert_eq!(
            why("kind: Pod\napiVersion: v1\nmetadata: {name: a}"),
            ["document 1: Pod of v1 is not something to deploy"]
        );
        assert!(why("kind: Workload\napiVersion: v1\nmetadata: {name: a}")[0].contains("write apiVersion"));
        assert_eq!(why("a: 1"), ["document 1: apiVersion and kind are missing"]);
        assert_eq!(why("---\n"), ["there is nothing in it"]);
        assert!(why("a: [")[0].starts_with("it is not valid YAML"));
    }
}
