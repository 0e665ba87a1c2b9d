//! Writes against a real server: what they change, what they leave alone, and how they fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use compute_runtime::write::{
    Error, MetadataPatch, OtherController, Outage, Part, Retry, Target, Writer, controller_reference,
    is_controlled_by, plain_reference, set_owner,
};
use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PropagationPolicy};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::{Condition, Fault, Faults, Gate, Widget, WidgetSpec, plane_client, widget};

fn writer() -> Writer {
    Writer::new("tester")
}

fn fields(spec: &Value) -> Value {
    json!({ "apiVersion": "test.example.com/v1", "kind": "Widget", "spec": spec })
}

#[tokio::test]
async fn apply_owns_its_fields_and_takes_them_by_force() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let (ours, theirs) = (writer(), Writer::new("other"));
    theirs.apply(&widgets, "a", &fields(&json!({ "replicas": 1 }))).await.unwrap();
    let written = ours.apply(&widgets, "a", &fields(&json!({ "replicas": 2 }))).await.unwrap();
    assert_eq!(written.spec.replicas, 2);
    let written = widgets.get("a").await.unwrap();
    let managers: Vec<_> =
        written.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    assert!(managers.contains(&"compute-tester".to_owned()), "{managers:?}");

    let status = json!({ "apiVersion": "test.example.com/v1", "kind": "Widget",
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    ours.apply_status(&widgets, "a", &status).await.unwrap();
    let status = json!({ "apiVersion": "test.example.com/v1", "kind": "Widget",
        "status": { "replicas": 2, "conditions": [{ "type": "Running", "status": "True" }] } });
    let written = theirs.apply_status(&widgets, "a", &status).await.unwrap().status.unwrap();
    assert_eq!((written.replicas, written.conditions.len()), (Some(2), 2), "each keeps its own condition");

    let again = ours.apply(&widgets, "a", &fields(&json!({ "replicas": 2 }))).await.unwrap();
    let once_more = ours.apply(&widgets, "a", &fields(&json!({ "replicas": 2 }))).await.unwrap();
    assert_eq!(again.resource_version(), once_more.resource_version(), "applying the same changes nothing");
}

#[tokio::test]
async fn create_tells_an_existing_object_apart() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    let created = writer().create(&widgets, &widget("a", 1)).await.unwrap();
    assert!(created.uid().is_some());
    let error = writer().create(&widgets, &widget("a", 1)).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyExists(_)), "{error:?}");
    assert_eq!((error.retry(), error.kind()), (Retry::Never, "already_exists"));

    let error = writer().create(&widgets, &widget("b", 1_000)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    let nowhere: Api<Widget> = Api::namespaced(client, "nowhere");
    let error = writer().create(&nowhere, &widget("b", 1)).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
}

#[tokio::test]
async fn finalizers_go_only_onto_the_object_that_was_seen() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let seen = writer().create(&widgets, &widget("a", 1)).await.unwrap();
    let with = writer().add_finalizer(&widgets, &seen, "example.com/one").await.unwrap().unwrap();
    assert_eq!(with.finalizers(), ["example.com/one"]);
    assert_eq!(writer().add_finalizer(&widgets, &with, "example.com/one").await.unwrap(), None);

    let error = writer().add_finalizer(&widgets, &seen, "example.com/two").await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(error.retry(), Retry::AfterRead);

    let both = writer().add_finalizer(&widgets, &with, "example.com/two").await.unwrap().unwrap();
    let error = writer().remove_finalizer(&widgets, &with, "example.com/one").await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    let one = writer().remove_finalizer(&widgets, &both, "example.com/one").await.unwrap().unwrap();
    assert_eq!(one.finalizers(), ["example.com/two"]);
    assert_eq!(writer().remove_finalizer(&widgets, &one, "example.com/one").await.unwrap(), None);

    writer().delete(&widgets, &Target::of(&one).unwrap(), PropagationPolicy::Background).await.unwrap();
    let leaving = widgets.get("a").await.unwrap();
    writer().remove_finalizer(&widgets, &leaving, "example.com/two").await.unwrap().unwrap();
    assert_eq!(widgets.get_opt("a").await.unwrap(), None);
}

