//! Single situations. What holds over many steps is in `simulation`.

use compute_api::{
    annotations::{RESTARTED_AT, SSH_KEYS},
    compute::{InstanceControl, LocationReference, POLICY_PARALLEL, SchedulingGate, TemplateMetadata, gates},
    finalizers, labels,
};

use super::*;
use crate::fixtures::{deployment, instance, leaving, options, ready, template};

/// Names, what is done, and whether it is skipped; label patches are left out.
fn summary(actions: &[Action]) -> Vec<String> {
    let word = |step: &Step| match step {
        Step::Create(_) => "create",
        Step::Delete { .. } => "delete",
        Step::Wait => "wait",
        Step::PatchLabels { .. } => "label",
    };
    let line = |action: &Action| {
        let ordinal = action.instance.rsplit('-').next().unwrap_or_default();
        let skipped = if action.skipped.is_some() { " skipped" } else { "" };
        format!("{} {ordinal}{skipped}", word(&action.step))
    };
    actions.iter().map(line).collect()
}

fn plan_of(deployment: &WorkloadDeployment, instances: &[Instance]) -> Vec<String> {
    summary(&plan(deployment, instances, &options()))
}

fn parallel(mut deployment: WorkloadDeployment) -> WorkloadDeployment {
    deployment.spec.scale_settings.instance_management_policy = POLICY_PARALLEL.to_owned();
    deployment
}

fn on(mut deployment: WorkloadDeployment, image: &str) -> WorkloadDeployment {
    deployment.spec.template = template(image);
    deployment
}

#[test]
fn gaps_are_filled_lowest_first_when_what_is_below_is_ready() {
    let wanted = deployment(3);
    assert_eq!(plan_of(&wanted, &[]), ["create 0", "create 1 skipped", "create 2 skipped"]);
    let below_starting = [instance(&wanted, 0)];
    assert_eq!(plan_of(&wanted, &below_starting), ["create 1 skipped", "create 2 skipped", "wait 0"]);
    let below_ready = [ready(instance(&wanted, 0)), ready(instance(&wanted, 2))];
    assert_eq!(plan_of(&wanted, &below_ready), ["create 1"]);
    let all = plan(&wanted, &[], &options());
    assert_eq!(all[1].skipped, Some(Held::WaitsFor("web-main-dfw-0".to_owned())));
}

#[test]
fn parallel_fills_and_cuts_at_once() {
    let wanted = parallel(deployment(2));
    assert_eq!(plan_of(&wanted, &[]), ["create 0", "create 1"]);
    let many: Vec<_> = (0..5).map(|ordinal| ready(instance(&wanted, ordinal))).collect();
    assert_eq!(plan_of(&wanted, &many), ["delete 4", "delete 3", "delete 2"]);
}

#[test]
fn surplus_goes_highest_first_one_at_a_time() {
    let wanted = deployment(1);
    let mut many: Vec<_> = (0..4).map(|ordinal| ready(instance(&wanted, ordinal))).collect();
    assert_eq!(plan_of(&wanted, &many), ["delete 3", "delete 2 skipped", "delete 1 skipped"]);
    many[3] = leaving(many[3].clone());
    assert_eq!(plan_of(&wanted, &many), ["wait 3", "delete 2 skipped", "delete 1 skipped"]);
}

#[test]
fn what_is_controlled_but_no_slot_goes_first() {
    let wanted = deployment(1);
    let mut odd = ready(instance(&wanted, 7));
    odd.metadata.name = Some("web-main-dfw-007".to_owned());
    let all = [ready(instance(&wanted, 0)), odd, ready(instance(&wanted, 1))];
    assert_eq!(plan_of(&wanted, &all), ["delete 007", "delete 1 skipped"]);
}

#[test]
fn a_roll_takes_the_highest_and_waits_for_it() {
    for policy in [deployment as fn(i64) -> _, |n| parallel(deployment(n))] {
        let old = policy(3);
        let mut all: Vec<_> = (0..3).map(|ordinal| ready(instance(&old, ordinal))).collect();
        let new = on(old, "app:2");
        assert_eq!(plan_of(&new, &all), ["delete 2", "delete 1 skipped", "delete 0 skipped"]);
        all[2] = leaving(all[2].clone());
        assert_eq!(plan_of(&new, &all), ["wait 2", "delete 1 skipped", "delete 0 skipped"]);
        all.pop();
        assert_eq!(plan_of(&new, &all), ["create 2", "delete 1 skipped", "delete 0 skipped"]);
        all.push(instance(&new, 2));
        assert_eq!(plan_of(&new, &all), ["wait 2", "delete 1 skipped", "delete 0 skipped"]);
        all[2] = ready(instance(&new, 2));
        assert_eq!(plan_of(&new, &all), ["delete 1", "delete 0 skipped"]);
    }
}

#[test]
fn what_is_stuck_on_an_old_template_goes_before_anything_ready() {
    let old = deployment(4);
    let all = [instance(&old, 0), ready(instance(&old, 1)), instance(&old, 2), ready(instance(&old, 3))];
    let new = on(old, "app:2");
    assert_eq!(plan_of(&new, &all), ["delete 2", "delete 0", "delete 3 skipped", "delete 1 skipped"]);
}

