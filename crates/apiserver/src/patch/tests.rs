//! Tables of patches and what becomes of a document.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Error, json_patch, merge_patch, strategic};
use crate::schema::{PatchStrategy, Schema, Type};

fn object(fields: &[(&str, Schema)]) -> Schema {
    let properties =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), Arc::new(schema.clone()))).collect();
    Schema { type_: Some(Type::Object), properties, ..Schema::default() }
}

fn list(items: Schema, patch_strategy: Option<PatchStrategy>) -> Schema {
    Schema { type_: Some(Type::Array), items: Some(Arc::new(items)), patch_strategy, ..Schema::default() }
}

fn schema() -> Schema {
    let text = Schema { type_: Some(Type::String), ..Schema::default() };
    let by = |key: &str| Some(PatchStrategy::MergeByKey(key.to_owned()));
    let port = object(&[("port", text.clone()), ("name", text.clone())]);
    let container = object(&[
        ("name", text.clone()),
        ("image", text.clone()),
        ("args", list(text.clone(), None)),
        ("ports", list(port, by("port"))),
    ]);
    object(&[(
        "spec",
        object(&[
            ("containers", list(container, by("name"))),
            ("tags", list(text.clone(), Some(PatchStrategy::MergeSet))),
            ("args", list(text, None)),
            ("strategy", object(&[("type", Schema::default()), ("rolling", Schema::default())])),
            ("open", Schema { preserve_unknown_fields: true, ..Schema::default() }),
        ]),
    )])
}

#[test]
fn merge_patch_follows_the_rfc() {
    let cases = [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!([1]), json!({"a":"b","c":null}), json!({"a":"b"})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
    ];
    for (mut doc, patch, want) in cases {
        merge_patch(&mut doc, patch.clone()).unwrap();
        assert_eq!(doc, want, "patch {patch}");
    }
    assert!(matches!(merge_patch(&mut json!({}), json!([1])), Err(Error::Malformed(_))));
}

#[test]
fn json_patch_applies_or_says_why_not() {
    let doc = json!({"a": [1, 2], "b": {"c": "d"}});
    let cases = [
        (json!([{"op":"add","path":"/a/-","value":3}]), Some(json!({"a":[1,2,3],"b":{"c":"d"}}))),
        (json!([{"op":"remove","path":"/b/c"}]), Some(json!({"a":[1,2],"b":{}}))),
        (
            json!([{"op":"copy","from":"/b","path":"/e"}]),
            Some(json!({"a":[1,2],"b":{"c":"d"},"e":{"c":"d"}})),
        ),
        (json!([{"op":"move","from":"/b/c","path":"/a/0"}]), Some(json!({"a":["d",1,2],"b":{}}))),
        (
            json!([{"op":"test","path":"/a/0","value":1},{"op":"replace","path":"/a","value":[]}]),
            Some(json!({"a":[],"b":{"c":"d"}})),
        ),
        (json!([{"op":"test","path":"/a/0","value":2}]), None),
        // To Kubernetes an absent field is null; what lies in an absent one is not there at all.
        (json!([{"op":"test","path":"/nope","value":null}]), Some(doc.clone())),
        (json!([{"op":"test","path":"/b/c","value":null}]), None),
        (json!([{"op":"test","path":"/nope/x","value":null}]), None),
        (json!([{"op":"remove","path":"/nope"}]), None),
        (json!([{"op":"add","path":"/x/y","value":1}]), None),
        (json!([{"op":"add","path":"/a/7","value":1}]), None),
    ];
    for (patch, want) in cases {
        let got = json_patch(doc.clone(), patch.to_string().as_bytes());
        match want {
            Some(want) => assert_eq!(got.unwrap(), want, "patch {patch}"),
            None => assert!(matches!(got, Err(Error::Invalid(_))), "patch {patch} gave {got:?}"),
        }
    }
    for bad in [
        "{}",
        "[{\"op\":\"jump\",\"path\":\"/a\"}]",
        "[{\"op\":\"add\",\"path\":\"/a\"}]",
        "[",
        "[{\"op\":\"remove\",\"path\":\"a\"}]",
    ] {
        assert!(matches!(json_patch(doc.clone(), bad.as_bytes()), Err(Error::Malformed(_))), "{bad}");
    }
}

