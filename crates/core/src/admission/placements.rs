//! Rules for where instances run and how many.

use std::collections::BTreeSet;

use compute_api::compute::{
    METRIC_CPU, METRIC_MEMORY, MetricSpec, POLICY_ORDERED_READY, POLICY_PARALLEL, ScaleSettings,
    WorkloadPlacement,
};

use super::{containers::check_amount, error::Errors, path::Path, syntax};
use crate::scale::MAX_REPLICAS;

pub(super) fn check(placements: &[WorkloadPlacement], path: &Path, errors: &mut Errors) {
    if placements.is_empty() {
        errors.required(path, "at least one placement is needed");
    }
    let mut names = BTreeSet::new();
    for (at, placement) in placements.iter().enumerate() {
        let path = path.index(at);
        let name = path.child("name");
        if syntax::check_dns_label(&placement.name, &name, "a placement needs a name", errors)
            && !names.insert(&placement.name)
        {
            errors.duplicate(&name, placement.name.as_str(), "each placement needs a name of its own");
        }
        check_cities(&placement.city_codes, &path.child("cityCodes"), errors);
        check_scale(&placement.scale_settings, &path.child("scaleSettings"), errors);
    }
}

/// Whether a text could be the code of a city.
pub(super) fn is_city_code(code: &str) -> bool {
    syntax::is_dns_label(&code.to_ascii_lowercase())
}

fn check_cities(cities: &[String], path: &Path, errors: &mut Errors) {
    if cities.is_empty() {
        errors.required(path, "at least one city is needed");
    }
    let mut seen = BTreeSet::new();
    for (at, city) in cities.iter().enumerate() {
        let path = path.index(at);
        if city.is_empty() {
            errors.required(&path, "name the city, such as DFW");
        } else if !is_city_code(city) {
            errors.invalid(&path, city.as_str(), "must be the code of a city: at most 63 letters, digits and '-', with a letter or digit at both ends");
        } else if !seen.insert(city.to_ascii_lowercase()) {
            let rule = "a placement names each city once; upper and lower case are the same";
            errors.duplicate(&path, city.as_str(), rule);
        }
    }
}

fn check_scale(settings: &ScaleSettings, path: &Path, errors: &mut Errors) {
    let (least, most) = (settings.min_replicas, settings.max_replicas);
    if !(0..=MAX_REPLICAS).contains(&least) {
        errors.invalid(&path.child("minReplicas"), least, format!("must be between 0 and {MAX_REPLICAS}"));
    }
    let field = path.child("maxReplicas");
    match most {
        Some(most) if most > MAX_REPLICAS => {
            errors.invalid(&field, most, format!("must be at most {MAX_REPLICAS}"));
        }
        Some(most) if most < least => {
            errors.invalid(&field, most, format!("must be at least minReplicas, which is {least}"));
        }
        None if !settings.metrics.is_empty() => {
            errors.required(&field, "with metrics, say how many instances there may be at most");
        }
        _ => {}
    }
    let policies = [POLICY_ORDERED_READY, POLICY_PARALLEL];
    let policy = settings.instance_management_policy.as_str();
    if !policies.contains(&policy) {
        errors.unsupported(&path.child("instanceManagementPolicy"), policy, &policies);
    }
    for (at, metric) in settings.metrics.iter().enumerate() {
        check_metric(metric, &path.child("metrics").index(at), errors);
    }
}

fn check_metric(metric: &MetricSpec, path: &Path, errors: &mut Errors) {
    let path = path.child("resource");
    let Some(resource) = &metric.resource else {
        return errors.required(&path, "say which resource is measured: cpu or memory");
    };
    let known = [METRIC_CPU, METRIC_MEMORY];
    match resource.name.as_str() {
        "" => errors.required(&path.child("name"), "say which resource is measured: cpu or memory"),
        name if !known.contains(&name) => errors.unsupported(&path.child("name"), name, &known),
        _ => {}
    }
    let (target, path) = (&resource.target, path.child("target"));
    let forms =
        [target.value.is_some(), target.average_value.is_some(), target.average_utilization.is_some()];
    if forms.iter().filter(|is_set| **is_set).count() > 1 {
        errors.forbidden(&path, "only one of value, averageValue and averageUtilization may be set");
    }
    for (field, amount) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(amount) = amount {
            check_amount(amount, &path.child(field), errors);
        }
    }
    if let Some(percent) = target.average_utilization.filter(|percent| *percent < 1) {
        errors.invalid(&path.child("averageUtilization"), percent, "must be at least 1 (percent)");
    }
}
