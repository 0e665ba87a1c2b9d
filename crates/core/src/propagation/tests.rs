//! Claims and choices stick; members follow the hub and keep what is theirs.

use compute_api::{
    compute::API_VERSION,
    karmada::{ClusterAffinity, PropagationPolicySpec, SpreadConstraint, match_labels},
    labels::TOPOLOGY_CITY_CODE,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    binding::{self, Binding},
    member::Step,
    *,
};
use crate::fixtures::{deployment, leaving, stored};

fn policy(name: &str, selector: ResourceSelector, priority: i64) -> PropagationPolicy {
    PropagationPolicy {
        metadata: stored("ns", name, name),
        spec: PropagationPolicySpec {
            resource_selectors: vec![selector],
            priority: Some(priority),
            ..PropagationPolicySpec::default()
        },
    }
}

fn selector(name: Option<&str>, city: Option<&str>) -> ResourceSelector {
    ResourceSelector {
        api_version: API_VERSION.to_owned(),
        kind: "WorkloadDeployment".to_owned(),
        namespace: None,
        name: name.map(str::to_owned),
        label_selector: city.map(|city| match_labels([(TOPOLOGY_CITY_CODE, city)])),
    }
}

fn claimed(policies: &[PropagationPolicy], held_by: Option<&str>) -> Option<String> {
    let labels = meta::map([(TOPOLOGY_CITY_CODE, "DFW")]);
    let template = Template {
        api_version: API_VERSION,
        kind: "WorkloadDeployment",
        namespace: "ns",
        name: "web",
        labels: Some(&labels),
    };
    claim(&template, policies, held_by).map(|policy| meta::name(&policy.metadata).to_owned())
}

#[test]
fn one_policy_claims_and_the_first_claim_sticks() {
    let by_city = policy("m", selector(None, Some("DFW")), 0);
    let also = policy("a", selector(None, Some("DFW")), 0);
    let by_name = policy("z", selector(Some("web"), None), 0);
    let urgent = policy("y", selector(None, None), 5);
    let other = policy("b", selector(None, Some("IAD")), 9);
    let mut elsewhere = policy("c", selector(None, None), 9);
    elsewhere.metadata.namespace = Some("other".to_owned());
    let all = [by_city.clone(), also, by_name, urgent, other, elsewhere];
    assert_eq!(claimed(&all[..2], None).as_deref(), Some("a"));
    assert_eq!(claimed(&all[..3], None).as_deref(), Some("z"));
    assert_eq!(claimed(&all, None).as_deref(), Some("y"));
    assert_eq!(claimed(&all, Some("m")).as_deref(), Some("m"));
    assert_eq!(claimed(&all[1..2], Some("m")).as_deref(), Some("a"));
    // A claim does not outlive its match.
    assert_eq!(claimed(&all, Some("b")).as_deref(), Some("y"));
    assert_eq!(claimed(&[leaving(by_city)], Some("m")), None);
}

#[test]
fn selectors_are_matched_as_everywhere() {
    let labels = meta::map([("a", "1")]);
    let with = |operator: &str, key: &str, values: &[&str]| {
        let selector: LabelSelector = serde_json::from_value(json!({
            "matchExpressions": [{ "key": key, "operator": operator, "values": values }]
        }))
        .unwrap();
        matches(&selector, Some(&labels))
    };
    assert!(with("In", "a", &["1", "2"]) && !with("In", "a", &["2"]) && !with("In", "b", &["1"]));
    assert!(with("NotIn", "a", &["2"]) && !with("NotIn", "a", &["1"]) && with("NotIn", "b", &["1"]));
    assert!(with("Exists", "a", &[]) && !with("Exists", "b", &[]));
    assert!(with("DoesNotExist", "b", &[]) && !with("DoesNotExist", "a", &[]));
    assert!(!with("Odd", "a", &["1"]));
    assert!(matches(&LabelSelector::default(), None));
}

fn cluster(name: &str, city: &str) -> Cluster {
    let mut made = Cluster { metadata: stored("", name, name), ..Cluster::default() };
    made.metadata.labels = Some(meta::map([(TOPOLOGY_CITY_CODE, city)]));
    made
}

fn tainted(mut cluster: Cluster, effect: &str) -> Cluster {
    cluster.spec.taints = vec![Taint {
        key: "cluster.karmada.io/not-ready".to_owned(),
        effect: effect.to_owned(),
        ..Taint::default()
    }];
    cluster
}

fn one_of(city: &str) -> Placement {
    Placement {
        cluster_affinity: Some(ClusterAffinity {
            label_selector: Some(match_labels([(TOPOLOGY_CITY_CODE, city)])),
            ..ClusterAffinity::default()
        }),
        spread_constraints: vec![SpreadConstraint {
            spread_by_field: Some(SPREAD_BY_CLUSTER.to_owned()),
            min_groups: Some(1),
            max_groups: Some(1),
            ..SpreadConstraint::default()
        }],
        ..Placement::default()
    }
}

