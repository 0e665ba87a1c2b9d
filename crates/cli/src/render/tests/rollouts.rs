//! Rollouts as they go on, and access.

use super::*;
use crate::model::city::Phase;
use crate::model::fixtures::web;
use crate::model::rollout::{Verdict, instances_agree, verdict};
use crate::model::workload;
use crate::render;
use crate::session::{Access, activating_text};

fn rows(cities: &[City], image: &str, look: Look) -> String {
    let (stored, deployments, instances) = web(cities, image);
    let view = workload::view(&stored, &deployments, &instances);
    format!("{}\n", render::rollout::rows(&view, 7, look).join("\n"))
}

#[test]
fn rollouts() {
    let updating = || vec![City::well("DFW"), City { updated: 1, ready: 1, ..City::well("IAD") }];
    shots("rollout.done", |look| rows(&healthy(), GOOD, look));
    shots("rollout.updating", |look| rows(&updating(), GOOD, look));
    shots("rollout.waiting", |look| {
        let says = ("False", c::NETWORK_PROVISIONING, "The networks of the city are being set up");
        rows(&[City::well("DFW"), City { ready: 0, updated: 0, says, ..City::well("IAD") }], GOOD, look)
    });
    shots("rollout.blocked", |look| rows(&degraded(), BAD, look));
    shots("rollout.placements", |look| {
        let edge = City { placement: "edge", desired: 12, ready: 4, updated: 4, ..City::well("LHR") };
        rows(&[City::well("DFW"), edge], GOOD, look)
    });
}

#[test]
fn verdicts() {
    let of = |cities: &[City]| {
        let (stored, deployments, instances) = web(cities, GOOD);
        verdict(&stored, &workload::view(&stored, &deployments, &instances))
    };
    assert_eq!(of(&healthy()), Verdict::Done);
    assert_eq!(of(&degraded()), Verdict::Stuck);
    assert_eq!(of(&starved()), Verdict::Stuck);
    assert_eq!(of(&down()), Verdict::Stuck);
    assert_eq!(of(&[City { updated: 1, ..City::well("DFW") }]), Verdict::Going);
    assert_eq!(of(&[City::half("DFW", c::QUOTA_BACKEND_UNAVAILABLE, "")]), Verdict::Going);
}

#[test]
fn instances_agree_that_are_all_there_and_available() {
    let (stored, deployments, instances) = web(&healthy(), GOOD);
    let view = workload::view(&stored, &deployments, &instances);
    assert!(instances_agree(&view, &instances));
    assert!(!instances_agree(&view, &instances[1..]), "one is missing");
    let leftover: Vec<_> = instances.iter().chain(&instances[..1]).cloned().collect();
    assert!(!instances_agree(&view, &leftover), "one is still there");
    let (_, _, starting) = web(&[City::well("DFW"), City::half("IAD", c::STARTING, "")], GOOD);
    assert!(!instances_agree(&view, &starting), "one is not available yet");
}

#[test]
fn what_is_not_taken_up_is_not_done_and_old_failures_are_not_certain() {
    let (mut stored, deployments, instances) = web(&degraded(), BAD);
    stored.metadata.generation = Some(3);
    let view = workload::view(&stored, &deployments, &instances);
    assert_eq!(verdict(&stored, &view), Verdict::Going);
    assert!(view.cities.iter().all(|city| city.phase == Phase::Waiting));
    // The deployment asks for another image, and its instances are still on the bad one.
    let (stored, mut deployments, instances) = web(&degraded(), BAD);
    for deployment in &mut deployments {
        let sandbox = deployment.spec.template.spec.runtime.sandbox.as_mut().unwrap();
        sandbox.containers[0].image = GOOD.to_owned();
    }
    let view = workload::view(&stored, &deployments, &instances);
    assert_ne!(verdict(&stored, &view), Verdict::Stuck);
}

#[test]
fn access() {
    let text = |access: &Access, look| render::access::render(access, "project demo", &invocation(), look);
    shots("access.active", |look| text(&Access::Active, look));
    shots("access.activating", |look| {
        text(&Access::Activating("The service is being activated".to_owned()), look)
    });
    shots("access.not-requested", |look| text(&Access::NotRequested, look));
    shots("access.not-gated", |look| text(&Access::NotGated, look));
    shots("access.wait", |look| activating_text("project demo", "", &invocation(), look));
}
