//! Sets, `FieldsV1`, extraction and comparison.

use serde_json::json;

use super::super::{FieldSet, FieldsV1Error, PathElement, compare, fields_of, path_text};
use super::{SCHEMA, set, thing};

#[test]
fn fields_v1_reads_as_kubernetes_writes_it() {
    let text = json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}},
            "f:tags": {"v:\"x\"": {}, "v:1": {}},
            "f:old": {"i:0": {}},
        },
    });
    let fields = set(&text);
    assert_eq!(fields.to_fields_v1(), text);
    let shown: Vec<_> = fields.paths().iter().map(|path| path_text(path)).collect();
    assert_eq!(
        shown,
        [
            ".metadata.labels.app",
            ".spec.containers[name=\"a\"]",
            ".spec.containers[name=\"a\"].image",
            ".spec.old[0]",
            ".spec.tags[=\"x\"]",
            ".spec.tags[=1]",
        ]
    );
    let item = fields.paths()[1].clone();
    assert!(fields.contains(&item) && !fields.contains(&item[..2]) && fields.below(&item[..2]).is_some());
}

#[test]
fn equal_keys_are_one_element_however_they_are_written() {
    let spaced: PathElement = "k:{ \"protocol\": \"TCP\", \"port\": 80.0 }".parse().unwrap();
    let mut fields = [("protocol", &json!("TCP")), ("port", &json!(80))];
    assert_eq!(spaced, PathElement::key(&mut fields));
    assert_eq!(spaced.to_key(), "k:{\"port\":80,\"protocol\":\"TCP\"}");
    assert_eq!(spaced.to_string(), "[port=80,protocol=\"TCP\"]");
}

#[test]
fn malformed_fields_v1_is_an_error() {
    for bad in [
        json!([]),
        json!("f:a"),
        json!({"f:a": 1}),
        json!({"a": {}}),
        json!({"": {}}),
        json!({"k:": {}}),
        json!({"k:[]": {}}),
        json!({"k:{": {}}),
        json!({"v:": {}}),
        json!({"i:x": {}}),
        json!({"f:a": {".": 1}}),
        json!({"field:a": {}}),
    ] {
        assert!(FieldSet::from_fields_v1(&bad).is_err(), "{bad}");
    }
    assert!(matches!(FieldSet::from_fields_v1(&json!(null)), Err(FieldsV1Error::NotAnObject(_))));
    assert_eq!(set(&json!({"z:later": {}, "f:a": {"z:later": {}}})), FieldSet::new());
}

#[test]
fn set_algebra() {
    let a = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
    let b = set(&json!({"f:a": {}, "f:d": {}}));
    let mut union = a.clone();
    union.union(b.clone());
    assert_eq!(union, set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}, "f:d": {}})));
    assert!(union.is_superset(&a) && union.is_superset(&b) && !a.is_superset(&b));
    let mut difference = a.clone();
    difference.difference(&b);
    assert_eq!(difference, set(&json!({"f:a": {"f:b": {}}, "f:c": {}})));
    let mut rest = a.clone();
    rest.subtract(&b);
    assert_eq!(rest, set(&json!({"f:c": {}})));
    assert_eq!(a.intersection(&b), set(&json!({"f:a": {}})));
    let mut gone = a.clone();
    gone.difference(&a);
    assert!(gone.is_empty());

    let mut top = set(&json!({"f:spec": {"f:a": {}}, "f:status": {"f:b": {}}}));
    let mut status = top.clone();
    top.remove_top("status");
    assert_eq!(top, set(&json!({"f:spec": {"f:a": {}}})));
    status.retain_top("status");
    assert_eq!(status, set(&json!({"f:status": {"f:b": {}}})));
}

#[test]
fn extraction_follows_the_schema() {
    let mut object = thing(json!({
        "replicas": 1,
        "containers": [{"name": "a", "ports": [{"port": 80}]}],
        "tags": ["x"],
        "args": ["1", "2"],
        "config": {"a": 1},
        "labels": {"l": "1"},
        "groups": {"g": {"x": 1}},
        "open": {"o": {"p": [1]}, "e": {}},
        "template": {},
    }));
    object["metadata"] = json!({
        "name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1, "managedFields": [],
        "creationTimestamp": null, "selfLink": "", "labels": {"app": "a"}, "finalizers": ["f"],
        "ownerReferences": [{"uid": "1", "name": "o"}],
    });
    let want = json!({
        "f:metadata": {
            "f:labels": {"f:app": {}},
            "f:finalizers": {"v:\"f\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"1\"}": {}},
        },
        "f:spec": {
            "f:replicas": {},
            "f:containers": {"k:{\"name\":\"a\"}": {
                ".": {},
                "f:name": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            }},
            "f:tags": {"v:\"x\"": {}},
            "f:args": {},
            "f:config": {},
            "f:labels": {"f:l": {}},
            "f:groups": {"f:g": {".": {}, "f:x": {}}},
            "f:open": {"f:o": {".": {}, "f:p": {}}, "f:e": {}},
            "f:template": {},
        },
    });
    assert_eq!(fields_of(&object, &SCHEMA).to_fields_v1(), want);
    assert!(fields_of(&json!({"apiVersion": "v1", "metadata": {"name": "x"}}), &SCHEMA).is_empty());
}