#[test]
fn json_patch_is_bounded() {
    let many = vec![json!({"op":"test","path":"","value":{}}); 10_001];
    assert!(matches!(
        json_patch(json!({}), Value::from(many).to_string().as_bytes()),
        Err(Error::TooLarge(_))
    ));

    let doubling: Vec<_> = (0..64).map(|_| json!({"op":"copy","from":"/a","path":"/a/-"})).collect();
    let doc = json!({"a": ["0123456789"]});
    let got = json_patch(doc, Value::from(doubling).to_string().as_bytes());
    assert!(matches!(got, Err(Error::TooLarge(_) | Error::Invalid(_))), "{got:?}");

    let wide: Vec<_> =
        (0..10_000).map(|at| json!({"op":"copy","from":"/a","path":format!("/b{at}")})).collect();
    let doc = json!({"a": "x".repeat(100_000)});
    assert!(matches!(json_patch(doc, Value::from(wide).to_string().as_bytes()), Err(Error::TooLarge(_))));

    let deep: Vec<_> = (0..200).map(|at| json!({"op":"add","path":"/a".repeat(at + 1),"value":{}})).collect();
    assert!(matches!(
        json_patch(json!({}), Value::from(deep).to_string().as_bytes()),
        Err(Error::Invalid(_))
    ));

    let nested: Value =
        serde_json::from_str(&format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100))).unwrap();
    let down = json!([{"op":"add","path":"/x","value":{"a":{"a":{}}}}, {"op":"move","from":"/a","path":format!("/x{}", "/a".repeat(2))}]);
    assert!(json_patch(nested.clone(), down.to_string().as_bytes()).is_ok());
    let path = "/b".repeat(40);
    let holes: Vec<_> = (1..=40).map(|at| json!({"op":"add","path":"/b".repeat(at),"value":{}})).collect();
    let mut all = holes;
    all.push(json!({"op":"move","from":"/a","path":format!("{path}/c")}));
    assert!(matches!(json_patch(nested, Value::from(all).to_string().as_bytes()), Err(Error::Invalid(_))));
}

/// A document's `spec`, a patch of it, and the `spec` that comes of it.
#[test]
fn strategic_patches() {
    let abc = || json!({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"},{"name":"c"}]});
    let cases = [
        // Maps merge, null removes, scalars replace.
        (
            json!({"strategy":{"type":"x","rolling":1}}),
            json!({"strategy":{"type":"y","rolling":null}}),
            json!({"strategy":{"type":"y"}}),
        ),
        (json!({}), json!({"strategy":{"type":"y","rolling":null}}), json!({"strategy":{"type":"y"}})),
        (json!({"strategy":{"type":"x"}}), json!({"strategy":null,"nope":null}), json!({})),
        // Lists merge by key: known entries in place, new ones in front.
        (
            abc(),
            json!({"containers":[{"name":"b","image":"2"}]}),
            json!({"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"},{"name":"c"}]}),
        ),
        (
            abc(),
            json!({"containers":[{"name":"d"}]}),
            json!({"containers":[{"name":"d"},{"name":"a","image":"1"},{"name":"b","image":"1"},{"name":"c"}]}),
        ),
        (
            abc(),
            json!({"containers":[{"name":"c"},{"name":"a","image":null}]}),
            json!({"containers":[{"name":"b","image":"1"},{"name":"c"},{"name":"a"}]}),
        ),
        (json!({}), json!({"containers":[{"name":"a","image":null}]}), json!({"containers":[{"name":"a"}]})),
        // Nested lists merge too, others are replaced.
        (
            json!({"containers":[{"name":"a","args":["1","2"],"ports":[{"port":1,"name":"x"}]}]}),
            json!({"containers":[{"name":"a","args":["3"],"ports":[{"port":1,"name":"y"},{"port":2}]}]}),
            json!({"containers":[{"name":"a","args":["3"],"ports":[{"port":1,"name":"y"},{"port":2}]}]}),
        ),
        // Directives in list entries.
        (
            abc(),
            json!({"containers":[{"name":"b","$patch":"delete"}]}),
            json!({"containers":[{"name":"a","image":"1"},{"name":"c"}]}),
        ),
        (
            abc(),
            json!({"containers":[{"name":"z","$patch":"delete"},{"name":"a","image":"3"}]}),
            json!({"containers":[{"name":"a","image":"3"},{"name":"b","image":"1"},{"name":"c"}]}),
        ),
        (
            abc(),
            json!({"containers":[{"$patch":"replace"},{"name":"x"}]}),
            json!({"containers":[{"name":"x"}]}),
        ),
        (
            json!({}),
            json!({"containers":[{"name":"b","$patch":"delete"},{"name":"x"}]}),
            json!({"containers":[{"name":"x"}]}),
        ),
        // Directives in maps.
        (
            json!({"strategy":{"type":"x","rolling":1}}),
            json!({"strategy":{"$patch":"replace","type":"y"}}),
            json!({"strategy":{"type":"y"}}),
        ),
        (json!({"strategy":{"type":"x"}}), json!({"strategy":{"$patch":"delete"}}), json!({"strategy":{}})),
        (
            json!({"strategy":{"type":"x"}}),
            json!({"strategy":{"$patch":"merge","rolling":1}}),
            json!({"strategy":{"type":"x","rolling":1}}),
        ),
        (
            json!({"strategy":{"rolling":1}}),
            json!({"strategy":{"$retainKeys":["type"],"type":"y"}}),
            json!({"strategy":{"type":"y"}}),
        ),
        (
            json!({}),
            json!({"strategy":{"$retainKeys":["type"],"type":"y"}}),
            json!({"strategy":{"type":"y"}}),
        ),
        // Sets of scalars.
        (json!({"tags":["a","b"]}), json!({"tags":["c","a"]}), json!({"tags":["c","a","b"]})),
        (json!({"tags":["a","b"]}), json!({"$deleteFromPrimitiveList/tags":["a"]}), json!({"tags":["b"]})),
        (
            json!({"tags":["a","b"]}),
            json!({"$setElementOrder/tags":["c","b","a"],"$deleteFromPrimitiveList/tags":["x"],"tags":["c"]}),
            json!({"tags":["c","b","a"]}),
        ),
        (json!({}), json!({"$deleteFromPrimitiveList/tags":["a"]}), json!({})),
        // Order.
        (
            abc(),
            json!({"$setElementOrder/containers":[{"name":"c"},{"name":"a"}]}),
            json!({"containers":[{"name":"b","image":"1"},{"name":"c"},{"name":"a","image":"1"}]}),
        ),
        (
            abc(),
            json!({"$setElementOrder/containers":[{"name":"a"},{"name":"b"},{"name":"d"},{"name":"c"}],"containers":[{"name":"d"}]}),
            json!({"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"},{"name":"d"},{"name":"c"}]}),
        ),
        (
            abc(),
            json!({"$setElementOrder/containers":[{"name":"c"},{"name":"b"}],"containers":[{"name":"b","image":"2"},{"name":"a","$patch":"delete"}]}),
            json!({"containers":[{"name":"c"},{"name":"b","image":"2"}]}),
        ),
        // Lists without a strategy, and open values.
        (json!({"args":["1"]}), json!({"args":["2"]}), json!({"args":["2"]})),
        (
            json!({"open":{"a":{"b":1},"l":[1]}}),
            json!({"open":{"a":{"c":2,"b":null},"l":[2],"$ref":"x"}}),
            json!({"open":{"a":{"c":2},"l":[2],"$ref":"x"}}),
        ),
        (json!({"args":["1"]}), json!({"args":{"now":"a map"}}), json!({"args":{"now":"a map"}})),
    ];
    let schema = schema();
    for (doc, patch, want) in cases {
        let got = strategic::patch(json!({"spec": doc}), json!({"spec": patch}), &schema);
        assert_eq!(got.unwrap(), json!({"spec": want}), "doc {doc}, patch {patch}");
    }
}

