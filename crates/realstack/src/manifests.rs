//! Karmada's own manifests, read from its module's files and pointed at this machine.
//!
//! They are templates for a cluster with DNS: where they name the webhook's Service they get its address on loopback, and where they leave room
//! for an authority they get the hub's.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Error;

const CRDS: &str = "charts/karmada/_crds";
const CA_BUNDLE: &str = "{{caBundle}}";

/// The CRDs, with the patches that let the webhook convert between versions.
pub(crate) fn crds(root: &Path, webhook: &str, ca_bundle: &str) -> Result<Vec<Value>, Error> {
    let mut crds = Vec::new();
    for path in listed(&root.join(CRDS).join("bases"))? {
        crds.extend(read(&path, &[])?);
    }
    for path in listed(&root.join(CRDS).join("patches"))? {
        let replace = [("https://{{name}}.{{namespace}}.svc:443", webhook), (CA_BUNDLE, ca_bundle)];
        for patch in read(&path, &replace)? {
            let name = &patch["metadata"]["name"];
            let crd = crds.iter_mut().find(|crd| crd["metadata"]["name"] == *name);
            let crd = crd.ok_or_else(|| broken(&path, format!("there is no CRD {name}")))?;
            crd["spec"]["conversion"] = patch["spec"]["conversion"].clone();
        }
    }
    if crds.is_empty() {
        return Err(broken(&root.join(CRDS), "no CRD is in it".into()));
    }
    Ok(crds)
}

/// The webhook configurations.
pub(crate) fn webhooks(root: &Path, webhook: &str, ca_bundle: &str) -> Result<Vec<Value>, Error> {
    let path = root.join("artifacts/deploy/webhook-configuration.yaml");
    let replace = [("https://karmada-webhook.karmada-system.svc:443", webhook), (CA_BUNDLE, ca_bundle)];
    let configurations = read(&path, &replace)?;
    let all = configurations.iter().flat_map(|one| one["webhooks"].as_array().into_iter().flatten());
    for one in all {
        let url = one["clientConfig"]["url"].as_str().unwrap_or_default();
        if !url.starts_with(webhook) {
            return Err(broken(&path, format!("{} is called at `{url}`", one["name"])));
        }
    }
    Ok(configurations)
}

/// The roles that Karmada gives people, and the administrator's right to reach members through the hub.
pub(crate) fn roles(root: &Path) -> Result<Vec<Value>, Error> {
    let mut roles = Vec::new();
    for name in ["admin-clusterrole-aggregation.yaml", "cluster-proxy-admin-rbac.yaml"] {
        roles.extend(read(&root.join("artifacts/deploy").join(name), &[])?);
    }
    Ok(roles)
}

fn broken(path: &Path, why: String) -> Error {
    Error::Manifest { path: path.to_owned(), why }
}

/// The YAML files in a folder and below, in order.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::file("read", folder))? {
        let path = entry.map_err(Error::file("read", folder))?.path();
        if path.is_dir() {
            found.extend(listed(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The objects in a file. The text is filled in before it is read: an unquoted `{{…}}` is no YAML.
fn read(path: &Path, replace: &[(&str, &str)]) -> Result<Vec<Value>, Error> {
    let mut text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    for (from, to) in replace {
        text = text.replace(from, to);
    }
    if let Some(at) = text.find("{{") {
        let rest: String = text[at..].chars().take(40).collect();
        return Err(broken(path, format!("nothing is known to put in place of `{rest}`")));
    }
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| broken(path, error.to_string()))?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_conversion_is_patched_into_its_crd_and_points_here() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "charts/karmada/_crds/bases/b/b.yaml",
            "---\nmetadata: {name: b}\nspec: {group: g}\n",
        );
        write(root.path(), "charts/karmada/_crds/bases/a.yaml", "metadata: {name: a}\nspec: {}\n");
        write(
            root.path(),
            "charts/karmada/_crds/patches/b.yaml",
            "# why\nmetadata: {name: b}\nspec:\n  conversion:\n    url: \"https://{{name}}.{{namespace}}.svc:443/convert\"\n    caBundle: \"{{caBundle}}\"\n",
        );
        let crds = crds(root.path(), "https://127.0.0.1:9", "QUJD").unwrap();
        assert_eq!(crds.iter().map(|crd| &crd["metadata"]["name"]).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(crds[1]["spec"]["group"], "g");
        assert_eq!(crds[1]["spec"]["conversion"]["url"], "https://127.0.0.1:9/convert");
        assert_eq!(crds[1]["spec"]["conversion"]["caBundle"], "QUJD");
        assert_eq!(crds[0]["spec"].get("conversion"), None);
    }

    #[test]
    fn a_webhook_that_would_call_elsewhere_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let name = "artifacts/deploy/webhook-configuration.yaml";
        let text = |host: &str| {
            format!(
                "kind: A\nwebhooks:\n- name: w\n  clientConfig:\n    url: https://{host}:443/mutate\n    caBundle: {{{{caBundle}}}}\n"
            )
        };
        write(root.path(), name, &text("karmada-webhook.karmada-system.svc"));
        let read = webhooks(root.path(), "https://127.0.0.1:9", "QUJD").unwrap();
        assert_eq!(read[0]["webhooks"][0]["clientConfig"]["url"], "https://127.0.0.1:9/mutate");
        assert_eq!(read[0]["webhooks"][0]["clientConfig"]["caBundle"], "QUJD");
        write(root.path(), name, &text("elsewhere"));
        assert!(matches!(webhooks(root.path(), "https://127.0.0.1:9", "QUJD"), Err(Error::Manifest { .. })));
    }

    #[test]
    fn a_template_with_an_unknown_hole_is_refused() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "x.yaml", "a: {{unknown}}\n");
        let error = read(&root.path().join("x.yaml"), &[(CA_BUNDLE, "x")]).unwrap_err();
        assert!(error.to_string().contains("{{unknown}}"), "{error}");
    }
}