#[tokio::test]
async fn an_entry_is_removed_only_from_the_list_that_was_seen() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let gates = ["network", "quota", "image"].map(|name| Gate { name: name.into() }).to_vec();
    let spec = WidgetSpec { replicas: 1, gates };
    let seen = writer().create(&widgets, &Widget::new("a", spec)).await.unwrap();
    let gate = async |object: &Widget, name: &str| {
        writer().remove_entry(&widgets, object, Part::Main, "/spec/gates", ("name", name)).await
    };
    let without = gate(&seen, "quota").await.unwrap().unwrap();
    let left: Vec<_> = without.spec.gates.iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(left, ["network", "image"]);
    assert_eq!(gate(&without, "quota").await.unwrap(), None);

    let error = gate(&seen, "image").await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(widgets.get("a").await.unwrap().resource_version(), without.resource_version());

    let status = json!({ "apiVersion": "test.example.com/v1", "kind": "Widget", "status": { "conditions": [
        { "type": "Ready", "status": "True" }, { "type": "Running", "status": "True" }] } });
    let seen = Writer::new("other").apply_status(&widgets, "a", &status).await.unwrap();
    let removed =
        writer().remove_entry(&widgets, &seen, Part::Status, "/status/conditions", ("type", "Running")).await;
    let conditions = removed.unwrap().unwrap().status.unwrap().conditions;
    assert_eq!(conditions, [Condition { type_: "Ready".into(), status: "True".into() }]);

    let gone = Target::of(&seen).unwrap();
    writer().delete(&widgets, &gone, PropagationPolicy::Background).await.unwrap();
    let error = gate(&seen, "network").await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");
}

#[tokio::test]
async fn a_deletion_spares_a_successor() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let first = writer().create(&widgets, &widget("a", 1)).await.unwrap();
    let target = Target::of(&first).unwrap();
    writer().delete(&widgets, &target, PropagationPolicy::Background).await.unwrap();
    let error = writer().delete(&widgets, &target, PropagationPolicy::Background).await.unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error:?}");

    let second = writer().create(&widgets, &widget("a", 1)).await.unwrap();
    let error = writer().delete(&widgets, &target, PropagationPolicy::Background).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");

    let exactly = Target::exactly(&second).unwrap();
    writer().apply(&widgets, "a", &fields(&json!({ "replicas": 3 }))).await.unwrap();
    let error = writer().delete(&widgets, &exactly, PropagationPolicy::Background).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert_eq!(widgets.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_metadata_patch_touches_metadata_only() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let mut labelled = widget("a", 7);
    labelled.labels_mut().insert("old".into(), "1".into());
    let seen = writer().create(&widgets, &labelled).await.unwrap();
    let patch = MetadataPatch {
        labels: [("city".into(), Some("dfw".into())), ("old".into(), None)].into(),
        finalizers: Some(vec!["test.example.com/hold".into()]),
        uid: seen.uid(),
        resource_version: seen.resource_version(),
        ..MetadataPatch::default()
    };
    let after = writer().patch_metadata(&widgets, "a", &patch).await.unwrap();
    assert_eq!(after.labels(), &[("city".to_owned(), "dfw".to_owned())].into());
    assert_eq!(after.finalizers(), ["test.example.com/hold"]);
    let stored = widgets.get("a").await.unwrap();
    assert_eq!((stored.spec.replicas, stored.metadata.generation), (7, seen.metadata.generation));

    let error = writer().patch_metadata(&widgets, "a", &patch).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    let other = MetadataPatch { uid: Some("another".into()), resource_version: None, ..patch };
    let error = writer().patch_metadata(&widgets, "a", &other).await.unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    assert!(MetadataPatch { uid: Some("a".into()), ..MetadataPatch::default() }.is_empty());
}