fn chosen(placement: &Placement, clusters: &[Cluster], before: &[&str]) -> Vec<String> {
    let before = before.iter().map(|name| (*name).to_owned()).collect();
    choose(Some(placement), clusters, &before).into_iter().collect()
}

#[test]
fn one_cluster_is_chosen_and_stays() {
    let all = [cluster("b", "DFW"), cluster("a", "DFW"), cluster("c", "IAD")];
    assert_eq!(chosen(&one_of("DFW"), &all, &[]), ["a"]);
    assert_eq!(chosen(&one_of("DFW"), &all, &["b"]), ["b"]);
    assert_eq!(chosen(&one_of("DFW"), &all[2..], &["b"]), Vec::<String>::new());
    assert_eq!(chosen(&Placement::default(), &all, &[]), ["a", "b", "c"]);
}

#[test]
fn a_cut_off_cluster_keeps_what_tolerates_it() {
    let evicting = [tainted(cluster("a", "DFW"), "NoExecute"), cluster("b", "DFW")];
    assert_eq!(chosen(&one_of("DFW"), &evicting, &["a"]), ["b"]);
    let closed = [tainted(cluster("a", "DFW"), "NoSchedule"), cluster("b", "DFW")];
    assert_eq!(chosen(&one_of("DFW"), &closed, &["a"]), ["a"]);
    assert_eq!(chosen(&one_of("DFW"), &closed, &[]), ["b"]);
    // The policies that we write tolerate it for ever.
    let mut hub = deployment(1);
    hub.metadata.labels = Some(meta::map([(TOPOLOGY_CITY_CODE, "DFW")]));
    let crate::federation::policy::Step::Apply(ours) =
        crate::federation::policy::decide(&stored("", "ns", "ns-uid"), "dfw", [&hub], None)
    else {
        panic!()
    };
    assert_eq!(chosen(ours.spec.placement.as_ref().unwrap(), &evicting, &["a"]), ["a"]);
    assert_eq!(chosen(ours.spec.placement.as_ref().unwrap(), &evicting[..1], &[]), ["a"]);
}

fn on_hub(uid: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "WorkloadDeployment",
        "metadata": {
            "name": "web", "namespace": "ns", "uid": uid, "resourceVersion": "9", "labels": { "a": "1" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "x" }],
        },
        "spec": { "cityCode": "DFW" },
        "status": { "replicas": 1 },
    })
}

/// What a member's API server makes of a created object.
fn on_member(hub: &Value) -> Value {
    let Step::Create(mut made) = member::decide(Some(hub), None) else { panic!() };
    made["metadata"]["uid"] = json!("member-uid");
    made["metadata"]["resourceVersion"] = json!("3");
    made
}

fn being_deleted(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = json!("2026-05-01T00:00:00Z");
    object
}

#[test]
fn a_member_follows_the_hub_and_keeps_what_is_its_own() {
    let mut hub = on_hub("hub-uid");
    let mut held = on_member(&hub);
    assert_eq!(held["metadata"].get("ownerReferences"), None);
    assert_eq!((held.get("status"), &held["metadata"]["labels"]["a"]), (None, &json!("1")));
    assert_eq!(member::decide(Some(&hub), Some(&held)), Step::Nothing);
    held["spec"]["replicas"] = json!(4);
    held["status"] = json!({ "replicas": 4 });
    held["metadata"]["finalizers"] = json!(["cell"]);
    assert_eq!(member::decide(Some(&hub), Some(&held)), Step::Nothing);
    hub["spec"]["paused"] = json!(true);
    let Step::Update(updated) = member::decide(Some(&hub), Some(&held)) else { panic!() };
    assert_eq!(updated["spec"], json!({ "cityCode": "DFW", "paused": true, "replicas": 4 }));
    assert_eq!(updated["metadata"]["resourceVersion"], json!("3"));
    assert_eq!(updated["metadata"]["finalizers"], json!(["cell"]));
    assert_eq!(member::decide(Some(&hub), Some(&updated)), Step::Nothing);
    hub["spec"]["replicas"] = json!(2);
    let Step::Update(updated) = member::decide(Some(&hub), Some(&held)) else { panic!() };
    assert_eq!(updated["spec"]["replicas"], json!(2));

    // A label that is gone from the hub goes, one of the member's own stays.
    held["metadata"]["labels"]["own"] = json!("x");
    hub["metadata"]["labels"] = json!({ "b": "2" });
    let Step::Update(updated) = member::decide(Some(&hub), Some(&held)) else { panic!() };
    assert_eq!(updated["metadata"]["labels"], json!({ "b": "2", "own": "x", member::MANAGED_LABEL: "true" }));
    assert_eq!(member::decide(Some(&hub), Some(&updated)), Step::Nothing);
}

