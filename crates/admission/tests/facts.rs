//! What is looked up for a Workload, on whose behalf, and what happens when there is no answer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use common::{Meddled, World, person, refused, workload, workload_with_data, write};
use compute_admission::facts::Limits;
use compute_admission::{Admission, Answer};
use compute_api::milo::extra;
use serde_json::{Value, json};

const REVIEWS: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews?";
const NETWORK: &str = "GET /apis/networking.datumapis.com/v1alpha/namespaces/default/networks/default";
const OFFERS: &str = "GET /apis/networking.datumapis.com/v1alpha/locationbindings?";

/// Lets a user use networks and read ConfigMaps and Secrets.
async fn empower(world: &World, user: &str) {
    let rules = json!([
        { "apiGroups": ["networking.datumapis.com"], "resources": ["networks"], "verbs": ["use"] },
        { "apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get"] },
    ]);
    world.grant(user, &rules).await;
}

#[tokio::test]
async fn a_review_carries_all_that_is_known_of_the_caller() {
    let world = World::new().await;
    empower(&world, "ann").await;
    let wire = world.wire();
    let request = write(person("ann"), workload_with_data("web"), None);
    let answer = Admission::new(None).validate(&request, || Ok(wire.client())).await;
    assert_eq!(answer, Answer::allow());
    let asked = wire.asked.lock().clone();
    let reviews: Vec<&Value> =
        asked.iter().filter(|(line, _)| line == REVIEWS).map(|(_, body)| &body["spec"]).collect();
    for review in &reviews {
        assert_eq!((&review["user"], &review["uid"]), (&json!("ann"), &json!("u-1")));
        assert_eq!(review["groups"], json!(["team", "system:authenticated"]));
        assert_eq!(
            review["extra"],
            json!({ extra::PARENT_NAME: ["demo"], extra::PARENT_TYPE: ["Project"],
                extra::PARENT_API_GROUP: ["resourcemanager.miloapis.com"] })
        );
        assert_eq!(review["resourceAttributes"]["namespace"], "default");
    }
    let mut about: Vec<String> = reviews
        .iter()
        .map(|review| &review["resourceAttributes"])
        .map(|of| {
            ["verb", "group", "resource", "name"].map(|part| of[part].as_str().unwrap_or_default()).join(" ")
        })
        .collect();
    about.sort();
    // Each thing once, though the ConfigMap is named twice.
    assert_eq!(
        about,
        ["get  configmaps settings", "get  secrets tokens", "use networking.datumapis.com networks default"]
    );
    assert_eq!(wire.lines().iter().filter(|line| *line != REVIEWS).collect::<Vec<_>>(), [OFFERS, NETWORK]);
}

