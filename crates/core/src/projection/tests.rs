//! A projection follows the hub copy and belongs to the project's own deployment.

use compute_api::conditions as c;

use super::*;
use crate::fixtures::{condition, deployment, instance, leaving, not_ready, ready};

const NOW: Duration = Duration::ZERO;

fn on_hub() -> Instance {
    let mut hub = ready(instance(&deployment(1), 0));
    let upstream = Upstream { project: "p".to_owned(), namespace: "default".to_owned() };
    let labels = hub.metadata.labels.as_mut().unwrap();
    labels.extend(upstream.labels().unwrap());
    labels.extend(meta::map([
        (labels::WORKLOAD_DEPLOYMENT_UID, "hub-deployment-uid"),
        ("work.karmada.io/permanent-id", "x"),
        ("app", "web"),
    ]));
    hub
}

fn owner() -> WorkloadDeployment {
    let mut owner = deployment(1);
    owner.metadata.uid = Some("project-deployment-uid".to_owned());
    owner
}

#[test]
fn a_projection_is_owned_by_the_projects_own_deployment() {
    let hub = on_hub();
    let Step::Write { projection, object: true, status: true } =
        decide(Some(&hub), None, Some(&owner()), NOW)
    else {
        panic!()
    };
    assert_eq!(meta::namespace(&projection.metadata), "default");
    assert_eq!(meta::controller_uid(&projection.metadata), Some("project-deployment-uid"));
    let label = |key| meta::label(&projection.metadata, key);
    assert_eq!(label(labels::WORKLOAD_DEPLOYMENT_UID), Some("project-deployment-uid"));
    assert_eq!((label("app"), label("work.karmada.io/permanent-id")), (Some("web"), None));
    assert_eq!(label(labels::UPSTREAM_CLUSTER_NAME), None);
    assert_eq!((&projection.spec, &projection.status), (&hub.spec, &hub.status));

    let again =
        |hub: &Instance, projected: &Instance| decide(Some(hub), Some(projected), Some(&owner()), NOW);
    assert_eq!(again(&hub, &projection), Step::UpToDate);
    let broken = not_ready(hub.clone(), c::INSTANCE_CRASHING, "exit code 1");
    assert!(matches!(again(&broken, &projection), Step::Write { object: false, status: true, .. }));
    let mut unowned = (*projection).clone();
    unowned.metadata.owner_references = None;
    assert!(matches!(again(&hub, &unowned), Step::Write { object: true, status: false, .. }));
    assert_eq!(again(&hub, &leaving(*projection)), Step::Wait);
}

#[test]
fn what_is_edited_by_hand_is_put_back() {
    let hub = on_hub();
    let Step::Write { projection, .. } = decide(Some(&hub), None, Some(&owner()), NOW) else { panic!() };
    let mut edited = (*projection).clone();
    edited.metadata.resource_version = Some("7".to_owned());
    edited.spec.volumes.push(compute_api::compute::Volume { name: "mine".to_owned(), ..Default::default() });
    edited.status.as_mut().unwrap().conditions.truncate(1);
    let patch = object_patch(&edited, &projection);
    assert_eq!(patch["spec"], json!({ "volumes": null }));
    assert_eq!(
        (&patch["metadata"]["resourceVersion"], patch["metadata"]["labels"].is_object()),
        (&json!("7"), true)
    );
    let status = status_patch(&edited, &projection);
    assert_eq!(status["status"]["conditions"].as_array().unwrap().len(), 3);
    assert_eq!(status["status"].as_object().unwrap().len(), 1);
}

#[test]
fn a_projection_goes_with_the_hub_copy() {
    let projected = ready(instance(&deployment(1), 0));
    let uid = meta::uid(&projected.metadata).to_owned();
    assert_eq!(decide(None, Some(&projected), None, NOW), Step::Delete { uid });
    assert_eq!(decide(None, Some(&leaving(projected)), None, NOW), Step::UpToDate);
    assert_eq!(decide(None, None, None, NOW), Step::UpToDate);
}

#[test]
fn without_an_owner_there_is_no_projection() {
    let hub = on_hub();
    assert_eq!(decide(Some(&hub), None, None, NOW), Step::Wait);
    let final_answer = Step::Quarantine(Quarantine::NoOwner("web-main-dfw".to_owned()));
    assert_eq!(decide(Some(&hub), None, None, OWNER_PATIENCE), final_answer);
    let mut successor = owner();
    successor.spec.workload_ref.uid = "second".to_owned();
    assert_eq!(decide(Some(&hub), None, Some(&successor), NOW), Step::Wait);
    assert_eq!(decide(Some(&hub), None, Some(&leaving(owner())), NOW), Step::UpToDate);
    let mut unknown = hub;
    unknown.metadata.labels.as_mut().unwrap().remove(labels::UPSTREAM_NAMESPACE);
    assert_eq!(decide(Some(&unknown), None, Some(&owner()), NOW), Step::Quarantine(Quarantine::NoIdentity));
}

#[test]
fn the_owner_is_found_by_label_else_by_name() {
    let mut hub = on_hub();
    hub.metadata.name = Some("a-b-7".to_owned());
    assert_eq!(owner_name(&hub), Some("web-main-dfw"));
    hub.metadata.labels.as_mut().unwrap().remove(labels::WORKLOAD_DEPLOYMENT_NAME);
    assert_eq!(owner_name(&hub), Some("a-b"));
    hub.metadata.name = Some("odd".to_owned());
    assert_eq!(decide(Some(&hub), None, None, NOW), Step::Quarantine(Quarantine::NoDeploymentName));
}

#[test]
fn people_hear_of_problems_that_come_and_go() {
    let at = |reason| condition(c::READY, Status::False, reason, reason);
    let up = condition(c::READY, Status::True, c::INSTANCE_AVAILABLE, "");
    assert_eq!(event(None, &at(c::PENDING_QUOTA)), None);
    assert!(event(None, &at(c::IMAGE_UNAVAILABLE)).unwrap().warning);
    assert_eq!(event(Some(&at(c::IMAGE_UNAVAILABLE)), &at(c::IMAGE_UNAVAILABLE)), None);
    assert!(event(Some(&at(c::IMAGE_UNAVAILABLE)), &at(c::QUOTA_EXCEEDED)).unwrap().warning);
    let over = event(Some(&at(c::QUOTA_EXCEEDED)), &up).unwrap();
    assert_eq!((over.warning, over.reason.as_str()), (false, c::INSTANCE_AVAILABLE));
    assert_eq!(event(Some(&at(c::STARTING)), &up), None);
}
