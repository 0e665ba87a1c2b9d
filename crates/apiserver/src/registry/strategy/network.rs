//! Services: defaults, a cluster address that no other service of the plane has, and its rules.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field_error::{FieldError, FieldErrorType};
use crate::verbs::Target;

/// Sets a field that is absent or empty. What is no object is left to the schema to refuse.
pub(super) fn fill(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_none_or(|found| found.is_null() || found == "")
    {
        fields.insert(field.to_owned(), value);
    }
}

fn common_defaults(service: &mut Value) {
    let spec = &mut service["spec"];
    fill(spec, "type", json!("ClusterIP"));
    fill(spec, "sessionAffinity", json!("None"));
    for port in super::pod::entries(spec, "ports") {
        fill(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        fill(port, "targetPort", number);
    }
}

pub(super) fn service_defaults(target: &Target, service: &mut Value) {
    common_defaults(service);
    service["status"] = json!({ "loadBalancer": {} });
    let spec = &mut service["spec"];
    if spec["type"] == "ExternalName" || !spec.is_object() {
        return;
    }
    fill(spec, "internalTrafficPolicy", json!("Cluster"));
    fill(spec, "ipFamilies", json!(["IPv4"]));
    fill(spec, "ipFamilyPolicy", json!("SingleStack"));
    if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        spec["clusterIP"] = json!(free_address(target));
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
}

/// The cluster addresses of all services of this plane: the first of their selectable fields.
fn taken_addresses(target: &Target) -> BTreeSet<String> {
    let (services, _) = target.plane.store.list(&target.resource.table, None, |_| true);
    let addresses = services.iter().filter_map(|service| service.meta.fields.first());
    addresses.map(ToString::to_string).filter(|address| !address.is_empty() && address != "None").collect()
}

/// An address of 10.96.0.0/12 that no service of this plane has.
fn free_address(target: &Target) -> String {
    const SIZE: u64 = 1 << 20;
    let taken = taken_addresses(target);
    let start = target.shared.options.random.next_u64() % SIZE;
    let address = |n: u64| {
        let n = (start + n) % (SIZE - 2) + 1;
        format!("10.{}.{}.{}", 96 + (n >> 16), (n >> 8) & 255, n & 255)
    };
    (0..SIZE).map(address).find(|candidate| !taken.contains(candidate)).unwrap_or_default()
}

pub(super) fn service_update(before: &Value, service: &mut Value) {
    common_defaults(service);
    if service["spec"]["type"] == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy"] {
        let kept = before["spec"][field].clone();
        if !kept.is_null() {
            fill(&mut service["spec"], field, kept);
        }
    }
}

pub(super) fn validate_service(
    target: &Target,
    before: Option<&Value>,
    service: &Value,
    errors: &mut Vec<FieldError>,
) {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let known = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];
    if !known.iter().any(|known| spec["type"] == *known) {
        let detail = "supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"";
        errors.push(FieldError::with_value("spec.type", FieldErrorType::NotSupported, &spec["type"], detail));
    }
    if ports.is_empty() && spec["clusterIP"] != "None" && spec["type"] != "ExternalName" {
        errors.push(FieldError::new("spec.ports", FieldErrorType::Required, ""));
    }
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let number = &port["port"];
        if number.as_i64().is_none_or(|number| !(1..=65535).contains(&number)) {
            let path = format!("spec.ports[{i}].port");
            errors.push(FieldError::invalid(path, number, "must be between 1 and 65535, inclusive"));
        }
        let name = port["name"].as_str().unwrap_or_default();
        let path = format!("spec.ports[{i}].name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::new(path, FieldErrorType::Required, ""));
        } else if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::with_value(path, FieldErrorType::Duplicate, &port["name"], ""));
        }
    }
    let address = spec["clusterIP"].as_str().unwrap_or_default();
    if before.is_none() && taken_addresses(target).contains(address) {
        errors.push(FieldError::invalid(
            "spec.clusterIP",
            &spec["clusterIP"],
            "provided IP is already allocated",
        ));
    }
    if let Some(before) = before {
        let old = &before["spec"]["clusterIP"];
        let kept_type = before["spec"]["type"] != "ExternalName" && spec["type"] != "ExternalName";
        if kept_type && !old.is_null() && *old != spec["clusterIP"] {
            errors.push(FieldError::invalid("spec.clusterIP", &spec["clusterIP"], "field is immutable"));
        }
    }
}
