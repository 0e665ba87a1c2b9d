//! Updates: what they leave alone is not judged again.

use super::*;

/// A workload that could not be made today: everything that can change by itself has.
fn outdated() -> Value {
    let mut old = good();
    set(&mut old, "$/networkInterfaces/0/network/name", &json!("missing"));
    set(&mut old, "$/networkInterfaces/-", &json!({ "network": { "name": "closed" } }));
    set(&mut old, "$/runtime/sandbox/imagePullSecrets/0/name", &json!("hidden"));
    set(&mut old, "/spec/placements/0/cityCodes/0", &json!("XYZ"));
    old
}

fn needs(object: &Value, old: Option<&Value>) -> Needs {
    match open(object, old, "default") {
        Opened::Case(case) => case.needs(),
        other => panic!("not a case: {other:?}"),
    }
}

#[test]
fn what_has_changed_by_itself_is_not_held_against_an_update() {
    let old = outdated();
    assert_eq!(faults(&old, None).len(), 4);
    let mut new = with(old.clone(), "/spec/placements/1/scaleSettings/minReplicas", &json!(3));
    assert_eq!(needs(&new, Some(&old)), Needs::default());
    assert!(needs(&new, Some(&old)).is_empty());
    assert_eq!(faults(&new, Some(&old)), []);
    // The same things at other places, and in another spelling.
    set(&mut new, "/spec/placements/0/cityCodes", &json!(["IAD", "xyz"]));
    set(
        &mut new,
        "$/networkInterfaces/-",
        &json!({ "network": { "name": "missing", "namespace": "default" } }),
    );
    set(&mut new, "$/runtime/sandbox/containers/1/envFrom", &json!([{ "secretRef": { "name": "hidden" } }]));
    assert_eq!(faults(&new, Some(&old)), []);
    // A ConfigMap is not the Secret of the same name.
    set(
        &mut new,
        "$/runtime/sandbox/containers/1/envFrom",
        &json!([{ "configMapRef": { "name": "hidden" } }]),
    );
    assert_eq!(faults(&new, Some(&old)).len(), 1);
}

#[test]
fn what_an_update_adds_is_judged() {
    let old = good();
    let mut new = good();
    set(&mut new, "$/networkInterfaces/-", &json!({ "network": { "name": "missing" } }));
    set(&mut new, "/spec/placements/1/cityCodes/-", &json!("XYZ"));
    set(&mut new, "$/runtime/sandbox/containers/1/envFrom", &json!([{ "secretRef": { "name": "hidden" } }]));
    let wanted = needs(&new, Some(&old));
    assert_eq!(wanted.networks.iter().collect::<Vec<_>>(), ["missing"]);
    assert_eq!(
        wanted.sources.iter().collect::<Vec<_>>(),
        [&crate::referenced_data::Source::Secret("hidden".to_owned())]
    );
    assert!(wanted.cities);
    let paths: Vec<_> = faults(&new, Some(&old)).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "spec.template.spec.networkInterfaces[1].network.name",
            "spec.template.spec.runtime.sandbox.containers[1].envFrom[0].secretRef.name",
            "spec.placements[1].cityCodes[1]",
        ]
    );
}

/// Moved, a city would lose what runs there and get nothing for it.
#[test]
fn a_city_that_moves_to_another_placement_must_be_offered() {
    let old = outdated();
    let moved = with(old.clone(), "/spec/placements/0/name", &json!("elsewhere"));
    let found = faults(&moved, Some(&old));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "spec.placements[0].cityCodes[0]");
}

#[test]
fn a_new_one_is_asked_about_once_for_each_thing() {
    let wanted = needs(&good(), None);
    assert_eq!(wanted.networks.iter().collect::<Vec<_>>(), ["default"]);
    let sources: Vec<_> =
        wanted.sources.iter().map(|source| format!("{} {}", source.kind(), source.name())).collect();
    assert_eq!(
        sources,
        ["ConfigMap files", "ConfigMap settings", "Secret keys", "Secret registry", "Secret tokens"]
    );
    assert!(wanted.cities);
    // Nobody is asked about what could not be.
    let mut odd = good();
    set(
        &mut odd,
        "$/networkInterfaces",
        &json!([{ "network": { "name": "../x" } }, { "network": { "name": "a", "namespace": "b" } }]),
    );
    set(&mut odd, "/spec/placements", &json!([{ "name": "a", "cityCodes": ["D F W", ""] }]));
    set(&mut odd, "$/runtime/sandbox/imagePullSecrets/0/name", &json!("../x"));
    let wanted = needs(&odd, None);
    assert_eq!((wanted.networks.len(), wanted.sources.len(), wanted.cities), (0, 4, false));
}

#[test]
fn bad_ones_may_be_touched_and_may_go() {
    let mut bad = outdated();
    set(&mut bad, "$/runtime/sandbox/containers/0/image", &json!(""));
    set(&mut bad, "/spec/placements/0/name", &json!("NO"));
    let touched =
        with(bad.clone(), "/metadata/finalizers", &json!(["compute.datumapis.com/workload-controller"]));
    assert_eq!(faults(&touched, Some(&bad)), []);
    // The spec is the same, written otherwise.
    let written = with(
        bad.clone(),
        "/spec/placements/1/scaleSettings/instanceManagementPolicy",
        &json!("OrderedReady"),
    );
    assert_eq!(faults(&written, Some(&bad)), []);
    let leaving = with(bad.clone(), "/metadata/deletionTimestamp", &json!("2026-05-01T12:00:00Z"));
    let changed = with(leaving.clone(), "/spec/placements/0/name", &json!("STILL NO"));
    assert_eq!(faults(&changed, Some(&leaving)), []);
    assert_ne!(faults(&with(bad.clone(), "/spec/placements/0/name", &json!("STILL NO")), Some(&bad)), []);
}