#[tokio::test]
async fn an_object_has_one_controller_and_many_owners() {
    let (_server, _, client) = plane_client().await;
    let widgets: Api<Widget> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let one = writer().create(&widgets, &widget("one", 1)).await.unwrap();
    let two = writer().create(&widgets, &widget("two", 1)).await.unwrap();
    assert_eq!(controller_reference(&widget("never-stored", 1)), None);

    let mut meta = ObjectMeta { name: Some("owned".into()), ..ObjectMeta::default() };
    assert_eq!(set_owner(&mut meta, controller_reference(&one).unwrap()), Ok(true));
    assert_eq!(set_owner(&mut meta, controller_reference(&one).unwrap()), Ok(false));
    assert_eq!(set_owner(&mut meta, plain_reference(&two).unwrap()), Ok(true));
    let other = OtherController { kind: "Widget".into(), name: "one".into() };
    assert_eq!(set_owner(&mut meta, controller_reference(&two).unwrap()), Err(other));
    assert!(is_controlled_by(&meta, &one.uid().unwrap()));
    assert!(!is_controlled_by(&meta, &two.uid().unwrap()));

    let owned = writer().create(&maps, &ConfigMap { metadata: meta, ..ConfigMap::default() }).await.unwrap();
    let owner = &owned.owner_references()[0];
    assert_eq!((owner.api_version.as_str(), owner.kind.as_str()), ("test.example.com/v1", "Widget"));

    let foreground = PropagationPolicy::Foreground;
    writer().delete(&widgets, &Target::of(&one).unwrap(), foreground.clone()).await.unwrap();
    writer().delete(&widgets, &Target::of(&two).unwrap(), foreground).await.unwrap();
    support::eventually("what nobody owns goes", async || match maps.get_opt("owned").await.unwrap() {
        None => Ok(()),
        Some(left) => Err(format!("{left:?}")),
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_sorted_by_what_helps() {
    let (server, plane, _) = plane_client().await;
    let faults = Faults::default();
    let widgets: Api<Widget> = Api::default_namespaced(faults.client(&server, &plane));
    let writer = writer().with_timeout(Duration::from_secs(3));
    let fail = async |fault: Fault| {
        faults.set(Some(fault));
        writer.create(&widgets, &widget("a", 1)).await.unwrap_err()
    };
    let answer = |code: u16, reason: &str, retry_after: u32| {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": reason,
            "code": code, "details": { "retryAfterSeconds": retry_after } });
        Fault::Answer(StatusCode::from_u16(code).unwrap(), status)
    };
    let cases = [
        (answer(401, "Unauthorized", 0), "unauthorized", Retry::Backoff),
        (answer(403, "Forbidden", 0), "forbidden", Retry::Backoff),
        (answer(404, "NotFound", 0), "not_found", Retry::Never),
        (answer(409, "Conflict", 0), "conflict", Retry::AfterRead),
        (answer(409, "AlreadyExists", 0), "already_exists", Retry::Never),
        (answer(422, "Invalid", 0), "invalid", Retry::Never),
        (answer(400, "BadRequest", 0), "other", Retry::Never),
        (answer(429, "TooManyRequests", 7), "too_many_requests", Retry::After(Duration::from_secs(7))),
        (answer(429, "TooManyRequests", 0), "too_many_requests", Retry::After(Duration::from_secs(1))),
        (answer(500, "InternalError", 0), "unavailable", Retry::Backoff),
        (answer(503, "ServiceUnavailable", 0), "unavailable", Retry::Backoff),
        (answer(504, "Timeout", 0), "unavailable", Retry::Backoff),
        (Fault::Break, "unavailable", Retry::Backoff),
        (Fault::Hang, "unavailable", Retry::Backoff),
    ];
    for (fault, kind, retry) in cases {
        let case = format!("{fault:?}");
        let error = fail(fault).await;
        assert_eq!((error.kind(), error.retry()), (kind, retry), "{case}");
    }
    let error = fail(answer(403, "Forbidden", 0)).await;
    assert_eq!(error.status().map(|status| status.message.as_str()), Some("no"));
    let error = fail(Fault::Hang).await;
    assert!(matches!(error, Error::Unavailable(Outage::Timeout)), "{error:?}");
}
