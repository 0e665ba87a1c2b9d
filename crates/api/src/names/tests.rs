//! Names are valid, short enough, determined, and fixed for all time.

use proptest::prelude::*;

use super::*;

fn is_dns_label(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.bytes().all(|b| alphanumeric(&b) || b == b'-')
        && name.as_bytes().first().is_some_and(alphanumeric)
        && name.as_bytes().last().is_some_and(alphanumeric)
}

#[test]
fn a_short_name_is_readable() {
    assert_eq!(deployment_name("web", "us", "DFW"), "web-us-dfw");
    assert_eq!(instance_name("web-us-dfw", 3), "web-us-dfw-3");
    let fits = "a".repeat(MAX_DEPLOYMENT_NAME - "-us-dfw".len());
    assert_eq!(deployment_name(&fits, "us", "DFW"), format!("{fits}-us-dfw"));
}

#[test]
fn long_names_are_fixed_for_all_time() {
    let long = "a".repeat(63);
    assert_eq!(
        deployment_name(&long, "us", "DFW"),
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-25bce2ff"
    );
    assert_eq!(deployment_name_on_collision("a-b", "uid-1", "c", "DFW"), "a-b-c-dfw-2bbbc51d");
}

#[test]
fn names_that_meet_are_told_apart() {
    assert_eq!(deployment_name("a-b", "c", "DFW"), deployment_name("a", "b-c", "DFW"));
    let one = deployment_name_on_collision("a-b", "uid-1", "c", "DFW");
    let other = deployment_name_on_collision("a", "uid-2", "b-c", "DFW");
    assert_ne!(one, other);
    assert_ne!(one, deployment_name("a-b", "c", "DFW"));
}

#[test]
fn a_cut_never_leaves_a_bad_end() {
    let workload = format!("{}.b", "a".repeat(MAX_DEPLOYMENT_NAME - 1 - HASH_DIGITS - 1));
    let name = deployment_name(&workload, "placement", "DFW");
    assert!(!name.contains(".-") && !name.contains("--"), "{name}");
}

#[test]
fn instance_names_split() {
    assert_eq!(split_instance_name("web-us-dfw-12"), Some(("web-us-dfw", 12)));
    assert_eq!(split_instance_name("web-0"), Some(("web", 0)));
    for bad in ["", "web", "-1", "web-", "web-01", "web-00", "web-x", "web-+1", "web-99999999999", "web-١"] {
        assert_eq!(split_instance_name(bad), None, "{bad}");
    }
}

#[test]
fn hub_namespaces() {
    assert_eq!(hub_namespace("1234"), "ns-1234");
    assert_eq!(project_namespace_uid("ns-1234"), Some("1234"));
    assert_eq!(project_namespace_uid("ns-"), None);
    assert_eq!(project_namespace_uid("default"), None);
}

#[test]
fn projects_travel_in_a_label() {
    assert_eq!(upstream_cluster_name("acme-prod").as_deref(), Ok("cluster-acme-prod"));
    assert_eq!(upstream_cluster_name("/acme-prod").as_deref(), Ok("cluster-_acme-prod"));
    assert_eq!(upstream_cluster_name("org/acme").as_deref(), Ok("cluster-org_acme"));
    assert_eq!(project_of_upstream("cluster-_acme-prod").as_deref(), Some("/acme-prod"));
    assert_eq!(bare_project_name("/acme-prod"), "acme-prod");
    assert_eq!(bare_project_name("org/acme"), "acme");
    assert_eq!(bare_project_name("acme"), "acme");
    for bad in ["", "acme", "cluster-", "cluster-_", "cluster-acme_"] {
        assert_eq!(project_of_upstream(bad), None, "{bad}");
    }
}

#[test]
fn a_project_that_does_not_fit_is_refused() {
    let longest = "a".repeat(MAX_LABEL_VALUE - "cluster-".len());
    assert_eq!(upstream_cluster_name(&longest).unwrap().len(), MAX_LABEL_VALUE);
    let error = upstream_cluster_name(&format!("{longest}a")).unwrap_err();
    assert!(matches!(error, ProjectNameError::TooLong { length: 64, .. }));
    for bad in ["", "/", "a/", "a_b", "a b", "ü", "a-"] {
        assert!(matches!(upstream_cluster_name(bad), Err(ProjectNameError::Malformed(_))), "{bad:?}");
    }
}

#[test]
fn derived_names() {
    assert_eq!(claim_name("web-us-dfw-0"), "instance-web-us-dfw-0");
    assert_eq!(network_binding_name("web-us-dfw", 1), "web-us-dfw-net-1");
    assert_eq!(subnet_claim_name("default-dfw"), "default-dfw-0");
    assert_eq!(config_map_companion_name("settings"), "configmap.settings");
    assert_eq!(secret_companion_name("token"), "secret.token");
    assert_eq!(revision_history_name("web"), "compute.datumapis.com-revision-history.web");
}

const LABEL: &str = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";

proptest! {
    #[test]
    fn names_of_labels_are_labels(w in LABEL, p in LABEL, city in "[A-Z]{3}", uid in "[0-9a-f]{8}", n in 0_u32..1000) {
        for name in [deployment_name(&w, &p, &city), deployment_name_on_collision(&w, &uid, &p, &city)] {
            prop_assert!(name.len() <= MAX_DEPLOYMENT_NAME, "{}", name);
            prop_assert!(is_dns_label(&name), "{}", name);
            let instance = instance_name(&name, n);
            prop_assert!(is_dns_label(&instance), "{}", instance);
            prop_assert_eq!(split_instance_name(&instance), Some((name.as_str(), n)));
        }
    }

    #[test]
    fn names_are_determined(w in LABEL, p in LABEL, city in "[A-Za-z]{3}") {
        prop_assert_eq!(deployment_name(&w, &p, &city), deployment_name(&w, &p, &city));
        let upper = city.to_ascii_uppercase();
        prop_assert_eq!(
            plain_deployment_name(&w, &p, &city),
            plain_deployment_name(&w, &p, &upper)
        );
    }

    #[test]
    fn odd_input_never_panics(w in "\\PC{0,80}", p in "\\PC{0,80}", city in "\\PC{0,8}") {
        let _ = deployment_name(&w, &p, &city);
        let _ = split_instance_name(&w);
        let _ = upstream_cluster_name(&w);
        let _ = project_of_upstream(&w);
    }

    #[test]
    fn projects_come_back(project in "(/?[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?){1,2}") {
        let label = upstream_cluster_name(&project).unwrap();
        prop_assert_eq!(project_of_upstream(&label), Some(project));
    }
}

#[test]
fn a_network_in_a_location_has_a_name_of_its_own() {
    assert_eq!(network_context_name("default", "dfw"), "default-dfw");
    assert_eq!(network_context_name("a-b", "c"), network_context_name("a", "b-c"));
    let (one, other) =
        (network_context_name_on_collision("a-b", "c"), network_context_name_on_collision("a", "b-c"));
    assert_ne!(one, other);
    assert!(network_context_name(&"n".repeat(200), "dfw").len() <= MAX_LABEL_VALUE);
}

#[test]
fn a_bucket_is_named_after_whose_it_is_and_of_what() {
    let name = bucket_name("Project", "p", "compute.datumapis.com/vcpus");
    assert_eq!(name, "project-p-compute.datumapis.com-vcpus");
    assert!(bucket_name("Project", "p", &"r".repeat(253)).len() <= MAX_NAME);
}
