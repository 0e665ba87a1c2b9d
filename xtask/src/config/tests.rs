//! The checks themselves, and that nothing of `config/` is left out.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{TARGETS, Target, check};

fn kustomizations(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            kustomizations(&path, found);
        } else if path.ends_with("kustomization.yaml") {
            found.push(path.parent().unwrap().to_owned());
        }
    }
}

#[test]
fn every_overlay_is_a_target() {
    let config = crate::root().join("config");
    let mut found = Vec::new();
    kustomizations(&config.join("overlays"), &mut found);
    found.push(config.join("base/federation"));
    let mut found: Vec<_> =
        found.iter().map(|path| path.strip_prefix(&config).unwrap().to_str().unwrap().to_owned()).collect();
    found.sort();
    let mut targets: Vec<_> = TARGETS.iter().map(|target| target.folder.to_owned()).collect();
    targets.sort();
    assert_eq!(found, targets);
}

#[test]
fn targets_are_found_by_name() {
    assert_eq!(Target::find("cell").unwrap().folder, "overlays/cell");
    assert_eq!(Target::find("overlays/cell/projects").unwrap().folder, "overlays/cell/projects");
    assert_eq!(Target::find("base/federation").unwrap().folder, "base/federation");
    let error = Target::find("cells").unwrap_err().to_string();
    assert!(error.contains("\"cells\"") && error.contains("single-cluster"), "{error}");
}

fn said(objects: &[Value]) -> String {
    format!("{:#}", check::all(objects).unwrap_err())
}

#[test]
fn what_is_wrong_is_found() {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a" } });
    check::all(std::slice::from_ref(&account)).unwrap();
    assert!(said(&[]).contains("nothing"));
    assert!(said(&[account.clone(), account.clone()]).contains("twice"));
    let mut odd = account.clone();
    odd["automountToken"] = json!(true);
    assert_eq!(said(&[odd]), "ServiceAccount a: .automountToken is no field that Kubernetes knows");
    let unknown = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" } });
    assert!(said(&[unknown]).contains("not looked at"));
    let binding = |role: &str, kind: &str, subject: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "b" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "kind": kind, "name": subject }],
        })
    };
    let role = |name: &str| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name } });
    assert!(
        said(&[binding("compute-x", "ServiceAccount", "a"), account.clone()])
            .contains("no ClusterRole compute-x")
    );
    let admin = [role("cluster-admin"), binding("cluster-admin", "ServiceAccount", "a"), account.clone()];
    assert!(said(&admin).contains("not ours"));
    let anybody = [role("compute-x"), binding("compute-x", "Group", "system:authenticated")];
    assert!(said(&anybody).contains("must not be bound"));
    check::all(&[role("compute-x"), binding("compute-x", "ServiceAccount", "a"), account]).unwrap();
}

#[test]
fn pods_must_be_restricted() {
    let pod = json!({
        "serviceAccountName": "a",
        "securityContext": { "runAsNonRoot": true, "runAsUser": 1, "seccompProfile": { "type": "RuntimeDefault" } },
        "containers": [{
            "name": "c", "image": "i", "resources": { "limits": { "memory": "1Gi" } },
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
            },
        }],
    });
    let deployment = |pod: &Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
            "spec": { "selector": {}, "template": { "spec": pod } },
        })
    };
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a" } });
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "config" },
        "data": { "server.yaml": "discovery:\n  mode: single\n" },
    });
    let others = [account, config];
    let with = |pod: &Value| [&others[..], &[deployment(pod)]].concat();
    check::all(&with(&pod)).unwrap();
    let mut named = pod.clone();
    named["containers"][0]["env"] =
        json!([{ "name": "FEDERATION_KUBECONFIG", "value": "/etc/hub/kubeconfig" }]);
    assert!(said(&with(&named)).contains("nothing is mounted"));
    named["containers"][0]["volumeMounts"] = json!([{ "name": "hub", "mountPath": "/etc/hub" }]);
    check::all(&with(&named)).unwrap();
    for (pointer, wrong) in [
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/securityContext/runAsUser", json!(0)),
        ("/securityContext/seccompProfile/type", json!("Unconfined")),
        ("/containers/0/securityContext/readOnlyRootFilesystem", json!(false)),
        ("/containers/0/securityContext/capabilities/drop", json!([])),
        ("/containers/0/resources/limits", json!({})),
    ] {
        let mut pod = pod.clone();
        *pod.pointer_mut(pointer).unwrap() = wrong;
        assert!(check::all(&with(&pod)).is_err(), "{pointer}");
    }
    let mut mounted = pod;
    mounted["volumes"] = json!([{ "name": "v", "hostPath": { "path": "/" } }]);
    assert!(said(&with(&mounted)).contains("not restricted"));
}
