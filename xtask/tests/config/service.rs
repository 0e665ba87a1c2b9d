//! The service's entry in the platform's catalog.

use std::collections::BTreeSet;

use compute_api::quota::{RESOURCE_INSTANCES, RESOURCE_MEMORY, RESOURCE_VCPUS, RESOURCE_WORKLOADS};
use compute_core::location::offer::DATUM_MANAGED;
use serde_json::{Value, json};

use crate::object;

fn all<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap()).collect()
}

#[test]
fn every_metric_that_quota_names_is_declared() {
    let spec = &object("config/overlays/management-plane/core/service_configuration.yaml")["spec"];
    let declared = all(&spec["metrics"], "name");
    let declared_once: BTreeSet<_> = declared.iter().copied().collect();
    assert_eq!(declared.len(), declared_once.len(), "a metric is declared twice");
    let limits = all(&spec["quota"]["limits"], "metric");
    let rules = spec["quota"]["metricRules"].as_array().map_or(&[][..], Vec::as_slice);
    let costs = rules.iter().flat_map(|rule| rule["metricCosts"].as_object().unwrap().keys());
    let named: BTreeSet<_> = limits.iter().copied().chain(costs.map(String::as_str)).collect();
    assert_eq!(declared_once, named);
    // What cells claim, and Workloads, which are declared and not claimed.
    let ours = [RESOURCE_INSTANCES, RESOURCE_VCPUS, RESOURCE_MEMORY, RESOURCE_WORKLOADS];
    assert_eq!(declared_once, BTreeSet::from(ours));
    // A rule would make the platform claim for what cells claim already.
    assert!(rules.is_empty());
    for limit in spec["quota"]["limits"].as_array().unwrap() {
        let project = json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project" });
        assert_eq!(limit["consumerType"], project, "claims are made in the name of the project");
    }
}

#[test]
fn the_service_is_offered_where_the_platform_runs_it() {
    let configuration = object("config/overlays/management-plane/core/service_configuration.yaml");
    assert_eq!(configuration["metadata"]["name"], compute_api::milo::COMPUTE_ENTITLEMENT);
    assert_eq!(configuration["spec"]["locations"]["supportedClasses"], json!([DATUM_MANAGED]));
}
