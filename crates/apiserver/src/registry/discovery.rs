//! Discovery documents: which groups, versions and resources a plane serves, in the legacy and the aggregated form.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::definition::GroupVersion;
use super::{Registry, Resource};

const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The Kubernetes release whose API the server speaks.
pub(crate) const KUBERNETES_MINOR: &str = "35";

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": KUBERNETES_MINOR,
        "gitVersion": format!("v1.{KUBERNETES_MINOR}.0+compute.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/api`.
pub(crate) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    })
}

/// `/apis`, legacy form.
pub(crate) fn group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> =
        groups(registry).into_iter().map(|(name, versions)| group_value(name, &versions)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/<group>`.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let versions = groups(registry).remove(name)?;
    let mut value = group_value(name, &versions);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Some(value)
}

fn groups(registry: &Registry) -> BTreeMap<&str, Vec<&GroupVersion>> {
    let mut groups: BTreeMap<&str, Vec<&GroupVersion>> = BTreeMap::new();
    for (gv, _) in registry.versions().filter(|(gv, _)| !gv.group.is_empty()) {
        groups.entry(&gv.group).or_default().push(gv);
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|gv| std::cmp::Reverse(priority(&gv.version)));
    }
    groups
}

/// Kubernetes' order of versions: `v2` before `v1` before `v2beta1` before `v1alpha1` before anything else.
fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let name = || std::cmp::Reverse(version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0, name()) };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Ok(major) = rest[..digits].parse() else { return (0, 0, 0, name()) };
    let stage = &rest[digits..];
    let (rank, minor) = match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
        _ if stage.is_empty() => (3, "0"),
        (Some(minor), _) => (2, minor),
        (_, Some(minor)) => (1, minor),
        _ => return (0, 0, 0, name()),
    };
    match if minor.is_empty() { Ok(0) } else { minor.parse() } {
        Ok(minor) => (rank, major, minor, name()),
        Err(_) => (0, 0, 0, name()),
    }
}

/// What can be done with a resource. Namespaces go one by one only; a review is asked and not kept.
fn verbs(resource: &Resource) -> Vec<&'static str> {
    let can = |verb: &&str| match *verb {
        "create" => true,
        "deletecollection" => resource.def.kept && !resource.is_namespace(),
        _ => resource.def.kept,
    };
    VERBS.into_iter().filter(can).collect()
}

fn group_value(name: &str, versions: &[&GroupVersion]) -> Value {
    let entry = |gv: &&GroupVersion| json!({ "groupVersion": gv.to_string(), "version": gv.version });
    json!({
        "name": name,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

/// `/api/v1` and `/apis/<group>/<version>`.
pub(crate) fn resource_list(registry: &Registry, gv: &GroupVersion) -> Option<Value> {
    let (_, resources) = registry.versions().find(|(found, _)| *found == gv)?;
    let mut entries = Vec::new();
    for resource in resources.values() {
        let def = &resource.def;
        let mut entry = json!({
            "name": def.names.plural,
            "singularName": def.names.singular,
            "namespaced": def.namespaced,
            "kind": def.names.kind,
            "verbs": verbs(resource),
        });
        if !def.names.short_names.is_empty() {
            entry["shortNames"] = json!(def.names.short_names);
        }
        if !def.names.categories.is_empty() {
            entry["categories"] = json!(def.names.categories);
        }
        entries.push(entry);
        for part in subresources(resource) {
            let mut entry = json!({
                "name": format!("{}/{}", def.names.plural, part.name),
                "singularName": "",
                "namespaced": def.namespaced,
                "kind": part.kind,
                "verbs": part.verbs,
            });
            if part.gv != def.gv {
                entry["group"] = json!(part.gv.group);
                entry["version"] = json!(part.gv.version);
            }
            entries.push(entry);
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": gv.to_string(),
        "resources": entries,
    }))
}

/// A part of an object that has a path of its own.
struct Subresource {
    name: &'static str,
    gv: GroupVersion,
    kind: String,
    verbs: &'static [&'static str],
}

fn subresources(resource: &Resource) -> Vec<Subresource> {
    let def = &resource.def;
    let own = |name, verbs| Subresource { name, gv: def.gv.clone(), kind: def.names.kind.clone(), verbs };
    let foreign = |name, group: &str, kind: &str, verbs| {
        let gv = GroupVersion { group: group.to_owned(), version: "v1".to_owned() };
        Subresource { name, gv, kind: kind.to_owned(), verbs }
    };
    let mut found = Vec::new();
    if resource.is_namespace() {
        found.push(own("finalize", &["update"]));
    }
    if def.scale.is_some() {
        found.push(foreign("scale", "autoscaling", "Scale", &STATUS_VERBS));
    }
    if def.status {
        found.push(own("status", &STATUS_VERBS));
    }
    if resource.is_service_account() {
        found.push(foreign("token", "authentication.k8s.io", "TokenRequest", &["create"]));
    }
    found
}

/// `/api` (`core`) or `/apis` in the aggregated form.
pub(crate) fn aggregated(registry: &Registry, core: bool) -> Value {
    let version_value = |gv: &GroupVersion| {
        let resources = registry.versions().find(|(found, _)| *found == gv).map(|(_, resources)| resources);
        let resources: Vec<Value> =
            resources.into_iter().flat_map(BTreeMap::values).map(|r| aggregated_resource(r)).collect();
        json!({ "version": gv.version, "resources": resources, "freshness": "Current" })
    };
    let items: Vec<Value> = if core {
        let versions: Vec<Value> = registry
            .versions()
            .filter(|(gv, _)| gv.group.is_empty())
            .map(|(gv, _)| version_value(gv))
            .collect();
        vec![json!({ "metadata": { "creationTimestamp": null }, "versions": versions })]
    } else {
        let item = |(name, versions): (&str, Vec<&GroupVersion>)| {
            let versions: Vec<Value> = versions.into_iter().map(version_value).collect();
            json!({ "metadata": { "name": name, "creationTimestamp": null }, "versions": versions })
        };
        groups(registry).into_iter().map(item).collect()
    };
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items })
}

fn aggregated_resource(resource: &Resource) -> Value {
    let def = &resource.def;
    let kind =
        |group: &str, version: &str, kind: &str| json!({ "group": group, "version": version, "kind": kind });
    let mut entry = json!({
        "resource": def.names.plural,
        "responseKind": kind(&def.gv.group, &def.gv.version, &def.names.kind),
        "scope": if def.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": def.names.singular,
        "verbs": verbs(resource),
    });
    if !def.names.short_names.is_empty() {
        entry["shortNames"] = json!(def.names.short_names);
    }
    if !def.names.categories.is_empty() {
        entry["categories"] = json!(def.names.categories);
    }
    let subresource = |part: Subresource| {
        let response = kind(&part.gv.group, &part.gv.version, &part.kind);
        json!({ "subresource": part.name, "responseKind": response, "verbs": part.verbs })
    };
    let subresources: Vec<Value> = subresources(resource).into_iter().map(subresource).collect();
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = vec!["v1alpha1", "foo", "v2", "v1beta2", "v1", "v10", "v1alpha", "v1beta10"];
        versions.sort_by_key(|v| std::cmp::Reverse(priority(v)));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "v1alpha", "foo"]);
    }
}