#[test]
fn paused_replaces_nothing_and_goes_on_scaling() {
    let old = deployment(4);
    let all = [ready(instance(&old, 0)), ready(instance(&old, 1)), ready(instance(&old, 9))];
    let mut new = on(old.clone(), "app:2");
    new.spec.paused = Some(true);
    let actions = plan(&new, &all, &options());
    assert_eq!(
        summary(&actions),
        ["delete 9", "create 2", "create 3 skipped", "delete 1 skipped", "delete 0 skipped"]
    );
    let Step::Create(made) = &actions[1].step else { panic!("not a create") };
    assert_eq!(made.spec.template_hash(), Some(&*desired(&new).hash));
    assert_eq!(actions[3].skipped, Some(Held::Paused));

    let stuck = [instance(&old, 0), ready(instance(&old, 1)), ready(instance(&old, 2))];
    assert_eq!(
        plan_of(&new, &stuck),
        ["delete 0 skipped", "create 3 skipped", "delete 2 skipped", "delete 1 skipped"]
    );
}

#[test]
fn what_is_on_its_way_out_never_holds_the_filling_of_other_slots() {
    let wanted = deployment(3);
    let all = [leaving(ready(instance(&wanted, 0))), ready(instance(&wanted, 1))];
    assert_eq!(plan_of(&wanted, &all), ["create 2", "wait 0"]);
}

#[test]
fn a_foreign_instance_holds_only_its_slot() {
    let old = deployment(3);
    let mut foreign = ready(instance(&old, 1));
    foreign.metadata.owner_references = None;
    foreign.metadata.labels = None;
    let new = on(old.clone(), "app:2");
    let all = [ready(instance(&old, 0)), foreign.clone()];
    let actions = plan(&new, &all, &options());
    assert_eq!(summary(&actions), ["create 2", "wait 1", "delete 0 skipped"]);
    assert_eq!(actions[1].why, Why::Foreign);
    let all = [ready(instance(&old, 0)), foreign.clone(), ready(instance(&new, 2))];
    assert_eq!(plan_of(&new, &all), ["wait 1", "delete 0"]);
    // One that holds no wanted name is none of our business.
    assert!(plan(&deployment(0), &[foreign], &options()).is_empty());
}

#[test]
fn a_deployment_being_deleted_lets_all_go_at_once() {
    let gone = leaving(deployment(3));
    let all = [ready(instance(&gone, 0)), leaving(instance(&gone, 1)), instance(&gone, 2)];
    let actions = plan(&gone, &all, &options());
    assert_eq!(summary(&actions), ["wait 1", "delete 2", "delete 0"]);
    assert_eq!(actions[1].why, Why::DeploymentDeleted);
    assert!(plan(&gone, &[], &options()).is_empty());
}

#[test]
fn labels_are_filled_in_and_hold_nothing() {
    let old = deployment(3);
    let unlabelled = |ordinal| {
        let mut instance = ready(instance(&old, ordinal));
        instance.metadata.labels = Some(meta::map([("mine", "stays")]));
        instance
    };
    let all = [unlabelled(0), unlabelled(1), leaving(unlabelled(2))];
    let actions = plan(&old, &all, &options());
    assert_eq!(summary(&actions), ["label 0", "label 1", "wait 2"]);
    let Step::PatchLabels { labels: patch, resource_version, .. } = &actions[0].step else { panic!() };
    assert_eq!(patch.keys().map(String::as_str).collect::<BTreeSet<_>>(), labels::ON_INSTANCES.into());
    assert_eq!(resource_version.as_deref(), Some("1"));
    // What goes in the same plan is not labelled before.
    let all = [ready(instance(&old, 0)), ready(instance(&old, 1)), unlabelled(2)];
    assert_eq!(plan_of(&on(old, "app:2"), &all), ["delete 2", "delete 1 skipped", "delete 0 skipped"]);
}

