//! Sums over instances and over deployments.

use super::*;
use crate::{
    deployments::{self, Plan, UnavailableCity},
    fixtures::{
        at, condition, deployment as stored_deployment, instance, leaving, not_ready, ready, stored,
        workload as stored_workload,
    },
    location::{Offered, Unavailable},
    meta,
};
use compute_api::{
    annotations,
    compute::{Instance, Workload, WorkloadDeployment, WorkloadDeploymentStatus},
};

fn deployment_status(of: &WorkloadDeployment, instances: &[Instance]) -> WorkloadDeploymentStatus {
    deployment::status(of, instances, None, None, at(9))
}

fn available(status: &WorkloadDeploymentStatus) -> (Status, &str, &str) {
    let condition = c::find(&status.conditions, c::AVAILABLE).unwrap();
    (Status::of(condition), &condition.reason, &condition.message)
}

#[test]
fn a_deployment_counts_its_own_instances() {
    let mut of = stored_deployment(3);
    let mut old = of.clone();
    old.spec.template = crate::fixtures::template("app:0");
    let mut foreign = ready(instance(&of, 9));
    foreign.metadata.owner_references = None;
    let mut unprogrammed = ready(instance(&of, 3));
    unprogrammed.status.as_mut().unwrap().conditions[0] =
        condition(c::PROGRAMMED, Status::False, c::PROGRAMMING_IN_PROGRESS, "");
    unprogrammed = not_ready(unprogrammed, c::PROGRAMMING_IN_PROGRESS, "");
    let all = [
        ready(instance(&of, 0)),
        ready(instance(&old, 1)),
        instance(&of, 2),
        unprogrammed,
        leaving(ready(instance(&of, 4))),
        foreign,
    ];
    let status = deployment_status(&of, &all);
    assert_eq!(
        (status.replicas, status.ready_replicas, status.updated_replicas, status.current_replicas),
        (Some(5), Some(2), Some(2), Some(1))
    );
    assert_eq!(status.desired_replicas, Some(3));
    assert_eq!(
        status.selector.as_deref(),
        Some("compute.datumapis.com/workload-deployment-name=web-main-dfw")
    );
    assert_eq!(available(&status), (Status::True, c::STABLE_INSTANCE_FOUND, "2 of 3 instances are ready"));
    assert_eq!(status.observed_generation, Some(1));
    of.metadata.annotations = Some(meta::map([(annotations::UPSTREAM_GENERATION, "7")]));
    assert_eq!(deployment_status(&of, &[]).observed_generation, Some(7));
}

#[test]
fn the_worst_instance_speaks_for_a_deployment() {
    let of = stored_deployment(3);
    assert_eq!(available(&deployment_status(&of, &[])).1, c::INSTANCES_PROVISIONING);
    let starting = not_ready(instance(&of, 0), c::STARTING, "soon");
    let quota = not_ready(instance(&of, 1), c::QUOTA_EXCEEDED, "none left");
    let image = not_ready(instance(&of, 2), c::IMAGE_UNAVAILABLE, "no such image");
    let said = |all: &[Instance]| {
        let status = deployment_status(&of, all);
        let (status, reason, message) = available(&status);
        assert_eq!(status, Status::False);
        (reason.to_owned(), message.to_owned())
    };
    assert_eq!(said(std::slice::from_ref(&starting)), (c::INSTANCES_PROVISIONING.into(), "soon".into()));
    assert_eq!(said(&[quota.clone(), starting.clone()]), (c::QUOTA_NOT_GRANTED.into(), "none left".into()));
    assert_eq!(said(&[starting, quota, image]), (c::IMAGE_UNAVAILABLE.into(), "no such image".into()));
    let failed = Update::new(c::NETWORK_READY, Status::False, c::NETWORK_FAILED_TO_CREATE, "no addresses");
    let status = deployment::status(&of, &[], None, Some(failed), at(9));
    assert_eq!(available(&status).1, c::NETWORK_FAILED_TO_CREATE);
    assert_eq!(status.conditions.len(), 2);
}

#[test]
fn nothing_wanted_is_available() {
    assert_eq!(available(&deployment_status(&stored_deployment(0), &[])).1, c::SCALED_TO_ZERO);
}

