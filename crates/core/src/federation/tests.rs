//! Copies, policies, namespaces and status, each from first write to nothing more to do.

use compute_api::{
    annotations,
    compute::{WorkloadDeployment, WorkloadDeploymentStatus},
    conditions::{self as c, Status},
    k8s::{Condition, Namespace},
    karmada::{self, Cluster, ClusterStatus, PropagationPolicy},
};
use proptest::prelude::*;

use super::*;
use crate::fixtures::{at, condition, deployment, leaving, stored};

fn upstream() -> Upstream {
    Upstream { project: "org/p".to_owned(), namespace: "default".to_owned() }
}

/// What an API server makes of an applied copy.
fn stored_copy(step: &copy::Step) -> WorkloadDeployment {
    let copy::Step::Apply(body) = step else { panic!("not an apply: {step:?}") };
    let mut made = (**body).clone();
    made.metadata.uid = Some("hub-uid".to_owned());
    made.metadata.generation = Some(1);
    made
}

fn decide(project: &WorkloadDeployment, hub: Option<&WorkloadDeployment>) -> copy::Step {
    copy::decide(project, &upstream(), "ns-1", hub).unwrap()
}

#[test]
fn labels_tell_where_something_comes_from() {
    let labels = upstream().labels().unwrap();
    let meta = ObjectMeta { labels: Some(labels), ..ObjectMeta::default() };
    assert_eq!(Upstream::of(&meta), Some(upstream()));
    assert_eq!(Upstream::of(&ObjectMeta::default()), None);
    let long = Upstream { project: "p".repeat(60), namespace: "default".to_owned() };
    assert!(long.labels().is_err());
}

#[test]
fn a_copy_carries_what_the_cell_needs_and_nothing_else() {
    let mut project = deployment(2);
    project.metadata.generation = Some(4);
    project.metadata.annotations =
        Some(meta::map([(annotations::RESTARTED_AT, "2026-05-01T00:00:00Z"), ("private", "x")]));
    project.metadata.finalizers = Some(vec!["f".to_owned()]);
    project.status = Some(WorkloadDeploymentStatus::default());
    let made = stored_copy(&decide(&project, None));
    assert_eq!(meta::namespace(&made.metadata), "ns-1");
    assert_eq!(
        made.metadata.labels,
        Some(meta::map([
            (labels::UPSTREAM_CLUSTER_NAME, "cluster-org_p"),
            (labels::UPSTREAM_NAMESPACE, "default"),
            (labels::TOPOLOGY_CITY_CODE, "DFW"),
        ]))
    );
    assert_eq!(
        made.metadata.annotations,
        Some(meta::map([
            (annotations::UPSTREAM_GENERATION, "4"),
            (annotations::UPSTREAM_UID, "deployment-uid"),
            (annotations::RESTARTED_AT, "2026-05-01T00:00:00Z"),
        ]))
    );
    assert_eq!((made.metadata.finalizers.as_ref(), made.status.as_ref()), (None, None));
    assert_eq!(decide(&project, Some(&made)), copy::Step::UpToDate);

    // What the hub and people on it add stays; what we no longer say goes.
    let mut touched = made;
    touched.metadata.labels.as_mut().unwrap().insert("propagationpolicy.karmada.io/name".into(), "x".into());
    touched.spec.replicas = Some(9);
    assert_eq!(decide(&project, Some(&touched)), copy::Step::UpToDate);
    project.metadata.annotations = None;
    assert!(matches!(decide(&project, Some(&touched)), copy::Step::Apply(_)));
}

#[test]
fn replicas_of_ours_are_taken_back() {
    let mut project = deployment(2);
    project.spec.replicas = Some(5);
    let mut made = stored_copy(&decide(&project, None));
    assert_eq!(made.spec.replicas, Some(5));
    made.metadata.managed_fields = serde_json::from_value(serde_json::json!([
        { "manager": copy::FIELD_MANAGER, "operation": "Apply", "fieldsV1": { "f:spec": { "f:replicas": {} } } }
    ]))
    .unwrap();
    assert_eq!(decide(&project, Some(&made)), copy::Step::UpToDate);
    project.spec.replicas = None;
    let copy::Step::Apply(body) = decide(&project, Some(&made)) else { panic!() };
    assert_eq!(body.spec.replicas, None);
}

