//! What a template names, and what is said until it is there.

use compute_api::{annotations::UPSTREAM_GENERATION, compute::InstanceTemplate};

use super::*;
use crate::fixtures::deployment;

fn naming() -> InstanceSpec {
    let template: InstanceTemplate = serde_json::from_value(json!({ "spec": {
        "runtime": { "sandbox": {
            "imagePullSecrets": [{ "name": "registry" }],
            "containers": [{
                "name": "app",
                "env": [
                    { "name": "A", "valueFrom": { "configMapKeyRef": { "name": "settings", "key": "a", "optional": true } } },
                    { "name": "B", "valueFrom": { "secretKeyRef": { "name": "tokens", "key": "b" } } },
                    { "name": "C", "valueFrom": { "secretKeyRef": { "name": "", "key": "b" } } },
                ],
                "envFrom": [
                    { "configMapRef": { "name": "settings" } },
                    { "secretRef": { "name": "spare", "optional": true } },
                ],
            }],
        } },
        "volumes": [
            { "name": "v", "configMap": { "name": "files" } },
            { "name": "w", "secret": { "secretName": "tokens" } },
            { "name": "x", "secret": { "secretName": "maybe", "optional": true } },
        ],
    } }))
    .unwrap();
    template.spec
}

#[test]
fn required_sources_are_found_everywhere() {
    let names: Vec<_> = required(&naming()).iter().map(Source::companion_name).collect();
    assert_eq!(names, ["configmap.files", "configmap.settings", "secret.registry", "secret.tokens"]);
    assert!(required(&InstanceSpec::default()).is_empty());
}

#[test]
fn annotations_are_read_as_they_are_written() {
    let expected = Expected::of(&naming(), 3);
    assert_eq!(Expected::parse(&expected.to_annotation()), Some(expected));
    let unresolved =
        Unresolved { generation: 3, reason: Problem::TooLarge, message: "files is too large".to_owned() };
    assert_eq!(Unresolved::parse(&unresolved.to_annotation()), Some(unresolved));
    for bad in ["", "{}", "[]", r#"{"generation":1,"companions":[1]}"#, r#"{"generation":1,"reason":"Odd"}"#]
    {
        assert_eq!((Expected::parse(bad), Unresolved::parse(bad)), (None, None));
    }
}

#[test]
fn an_instance_waits_until_its_data_is_there() {
    let spec = naming();
    let mut of = deployment(1);
    let said = |of: &WorkloadDeployment, present: &[&str]| {
        condition(&spec, of, |name| present.contains(&name)).unwrap()
    };
    let everything = ["configmap.files", "configmap.settings", "secret.registry", "secret.tokens"];
    assert_eq!(said(&of, &everything).reason, c::RESOLVING);

    let expected = Expected::of(&spec, 7).to_annotation();
    of.metadata.annotations =
        Some(meta::map([(EXPECTED_REFERENCED_DATA, &*expected), (UPSTREAM_GENERATION, "7")]));
    let waiting = said(&of, &everything[..3]);
    assert_eq!(waiting.reason, c::AWAITING_PROPAGATION);
    assert_eq!(waiting.message, "On their way to the cell: secret.tokens");
    let there = said(&of, &everything);
    assert_eq!((there.status, &*there.reason), (Status::True, c::DATA_READY));

    let wrong = Unresolved { generation: 7, reason: Problem::NotFound, message: "no tokens".to_owned() };
    let annotations = of.metadata.annotations.as_mut().unwrap();
    annotations.insert(REFERENCED_DATA_ERROR.to_owned(), wrong.to_annotation());
    let failed = said(&of, &everything);
    assert_eq!((&*failed.reason, &*failed.message), (c::SOURCE_NOT_FOUND, "no tokens"));

    // Another generation has not been looked at, for good or bad.
    of.metadata.annotations.as_mut().unwrap().insert(UPSTREAM_GENERATION.to_owned(), "8".to_owned());
    assert_eq!(said(&of, &everything).reason, c::RESOLVING);
    assert_eq!(condition(&InstanceSpec::default(), &of, |_| true), None);
}

#[test]
fn sizes_are_limited_one_by_one_and_together() {
    let sources = ["a", "b", "c"].map(|name| Source::Secret(name.to_owned()));
    let check = |sizes: [usize; 3]| too_large(sources.iter().zip(sizes));
    assert_eq!(check([MAX_SOURCE_BYTES, MAX_SOURCE_BYTES, 0]), None);
    assert!(check([0, MAX_SOURCE_BYTES + 1, 0]).unwrap().starts_with("Secret b has"));
    assert!(check([MAX_SOURCE_BYTES, MAX_SOURCE_BYTES, 1]).unwrap().contains("together"));
}