#[test]
fn a_new_instance_is_whole() {
    let mut made_from = deployment(1);
    made_from.metadata.labels = Some(meta::map([
        (labels::UPSTREAM_CLUSTER_NAME, "cluster-p"),
        (labels::UPSTREAM_NAMESPACE, "default"),
        ("other", "x"),
    ]));
    let template = &mut made_from.spec.template;
    template.metadata = Some(TemplateMetadata {
        name: Some("n".to_owned()),
        namespace: Some("elsewhere".to_owned()),
        labels: meta::map([("app", "web"), (labels::WORKLOAD_UID, "forged")]),
        annotations: meta::map([
            ("note", "x"),
            (RESTARTED_AT, "2026-05-01T00:00:00Z"),
            (SSH_KEYS, "a:b"),
            ("compute.datumapis.com/other", "x"),
            ("meta.datumapis.com/other", "x"),
        ]),
        finalizers: vec!["example.com/hold".to_owned()],
        owner_references: vec![serde_json::json!({ "name": "forged" })],
    });
    template.spec.controller = Some(InstanceControl {
        template_hash: "forged".to_owned(),
        scheduling_gates: vec![SchedulingGate { name: "Forged".to_owned() }],
    });
    template.spec.location = Some(LocationReference { name: "forged".to_owned(), namespace: None });
    template.spec.runtime.sandbox.as_mut().unwrap().image_pull_secrets =
        vec![compute_api::compute::ImagePullSecret { name: "registry".to_owned() }];
    let location = LocationReference { name: "dfw-1".to_owned(), namespace: None };
    let options = Options { network_gate: false, location: Some(location.clone()) };

    let actions = plan(&made_from, &[], &options);
    let Step::Create(made) = &actions[0].step else { panic!("not a create") };
    assert_eq!(made.metadata.name.as_deref(), Some("web-main-dfw-0"));
    assert_eq!(made.metadata.namespace.as_deref(), Some("ns"));
    assert_eq!(made.metadata.finalizers.as_deref(), Some(&[finalizers::INSTANCE.to_owned()][..]));
    assert_eq!(meta::controller_uid(&made.metadata), Some("deployment-uid"));
    assert_eq!(
        made.metadata.labels,
        Some(meta::map([
            ("app", "web"),
            (labels::WORKLOAD_UID, "workload-uid"),
            (labels::WORKLOAD_NAME, "web"),
            (labels::WORKLOAD_DEPLOYMENT_UID, "deployment-uid"),
            (labels::WORKLOAD_DEPLOYMENT_NAME, "web-main-dfw"),
            (labels::PLACEMENT_NAME, "main"),
            (labels::CITY_CODE, "DFW"),
            (labels::INSTANCE_INDEX, "0"),
            (labels::UPSTREAM_CLUSTER_NAME, "cluster-p"),
            (labels::UPSTREAM_NAMESPACE, "default"),
        ]))
    );
    let annotations: Vec<_> = made.metadata.annotations.as_ref().unwrap().keys().collect();
    assert_eq!(annotations, [RESTARTED_AT, SSH_KEYS, "note"]);
    assert_eq!(made.spec.location, Some(location));
    assert_eq!(made.spec.template_hash(), Some(&*compute_api::template_hash::of(&made_from.spec.template)));
    let held: Vec<_> = made.spec.gates().iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(held, [gates::QUOTA, gates::REFERENCED_DATA]);
    assert_eq!(made.status, None);

    let plain = plan(&deployment(1), &[], &crate::fixtures::options());
    let Step::Create(made) = &plain[0].step else { panic!("not a create") };
    let held: Vec<_> = made.spec.gates().iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(held, [gates::NETWORK, gates::QUOTA]);
}

#[test]
fn a_restart_of_the_deployment_rolls_and_an_older_one_does_not() {
    let restarted = |own: &str, deployments: &str| {
        let mut deployment = deployment(1);
        deployment.spec.template.set_annotation(RESTARTED_AT, own);
        deployment.metadata.annotations = Some(meta::map([(RESTARTED_AT, deployments)]));
        deployment
    };
    let (early, late) = ("2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z");
    let before = [ready(instance(&restarted(early, early), 0))];
    assert!(plan(&restarted(early, early), &before, &options()).is_empty());
    let after = restarted(early, late);
    assert_eq!(plan_of(&after, &before), ["delete 0"]);
    let made = [ready(instance(&after, 0))];
    assert_eq!(meta::annotation(&made[0].metadata, RESTARTED_AT), Some(late));
    assert!(plan(&restarted(late, early), &made, &options()).is_empty());
}

#[test]
fn an_instance_made_by_another_implementation_rolls_only_if_it_differs() {
    let wanted = {
        let mut deployment = deployment(1);
        deployment.spec.template.metadata = Some(TemplateMetadata {
            labels: meta::map([("app", "web")]),
            annotations: meta::map([(RESTARTED_AT, "2026-05-01T00:00:00Z")]),
            ..TemplateMetadata::default()
        });
        deployment
    };
    let mut other = ready(instance(&wanted, 0));
    other.spec.controller.as_mut().unwrap().template_hash = "68b7d9f7c5".to_owned();
    other.spec.location = Some(LocationReference { name: "dfw-1".to_owned(), namespace: None });
    other.status.as_mut().unwrap().controller.as_mut().unwrap().observed_template_hash =
        "68b7d9f7c5".to_owned();
    assert!(plan(&wanted, [&other], &options()).is_empty());
    assert!(desired(&wanted).is_observed(&other));

    let mut other_image = wanted.clone();
    other_image.spec.template.spec = template("app:2").spec;
    assert_eq!(plan_of(&other_image, std::slice::from_ref(&other)), ["delete 0"]);
    assert!(!desired(&other_image).is_observed(&other));
    let mut restarted = wanted.clone();
    restarted.spec.template.set_annotation(RESTARTED_AT, "2026-06-01T00:00:00Z");
    assert_eq!(plan_of(&restarted, std::slice::from_ref(&other)), ["delete 0"]);
    let mut never_restarted = wanted;
    never_restarted.spec.template.metadata.as_mut().unwrap().annotations.clear();
    assert_eq!(plan_of(&never_restarted, &[other]), ["delete 0"]);
}
