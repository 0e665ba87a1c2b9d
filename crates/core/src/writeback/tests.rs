//! A copy is whole, is written once, and never outlives its deployment.

use compute_api::conditions::{RUNNING_RETIRED, Status};

use super::*;
use crate::fixtures::{condition, deployment, instance, leaving, ready, stored};

fn upstream() -> Upstream {
    Upstream { project: "p".to_owned(), namespace: "default".to_owned() }
}

fn hub_deployment() -> WorkloadDeployment {
    let mut hub = deployment(1);
    hub.metadata.uid = Some("hub-deployment-uid".to_owned());
    hub
}

fn write(cell: &Instance, hub: Option<&Instance>) -> Result<Step, Refusal> {
    decide(cell, Some(&hub_deployment()), hub, &upstream(), "cell-dfw")
}

fn stored_copy(step: &Step) -> Instance {
    let Step::Write { copy, .. } = step else { panic!("not a write: {step:?}") };
    let mut made = (**copy).clone();
    made.metadata.uid = Some("copy-uid".to_owned());
    made
}

#[test]
fn a_copy_is_owned_by_the_hub_deployment_and_says_where_it_comes_from() {
    let mut cell = ready(instance(&deployment(1), 0));
    cell.status.as_mut().unwrap().conditions.push(condition(RUNNING_RETIRED, Status::True, "X", ""));
    let made = stored_copy(&write(&cell, None).unwrap());
    assert_eq!(meta::controller_uid(&made.metadata), Some("hub-deployment-uid"));
    for (key, value) in [
        (labels::SOURCE_CLUSTER, "cell-dfw"),
        (labels::UPSTREAM_CLUSTER_NAME, "cluster-p"),
        (labels::WORKLOAD_DEPLOYMENT_UID, "hub-deployment-uid"),
        (labels::WORKLOAD_UID, "workload-uid"),
        (labels::INSTANCE_INDEX, "0"),
    ] {
        assert_eq!(meta::label(&made.metadata, key), Some(value));
    }
    assert_eq!(made.metadata.finalizers, None);
    assert_eq!(made.status.as_ref().unwrap().conditions.len(), 3);
    assert_eq!(write(&cell, Some(&made)), Ok(Step::UpToDate));

    let mut labelled = made.clone();
    labelled.metadata.labels.as_mut().unwrap().insert("theirs".to_owned(), "x".to_owned());
    assert_eq!(write(&cell, Some(&labelled)), Ok(Step::UpToDate));
    cell.status = None;
    assert_eq!(write(&cell, Some(&made)), Ok(Step::UpToDate));
    cell.spec.controller = None;
    let step = write(&cell, Some(&made)).unwrap();
    assert!(matches!(step, Step::Write { object: true, status: false, .. }));
    assert_eq!(write(&cell, Some(&leaving(made))), Ok(Step::Wait));
}

#[test]
fn nothing_is_written_without_its_deployment() {
    let cell = instance(&deployment(1), 0);
    let with = |owner: Option<&WorkloadDeployment>| decide(&cell, owner, None, &upstream(), "cell-dfw");
    assert_eq!(with(None), Err(Refusal::NoDeployment));
    assert_eq!(with(Some(&leaving(hub_deployment()))), Err(Refusal::DeploymentBeingDeleted));
    let mut successor = hub_deployment();
    successor.spec.workload_ref.uid = "second".to_owned();
    assert_eq!(with(Some(&successor)), Err(Refusal::OtherWorkload));
}

#[test]
fn missing_identity_is_told() {
    let mut cell = instance(&deployment(1), 0);
    assert!(missing_labels(&cell).is_empty());
    cell.metadata.labels.as_mut().unwrap().remove(labels::CITY_CODE);
    assert_eq!(missing_labels(&cell), [labels::CITY_CODE]);
}

#[test]
fn a_sweep_finds_this_cells_copies_that_nothing_stands_behind() {
    let copy = |name: &str, cluster: &str| {
        let mut made = Instance { metadata: stored("ns", name, name), ..Instance::default() };
        made.metadata.labels = Some(meta::map([(labels::SOURCE_CLUSTER, cluster)]));
        made
    };
    let copies =
        [copy("c", "cell-dfw"), copy("a", "cell-dfw"), copy("b", "cell-iad"), leaving(copy("d", "cell-dfw"))];
    let cell = [copy("c", "")];
    let names = |stale: Vec<Stale>| stale.into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(sweep("cell-dfw", &copies, &cell)), ["a"]);
    assert_eq!(names(sweep("cell-dfw", copies.iter().rev(), &[])), ["a", "c"]);
}

#[test]
fn the_order_of_conditions_is_nobodys_business() {
    let cell = ready(instance(&deployment(1), 0));
    let mut hub = stored_copy(&write(&cell, None).unwrap());
    hub.status.as_mut().unwrap().conditions.reverse();
    assert_eq!(write(&cell, Some(&hub)), Ok(Step::UpToDate));
    hub.status.as_mut().unwrap().conditions.pop();
    assert!(matches!(write(&cell, Some(&hub)), Ok(Step::Write { object: false, status: true, .. })));
}
