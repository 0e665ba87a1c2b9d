//! Every metric that alerts, the dashboard and the docs name is exported, and every one that is exported is written about.
//!
//! What is exported is read from the source: a family without a series is not shown by its registry, and most have none until
//! something happens.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use crate::{object, root, text};

/// How a metric is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

const KINDS: [(&str, Kind); 4] = [
    ("Counter", Kind::Counter),
    ("Gauge", Kind::Gauge),
    ("Histogram", Kind::Histogram),
    ("Info", Kind::Info),
];

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The metrics that the code registers: the name that their family has, and how they are exported.
fn registered() -> BTreeMap<String, Kind> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let call = Regex::new(
        r#"(?s)\.register(?:_with_unit)?\(\s*"(compute_[a-z_]+)",\s*"[^"]*",\s*(?:Unit::(\w+),\s*)?([^;]*?)\);"#,
    )
    .unwrap();
    let mut found = BTreeMap::new();
    for file in &files {
        for call in call.captures_iter(file) {
            let name = match call.get(2) {
                Some(unit) => format!("{}_{}", &call[1], unit.as_str().to_lowercase()),
                None => call[1].to_owned(),
            };
            let value = &call[3];
            let kind = kind_of(file, value).unwrap_or_else(|| panic!("what kind of metric is {name}?"));
            assert_eq!(found.insert(name.clone(), kind), None, "{name} is registered twice");
        }
    }
    found
}

/// The kind of what is registered: by the type of the field that is named, else by the only kind that the file has.
fn kind_of(file: &str, value: &str) -> Option<Kind> {
    let named = |text: &str| {
        let mut kinds =
            KINDS.iter().filter(|(name, _)| Regex::new(&format!(r"\b{name}\b")).unwrap().is_match(text));
        let kind = kinds.next().map(|(_, kind)| *kind);
        kind.filter(|_| kinds.next().is_none())
    };
    if let Some(kind) = named(value) {
        return Some(kind);
    }
    let field =
        value.trim().trim_end_matches(',').trim_end_matches(".clone()").rsplit('.').next()?.to_owned();
    let typed = Regex::new(&format!(r"(?m)^\s*(?:pub )?{field}: ([A-Z][^\n]*)$")).unwrap();
    let tuple = Regex::new(r"(?m)^(?:pub(?:\([^)]*\))? )?struct \w+\((Family<[^\n]*)\);$").unwrap();
    let by_field = typed.captures(file).and_then(|found| named(&found[1]));
    let by_tuple = || tuple.captures(file).and_then(|found| named(&found[1]));
    by_field.or_else(by_tuple).or_else(|| named(file))
}

/// The names that Prometheus knows a metric by.
fn exported(name: &str, kind: Kind) -> Vec<String> {
    let with = |suffix: &str| format!("{name}{suffix}");
    match kind {
        Kind::Counter => vec![with("_total")],
        Kind::Gauge => vec![with("")],
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(with).to_vec(),
        Kind::Info => vec![with("_info")],
    }
}

/// The names of metrics of ours in a text.
fn named(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"\bcompute_[a-z_]+\b").unwrap();
    name.find_iter(text).map(|found| found.as_str().to_owned()).collect()
}

fn alerts() -> Value {
    object("config/components/prometheus/rules.yaml")["spec"]["groups"][0]["rules"].take()
}

/// What all expressions of alerts say, in one text.
fn expressions() -> String {
    let alerts = alerts();
    let all: Vec<_> =
        alerts.as_array().unwrap().iter().map(|alert| alert["expr"].as_str().unwrap()).collect();
    all.join("\n")
}

const DASHBOARD: &str = "config/components/prometheus/dashboard.json";
const DOCS: &str = "docs/operations/metrics.md";

#[test]
fn what_is_named_is_exported() {
    let known: BTreeSet<_> = registered().iter().flat_map(|(name, kind)| exported(name, *kind)).collect();
    for (place, text) in [("alerts", expressions()), ("dashboard", text(DASHBOARD)), ("docs", text(DOCS))] {
        let wrong: Vec<_> = named(&text).into_iter().filter(|name| !known.contains(name)).collect();
        assert!(wrong.is_empty(), "the {place} name {wrong:?}; there are {known:?}");
    }
}

#[test]
fn what_is_exported_is_written_about() {
    let docs = named(&text(DOCS));
    let dashboard = named(&text(DASHBOARD));
    for (name, kind) in registered() {
        let names = exported(&name, kind);
        assert!(names.iter().any(|name| docs.contains(name)), "{DOCS} says nothing of {names:?}");
        if kind != Kind::Info {
            assert!(
                names.iter().any(|name| dashboard.contains(name)),
                "the dashboard does not show {names:?}"
            );
        }
    }
}

#[test]
fn every_alert_says_what_to_do() {
    let docs = text(DOCS);
    let mut seen = BTreeSet::new();
    for alert in alerts().as_array().unwrap() {
        let name = alert["alert"].as_str().unwrap();
        assert!(seen.insert(name.to_owned()), "{name} is there twice");
        assert!(docs.contains(&format!("### {name}\n")), "{DOCS} has no section {name}");
        for field in ["summary", "description"] {
            assert!(
                alert["annotations"][field].as_str().is_some_and(|text| text.len() > 10),
                "{name}: {field}"
            );
        }
        assert!(["warning", "critical"].contains(&alert["labels"]["severity"].as_str().unwrap()), "{name}");
    }
    for line in docs.lines().filter_map(|line| line.strip_prefix("### Compute")) {
        assert!(seen.contains(&format!("Compute{line}")), "there is no alert Compute{line}");
    }
}

#[test]
fn kinds_are_told_apart() {
    let kinds = registered();
    for (name, kind) in [
        ("compute_queue_depth", Kind::Gauge),
        ("compute_reconciles", Kind::Counter),
        ("compute_reconcile_seconds", Kind::Histogram),
        ("compute_writeback_enabled", Kind::Gauge),
        ("compute_quota_eval_failures", Kind::Counter),
        ("compute_federation_quarantined_objects", Kind::Gauge),
    ] {
        assert_eq!(kinds.get(name), Some(&kind), "{name}");
    }
}

#[test]
fn the_dashboard_has_no_panel_on_another() {
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).unwrap();
    let mut cells = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_i64().unwrap()));
        let at = |field: &str| panel["gridPos"][field].as_i64().unwrap();
        assert!(at("x") + at("w") <= 24);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{} overlaps", panel["title"]);
            }
        }
    }
}