#[test]
fn a_predecessors_copy_goes_first() {
    let first = deployment(2);
    let hub = stored_copy(&decide(&first, None));
    let mut second = first.clone();
    second.metadata.uid = Some("second-uid".to_owned());
    let step = decide(&second, Some(&hub));
    assert_eq!(step, copy::Step::Delete { uid: "hub-uid".to_owned(), why: copy::Superseded::Predecessor });
    assert_eq!(decide(&second, Some(&leaving(hub.clone()))), copy::Step::Wait);
    assert!(copy::is_orphan(&hub, true) && !copy::is_orphan(&hub, false));
    assert!(!copy::is_orphan(&leaving(hub), true) && !copy::is_orphan(&first, true));
}

#[test]
fn deletion_releases_after_the_delete_call() {
    let project = deployment(2);
    let hub = stored_copy(&decide(&project, None));
    let gone = leaving(project);
    let step = decide(&gone, Some(&hub));
    assert_eq!(step, copy::Step::Delete { uid: "hub-uid".to_owned(), why: copy::Superseded::Deleted });
    assert_eq!(decide(&gone, Some(&leaving(hub))), copy::Step::Release);
    assert_eq!(decide(&gone, None), copy::Step::Release);
}

fn on_hub(name: &str, city: &str) -> WorkloadDeployment {
    let mut made = deployment(1);
    made.metadata = stored("ns-1", name, &format!("uid-{name}"));
    made.metadata.labels = Some(meta::map([(labels::TOPOLOGY_CITY_CODE, city)]));
    made
}

fn hub_namespace() -> Namespace {
    let project = Namespace { metadata: stored("", "default", "1"), ..Namespace::default() };
    namespace::hub_namespace("org/p", &project).unwrap()
}

fn policy_of(deployments: &[WorkloadDeployment], stored: Option<&PropagationPolicy>) -> policy::Step {
    policy::decide(&hub_namespace().metadata, "dfw", deployments, stored)
}

#[test]
fn a_policy_exists_as_long_as_its_city_has_a_deployment() {
    let all = [on_hub("b", "DFW"), on_hub("a", "DFW"), on_hub("c", "IAD")];
    let policy::Step::Apply(made) = policy_of(&all, None) else { panic!() };
    assert_eq!(meta::name(&made.metadata), "city-dfw");
    assert_eq!(policy::city_of_name("city-dfw"), Some("dfw"));
    assert_eq!((policy::city_of_name("city-"), policy::city_of_name("dfw")), (None, None));
    let owners: Vec<_> =
        made.metadata.owner_references.as_ref().unwrap().iter().map(|owner| owner.uid.as_str()).collect();
    assert_eq!(owners, ["uid-a", "uid-b"]);
    let placement = made.spec.placement.as_ref().unwrap();
    let chosen = karmada::match_labels([(labels::TOPOLOGY_CITY_CODE, "DFW")]);
    assert_eq!(placement.cluster_affinity.as_ref().unwrap().label_selector, Some(chosen.clone()));
    assert_eq!(made.spec.resource_selectors[0].label_selector, Some(chosen));
    assert_eq!(placement.spread_constraints[0].max_groups, Some(1));
    assert!(placement.cluster_tolerations.iter().all(|one| one.toleration_seconds.is_none()));
    assert_eq!(made.spec.propagate_deps, Some(true));

    let mut held = (*made).clone();
    held.metadata.uid = Some("policy-uid".to_owned());
    held.spec.priority = Some(0);
    held.spec.resource_selectors[0].namespace = Some("ns-1".to_owned());
    held.metadata.owner_references.as_mut().unwrap().reverse();
    assert_eq!(policy_of(&all, Some(&held)), policy::Step::Nothing);
    assert!(matches!(policy_of(&all[..1], Some(&held)), policy::Step::Apply(_)));
    assert_eq!(policy_of(&all[2..], Some(&held)), policy::Step::Delete { uid: "policy-uid".to_owned() });
    assert_eq!(policy_of(&all[2..], None), policy::Step::Nothing);
    let going = leaving(held);
    assert_eq!(policy_of(&all, Some(&going)), policy::Step::Wait);
    assert_eq!(policy_of(&[], Some(&going)), policy::Step::Nothing);
}