#[test]
fn what_the_hub_lets_go_of_goes() {
    let hub = on_hub("hub-uid");
    let held = on_member(&hub);
    let delete = Step::Delete { uid: "member-uid".to_owned() };
    assert_eq!(member::decide(None, Some(&held)), delete);
    assert_eq!(member::decide(Some(&being_deleted(hub.clone())), Some(&held)), delete);
    assert_eq!(member::decide(Some(&on_hub("second")), Some(&held)), delete);
    let going = being_deleted(held);
    assert_eq!(member::decide(Some(&on_hub("second")), Some(&going)), Step::Wait);
    assert_eq!(member::decide(None, Some(&going)), Step::Nothing);
    let own = json!({ "metadata": { "name": "web", "namespace": "ns", "uid": "own" } });
    assert_eq!(member::decide(Some(&hub), Some(&own)), Step::Conflict);
    assert_eq!(member::decide(None, Some(&own)), Step::Nothing);
}

#[test]
fn status_comes_back_from_the_object_it_was_sent_to() {
    let hub = on_hub("hub-uid");
    let mut held = on_member(&hub);
    assert_eq!(member::reflected(&hub, &held), None);
    held["status"] = json!({ "replicas": 1, "conditions": [] });
    assert_eq!(member::reflected(&hub, &held), None, "it is the same");
    held["status"] = json!({ "replicas": 2 });
    assert_eq!(member::reflected(&hub, &held), Some(json!({ "replicas": 2 })));
    assert_eq!(member::reflected(&on_hub("second"), &held), None);
    assert_eq!(member::reflected(&hub, &being_deleted(held.clone())), Some(json!({})));
    let mut emptied = hub;
    emptied["status"] = json!({ "replicas": 0, "location": {} });
    assert_eq!(member::reflected(&emptied, &being_deleted(held)), None, "defaults say nothing");
}

/// What is noted on an object, read back.
fn noted(binding: &Binding) -> Binding {
    let mut object = stored("ns", "web", "uid");
    let notes = binding.annotations("ns").into_iter().filter_map(|(key, value)| Some((key, value?)));
    object.annotations = Some(notes.collect());
    Binding::of(&object)
}

#[test]
fn a_binding_sticks() {
    let labels = meta::map([(TOPOLOGY_CITY_CODE, "DFW")]);
    let template = Template {
        api_version: API_VERSION,
        kind: "WorkloadDeployment",
        namespace: "ns",
        name: "web",
        labels: Some(&labels),
    };
    let mut by_city = policy("m", selector(None, Some("DFW")), 0);
    by_city.spec.placement = Some(one_of("DFW"));
    by_city.spec.propagate_deps = Some(true);
    let (a, b) = (cluster("a", "DFW"), cluster("b", "DFW"));
    let members = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let decide = |held: &Binding, policies: &[PropagationPolicy], clusters: &[&Cluster]| {
        let wanted = binding::decide(&template, held, policies, clusters, &members);
        assert_eq!(binding::decide(&template, &wanted, policies, clusters, &members), wanted);
        assert_eq!(noted(&wanted), wanted);
        wanted
    };
    let policies = [by_city];
    let none = decide(&Binding::default(), &[], &[&a, &b]);
    assert_eq!(none, Binding::default());
    let first = decide(&none, &policies, &[&b]);
    assert_eq!((first.policy.as_deref(), first.propagate_deps), (Some("m"), true));
    assert_eq!(first.clusters, BTreeSet::from(["b".to_owned()]));
    assert_eq!(decide(&first, &policies, &[&a, &b]), first, "nothing moves");
    assert_eq!(decide(&first, &policies, &[&a]), first, "a member that is served comes back");
    let left = decide(&first, &[], &[&a, &b]);
    assert_eq!(left, Binding { policy: None, ..first.clone() }, "what was sent stays");
    assert_eq!(decide(&left, &policies, &[&a, &b]), first);
    let others = BTreeSet::new();
    let moved = binding::decide(&template, &first, &policies, &[&a], &others);
    assert_eq!(moved.clusters, BTreeSet::from(["a".to_owned()]));
    // The notes do not travel.
    let mut hub = on_hub("hub-uid");
    let held = on_member(&hub);
    hub["metadata"]["annotations"] = json!(first.annotations("ns"));
    assert_eq!(member::decide(Some(&hub), Some(&held)), Step::Nothing);
}

#[test]
fn namespaces_of_the_machinery_stay() {
    assert!(namespace_goes_to_members("ns-1"));
    for own in ["kube-system", "karmada-system", "default"] {
        assert!(!namespace_goes_to_members(own));
    }
}

proptest! {
    #[test]
    fn choices_stick_and_do_not_depend_on_order(
        names in prop::collection::btree_map("[a-e]", "(DFW|IAD)", 0..5),
        before in prop::collection::btree_set("[a-e]", 0..2),
    ) {
        let mut clusters: Vec<_> = names.iter().map(|(name, city)| cluster(name, city)).collect();
        let placement = one_of("DFW");
        let first = choose(Some(&placement), &clusters, &before);
        clusters.reverse();
        prop_assert_eq!(&first, &choose(Some(&placement), &clusters, &before));
        prop_assert_eq!(&first, &choose(Some(&placement), &clusters, &first));
        prop_assert!(first.len() <= 1);
        // One more cluster moves nothing.
        clusters.push(cluster("0", "DFW"));
        if !first.is_empty() {
            prop_assert_eq!(&first, &choose(Some(&placement), &clusters, &first));
        }
    }
}