#[tokio::test]
async fn who_may_not_use_a_network_is_refused_whether_it_exists_or_not() {
    let world = World::new().await;
    let admission = Admission::new(None);
    let wire = world.wire();
    for network in ["default", "nowhere"] {
        let mut object = workload("web");
        object["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!(network);
        let answer = admission.validate(&write(person("bob"), object, None), || Ok(wire.client())).await;
        let expected = format!(
            "Workload.compute.datumapis.com \"web\" is invalid: spec.template.spec.networkInterfaces[0].network.name: \
             Forbidden: you may not use network \"{network}\"; ask for permission to \"use\" it"
        );
        assert_eq!(refused(answer), (422, expected));
    }
}

#[tokio::test]
async fn what_is_missing_or_not_offered_or_not_readable_is_said_at_once() {
    let world = World::new().await;
    let rules = json!([
        { "apiGroups": ["networking.datumapis.com"], "resources": ["networks"], "verbs": ["use"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] },
    ]);
    world.grant("cat", &rules).await;
    let mut object = workload_with_data("web");
    object["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("nowhere");
    object["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "ORD"]);
    let wire = world.wire();
    let answer =
        Admission::new(None).validate(&write(person("cat"), object, None), || Ok(wire.client())).await;
    let refusal = answer.refusal.unwrap();
    assert_eq!((refusal.code, refusal.reason), (422, "Invalid"));
    let causes: Vec<_> = refusal.details["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| ["reason", "field", "message"].map(|part| cause[part].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(
        causes,
        [
            [
                "FieldValueNotFound",
                "spec.template.spec.networkInterfaces[0].network.name",
                "Not found: \"nowhere\": there is no network of this name in namespace \"default\"",
            ],
            [
                "FieldValueForbidden",
                "spec.template.spec.runtime.sandbox.containers[0].envFrom[2].secretRef.name",
                "Forbidden: you may not read Secret \"tokens\"; ask for permission to \"get\" it",
            ],
            [
                "FieldValueNotSupported",
                "spec.placements[0].cityCodes[1]",
                "Unsupported value: \"ORD\": city ORD is not offered to this project; offered are DFW",
            ],
        ]
    );
}

#[tokio::test]
async fn nothing_is_asked_about_what_a_write_does_not_add() {
    let world = World::new().await;
    let wire = world.wire();
    let admission = Admission::new(None);
    let old = workload_with_data("web");
    let mut scaled = old.clone();
    scaled["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(3);
    let mut touched = old.clone();
    touched["metadata"]["finalizers"] = json!(["compute.datumapis.com/workload-controller"]);
    // Bob may do nothing of all this by himself.
    for object in [scaled, touched] {
        let request = write(person("bob"), object, Some(old.clone()));
        assert_eq!(admission.validate(&request, || panic!("no project is needed")).await, Answer::allow());
    }
    let mut more = old.clone();
    more["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "ORD"]);
    world.offer("ORD").await;
    let request = write(person("bob"), more, Some(old));
    assert_eq!(admission.validate(&request, || Ok(wire.client())).await, Answer::allow());
    assert_eq!(wire.lines(), [OFFERS]);
}

#[tokio::test]
async fn without_networking_networks_need_not_be_there() {
    let world = World::new().await;
    let wire = world.wire();
    let admission = Admission { networking: false, ..Admission::new(None) };
    let mut object = workload("web");
    object["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("nowhere");
    let answer = admission.validate(&write(person("bob"), object, None), || Ok(wire.client())).await;
    assert_eq!(answer, Answer::allow());
    assert_eq!(wire.lines(), [OFFERS]);
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_not_an_answer() {
    let world = World::new().await;
    empower(&world, "ann").await;
    let admission = Admission::new(None);
    let network = "whether you may use network \"default\" could not be checked";
    let cities = "which cities are offered to this project could not be checked";
    let wrong = |code: u16| {
        Meddled::Answer(
            code,
            json!({ "kind": "Status", "code": code, "reason": "X", "message": "secret details" }),
        )
    };
    type Meddle = Box<dyn Fn(&str) -> Option<Meddled> + Send + Sync>;
    let on = |part: &'static str, what: fn() -> Meddled| -> Meddle {
        Box::new(move |line| line.contains(part).then(what))
    };
    let cases: Vec<(Meddle, String)> = vec![
        (Box::new(move |line| line.contains("subjectaccessreviews").then(|| wrong(500))), network.to_owned()),
        (
            on("subjectaccessreviews", || Meddled::Answer(403, json!({ "kind": "Status", "code": 403 }))),
            network.to_owned(),
        ),
        (on("subjectaccessreviews", || Meddled::Answer(201, json!({ "no": "review" }))), network.to_owned()),
        (on("subjectaccessreviews", || Meddled::Break), network.to_owned()),
        (on("subjectaccessreviews", || Meddled::Silence), format!("{network} in time")),
        (
            on("subjectaccessreviews", || {
                Meddled::Answer(
                    201,
                    json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": {},
                    "status": { "allowed": false, "evaluationError": "the authorizer is away" } }),
                )
            }),
            network.to_owned(),
        ),
        (
            on("/networks/", || Meddled::Answer(503, json!({ "kind": "Status", "code": 503 }))),
            network.to_owned(),
        ),
        (on("/networks/", || Meddled::Silence), format!("{network} in time")),
        (
            on("locationbindings", || Meddled::Answer(401, json!({ "kind": "Status", "code": 401 }))),
            cities.to_owned(),
        ),
        (on("locationbindings", || Meddled::Answer(200, json!("nonsense"))), cities.to_owned()),
        (on("locationbindings", || Meddled::Silence), format!("{cities} in time")),
    ];
    for (meddle, what) in cases {
        let wire = world.wire();
        wire.meddle(meddle);
        let answer =
            admission.validate(&write(person("ann"), workload("web"), None), || Ok(wire.client())).await;
        let (code, message) = refused(answer);
        assert_eq!((code, message), (500, format!("Internal error occurred: {what}; try again")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plane_that_has_no_place_is_asked_again() {
    let world = World::new().await;
    empower(&world, "ann").await;
    let full = || Meddled::Answer(429, json!({ "kind": "Status", "code": 429, "reason": "TooManyRequests" }));
    let admission = Admission::new(None);
    let wire = world.wire();
    let refusals = std::sync::atomic::AtomicUsize::new(6);
    wire.meddle(move |_| {
        let left = refusals.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        left.is_ok().then(full)
    });
    let write = write(person("ann"), workload("web"), None);
    let answer = admission.validate(&write, || Ok(wire.client())).await;
    assert!(answer.refusal.is_none(), "{answer:?}");
    // One that never has is given up.
    wire.meddle(move |_| Some(full()));
    let (code, message) = refused(admission.validate(&write, || Ok(wire.client())).await);
    assert_eq!(code, 500);
    assert!(message.ends_with("could not be checked in time; try again"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn everything_together_takes_bounded_time() {
    let world = World::new().await;
    empower(&world, "ann").await;
    let wire = world.wire();
    wire.meddle(|line| line.contains("subjectaccessreviews").then_some(Meddled::Silence));
    let limits = Limits { one: Duration::from_secs(60), all: Duration::from_secs(5), at_once: 2 };
    let admission = Admission { limits, ..Admission::new(None) };
    let mut object = workload("web");
    let sources: Vec<Value> =
        (0..50).map(|number| json!({ "secretRef": { "name": format!("s{number}") } })).collect();
    object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] = json!(sources);
    let began = tokio::time::Instant::now();
    let answer = admission.validate(&write(person("ann"), object, None), || Ok(wire.client())).await;
    let message =
        "Internal error occurred: what the workload refers to could not be checked in time; try again";
    assert_eq!(refused(answer), (500, message.to_owned()));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    // No more than two questions were ever open.
    assert!(wire.lines().len() <= 3);
}

/// An offer of a form that is not known here does not hide the others.
#[tokio::test]
async fn malformed_offers_are_skipped() {
    let world = World::new().await;
    empower(&world, "ann").await;
    let wire = world.wire();
    wire.meddle(|line| {
        let good = json!({ "metadata": { "name": "b" }, "spec": { "topology": { "topology.datum.net/city-code": "DFW" } },
            "status": { "conditions": [{ "type": "Available", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
        let items = json!([{ "metadata": { "name": "a" }, "spec": { "topology": 7 } }, 7, null, good]);
        line.contains("locationbindings").then(|| Meddled::Answer(200, json!({ "items": items })))
    });
    let request = write(person("ann"), workload("web"), None);
    assert_eq!(Admission::new(None).validate(&request, || Ok(wire.client())).await, Answer::allow());
}
