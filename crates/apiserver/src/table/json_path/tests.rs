//! What paths find, which texts are no paths, and that odd ones cost little.

use serde_json::{Value, json};

use super::JsonPath;

fn object() -> Value {
    json!({
        "metadata": {
            "name": "web",
            "labels": {"app.kubernetes.io/name": "web", "it's": "quoted"},
            "annotations": null,
        },
        "spec": {"replicas": 3, "ratio": 0.5, "ports": [80, 443, 8080, 9090], "empty": [], "on": true},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "weight": 1, "final": true},
                {"type": "Available", "status": "False", "weight": 2.5, "final": false},
                {"type": "Progressing", "status": "True"},
            ],
            "wanted": "Available",
            "cells": [{"name": "a", "hosts": [{"name": "h1"}, {"name": "h2"}]}, {"name": "b", "hosts": [{"name": "h3"}]}],
        },
    })
}

#[test]
fn paths_find_what_kubectl_finds() {
    let cases: &[(&str, Value)] = &[
        (".metadata.name", json!(["web"])),
        ("metadata.name", json!(["web"])),
        ("$.metadata.name", json!(["web"])),
        ("{.metadata.name}", json!(["web"])),
        ("{ .metadata.name }", json!(["web"])),
        (".metadata.nothing.here", json!([])),
        (".metadata.name.deeper", json!([])),
        (".metadata.annotations.x", json!([])),
        (".metadata.annotations", json!([null])),
        (r".metadata.labels.app\.kubernetes\.io/name", json!(["web"])),
        (".metadata.labels['app.kubernetes.io/name']", json!(["web"])),
        (".metadata.labels[\"app.kubernetes.io/name\"]", json!(["web"])),
        (r".metadata.labels['it\'s']", json!(["quoted"])),
        (".spec.ports[0]", json!([80])),
        (".spec.ports[-1]", json!([9090])),
        (".spec.ports[9]", json!([])),
        (".spec.ports[-9]", json!([])),
        (".spec.empty[0]", json!([])),
        (".spec.replicas[0]", json!([])),
        (".spec.ports[1:3]", json!([443, 8080])),
        (".spec.ports[:2]", json!([80, 443])),
        (".spec.ports[2:]", json!([8080, 9090])),
        (".spec.ports[-2:]", json!([8080, 9090])),
        (".spec.ports[0:4:2]", json!([80, 8080])),
        (".spec.ports[0:9]", json!([])),
        (".spec.ports[3:1]", json!([])),
        (".spec.empty[:]", json!([])),
        (".spec.ports[*]", json!([80, 443, 8080, 9090])),
        (".spec.ports.*", json!([80, 443, 8080, 9090])),
        (".spec.ports[0,2]", json!([80, 8080])),
        (".spec['replicas','ratio']", json!([3, 0.5])),
        (".status.conditions[*].type", json!(["Ready", "Available", "Progressing"])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (".status.conditions[?(@.type == \"Ready\")].status", json!(["True"])),
        (".status.conditions[?( @.type == 'Ready' )].status", json!(["True"])),
        (".status.conditions[?(@.type!=\"Ready\")].type", json!(["Available", "Progressing"])),
        (".status.conditions[?(@.type==\"Missing\")].status", json!([])),
        (".status.conditions[?(@.weight>1)].type", json!(["Available"])),
        (".status.conditions[?(@.weight<2)].type", json!(["Ready"])),
        (".status.conditions[?(@.weight>=1)].type", json!(["Ready", "Available"])),
        (".status.conditions[?(@.weight<=2.5)].type", json!(["Ready", "Available"])),
        (".status.conditions[?(@.weight==2.5)].type", json!(["Available"])),
        (".status.conditions[?(@.weight!=1)].type", json!(["Available"])),
        (".status.conditions[?(@.weight==\"1\")].type", json!([])),
        (".status.conditions[?(@.final==true)].type", json!(["Ready"])),
        (".status.conditions[?(@.final!=true)].type", json!(["Available"])),
        (".status.conditions[?(@.final)].type", json!(["Ready", "Available"])),
        (".status.conditions[?(@.type==$.status.wanted)].status", json!(["False"])),
        (".spec.ports[?(@>443)]", json!([8080, 9090])),
        (".metadata[?(@.name==\"web\")]", json!([])),
        (".status.cells[?(@.hosts[0].name==\"h1\")].name", json!(["a"])),
        // More values than one, or a place that is not there, cannot be compared.
        (".status.cells[?(@.hosts[*].name==\"h1\")].name", json!([])),
        (".status.cells[?(@.hosts[1].name==\"h2\")].name", json!([])),
        ("..hosts[*].name", json!(["h1", "h2", "h3"])),
        (".status.cells..name", json!(["a", "h1", "h2", "b", "h3"])),
        (".status.cells[1].hosts[?(@.name==\"h1\")].name", json!([])),
    ];
    let object = object();
    for (path, expected) in cases {
        let parsed = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let found: Vec<Value> = parsed.find(&object).into_iter().cloned().collect();
        assert_eq!(Value::Array(found), *expected, "{path}");
    }
    assert_eq!(JsonPath::parse(".").unwrap().find(&object), vec![&object]);
}

#[test]
fn malformed_paths_are_refused_with_a_place() {
    let cases = [
        (".a.", 3),
        ("...a", 2),
        (".a[", 3),
        (".a[0", 4),
        (".a[x]", 3),
        (".a[]", 3),
        (".a['b]", 6),
        (".a[?(@.b==c)]", 10),
        (".a[?(@.b==\"c\"]", 13),
        (".a[?(@.b==\"c\")", 14),
        (".a[?(@.b=1)]", 8),
        (".a[0:2:0]", 8),
        (".a[99999999999999999999]", 3),
        (r".a\", 3),
        (".a b", 2),
        (".a]", 2),
    ];
    for (path, at) in cases {
        match JsonPath::parse(path) {
            Err(error) => assert_eq!(error.at, at, "{path}: {error}"),
            Ok(parsed) => panic!("{path} gave {parsed:?}"),
        }
    }
    assert!(JsonPath::parse(&".a".repeat(3000)).is_err());
    let nested = format!(".a{}1{}", "[?(@".repeat(50), ")]".repeat(50));
    assert!(JsonPath::parse(&nested).is_err());
}

#[test]
fn costly_searches_stop() {
    let mut deep = json!({"a": 1});
    for _ in 0..100 {
        deep = json!({"a": deep, "b": [1, 2, 3]});
    }
    let path = JsonPath::parse("..*..*..*..*").unwrap();
    assert!(path.find(&deep).is_empty());
    let plain = JsonPath::parse("..b[0]").unwrap();
    assert_eq!(plain.find(&deep).len(), 100);
}

#[test]
fn odd_text_never_panics() {
    let parts = [
        ".", "..", "[", "]", "?(", ")", "@", "$", "'", "\"", "\\", "*", "a", "é", "1", "-", ":", ",", "==",
        " ", "{", "}",
    ];
    let object = object();
    let mut seed = 7_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(parts[(seed >> 33) as usize % parts.len()]);
        }
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&object);
        }
    }
}