#[test]
fn comparison_tells_added_modified_and_removed() {
    // Old and new `spec`; added, modified and removed below it.
    let cases = [
        (json!({"replicas": 1}), json!({"replicas": 1.0}), json!([{}, {}, {}])),
        (json!({"replicas": 1}), json!({"replicas": 2}), json!([{}, {"f:replicas": {}}, {}])),
        (json!({"replicas": 1}), json!({}), json!([{}, {}, {"f:replicas": {}}])),
        (json!({}), json!({"labels": {"a": "1"}}), json!([{"f:labels": {".": {}, "f:a": {}}}, {}, {}])),
        (json!({"labels": {}}), json!({"labels": {"a": "1"}}), json!([{"f:labels": {"f:a": {}}}, {}, {}])),
        (json!({"labels": null}), json!({"labels": {"a": "1"}}), json!([{"f:labels": {"f:a": {}}}, {}, {}])),
        (json!({"labels": null}), json!({"labels": {}}), json!([{}, {"f:labels": {}}, {}])),
        (json!({"args": [1]}), json!({"args": [2]}), json!([{}, {"f:args": {}}, {}])),
        (json!({"config": {"a": 1}}), json!({"config": {"b": 1}}), json!([{}, {"f:config": {}}, {}])),
        (json!({"tags": ["a", "b"]}), json!({"tags": ["b", "a"]}), json!([{}, {}, {}])),
        (
            json!({"tags": ["a", "b"]}),
            json!({"tags": ["b", "c"]}),
            json!([{"f:tags": {"v:\"c\"": {}}}, {}, {"f:tags": {"v:\"a\"": {}}}]),
        ),
        (
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
            json!({"containers": [{"name": "c"}, {"name": "a", "image": "2"}]}),
            json!([
                {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}}}},
                {"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}},
                {"f:containers": {"k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}},
            ]),
        ),
        (
            json!({"containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a"}, {"name": "a", "image": "1"}]}),
            json!([{}, {"f:containers": {"k:{\"name\":\"a\"}": {}}}, {}]),
        ),
        (
            json!({"open": {"a": {"b": 1}}}),
            json!({"open": {"a": "b"}}),
            json!([{}, {"f:open": {"f:a": {}}}, {"f:open": {"f:a": {"f:b": {}}}}]),
        ),
    ];
    for (old, new, want) in cases {
        let changes = compare(&thing(old.clone()), &thing(new.clone()), &SCHEMA);
        let got: Vec<_> = [&changes.added, &changes.modified, &changes.removed]
            .map(|set| set.to_fields_v1().get("f:spec").cloned().unwrap_or_else(|| json!({})))
            .into();
        assert_eq!(json!(got), want, "{old} to {new}");
    }
}

#[test]
fn what_nobody_owns_is_not_compared() {
    let old = json!({"apiVersion": "a/v1", "metadata": {"name": "x", "resourceVersion": "1"}});
    let new =
        json!({"apiVersion": "a/v2", "kind": "K", "metadata": {"name": "y", "uid": "1", "generation": 2}});
    assert!(compare(&old, &new, &SCHEMA).is_empty());
    assert!(compare(&json!(null), &new, &SCHEMA).is_empty());
}

#[test]
fn deep_values_are_one_value() {
    let deep = |leaf: &str| -> serde_json::Value {
        let text =
            format!("{{\"spec\":{{\"open\":{}\"{leaf}\"{}}}}}", "{\"a\":".repeat(124), "}".repeat(124));
        serde_json::from_str(&text).unwrap()
    };
    let changes = compare(&deep("x"), &deep("y"), &SCHEMA);
    assert_eq!(changes.modified.paths()[0].len(), usize::from(super::super::shape::MAX_DEPTH));
    let mut object = deep("x");
    object["metadata"] = json!({"name": "x"});
    super::super::update(None, &mut object, &SCHEMA, super::by("m", 0));
    assert!(serde_json::from_str::<serde_json::Value>(&object.to_string()).is_ok());
}