#[test]
fn an_equal_deployment_status_is_not_written() {
    let mut of = stored_deployment(1);
    let all = [ready(instance(&of, 0))];
    let network = || Some(Update::new(c::NETWORK_READY, Status::True, c::DATA_READY, ""));
    let first = deployment::status(&of, &all, None, network(), at(1));
    assert!(deployment::differs(of.status.as_ref(), &first));
    of.status = Some(first);
    of.status.as_mut().unwrap().conditions.push(condition("Theirs", Status::True, "X", ""));
    assert!(!deployment::differs(of.status.as_ref(), &deployment::status(&of, &all, None, network(), at(2))));
    assert!(deployment::differs(of.status.as_ref(), &deployment::status(&of, &all, None, None, at(2))));
    assert!(deployment::differs(of.status.as_ref(), &deployment::status(&of, &[], None, network(), at(2))));
}

/// The deployment of a placement and city, with a status of its own generation.
fn reporting(placement: &str, city: &str, said: &Condition, counts: [i64; 4]) -> WorkloadDeployment {
    let of = stored_workload(&[]);
    let mut made = stored_deployment(2);
    made.metadata = stored("ns", &format!("web-{placement}-{city}"), &format!("{placement}-{city}"));
    made.metadata.owner_references = Some(vec![meta::controlled_by(&of)]);
    made.spec.placement_name = placement.to_owned();
    made.spec.city_code = city.to_owned();
    let [replicas, ready, updated, current] = counts.map(Some);
    made.status = Some(WorkloadDeploymentStatus {
        conditions: vec![said.clone()],
        observed_generation: Some(1),
        desired_replicas: Some(2),
        replicas,
        ready_replicas: ready,
        updated_replicas: updated,
        current_replicas: current,
        ..WorkloadDeploymentStatus::default()
    });
    made
}

fn serving() -> Condition {
    condition(c::AVAILABLE, Status::True, c::STABLE_INSTANCE_FOUND, "")
}

fn broken(reason: &str, message: &str) -> Condition {
    condition(c::AVAILABLE, Status::False, reason, message)
}

fn workload_status(of: &Workload, all: &[WorkloadDeployment]) -> compute_api::compute::WorkloadStatus {
    workload::status(of, all, &Plan::default(), &[], at(9))
}

fn says(conditions: &[Condition], type_: &str) -> (Status, String, String) {
    let said = c::find(conditions, type_).unwrap();
    (Status::of(said), said.reason.clone(), said.message.clone())
}

#[test]
fn a_workload_adds_up_its_deployments() {
    let of = stored_workload(&[("a", &["DFW", "IAD"]), ("b", &["LHR"])]);
    let mut behind = reporting("a", "IAD", &serving(), [2, 2, 2, 2]);
    behind.metadata.generation = Some(2);
    behind.spec.scale_settings.min_replicas = 5;
    let all = [reporting("a", "dfw", &serving(), [3, 2, 1, 1]), behind];
    let status = workload_status(&of, &all);
    let a = &status.placements[0];
    assert_eq!((a.replicas, a.ready_replicas, a.desired_replicas), (Some(5), Some(4), Some(7)));
    assert_eq!((a.updated_replicas, a.current_replicas), (Some(1), Some(1)));
    let b = &status.placements[1];
    assert_eq!((b.replicas, b.desired_replicas), (Some(0), Some(2)));
    assert_eq!((status.replicas, status.desired_replicas, status.deployments), (Some(5), Some(9), Some(2)));
    assert_eq!(says(&a.conditions, c::AVAILABLE).0, Status::True);
    assert_eq!(says(&b.conditions, c::AVAILABLE).1, c::NO_AVAILABLE_DEPLOYMENTS);
    let said = says(&status.conditions, c::AVAILABLE);
    assert_eq!((said.0, said.2.as_str()), (Status::True, "4 of 9 instances are ready"));
}

#[test]
fn nothing_is_observed_before_it_is_written() {
    let mut of = stored_workload(&[("a", &["DFW"]), ("b", &["IAD"])]);
    of.metadata.generation = Some(4);
    of.status =
        Some(compute_api::compute::WorkloadStatus { observed_generation: Some(3), ..Default::default() });
    let all = [reporting("a", "DFW", &serving(), [2, 2, 2, 2])];
    // The deployment of `a` is to be updated, and `b` has none and is offered none.
    let plan = deployments::decide(&of, &all, &Offered::default());
    let status = workload::status(&of, &all, &plan, &[], at(9));
    assert_eq!((status.observed_generation, status.updated_replicas), (Some(3), Some(0)));
    assert_eq!(status.placements[0].observed_generation, None);
    assert_eq!(status.placements[1].observed_generation, Some(4));
    assert_eq!(workload_status(&of, &all).observed_generation, Some(4));
}

