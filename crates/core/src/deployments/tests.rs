//! Situations of one Workload, and that every set of deployments ends up as the wanted one.

use compute_api::{
    conditions::Status,
    k8s::Time,
    labels::TOPOLOGY_CITY_CODE,
    networking::{LocationBinding, LocationBindingSpec, LocationBindingStatus},
};
use proptest::prelude::*;

use super::*;
use crate::fixtures::{at, condition, leaving, stored, template, workload};

fn offered(cities: &[&str]) -> Offered {
    let bindings: Vec<_> = cities
        .iter()
        .map(|city| LocationBinding {
            metadata: stored("", city, city),
            spec: LocationBindingSpec {
                topology: meta::map([(TOPOLOGY_CITY_CODE, *city)]),
                ..LocationBindingSpec::default()
            },
            status: Some(LocationBindingStatus {
                conditions: vec![condition("Available", Status::True, "Available", "")],
            }),
        })
        .collect();
    Offered::of(&bindings)
}

/// Does what a plan says, as an API server would.
fn apply(plan: &Plan, deployments: &mut Vec<WorkloadDeployment>, next: &mut i64) {
    for step in &plan.steps {
        *next += 1;
        match step {
            Step::Create(new) => {
                let name = meta::name(&new.metadata);
                assert!(
                    deployments.iter().all(|other| meta::name(&other.metadata) != name),
                    "{name} is held"
                );
                let mut new = (**new).clone();
                new.metadata.uid = Some(format!("made-{next}"));
                new.metadata.creation_timestamp = Some(Time(at(*next)));
                deployments.push(new);
            }
            Step::Update(update) => {
                let stored = find(deployments, meta::name(&update.metadata));
                assert_eq!(stored.metadata.resource_version, update.metadata.resource_version);
                let replicas = stored.spec.replicas;
                stored.spec = WorkloadDeploymentSpec { replicas, ..update.spec.clone() };
                stored
                    .metadata
                    .labels
                    .get_or_insert_default()
                    .extend(update.metadata.labels.clone().unwrap());
                stored.metadata.owner_references.clone_from(&update.metadata.owner_references);
            }
            Step::Delete { uid, .. } => {
                let gone = deployments.iter_mut().find(|one| meta::uid(&one.metadata) == uid).unwrap();
                *gone = leaving(gone.clone());
            }
            Step::Wait { .. } => {}
        }
    }
}

fn find<'a>(deployments: &'a mut [WorkloadDeployment], name: &str) -> &'a mut WorkloadDeployment {
    deployments.iter_mut().find(|one| meta::name(&one.metadata) == name).unwrap()
}

fn made(workload: &Workload, offered: &Offered) -> Vec<WorkloadDeployment> {
    let mut all = Vec::new();
    apply(&decide(workload, &all.clone(), offered), &mut all, &mut 0);
    all
}

fn names_of(plan: &Plan) -> Vec<String> {
    let word = |step: &Step| match step {
        Step::Create(new) => format!("create {}", meta::name(&new.metadata)),
        Step::Update(new) => format!("update {}", meta::name(&new.metadata)),
        Step::Delete { name, .. } => format!("delete {name}"),
        Step::Wait { name, .. } => format!("wait {name}"),
    };
    plan.steps.iter().map(word).collect()
}