#[test]
fn a_policy_says_whose_it_is_and_only_such_a_one_is_deleted() {
    let all = [on_hub("a", "DFW")];
    let policy::Step::Apply(made) = policy_of(&all, None) else { panic!() };
    assert_eq!(meta::namespace(&made.metadata), "ns-1");
    assert_eq!(Upstream::of(&made.metadata), Some(upstream()));
    let mut bare = (*made).clone();
    bare.metadata.uid = Some("policy-uid".to_owned());
    bare.metadata.labels = None;
    assert!(matches!(policy_of(&all, Some(&bare)), policy::Step::Apply(_)), "the labels are put on");
    let delete = policy::Step::Delete { uid: "policy-uid".to_owned() };
    assert_eq!(policy_of(&[], Some(&bare)), delete, "deployments alone own it");
    let mut others = bare.clone();
    others.metadata.owner_references.as_mut().unwrap()[0].kind = "Other".to_owned();
    assert_eq!(policy_of(&[], Some(&others)), policy::Step::Nothing);
    bare.metadata.owner_references = None;
    assert_eq!(policy_of(&[], Some(&bare)), policy::Step::Nothing, "its name alone does not make it ours");
    bare.metadata.labels.clone_from(&made.metadata.labels);
    assert_eq!(policy_of(&[], Some(&bare)), delete);
}

/// What an apply leaves, since somebody else owns it, is named field by field.
#[test]
fn what_others_added_to_a_policy_is_taken_out() {
    let policy::Step::Apply(wanted) = policy_of(&[on_hub("a", "DFW")], None) else { panic!() };
    let mut applied = (*wanted).clone();
    applied.metadata.resource_version = Some("7".to_owned());
    applied.spec.priority = Some(3);
    assert_eq!(policy::correction(&applied, &wanted), None);
    applied.spec.placement.as_mut().unwrap().cluster_affinity.as_mut().unwrap().cluster_names =
        vec!["x".to_owned()];
    let owner = applied.metadata.owner_references.as_ref().unwrap()[0].clone();
    let mut stray = owner.clone();
    stray.uid = "stray".to_owned();
    let other = compute_api::k8s::OwnerReference { kind: "Other".to_owned(), ..stray.clone() };
    applied.metadata.owner_references = Some(vec![owner.clone(), stray, other.clone()]);
    let patch = policy::correction(&applied, &wanted).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["metadata"]["ownerReferences"], serde_json::json!([owner, other]));
    let affinity = serde_json::json!({ "placement": { "clusterAffinity": { "clusterNames": null } } });
    assert_eq!(patch["spec"], affinity);
}

/// What an apply leaves, since somebody else owns it, is named field by field.
#[test]
fn what_others_added_to_a_copy_is_taken_out() {
    let project = deployment(2);
    let copy::Step::Apply(wanted) = decide(&project, None) else { panic!() };
    let mut applied = stored_copy(&decide(&project, None));
    applied.metadata.resource_version = Some("7".to_owned());
    applied.spec.replicas = Some(9);
    assert_eq!(copy::correction(&applied, &wanted), None, "what is scaled on the hub stays");
    applied.spec.scale_settings.max_replicas = Some(30);
    let said = meta::map([(annotations::RESTARTED_AT, "2026-05-01T00:00:00Z"), ("hub", "own")]);
    applied.metadata.annotations.as_mut().unwrap().extend(said);
    let patch = copy::correction(&applied, &wanted).unwrap();
    assert_eq!(
        patch,
        serde_json::json!({
            "metadata": {
                "uid": "hub-uid", "resourceVersion": "7", "annotations": { annotations::RESTARTED_AT: null },
            },
            "spec": { "scaleSettings": { "maxReplicas": null } },
        })
    );
}

#[test]
fn a_policy_selects_every_spelling_of_its_city() {
    let policy::Step::Apply(made) = policy_of(&[on_hub("a", "dfw"), on_hub("b", "DFW")], None) else {
        panic!()
    };
    let selector = made.spec.resource_selectors[0].label_selector.as_ref().unwrap();
    let values = selector.match_expressions.as_ref().unwrap()[0].values.as_ref().unwrap();
    assert_eq!(values, &["DFW", "dfw"]);
}

