//! Server-side apply: ownership, conflicts, force, removal, status.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{Fixture, Widget, refusal, refused};

both_transports!(apply_owns_and_removes, apply_conflicts, apply_merges_lists_by_key, apply_of_status);

fn map(data: &Value) -> Patch<Value> {
    Patch::Apply(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": data }),
    )
}

fn widget(rest: &Value) -> Patch<Value> {
    let mut config =
        json!({ "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": { "name": "w" } });
    config.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    Patch::Apply(config)
}

fn managers(object: &impl kube::ResourceExt) -> Vec<(String, String, Option<String>)> {
    let entries = object.managed_fields().iter().cloned();
    entries.map(|e| (e.manager.unwrap(), e.operation.unwrap(), e.subresource)).collect()
}

async fn apply_owns_and_removes(fixture: Fixture) {
    let api: Api<ConfigMap> = Api::default_namespaced(fixture.client);
    let (ann, bob) = (PatchParams::apply("ann"), PatchParams::apply("bob"));
    let nameless =
        Patch::Apply(json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1", "b": "1" } }));
    let status = refusal(api.patch("c", &ann, &nameless).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"), "what is made must name itself");
    assert_eq!(
        status.message,
        "the name of the object (c based on URL) was undeterminable: name must be provided"
    );
    let first = api.patch("c", &ann, &map(&json!({ "a": "1", "b": "1" }))).await.unwrap();
    assert_eq!(api.patch("c", &ann, &nameless).await.unwrap(), first, "what is there has its name");
    let again = api.patch("c", &ann, &map(&json!({ "a": "1", "b": "1" }))).await.unwrap();
    assert_eq!(again, first, "the same apply again changes nothing, not even the resource version");

    let shared = api.patch("c", &bob, &map(&json!({ "b": "1", "c": "1" }))).await.unwrap();
    assert_eq!(shared.data.as_ref().unwrap().len(), 3);
    let expected = [("ann", "Apply"), ("bob", "Apply")].map(|(m, o)| (m.to_owned(), o.to_owned(), None));
    assert_eq!(managers(&shared), expected);

    let left = api.patch("c", &ann, &map(&json!({}))).await.unwrap();
    let left: Vec<String> = left.data.unwrap().into_keys().collect();
    assert_eq!(left, ["b", "c"], "what only ann applied is gone; what bob applied too stays");

    let nobody = api.patch("c", &PatchParams::default(), &map(&json!({}))).await;
    assert_eq!(refused(nobody).0, 422, "an apply names its manager");
    let kindless = Patch::Apply(json!({ "data": { "a": "1" } }));
    assert_eq!(refused(api.patch("c", &ann, &kindless).await), (400, "BadRequest".to_owned()));
}

async fn apply_conflicts(fixture: Fixture) {
    let api: Api<ConfigMap> = Api::default_namespaced(fixture.client);
    let (ann, bob) = (PatchParams::apply("ann"), PatchParams::apply("bob"));
    api.patch("c", &ann, &map(&json!({ "a": "1", "b": "1" }))).await.unwrap();
    let status = refusal(api.patch("c", &bob, &map(&json!({ "a": "2", "c": "2" }))).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"ann\": .data.a");
    let causes = status.details.unwrap().causes;
    assert_eq!(causes.len(), 1);
    assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("FieldManagerConflict", ".data.a"));
    assert!(!api.get("c").await.unwrap().data.unwrap().contains_key("c"), "nothing is written on conflict");

    let forced = api.patch("c", &bob.clone().force(), &map(&json!({ "a": "2" }))).await.unwrap();
    assert_eq!(forced.data.unwrap()["a"], "2");
    let left = api.patch("c", &ann, &map(&json!({ "b": "1" }))).await.unwrap();
    assert_eq!(left.data.unwrap()["a"], "2", "ann has lost it and removes it no more");

    let merge = json!({ "data": { "b": "3" } });
    api.patch(
        "c",
        &PatchParams { field_manager: Some("carl".to_owned()), ..PatchParams::default() },
        &Patch::Merge(&merge),
    )
    .await
    .unwrap();
    let status = refusal(api.patch("c", &ann, &map(&json!({ "b": "1" }))).await);
    assert_eq!(status.message, "Apply failed with 1 conflict: conflict with \"carl\" using v1: .data.b");

    let stale = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "resourceVersion": "1" }, "data": {},
    }));
    assert_eq!(refused(api.patch("c", &bob, &stale).await), (409, "Conflict".to_owned()));
}

async fn apply_merges_lists_by_key(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let (ann, bob) = (PatchParams::apply("ann"), PatchParams::apply("bob"));
    let parts = |parts: Value| widget(&json!({ "spec": { "replicas": 1, "parts": parts } }));
    api.patch("w", &ann, &parts(json!([{ "name": "x", "weight": 1 }, { "name": "y" }]))).await.unwrap();
    let merged =
        api.patch("w", &bob, &parts(json!([{ "name": "y", "weight": 2 }, { "name": "z" }]))).await.unwrap();
    let found: Vec<_> = merged.spec.parts.iter().map(|part| (part.name.as_str(), part.weight)).collect();
    assert_eq!(found, [("x", Some(1)), ("y", Some(2)), ("z", None)]);
    let left = api.patch("w", &ann, &parts(json!([]))).await.unwrap();
    let found: Vec<_> = left.spec.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(found, ["y", "z"]);
    let doubled = api.patch("w", &ann, &parts(json!([{ "name": "x" }, { "name": "x" }]))).await;
    assert!(refused(doubled).0 >= 400);
}

async fn apply_of_status(fixture: Fixture) {
    let api: Api<Widget> = Api::default_namespaced(fixture.client);
    let (ann, operator) = (PatchParams::apply("ann"), PatchParams::apply("operator"));
    let status = widget(&json!({ "spec": { "replicas": 7 }, "status": { "phase": "Ready", "replicas": 1 } }));
    assert_eq!(refused(api.patch_status("w", &operator, &status).await), (404, "NotFound".to_owned()));
    let made = api
        .patch("w", &ann, &widget(&json!({ "spec": { "replicas": 1 }, "status": { "phase": "No" } })))
        .await
        .unwrap();
    assert_eq!((made.spec.size.as_str(), &made.status), ("medium", &None));

    let reported = api.patch_status("w", &operator, &status).await.unwrap();
    assert_eq!((reported.spec.replicas, reported.metadata.generation), (1, Some(1)));
    assert_eq!(reported.status.as_ref().unwrap().phase.as_deref(), Some("Ready"));
    let operator_entry = ("operator".to_owned(), "Apply".to_owned(), Some("status".to_owned()));
    assert!(managers(&reported).contains(&operator_entry), "{:?}", managers(&reported));
    assert_eq!(api.patch_status("w", &operator, &status).await.unwrap(), reported);

    let next =
        api.patch_status("w", &operator, &widget(&json!({ "status": { "replicas": 2 } }))).await.unwrap();
    let found = next.status.unwrap();
    assert_eq!((found.phase, found.replicas), (None, Some(2)), "what is no longer applied goes");
    let spec = api.patch("w", &ann, &widget(&json!({ "spec": { "replicas": 3 } }))).await.unwrap();
    assert_eq!(
        spec.status.as_ref().unwrap().replicas,
        Some(2),
        "the spec's manager does not touch the status"
    );
    assert_eq!(spec.resource_version(), api.get("w").await.unwrap().resource_version());
}
