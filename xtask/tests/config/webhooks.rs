//! The webhook configurations against the webhook server.

use std::collections::BTreeSet;

use compute_admission::{MUTATE_WORKLOADS, VALIDATE_INSTANCES, VALIDATE_WORKLOADS};
use compute_core::admission::guard::{DEFAULT_ALLOW, Subject};
use serde_json::{Value, json};

use crate::{object, objects, text};

/// Kind, webhook.
fn webhooks() -> Vec<(String, Value)> {
    let files = ["config/base/webhook/workloads.yaml", "config/base/webhook/instances.yaml"];
    let all = files.into_iter().flat_map(objects);
    all.flat_map(|configuration| {
        let kind = configuration["kind"].as_str().unwrap().to_owned();
        let webhooks = configuration["webhooks"].as_array().unwrap().clone();
        webhooks.into_iter().map(move |webhook| (kind.clone(), webhook))
    })
    .collect()
}

#[test]
fn each_path_of_the_server_is_called_for_what_it_judges() {
    let found: Vec<_> = webhooks()
        .into_iter()
        .map(|(kind, webhook)| {
            let [rule] = <[Value; 1]>::try_from(webhook["rules"].as_array().unwrap().clone()).unwrap();
            assert_eq!(rule["apiGroups"], json!([compute_api::compute::GROUP]));
            assert_eq!(rule["apiVersions"], json!(["v1alpha"]));
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            (kind, path, rule["resources"].clone(), rule["operations"].clone())
        })
        .collect();
    let wanted = [
        ("MutatingWebhookConfiguration", MUTATE_WORKLOADS, json!(["workloads"]), json!(["CREATE", "UPDATE"])),
        (
            "ValidatingWebhookConfiguration",
            VALIDATE_WORKLOADS,
            json!(["workloads"]),
            json!(["CREATE", "UPDATE"]),
        ),
        (
            "ValidatingWebhookConfiguration",
            VALIDATE_INSTANCES,
            json!(["instances", "instances/status"]),
            json!(["CREATE", "UPDATE", "DELETE"]),
        ),
    ];
    let wanted: Vec<_> = wanted
        .into_iter()
        .map(|(kind, path, resources, operations)| (kind.to_owned(), path.to_owned(), resources, operations))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn nothing_gets_by_that_was_not_judged() {
    for (_, webhook) in webhooks() {
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(webhook["sideEffects"], "None");
        assert!((1..=10).contains(&webhook["timeoutSeconds"].as_i64().unwrap()));
        let service = &webhook["clientConfig"]["service"];
        let certificate = text("config/components/csi-webhook-cert/kustomization.yaml");
        let name =
            format!("{}.{}.svc", service["name"].as_str().unwrap(), service["namespace"].as_str().unwrap());
        assert!(certificate.contains(&format!("dns-names: {name},")), "the certificate is not for {name}");
    }
}

fn condition<'a>(webhook: &'a Value, name: &str) -> &'a str {
    let conditions = webhook["matchConditions"].as_array().unwrap();
    conditions.iter().find(|one| one["name"] == name).unwrap()["expression"].as_str().unwrap()
}

/// What stands in quotes.
fn quoted(expression: &str) -> BTreeSet<&str> {
    expression.split('\'').skip(1).step_by(2).collect()
}

#[test]
fn those_whom_the_guard_lets_through_are_not_asked_about() {
    let (_, guard) = webhooks().pop().unwrap();
    let mut users = BTreeSet::new();
    let mut groups = BTreeSet::new();
    for entry in DEFAULT_ALLOW {
        match entry.parse().unwrap() {
            Subject::User(name) => users.insert(name),
            Subject::Group(name) => groups.insert(name),
        };
    }
    let users: BTreeSet<_> = users.iter().map(String::as_str).collect();
    let groups: BTreeSet<_> = groups.iter().map(String::as_str).collect();
    assert_eq!(quoted(condition(&guard, "is-nobody-who-clears-away")), users);
    assert_eq!(quoted(condition(&guard, "is-no-master")), groups);
    let server = object("config/overlays/management-plane/server.yaml");
    let projector = server["projectorIdentity"].as_str().unwrap();
    assert_eq!(quoted(condition(&guard, "is-not-the-projector")), BTreeSet::from([projector]));
    assert!(server.get("instanceGuard").is_none(), "a list of its own must be in the match conditions, too");
}

#[test]
fn projects_elsewhere_call_the_same_paths() {
    let overlay = text("config/overlays/management-plane/projects/kustomization.yaml");
    for path in [MUTATE_WORKLOADS, VALIDATE_WORKLOADS, VALIDATE_INSTANCES] {
        let url = format!("url: https://compute-webhook.compute-system.svc{path}\n");
        assert_eq!(overlay.matches(&url).count(), 1, "{path}");
    }
}