#[test]
fn each_offered_city_gets_one_deployment_in_the_offered_spelling() {
    let wanted = workload(&[("main", &["dfw", "IAD", "LHR"])]);
    let plan = decide(&wanted, &[], &offered(&["DFW", "IAD"]));
    assert_eq!(names_of(&plan), ["create web-main-dfw", "create web-main-iad"]);
    let Step::Create(first) = &plan.steps[0] else { panic!() };
    assert_eq!(first.spec.city_code, "DFW");
    assert_eq!(first.spec.replicas, None);
    assert_eq!(first.spec.workload_ref.uid, "workload-uid");
    assert_eq!(meta::controller_uid(&first.metadata), Some("workload-uid"));
    let body = serde_json::to_value(first).unwrap();
    assert!(body["spec"].get("replicas").is_none() && body.get("status").is_none());
    assert_eq!(plan.unavailable.len(), 1);
    assert_eq!((plan.unavailable[0].city.as_str(), plan.unavailable[0].deployed), ("LHR", false));
    assert!(!plan.is_written("main"));

    let all = made(&wanted, &offered(&["DFW", "IAD"]));
    let again = decide(&wanted, &all, &offered(&["DFW", "IAD"]));
    assert!(again.steps.is_empty() && again.is_written("main"));
    // Another spelling in the Workload is the same city.
    assert!(
        decide(&workload(&[("main", &["DFW", "iad"])]), &all, &offered(&["DFW", "IAD"])).steps.is_empty()
    );
}

#[test]
fn a_change_is_applied_to_owned_fields_only() {
    let mut wanted = workload(&[("main", &["DFW"])]);
    let mut all = made(&wanted, &offered(&["DFW"]));
    all[0].spec.replicas = Some(7);
    all[0].metadata.labels.as_mut().unwrap().insert("theirs".to_owned(), "x".to_owned());
    all[0].metadata.resource_version = Some("41".to_owned());
    assert!(decide(&wanted, &all, &offered(&["DFW"])).steps.is_empty());
    wanted.spec.template = template("app:2");
    wanted.spec.paused = Some(true);
    let plan = decide(&wanted, &all, &offered(&["DFW"]));
    assert_eq!(names_of(&plan), ["update web-main-dfw"]);
    let Step::Update(update) = &plan.steps[0] else { panic!() };
    assert_eq!((update.spec.replicas, update.spec.paused), (None, Some(true)));
    assert_eq!(update.metadata.resource_version.as_deref(), Some("41"));
    apply(&plan, &mut all, &mut 1);
    assert_eq!(all[0].spec.replicas, Some(7));
    assert!(decide(&wanted, &all, &offered(&["DFW"])).steps.is_empty());
}

#[test]
fn a_city_whose_binding_went_away_is_updated_and_not_made_again() {
    let mut wanted = workload(&[("main", &["DFW"])]);
    let mut all = made(&wanted, &offered(&["DFW"]));
    wanted.spec.placements[0].scale_settings.min_replicas = 5;
    let plan = decide(&wanted, &all, &offered(&[]));
    assert_eq!(names_of(&plan), ["update web-main-dfw"]);
    assert!(plan.unavailable[0].deployed);
    all.clear();
    let plan = decide(&wanted, &all, &offered(&[]));
    assert!(plan.steps.is_empty() && plan.is_written("main"));
}

#[test]
fn the_later_restart_stays() {
    let mut wanted = workload(&[("main", &["DFW", "IAD"])]);
    wanted.spec.template.set_annotation(RESTARTED_AT, "2026-05-01T00:00:00Z");
    let mut all = made(&wanted, &offered(&["DFW", "IAD"]));
    find(&mut all, "web-main-dfw").spec.template.set_annotation(RESTARTED_AT, "2026-05-09T00:00:00Z");
    assert!(decide(&wanted, &all, &offered(&["DFW", "IAD"])).steps.is_empty());
    wanted.spec.template.set_annotation(RESTARTED_AT, "2026-05-05T00:00:00Z");
    apply(&decide(&wanted, &all, &offered(&["DFW", "IAD"])), &mut all, &mut 10);
    let restarted = |all: &mut Vec<_>, name| {
        find(all, name).spec.template.annotation(RESTARTED_AT).map(str::to_owned).unwrap()
    };
    assert_eq!(restarted(&mut all, "web-main-dfw"), "2026-05-09T00:00:00Z");
    assert_eq!(restarted(&mut all, "web-main-iad"), "2026-05-05T00:00:00Z");
}

