//! Objects of others that make no sense, of every kind that is watched, on every plane: nobody panics or gives up, each that cannot be read is
//! reported once by each who watches it, and everything else is served.
//!
//! The schemas of a real platform refuse most of them. They come all the same: after a downgrade, from another version, by a schema that was
//! loosened. So the schemas here let everything in.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod heard;
mod kinds;

use std::time::Duration;

use compute_apiserver::Options;
use compute_local::Settings;
use compute_runtime::Runtime;
use compute_testkit::objects::{placement, workload};
use compute_testkit::{Embedded, Place, Stack as _, View, eventually, stays};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use heard::Heard;
use kinds::{Kind, kinds};

/// Long enough to hurt whatever repeats it, and short enough that an object with some of them can be stored.
const HUGE: usize = 48 * 1024;

/// A way in which an object makes no sense.
struct Bad {
    name: &'static str,
    fields: Value,
    /// Whether it can be read nevertheless: parts of it are missing or odd.
    is_readable: bool,
}

/// Each text replaced.
fn with_texts(value: &Value, text: &Value) -> Value {
    match value {
        Value::String(_) => text.clone(),
        Value::Array(all) => all.iter().map(|one| with_texts(one, text)).collect(),
        Value::Object(all) => all
            .iter()
            .map(|(key, one)| (key.clone(), with_texts(one, text)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn bad(sample: &Value) -> Vec<Bad> {
    let one = |name, fields, is_readable| Bad { name, fields, is_readable };
    let odd = json!([7, "x", {}, { "type": 3 }, { "type": "Ready", "status": "Perhaps" }, null]);
    let entry = json!({ "type": "Ready", "status": "True", "reason": "x".repeat(HUGE), "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    vec![
        one("bad-no-spec", json!({}), true),
        one("bad-null-spec", json!({ "spec": null }), true),
        one("bad-empty-spec", json!({ "spec": {} }), true),
        one("bad-empty-references", json!({ "spec": with_texts(sample, &json!("")) }), true),
        one("bad-huge", json!({ "spec": with_texts(sample, &json!("x".repeat(HUGE))) }), true),
        one("bad-conditions", json!({ "spec": sample, "status": { "conditions": odd } }), true),
        one("bad-conditions-are-none", json!({ "spec": sample, "status": { "conditions": "none" } }), true),
        one("bad-huge-condition", json!({ "spec": sample, "status": { "conditions": [entry] } }), true),
        one("bad-spec-is-text", json!({ "spec": "everywhere" }), false),
        one("bad-spec-is-a-number", json!({ "spec": 7 }), false),
        one("bad-types", json!({ "spec": with_texts(sample, &json!(7)) }), false),
        one("bad-nested-types", json!({ "spec": with_texts(sample, &json!({ "a": [1] })) }), false),
    ]
}

/// Lets everything in, whatever the kind.
async fn loosen(client: &Client) {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let foreign: Vec<_> = compute_api::crds::foreign().iter().map(|crd| crd.name_any()).collect();
    for crd in crds.list(&ListParams::default()).await.unwrap() {
        if !foreign.contains(&crd.name_any()) {
            continue;
        }
        let mut operations =
            vec![json!({ "op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
            "value": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } })];
        if crd.spec.versions[0].selectable_fields.is_some() {
            // What no schema knows cannot be selected by.
            operations.push(json!({ "op": "remove", "path": "/spec/versions/0/selectableFields" }));
        }
        let patch = Patch::Json::<()>(serde_json::from_value(operations.into()).unwrap());
        crds.patch(&crd.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
}

async fn create(client: &Client, kind: &Kind, namespace: &str, bad: &Bad) {
    let api: Api<DynamicObject> = match kind.is_namespaced {
        true => Api::namespaced_with(client.clone(), namespace, &kind.resource),
        false => Api::all_with(client.clone(), &kind.resource),
    };
    let name = kind.name_of(bad.name);
    let mut object = DynamicObject::new(&name, &kind.resource);
    object.data = bad.fields.clone();
    let what = format!("{} {name} is accepted", kind.resource.kind);
    eventually(&what, async || api.create(&PostParams::default(), &object).await).await;
    if let Some(status) = bad.fields.get("status") {
        let patch = Patch::Merge(json!({ "status": status }));
        // Whoever writes a status of its own may be faster; what it left is as good.
        let _ = api.patch_status(&name, &PatchParams::default(), &patch).await;
    }
}

/// Namespaces that look as if they were a project's.
async fn odd_namespaces(stack: &Embedded) {
    let labels = [
        json!({ "meta.datumapis.com/upstream-cluster-name": "", "meta.datumapis.com/upstream-namespace": "" }),
        json!({ "meta.datumapis.com/upstream-cluster-name": "cluster" }),
        json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-nobody_knows_it",
            "meta.datumapis.com/upstream-namespace": "default" }),
        json!({ "meta.datumapis.com/upstream-cluster-name": "no-cluster",
            "meta.datumapis.com/upstream-namespace": "x".repeat(63) }),
    ];
    for place in [Place::Hub, Place::Cell("DFW".to_owned())] {
        for (n, labels) in labels.iter().enumerate() {
            let namespace = json!({ "metadata": { "name": format!("ns-odd-{n}-{}", kinds::plane(&place, "")),
                "labels": labels } });
            let namespace: Namespace = serde_json::from_value(namespace).unwrap();
            let api: Api<Namespace> = Api::all(stack.client(&place));
            api.create(&PostParams::default(), &namespace).await.unwrap();
        }
    }
}

#[tokio::test]
async fn objects_of_others_that_make_no_sense_hurt_nobody() {
    let heard = Heard::install();
    let cities = ["DFW", "ORD"].map(str::to_owned).to_vec();
    // Nobody refuses anything: neither a schema nor admission.
    let settings = Settings { cities, admission: false, ..Settings::default() };
    let stack = Embedded::with(Options::default(), Runtime::system(), settings).await;
    let view = View::new(&stack, "malformed").await;
    view.create(&workload("before", &["DFW", "ORD"], 1)).await;
    view.until_ready("before", &[("before-main-dfw", 1), ("before-main-ord", 1)]).await;

    for place in [Place::Core, Place::Hub, Place::Cell("DFW".to_owned()), view.place()] {
        loosen(&stack.client(&place)).await;
    }
    odd_namespaces(&stack).await;
    let mut expected = Vec::new();
    for kind in kinds(&view.place()) {
        let client = stack.client(&kind.place);
        let namespace = match (&kind.place, kind.namespace) {
            (_, Some(namespace)) => namespace.to_owned(),
            (Place::Project(_), None) => "default".to_owned(),
            (_, None) => view.hub_namespace.clone(),
        };
        for bad in bad(&kind.sample) {
            create(&client, &kind, &namespace, &bad).await;
            if !bad.is_readable {
                let plane = kinds::plane(&kind.place, &view.project);
                let name = kind.name_of(bad.name);
                expected.push((format!("{plane} {} {name}", kind.resource.kind), kind.watchers));
            }
        }
    }
    let reported = || -> Vec<(String, usize)> {
        expected.iter().map(|(object, _)| (object.clone(), heard.reports_of(object))).collect()
    };
    eventually("each is reported by each who watches it", async || {
        let lacking: Vec<_> =
            reported().into_iter().zip(&expected).filter(|(is, wanted)| is.1 < wanted.1).collect();
        if lacking.is_empty() { Ok(()) } else { Err(format!("{lacking:#?}")) }
    })
    .await;

    // What was there is served on, and so is what comes.
    view.set_placements("before", &[placement("main", &["DFW", "ORD"], 2)]).await;
    view.until_ready("before", &[("before-main-dfw", 2), ("before-main-ord", 2)]).await;
    let after = View::new(&stack, "after").await;
    for view in [&view, &after] {
        view.create(&workload("good", &["DFW", "ORD"], 1)).await;
        view.until_ready("good", &[("good-main-dfw", 1), ("good-main-ord", 1)]).await;
        view.delete("good").await;
        view.until_gone("good").await;
    }
    view.delete("before").await;
    view.until_gone("before").await;

    assert_eq!(reported(), expected, "each is reported once by each who watches it");
    assert_eq!(heard.panics(), Vec::<String>::new());
    stays("nothing is told again and again", Duration::from_secs(3), async || {
        let repeated = heard.repeated(4);
        if repeated.is_empty() { Ok(()) } else { Err(format!("{repeated:#?}")) }
    })
    .await;
}
