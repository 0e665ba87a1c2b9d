//! One workload, one instance, and how it comes to that.

use super::*;
use crate::model::fixtures::{now, web};
use crate::model::{advice, chain, instance, workload};
use crate::render;
use compute_api::compute::Workload;

fn status(cities: &[City], image: &str, change: impl Fn(&mut Workload), look: Look) -> String {
    let (mut stored, deployments, instances) = web(cities, image);
    change(&mut stored);
    let view = workload::view(&stored, &deployments, &instances);
    let next = advice::next_steps(&view, true);
    render::workloads::status(&view, None, &next, &invocation(), now(), look)
}

#[test]
fn status_of_a_workload() {
    shots("status.healthy", |look| status(&healthy(), GOOD, |_| {}, look));
    shots("status.degraded", |look| status(&degraded(), BAD, |_| {}, look));
    shots("status.down", |look| status(&down(), BAD, |_| {}, look));
    shots("status.quota", |look| status(&starved(), GOOD, |_| {}, look));
    shots("status.updating", |look| {
        let city = City { updated: 1, ..City::well("DFW") };
        status(&[city], GOOD, |_| {}, look)
    });
    shots("status.paused", |look| {
        let city = City { updated: 1, ..City::well("DFW") };
        status(&[city], GOOD, |stored| stored.spec.paused = Some(true), look)
    });
    shots("status.unreachable", |look| {
        let says = (
            "Unknown",
            c::CELL_NOT_READY,
            "The cell of DFW does not answer since 11:57; counts are the last reported",
        );
        status(&[City { says, ..City::well("DFW") }], GOOD, |_| {}, look)
    });
    shots("status.placements", |look| {
        let edge = City { placement: "edge", desired: 1, ready: 1, updated: 1, ..City::well("LHR") };
        status(&[City::well("DFW"), edge], GOOD, |_| {}, look)
    });
    shots("status.zero", |look| {
        let none = City {
            desired: 0,
            ready: 0,
            updated: 0,
            says: ("True", c::SCALED_TO_ZERO, ""),
            ..City::well("DFW")
        };
        status(&[none], GOOD, |_| {}, look)
    });
}

#[test]
fn a_workload_described() {
    let describe = |cities: &[City], image, is_wide, look: Look| {
        let (stored, deployments, instances) = web(cities, image);
        let view = workload::view(&stored, &deployments, &instances);
        let head = render::workloads::status(&view, None, &[], &invocation(), now(), look);
        let inner = Look { width: look.width.map(|columns| columns - 2), ..look };
        let list = render::instances::list(&instance::views(&instances), is_wide, now(), inner);
        let conditions: Vec<_> = stored
            .status
            .iter()
            .flat_map(|status| &status.conditions)
            .map(|one| ("workload".to_owned(), one.clone()))
            .collect();
        render::workloads::describe(&head, &list, &conditions, look)
    };
    shots("describe.workload", |look| describe(&degraded(), BAD, false, look));
    shots("describe.workload.healthy", |look| describe(&healthy(), GOOD, false, look));
    shots("describe.workload.wide", |look| describe(&degraded(), BAD, true, look));
}

#[test]
fn an_instance_described() {
    let describe = |cities: &[City], image, look| {
        let (_, _, instances) = web(cities, image);
        let last = instances.last().unwrap();
        let view = instance::view(last);
        render::instances::describe(&view, &[], &[], &invocation(), now(), look)
    };
    shots("describe.instance.healthy", |look| describe(&healthy(), GOOD, look));
    shots("describe.instance.failed", |look| describe(&degraded(), BAD, look));
    shots("describe.instance.quota", |look| describe(&starved(), GOOD, look));
}

#[test]
fn how_it_comes_to_that() {
    let explain = |cities: &[City], image, look| {
        let (stored, deployments, instances) = web(cities, image);
        let chain = chain::explain(&stored, &deployments, &instances);
        let next = advice::next_steps(&chain.workload, true);
        render::chain::render(&chain, &next, &invocation(), now(), look)
    };
    shots("explain.healthy", |look| explain(&healthy(), GOOD, look));
    shots("explain.degraded", |look| explain(&degraded(), BAD, look));
    shots("explain.quota", |look| explain(&starved(), GOOD, look));
    let waiting = || {
        let says = (
            "False",
            c::REFERENCED_DATA_NOT_READY,
            "It is being worked out which configs and secrets are needed",
        );
        vec![City { ready: 0, updated: 0, says, ..City::well("DFW") }]
    };
    shots("explain.waiting", |look| explain(&waiting(), GOOD, look));
    shots("status.waiting", |look| status(&waiting(), GOOD, |_| {}, look));
    shots("explain.down", |look| explain(&down(), BAD, look));
}