#[test]
fn strategic_patch_knows_metadata() {
    let doc = json!({"metadata":{"name":"x","finalizers":["a"],"labels":{"a":"1"},"ownerReferences":[{"uid":"1","name":"o"}]}});
    let patch = json!({"metadata":{"finalizers":["b"],"labels":{"b":"2"},"ownerReferences":[{"uid":"1","$patch":"delete"}]}});
    let want = json!({"metadata":{"name":"x","finalizers":["b","a"],"labels":{"a":"1","b":"2"},"ownerReferences":[]}});
    assert_eq!(strategic::patch(doc, patch, &schema()).unwrap(), want);
}

#[test]
fn strategic_patch_refuses() {
    let doc = json!({"spec":{"containers":[{"name":"a"}],"tags":["a"],"strategy":{"type":"x"}}});
    let bad = [
        json!({"containers":[{"image":"1"}]}),
        json!({"containers":[{"$patch":"delete"}]}),
        json!({"containers":["a"]}),
        json!({"containers":[{"name":"a","$patch":"explode"}]}),
        json!({"strategy":{"$patch":"explode"}}),
        json!({"strategy":{"$patch":1}}),
        json!({"strategy":{"$retainKeys":"type"}}),
        json!({"strategy":{"$retainKeys":["rolling"],"type":"y"}}),
        json!({"$setElementOrder/containers":"a"}),
        json!({"$setElementOrder/containers":[{"image":"1"}]}),
        json!({"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"b"}]}),
        json!({"$deleteFromPrimitiveList/tags":"a"}),
        json!({"tags":[{"a":1}]}),
        json!({"$unheard":1}),
    ];
    for patch in bad {
        let got = strategic::patch(doc.clone(), json!({"spec": patch}), &schema());
        assert!(matches!(got, Err(Error::Malformed(_))), "patch {patch} gave {got:?}");
    }
    assert!(strategic::patch(doc, json!([]), &schema()).is_err());
}