#[test]
fn names_that_meet_are_hashed_and_stay() {
    let offered = offered(&["DFW"]);
    let mut first = workload(&[("c", &["DFW"])]);
    first.metadata.name = Some("a-b".to_owned());
    let mut second = workload(&[("b-c", &["DFW"])]);
    second.metadata.name = Some("a".to_owned());
    second.metadata.uid = Some("other-uid".to_owned());
    let mut all = made(&first, &offered);
    let plan = decide(&second, &all, &offered);
    let Step::Create(new) = &plan.steps[0] else { panic!() };
    assert!(meta::name(&new.metadata).starts_with("a-b-c-dfw-"));
    apply(&plan, &mut all, &mut 5);
    assert!(
        decide(&first, &all, &offered).steps.is_empty() && decide(&second, &all, &offered).steps.is_empty()
    );
    // The name frees up: nothing moves.
    all.remove(0);
    assert!(decide(&second, &all, &offered).steps.is_empty());
    // Two placements of one Workload meet as well.
    let mut both = workload(&[("x", &["a-b"]), ("x-a", &["b"])]);
    both.metadata.name = Some("w".to_owned());
    let all = made(&both, &self::offered(&["a-b", "b"]));
    assert_eq!(all.len(), 2);
    assert_eq!(meta::name(&all[0].metadata), "w-x-a-b");
    assert!(meta::name(&all[1].metadata).starts_with("w-x-a-b-"));
}

#[test]
fn a_predecessor_on_its_way_out_is_awaited() {
    let offered = offered(&["DFW"]);
    let wanted = workload(&[("main", &["DFW"])]);
    let own: Vec<_> = made(&wanted, &offered).into_iter().map(leaving).collect();
    let plan = decide(&wanted, &own, &offered);
    assert_eq!(names_of(&plan), ["wait web-main-dfw"]);
    assert!(!plan.is_written("main") && plan.changes_nothing());
    let mut again = wanted;
    again.metadata.uid = Some("second-uid".to_owned());
    assert_eq!(names_of(&decide(&again, &own, &offered)), ["wait web-main-dfw"]);
    // One that stays is no predecessor.
    let orphans: Vec<_> = own
        .into_iter()
        .map(|mut one| {
            one.metadata.deletion_timestamp = None;
            one
        })
        .collect();
    let plan = decide(&again, &orphans, &offered);
    assert!(names_of(&plan)[0].starts_with("create web-main-dfw-"));
}

#[test]
fn of_two_with_one_identity_the_older_stays() {
    let offered = offered(&["DFW"]);
    let wanted = workload(&[("main", &["DFW"])]);
    let mut all = made(&wanted, &offered);
    let mut younger = all[0].clone();
    younger.metadata.name = Some("web-main-dfw-12345678".to_owned());
    younger.metadata.uid = Some("a-lower-uid".to_owned());
    younger.metadata.creation_timestamp = Some(Time(at(100)));
    all.insert(0, younger);
    let plan = decide(&wanted, &all, &offered);
    assert_eq!(names_of(&plan), ["delete web-main-dfw-12345678"]);
    // If the older is on its way out, the younger takes its place.
    all[1] = leaving(all[1].clone());
    assert!(decide(&wanted, &all, &offered).steps.is_empty());
}

#[test]
fn what_is_not_asked_for_goes_and_what_is_not_ours_stays() {
    let offered = offered(&["DFW", "IAD"]);
    let mut all = made(&workload(&[("main", &["DFW", "IAD"])]), &offered);
    let mut foreign = all[0].clone();
    foreign.metadata.name = Some("foreign".to_owned());
    foreign.metadata.owner_references = None;
    all.push(foreign);
    let wanted = workload(&[("main", &["DFW"])]);
    assert_eq!(names_of(&decide(&wanted, &all, &offered)), ["delete web-main-iad"]);
    let gone = leaving(wanted);
    let plan = decide(&gone, &all, &offered);
    assert_eq!(names_of(&plan), ["delete web-main-dfw", "delete web-main-iad"]);
    assert!(!none_left(&gone, &all) && none_left(&gone, &all[2..]));
}