#[test]
fn a_hub_namespace_goes_only_on_a_clear_answer() {
    let project = Namespace { metadata: stored("", "default", "1"), ..Namespace::default() };
    let made = namespace::hub_namespace("org/p", &project).unwrap();
    assert!(namespace::differs(None, &made));
    let mut hub = made.clone();
    hub.metadata.uid = Some("hub".to_owned());
    assert!(!namespace::differs(Some(&hub), &made));
    let remove = namespace::Verdict::Remove { uid: "hub".to_owned() };
    let same = namespace::Project::WithNamespace { uid: "1".to_owned() };
    let other = namespace::Project::WithNamespace { uid: "2".to_owned() };
    assert_eq!(namespace::judge(&hub, &namespace::Project::Absent), remove);
    assert_eq!(namespace::judge(&hub, &namespace::Project::WithoutNamespace), remove);
    assert_eq!(namespace::judge(&hub, &other), remove);
    for keep in [same, namespace::Project::Unknown] {
        assert_eq!(namespace::judge(&hub, &keep), namespace::Verdict::Keep);
    }
    let gone = leaving(hub.clone());
    assert_eq!(namespace::judge(&gone, &namespace::Project::Absent), namespace::Verdict::Keep);
    hub.metadata.labels = None;
    assert_eq!(namespace::judge(&hub, &namespace::Project::Absent), namespace::Verdict::Keep);
}

fn cluster(name: &str, city: &str, ready: Status) -> Cluster {
    let mut made = Cluster { metadata: stored("", name, name), ..Cluster::default() };
    made.metadata.labels = Some(meta::map([(labels::TOPOLOGY_CITY_CODE, city)]));
    made.status = Some(ClusterStatus {
        conditions: vec![condition("Ready", ready, "X", "")],
        ..ClusterStatus::default()
    });
    made
}

#[test]
fn a_cell_is_found_by_its_label() {
    let all = [cluster("a", "DFW", Status::True), cluster("b", "IAD", Status::Unknown), Cluster::default()];
    assert_eq!(status::cell("DFW", &all), status::Cell::Ready);
    assert_eq!(status::cell("IAD", &all), status::Cell::NotReady { since: Some(at(0)) });
    assert_eq!(status::cell("LHR", &all), status::Cell::Absent);
}

fn reported(project: &WorkloadDeployment, observed: i64, said: Condition) -> WorkloadDeployment {
    let mut hub = stored_copy(&decide(project, None));
    hub.status = Some(WorkloadDeploymentStatus {
        conditions: vec![said],
        observed_generation: Some(observed),
        ready_replicas: Some(2),
        ..WorkloadDeploymentStatus::default()
    });
    hub
}

fn serving() -> Condition {
    condition(c::AVAILABLE, Status::True, c::STABLE_INSTANCE_FOUND, "fine")
}

#[test]
fn status_comes_back_as_it_is_and_under_what_is_known_of_the_cell() {
    let mut project = deployment(2);
    let hub = reported(&project, 1, serving());
    let mirrored = status::mirror(&project, Some(&hub), &status::Cell::Ready, at(5));
    assert_eq!(Some(&mirrored), hub.status.as_ref());
    project.status = Some(mirrored);

    let lost = status::Cell::NotReady { since: Some(at(7)) };
    let overlaid = status::mirror(&project, Some(&hub), &lost, at(8));
    let said = c::find(&overlaid.conditions, c::AVAILABLE).unwrap();
    assert_eq!((Status::of(said), said.reason.as_str()), (Status::Unknown, c::CELL_NOT_READY));
    assert!(said.message.contains("1970-01-01T00:00:07Z"));
    assert_eq!((said.last_transition_time.0, overlaid.ready_replicas), (at(8), Some(2)));
    project.status = Some(overlaid.clone());
    assert_eq!(status::mirror(&project, Some(&hub), &lost, at(9)), overlaid);

    let back = status::mirror(&project, Some(&hub), &status::Cell::Ready, at(20));
    let said = c::find(&back.conditions, c::AVAILABLE).unwrap();
    assert_eq!((said.reason.as_str(), said.last_transition_time.0), (c::STABLE_INSTANCE_FOUND, at(20)));
    project.status = Some(back.clone());
    assert_eq!(status::mirror(&project, Some(&hub), &status::Cell::Ready, at(30)), back);

    let none = status::mirror(&project, Some(&hub), &status::Cell::Absent, at(40));
    assert_eq!(c::find(&none.conditions, c::AVAILABLE).unwrap().reason, c::NO_MATCHING_LOCATION);
}

