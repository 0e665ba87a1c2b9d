//! Nobody grants what they do not hold.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::random::{asked, rule};
use super::*;
use crate::authz::{Missing, RbacKind, Refusal, Rule, check_write, escalation, escalation_message};

fn rules(values: &[Value]) -> Vec<Rule> {
    values.iter().map(|value| Rule::deserialize(value).unwrap()).collect()
}

fn holder(held: &[Value]) -> Policy {
    policy([role("held", json!(held)), binding("held", "held", &["User:ann"])])
}

fn missing(held: &[Value], wanted: &[Value]) -> Vec<String> {
    let missing = escalation(&holder(held), Caller::new("ann", &[]), None, &rules(wanted));
    missing.iter().map(Missing::to_string).collect()
}

#[test]
fn what_is_missing() {
    let names = |mut rule: Value, names: &[&str]| {
        rule["resourceNames"] = json!(names);
        rule
    };
    let urls = |verbs: &str, url: &str| json!({ "verbs": [verbs], "nonResourceURLs": [url] });
    let cases: Vec<(Vec<Value>, Vec<Value>, Vec<&str>)> = vec![
        (vec![on("get,list", "", "pods")], vec![on("get", "", "pods")], vec![]),
        // Several held rules together cover one.
        (vec![on("get", "", "pods"), on("list", "", "pods")], vec![on("get,list", "", "pods")], vec![]),
        (
            vec![on("get", "", "pods")],
            vec![on("get,list,watch", "", "pods,nodes")],
            vec![
                r#"{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
            ],
        ),
        (vec![on("*", "", "pods")], vec![on("*", "", "pods")], vec![]),
        (
            vec![on("get,list,watch,create,update,patch,delete", "", "pods")],
            vec![on("*", "", "pods")],
            vec![r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#],
        ),
        (vec![on("get", "*", "*")], vec![on("get", "apps", "deployments/scale")], vec![]),
        (vec![on("get", "", "*/scale")], vec![on("get", "", "pods/scale")], vec![]),
        (
            vec![on("get", "", "pods/scale")],
            vec![on("get", "", "*/scale")],
            vec![r#"{APIGroups:[""], Resources:["*/scale"], Verbs:["get"]}"#],
        ),
        (vec![on("get", "", "pods")], vec![names(on("get", "", "pods"), &["a"])], vec![]),
        (
            vec![names(on("get", "", "pods"), &["a"])],
            vec![names(on("get", "", "pods"), &["a", "b"])],
            vec![r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#],
        ),
        (
            vec![names(on("get", "", "pods"), &["a"])],
            vec![on("get", "", "pods")],
            vec![r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
        ),
        (vec![urls("get", "/a/*")], vec![urls("get", "/a/b"), urls("get", "/a/b/*")], vec![]),
        (
            vec![urls("get", "/a/*")],
            vec![urls("get", "/a")],
            vec![r#"{NonResourceURLs:["/a"], Verbs:["get"]}"#],
        ),
        (vec![urls("get", "/a")], vec![urls("*", "*")], vec![r#"{NonResourceURLs:["*"], Verbs:["*"]}"#]),
        (
            vec![urls("*", "*")],
            vec![on("get", "", "pods")],
            vec![r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
        ),
        (
            vec![],
            vec![on("get", "", "pods"), on("get", "", "pods")],
            vec![r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
        ),
    ];
    for (held, wanted, expected) in cases {
        assert_eq!(missing(&held, &wanted), expected, "{held:?} {wanted:?}");
    }
}

#[test]
fn the_message() {
    let groups = texts(&["g", "system:authenticated"]);
    let caller = Caller::new("ann", &groups);
    let wanted = rules(&[on("get,list", "", "pods"), on("get", "apps", "deployments")]);
    let missing = escalation(&Policy::default(), caller, None, &wanted);
    assert_eq!(
        escalation_message(caller, &missing),
        "user \"ann\" (groups=[\"g\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\"]}"
    );
}

#[test]
fn huge_rules_are_refused_in_bounded_time_but_not_to_who_holds_all() {
    let many = |prefix: &str| (0..400).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(",");
    let huge = on(&many("v"), &many("g"), &many("r"));
    assert_eq!(missing(&[on("*", "*", "*")], std::slice::from_ref(&huge)), [""; 0]);
    assert_eq!(missing(std::slice::from_ref(&huge), std::slice::from_ref(&huge)), [""; 0]);
    let halves = [on(&many("v"), &many("g"), "r0"), on("v0", "g0", &many("r"))];
    assert!(!missing(&halves, &[huge]).is_empty());
}

#[test]
fn roles() {
    let mut limited = on("escalate", RBAC, "clusterroles");
    limited["resourceNames"] = json!(["mine"]);
    let policy = policy([
        role("read", json!([on("get", "", "pods")])),
        role("all", json!([on("*", "*", "*"), { "verbs": ["*"], "nonResourceURLs": ["*"] }])),
        role("see-all", json!([on("get", "*", "*"), { "verbs": ["*"], "nonResourceURLs": ["*"] }])),
        role("escalate", json!([on("escalate", RBAC, "roles,clusterroles")])),
        role("escalate-mine", json!([limited])),
        binding("read", "read", &["User:ann", "User:eric", "User:emma"]),
        binding("n/all", "all", &["User:ann"]),
        binding("n/escalate", "escalate", &["User:eric"]),
        binding("emma", "escalate-mine", &["User:emma"]),
        binding("rita", "all", &["User:rita"]),
        binding("rob", "see-all", &["User:rob"]),
    ]);
    let check = |user: &str, kind, old: Option<&Value>, new: &Value| {
        check_write(&policy, Caller::new(user, &[]), kind, old, new)
    };
    let in_n = role("n/mine", json!([on("delete", "", "pods")]));
    let in_m = role("m/mine", json!([on("delete", "", "pods")]));
    let in_plane = role("mine", json!([on("delete", "", "pods")]));
    // Held in the namespace is enough there, and there alone.
    assert_eq!(check("ann", RbacKind::Role, None, &in_n), Ok(()));
    assert!(matches!(check("ann", RbacKind::Role, None, &in_m), Err(Refusal::NotHeld(_))));
    assert!(matches!(check("ann", RbacKind::ClusterRole, None, &in_plane), Err(Refusal::NotHeld(_))));
    assert_eq!(check("ann", RbacKind::ClusterRole, None, &role("x", json!([on("get", "", "pods")]))), Ok(()));
    assert_eq!(check("eric", RbacKind::Role, None, &in_n), Ok(()));
    assert!(check("eric", RbacKind::Role, None, &in_m).is_err());
    assert_eq!(check("rita", RbacKind::ClusterRole, None, &in_plane), Ok(()));
    // An object's name is known when it is updated, not when it is created.
    let empty = role("mine", json!([]));
    assert!(check("emma", RbacKind::ClusterRole, None, &in_plane).is_err());
    assert_eq!(check("emma", RbacKind::ClusterRole, Some(&empty), &in_plane), Ok(()));
    let other = role("other", json!([on("delete", "", "pods")]));
    assert!(check("emma", RbacKind::ClusterRole, Some(&empty), &other).is_err());
    // Taking out what one does not hold needs nothing; leaving it in does, but for the sake of garbage collection.
    assert_eq!(check("eve", RbacKind::ClusterRole, Some(&in_plane), &empty), Ok(()));
    let mut relabelled = in_plane.clone();
    relabelled["metadata"]["labels"] = json!({ "a": "b" });
    assert!(check("eve", RbacKind::ClusterRole, Some(&in_plane), &relabelled).is_err());
    let mut freed = in_plane.clone();
    freed["metadata"]["finalizers"] = json!([]);
    freed["metadata"]["ownerReferences"] = json!([{ "name": "x" }]);
    assert_eq!(check("eve", RbacKind::ClusterRole, Some(&in_plane), &freed), Ok(()));
    // Aggregation is for those who hold everything.
    let mut aggregated = role("mine", json!([]));
    aggregated["aggregationRule"] = json!({ "clusterRoleSelectors": [{}] });
    for (user, expected) in
        [("rita", Ok(())), ("rob", Err(Refusal::Aggregation)), ("ann", Err(Refusal::Aggregation))]
    {
        assert_eq!(check(user, RbacKind::ClusterRole, None, &aggregated), expected, "{user}");
    }
    let mut labelled = aggregated.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(check("ann", RbacKind::ClusterRole, Some(&aggregated), &labelled), Ok(()));
    let masters = texts(&["system:masters"]);
    let root = Caller::new("root", &masters);
    assert_eq!(check_write(&policy, root, RbacKind::ClusterRole, None, &aggregated), Ok(()));
    let unreadable = role("mine", json!("all"));
    assert!(matches!(check("rita", RbacKind::ClusterRole, None, &unreadable), Err(Refusal::Unreadable(_))));
}

#[test]
fn bindings() {
    let mut bind = on("bind", RBAC, "clusterroles");
    bind["resourceNames"] = json!(["power"]);
    let policy = policy([
        role("power", json!([on("delete", "", "pods")])),
        role("more", json!([on("delete", "", "nodes")])),
        role("n/local", json!([on("delete", "", "pods")])),
        role("binder", json!([bind])),
        binding("n/power", "power", &["User:ann"]),
        binding("n/binder", "binder", &["User:bob"]),
        binding("binder", "binder", &["User:bea"]),
    ]);
    let (inside, plane) = (RbacKind::RoleBinding, RbacKind::ClusterRoleBinding);
    for (user, kind, name, role, allowed) in [
        ("ann", inside, "n/x", "power", true),
        ("ann", inside, "n/x", "Role!local", true),
        ("ann", inside, "m/x", "power", false),
        ("ann", plane, "x", "power", false),
        ("bob", inside, "n/x", "power", true),
        ("bob", inside, "n/x", "more", false),
        ("bob", inside, "n/x", "Role!local", false),
        ("bob", inside, "m/x", "power", false),
        ("bob", plane, "x", "power", false),
        ("bea", plane, "x", "power", true),
        ("bea", inside, "m/x", "power", true),
    ] {
        let answer =
            check_write(&policy, Caller::new(user, &[]), kind, None, &binding(name, role, &["User:zoe"]));
        assert_eq!(answer.is_ok(), allowed, "{user} {name} {role}");
        assert!(matches!(answer, Ok(()) | Err(Refusal::NotHeld(_))), "{answer:?}");
    }
    let gone = check_write(&policy, Caller::new("ann", &[]), plane, None, &binding("x", "gone", &[]));
    let message = r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(gone.unwrap_err().to_string(), message);
}

/// One single permission after another, against one held rule after another.
fn naive_missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let covers = |held: &Rule, single: &Rule| {
        let all = |mine: &[String], theirs: &[String]| {
            mine.contains(&"*".to_owned()) || theirs.iter().all(|t| mine.contains(t))
        };
        all(&held.verbs, &single.verbs)
            && all(&held.api_groups, &single.api_groups)
            && (all(&held.resources, &single.resources)
                || single.resources.iter().all(|r| match r.split_once('/') {
                    Some((_, below)) => held.resources.contains(&format!("*/{below}")),
                    None => false,
                }))
            && (held.resource_names.is_empty()
                || (!single.resource_names.is_empty()
                    && single.resource_names.iter().all(|name| held.resource_names.contains(name))))
            && single.non_resource_urls.iter().all(|url| {
                held.non_resource_urls.iter().any(|have| {
                    have == url || (have.ends_with('*') && url.starts_with(have.trim_end_matches('*')))
                })
            })
    };
    let mut singles = Vec::new();
    for rule in wanted {
        for verb in &rule.verbs {
            for url in &rule.non_resource_urls {
                singles.push(Rule::paths(&[verb], &[url]));
            }
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    let single = Rule::resources(&[verb], group, &[resource]);
                    match rule.resource_names.as_slice() {
                        [] => singles.push(single),
                        names => singles.extend(
                            names
                                .iter()
                                .map(|name| Rule { resource_names: vec![name.clone()], ..single.clone() }),
                        ),
                    }
                }
            }
        }
    }
    singles.retain(|single| !held.iter().any(|held| covers(held, single)));
    singles.sort();
    singles.dedup();
    singles
}

/// The single permissions of compacted ones.
fn singles(missing: Vec<Missing>) -> Vec<Rule> {
    let mut all: Vec<Rule> = missing
        .into_iter()
        .flat_map(|Missing(rule)| {
            rule.verbs.clone().into_iter().map(move |verb| Rule { verbs: vec![verb], ..rule.clone() })
        })
        .collect();
    all.sort();
    all
}

/// A part of a rule: fewer of everything, or names where there were none.
fn part(rule: &Rule, keep: usize) -> Rule {
    let fewer = |list: &[String]| list.iter().take(1 + keep % 2).cloned().collect::<Vec<_>>();
    let resource_names = match rule.resource_names.as_slice() {
        [] if keep.is_multiple_of(3) && rule.non_resource_urls.is_empty() => texts(&["z"]),
        names => fewer(names),
    };
    Rule {
        verbs: fewer(&rule.verbs),
        api_groups: fewer(&rule.api_groups),
        resources: fewer(&rule.resources),
        resource_names,
        non_resource_urls: fewer(&rule.non_resource_urls),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn finds_what_the_plain_comparison_finds(
        held in prop::collection::vec(rule(), 0..5),
        wanted in prop::collection::vec(rule(), 0..4),
    ) {
        let found = escalation(&holder(&held), Caller::new("ann", &[]), None, &rules(&wanted));
        prop_assert_eq!(singles(found), naive_missing(&rules(&held), &rules(&wanted)));
    }

    #[test]
    fn parts_of_what_is_held_may_be_granted(
        held in prop::collection::vec(rule(), 1..5),
        parts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6), 0..5),
    ) {
        let own = rules(&held);
        let wanted: Vec<Rule> = parts.iter().map(|(at, keep)| part(at.get(&own), *keep)).collect();
        prop_assert_eq!(escalation(&holder(&held), Caller::new("ann", &[]), None, &wanted), []);
    }

    #[test]
    fn more_than_is_held_may_not(
        held in prop::collection::vec(rule(), 0..5),
        which in 0usize..4,
    ) {
        // Whoever holds no `*` holds nothing of a new verb, group, resource or path.
        let mut own = rules(&held);
        for rule in &mut own {
            for list in [&mut rule.verbs, &mut rule.api_groups, &mut rule.resources, &mut rule.non_resource_urls] {
                list.iter_mut().filter(|text| *text == "*").for_each(|text| *text = "some".to_owned());
            }
        }
        let more = match which {
            0 => Rule::resources(&["new"], "", &["pods"]),
            1 => Rule::resources(&["get"], "new", &["pods"]),
            2 => Rule::resources(&["get"], "", &["new"]),
            _ => Rule::paths(&["get"], &["/new"]),
        };
        let policy = holder(&own.iter().map(|rule| json!(rule)).collect::<Vec<_>>());
        let mut wanted = own;
        wanted.push(more.clone());
        prop_assert_eq!(escalation(&policy, Caller::new("ann", &[]), None, &wanted), [Missing(more)]);
    }

    /// What counts: a grant that is let through allows no request that was not allowed before.
    #[test]
    fn nobody_gains_by_granting(
        held in prop::collection::vec(rule(), 0..4),
        wanted in prop::collection::vec(rule(), 1..3),
        asked in prop::collection::vec(asked(), 20),
    ) {
        let policy = holder(&held);
        if escalation(&policy, Caller::new("ann", &[]), None, &rules(&wanted)).is_empty() {
            let granted = holder(&wanted);
            for mut asked in asked {
                asked.user = "ann";
                let request = asked.attributes();
                prop_assert!(!granted.allows(&request).allowed || policy.allows(&request).allowed, "{}", request);
            }
        }
    }
}