#[test]
fn missing_networks_are_named_once() {
    let mut wanted = workload(&[]);
    let twice = wanted.spec.template.spec.network_interfaces[0].clone();
    wanted.spec.template.spec.network_interfaces.push(twice);
    assert_eq!(missing_networks(&wanted, &BTreeSet::new()), ["default"]);
    assert!(missing_networks(&wanted, &BTreeSet::from(["default".to_owned()])).is_empty());
}

fn any_placements() -> impl Strategy<Value = Vec<(String, Vec<String>)>> {
    let cities = prop::collection::vec("(dfw|DFW|iad|lhr-a)", 0..4);
    prop::collection::vec(("(a|a-lhr|b)", cities), 0..3)
}

fn workload_of(placements: &[(String, Vec<String>)]) -> Workload {
    let cities: Vec<Vec<&str>> =
        placements.iter().map(|(_, cities)| cities.iter().map(String::as_str).collect()).collect();
    let all: Vec<(&str, &[&str])> =
        placements.iter().zip(&cities).map(|((name, _), cities)| (name.as_str(), &cities[..])).collect();
    workload(&all)
}

proptest! {
    #[test]
    fn every_history_ends_in_the_wanted_set(
        histories in prop::collection::vec((any_placements(), any::<bool>(), 0..3_u8), 1..5),
        image in "(app:1|app:2)",
    ) {
        let all_cities = offered(&["DFW", "IAD", "lhr-a"]);
        let mut all = Vec::new();
        let mut next = 0;
        let last = histories.len() - 1;
        for (index, (placements, some, rounds)) in histories.iter().enumerate() {
            let mut wanted = workload_of(placements);
            wanted.spec.template = template(if index == last { &image } else { "app:1" });
            let offers = if *some && index != last { offered(&["DFW"]) } else { all_cities.clone() };
            let rounds = if index == last { 10 } else { *rounds };
            for _ in 0..rounds {
                let plan = decide(&wanted, &all, &offers);
                let backwards: Vec<_> = all.iter().rev().collect();
                prop_assert_eq!(&plan, &decide(&wanted, backwards, &offers));
                apply(&plan, &mut all, &mut next);
                all.retain(|one| !meta::is_being_deleted(&one.metadata) || meta::uid(&one.metadata).len() % 2 == next as usize % 2);
            }
            if index == last {
                all.retain(|one| !meta::is_being_deleted(&one.metadata));
                apply(&decide(&wanted, &all, &offers), &mut all, &mut next);
                all.retain(|one| !meta::is_being_deleted(&one.metadata));
                prop_assert!(decide(&wanted, &all, &offers).steps.is_empty());
                let keys: BTreeSet<_> = all.iter().map(|one| key(&one.spec.placement_name, &one.spec.city_code)).collect();
                prop_assert_eq!(keys.len(), all.len());
                let asked: BTreeSet<_> = super::wanted(&wanted).into_keys().collect();
                prop_assert_eq!(keys, asked);
            }
        }
    }
}

#[test]
fn a_patch_names_what_is_ours_and_leaves_the_rest() {
    let offered = offered(&["DFW"]);
    let mut asked = workload(&[("main", &["DFW"])]);
    asked.spec.template.set_annotation("team", "a");
    let mut held = made(&asked, &offered).remove(0);
    held.spec.replicas = Some(7);
    let owner = meta::owned_by(&leaving(workload(&[])));
    let other = compute_api::k8s::OwnerReference { uid: "other".to_owned(), ..owner };
    held.metadata.owner_references.as_mut().unwrap().insert(0, other);
    asked.spec.template = template("app:2");
    let Some(Step::Update(update)) = decide(&asked, [&held], &offered).steps.pop() else { panic!() };
    let patch = patch(&held, &update);
    assert_eq!(patch.pointer("/spec/template/metadata"), Some(&Value::Null));
    assert!(patch.pointer("/spec/template/spec/runtime").is_some());
    assert_eq!((patch.pointer("/spec/replicas"), patch.pointer("/spec/cityCode")), (None, None));
    assert_eq!(patch["metadata"]["resourceVersion"], json!(held.metadata.resource_version));
    assert_eq!(patch["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
}