#[test]
fn the_worst_deployment_speaks_for_placement_and_workload() {
    let of = stored_workload(&[("a", &["DFW", "IAD"])]);
    let all = [
        reporting("a", "DFW", &broken(c::QUOTA_NOT_GRANTED, "none left"), [0; 4]),
        reporting("a", "IAD", &broken(c::IMAGE_UNAVAILABLE, "no such image"), [0; 4]),
    ];
    let status = workload_status(&of, &all);
    let expected = (Status::False, c::IMAGE_UNAVAILABLE.to_owned(), "no such image".to_owned());
    assert_eq!(says(&status.conditions, c::AVAILABLE), expected);
    assert_eq!(says(&status.placements[0].conditions, c::AVAILABLE), expected);
    let networks = ["default".to_owned()];
    let status = workload::status(&of, &all, &Plan::default(), &networks, at(9));
    assert!(workload::says_network_not_found(&status));
    assert!(!workload::says_network_not_found(&compute_api::compute::WorkloadStatus::default()));
    let expected = (
        Status::False,
        c::NETWORK_NOT_FOUND.to_owned(),
        "Network default does not exist in this project; create it, or name another".to_owned(),
    );
    assert_eq!(says(&status.conditions, c::AVAILABLE), expected);
    let lost = condition(c::AVAILABLE, Status::Unknown, c::CELL_NOT_READY, "since noon");
    let status = workload_status(&of, &[reporting("a", "DFW", &lost, [2; 4])]);
    assert_eq!(says(&status.conditions, c::AVAILABLE).0, Status::Unknown);
}

#[test]
fn a_city_that_is_not_offered_is_named_even_while_others_serve() {
    let of = stored_workload(&[("a", &["DFW", "IAD"])]);
    let plan = |deployed| Plan {
        steps: Vec::new(),
        unavailable: vec![UnavailableCity {
            placement: "a".to_owned(),
            city: "IAD".to_owned(),
            why: Unavailable::NotOffered,
            deployed,
        }],
    };
    let message = "city IAD is not offered to this project".to_owned();
    let expected = (Status::False, c::LOCATION_UNAVAILABLE.to_owned(), message);
    let all = [reporting("a", "DFW", &serving(), [2; 4])];
    let status = workload::status(&of, &all, &plan(false), &[], at(9));
    assert_eq!(says(&status.placements[0].conditions, c::AVAILABLE).0, Status::True);
    assert_eq!(says(&status.placements[0].conditions, c::LOCATIONS_AVAILABLE), expected);
    assert_eq!((status.desired_replicas, status.updated_replicas), (Some(4), Some(2)));
    let status = workload::status(&of, &[], &plan(false), &[], at(9));
    assert_eq!(says(&status.conditions, c::AVAILABLE), expected);
    assert_eq!(c::find(&workload_status(&of, &all).placements[0].conditions, c::LOCATIONS_AVAILABLE), None);
}

#[test]
fn nothing_wanted_and_nothing_placed_are_not_the_same() {
    let mut of = stored_workload(&[("a", &["DFW"])]);
    of.spec.placements[0].scale_settings.min_replicas = 0;
    assert_eq!(says(&workload_status(&of, &[]).conditions, c::AVAILABLE).1, c::SCALED_TO_ZERO);
    let none = workload_status(&stored_workload(&[]), &[]);
    assert_eq!(says(&none.conditions, c::AVAILABLE).1, c::NO_AVAILABLE_PLACEMENTS);
}

#[test]
fn times_move_with_the_status_and_an_equal_status_is_not_written() {
    let mut of = stored_workload(&[("a", &["DFW"])]);
    let all = [reporting("a", "DFW", &serving(), [2; 4])];
    let first = workload::status(&of, &all, &Plan::default(), &[], at(1));
    assert!(workload::differs(None, &first));
    of.status = Some(first);
    of.status.as_mut().unwrap().gateway = Some(Default::default());
    let again = workload::status(&of, &all, &Plan::default(), &[], at(2));
    assert!(!workload::differs(of.status.as_ref(), &again));
    let down = [reporting("a", "DFW", &broken(c::INSTANCE_CRASHING, "exit"), [2, 0, 2, 2])];
    let changed = workload::status(&of, &down, &Plan::default(), &[], at(3));
    assert!(workload::differs(of.status.as_ref(), &changed));
    let since = |conditions: &[Condition]| c::find(conditions, c::AVAILABLE).unwrap().last_transition_time.0;
    assert_eq!((since(&again.conditions), since(&changed.placements[0].conditions)), (at(1), at(3)));
}

mod properties;