#[test]
fn what_was_said_of_a_cell_stays_while_nobody_can_tell() {
    let mut project = deployment(2);
    let hub = reported(&project, 1, serving());
    let plain = status::mirror(&project, Some(&hub), &status::Cell::Unknown, at(5));
    assert_eq!(Some(&plain), hub.status.as_ref());
    let lost = status::Cell::NotReady { since: Some(at(7)) };
    project.status = Some(status::mirror(&project, Some(&hub), &lost, at(8)));
    let mut newer = hub;
    newer.status.as_mut().unwrap().ready_replicas = Some(1);
    let kept = status::mirror(&project, Some(&newer), &status::Cell::Unknown, at(9));
    assert_eq!(kept.ready_replicas, Some(1));
    assert_eq!(kept.conditions, project.status.as_ref().unwrap().conditions);
    assert_eq!(
        status::mirror(&project, None, &status::Cell::Unknown, at(9)),
        project.status.clone().unwrap()
    );
}

#[test]
fn the_status_of_a_predecessor_is_not_believed() {
    let mut project = deployment(2);
    let of_first = reported(&project, 1, serving());
    project.metadata.uid = Some("second-uid".to_owned());
    assert!(!status::is_believed(&project, &of_first));
    let fresh = status::mirror(&project, Some(&of_first), &status::Cell::Ready, at(5));
    assert_eq!(fresh, WorkloadDeploymentStatus::default());
    // Its own copy, with a status that came from further on than this object is.
    assert!(!status::is_believed(&project, &reported(&project, 2, serving())));
    assert!(!status::is_believed(&project, &leaving(reported(&project, 1, serving()))));
    assert!(status::is_believed(&project, &reported(&project, 1, serving())));
    // What an overlay said does not outlive it.
    project.status = Some(status::mirror(&project, None, &status::Cell::Absent, at(5)));
    let waiting = status::mirror(&project, None, &status::Cell::Ready, at(6));
    assert_eq!(c::find(&waiting.conditions, c::AVAILABLE).unwrap().reason, c::PENDING);
}

#[test]
fn counts_that_are_left_out_are_no_difference() {
    let project = deployment(2);
    let hub = reported(&project, 1, serving());
    let wanted = status::mirror(&project, Some(&hub), &status::Cell::Ready, at(5));
    let stored = WorkloadDeploymentStatus { current_replicas: Some(0), replicas: Some(0), ..wanted.clone() };
    assert!(!status::differs(Some(&stored), &wanted));
    assert!(status::differs(None, &wanted));
    assert!(!status::differs(None, &WorkloadDeploymentStatus::default()));
    let other = WorkloadDeploymentStatus { ready_replicas: Some(1), ..wanted.clone() };
    assert!(status::differs(Some(&other), &wanted));
}

proptest! {
    #[test]
    fn a_policy_applied_is_not_applied_again_and_order_does_not_matter(
        all in prop::collection::btree_map("[a-d]", "(DFW|dfw|IAD)", 0..4)
    ) {
        let mut hub: Vec<_> = all.iter().map(|(name, city)| on_hub(name, city)).collect();
        let step = policy_of(&hub, None);
        hub.reverse();
        prop_assert_eq!(&step, &policy_of(&hub, None));
        if let policy::Step::Apply(made) = step {
            prop_assert_eq!(policy_of(&hub, Some(&made)), policy::Step::Nothing);
        }
    }

    #[test]
    fn mirroring_again_changes_nothing(observed in 0..3_i64, serves in any::<bool>(), cell in 0..4_u8, was in 0..4_u8) {
        let cells = [
            status::Cell::Ready, status::Cell::Absent, status::Cell::NotReady { since: None }, status::Cell::Unknown,
        ];
        let mut project = deployment(2);
        let said = if serves { serving() } else { condition(c::AVAILABLE, Status::False, c::STARTING, "") };
        let hub = reported(&project, observed, said);
        project.status = Some(status::mirror(&project, Some(&hub), &cells[usize::from(was)], at(1)));
        let once = status::mirror(&project, Some(&hub), &cells[usize::from(cell)], at(2));
        project.status = Some(once.clone());
        prop_assert_eq!(status::mirror(&project, Some(&hub), &cells[usize::from(cell)], at(3)), once);
    }
}
