//! delete: cascades, finalizers, namespaces.

use anyhow::Result;
use serde_json::Value;

use super::super::harness::{Session, Topic};
use super::{config_map, on_node, owner_reference, pod, with_metadata, workload};

const HOLD: &str = "finalizers: [example.com/hold]";

/// A ConfigMap with these owners.
fn owned(name: &str, owners: &[String]) -> String {
    with_metadata(&config_map(name, &["k: v"]), &format!("ownerReferences: [{}]", owners.join(", ")))
}

/// Makes ConfigMap `owner` and gives a reference to it.
fn make_owner(k: &Session<'_>, owner: &str) -> Result<String> {
    k.cmd(&format!("create configmap {owner} --from-literal=k=v")).ok()?;
    Ok(owner_reference(owner, &k.field(&format!("configmap/{owner}"), ".metadata.uid")?))
}

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("one by name", |k| {
        k.cmd("create configmap one --from-literal=k=v").ok()?;
        k.cmd("delete configmap one").ok()?.has("configmap \"one\" deleted")?;
        k.cmd("get configmap one").fails()?.complains("NotFound")
    });
    t.case("what does not exist", |k| {
        k.cmd("delete configmap one")
            .fails()?
            .complains("Error from server (NotFound): configmaps \"one\" not found")?;
        k.cmd("delete configmap one --ignore-not-found").ok()?.is("")
    });
    t.case("by label", |k| {
        let labelled = |name: &str| {
            config_map(name, &["k: v"]).replace(
                &format!("name: {name}"),
                &format!("name: {name}\n  labels: {{set: {}}}", &name[..1]),
            )
        };
        k.cmd("create -f -").stdin(["a1", "a2", "b1"].map(labelled).join("---\n")).ok()?;
        k.cmd("delete configmaps -l set=a")
            .ok()?
            .has("\"a1\" deleted")?
            .has("\"a2\" deleted")?
            .lacks("b1")?;
        k.cmd("get configmaps -l set -o name").ok()?.is("configmap/b1\n")?;
        k.cmd("delete configmaps -l set=none").ok()?.is("No resources found\n")
    });
    t.case("by file, and all of a kind", |k| {
        k.cmd("delete -f -").stdin(config_map("b1", &["k: v"])).ok()?.has("configmap \"b1\" deleted")?;
        k.cmd("create -f -").stdin(workload("w1", "nginx:1")).ok()?;
        k.cmd("delete workloads --all").ok()?.has("workload.compute.datumapis.com \"w1\" deleted")?;
        k.cmd("get workloads").ok()?.complains("No resources found")
    });
    cascades(t);
    finalizers(t);
    namespaces(t);
    t.case("a pod that runs nowhere goes at once", |k| {
        k.cmd("create -f -").stdin(pod("loose", "nginx:1")).ok()?;
        k.cmd("delete pod loose").ok()?.has("pod \"loose\" deleted")?;
        k.cmd("get pod loose").fails()?.complains("NotFound")
    });
    t.case("--force --grace-period=0", |k| {
        k.cmd("create -f -").stdin(on_node(&pod("forced", "nginx:1"), "n1")).ok()?;
        k.cmd("delete pod forced --force --grace-period=0").ok()?.has("pod \"forced\" force deleted")?;
        k.cmd("get pod forced").fails()?.complains("NotFound")
    });
}

fn cascades(t: &mut Topic<'_>) {
    t.case("--cascade=background takes dependents along afterwards", |k| {
        let owner = make_owner(k, "bg")?;
        k.cmd("create -f -").stdin(owned("bg-child", &[owner])).ok()?;
        k.cmd("delete configmap bg --cascade=background").ok()?.has("configmap \"bg\" deleted")?;
        k.eventually("get configmap bg-child", |outcome| outcome.exits(1)?.complains("NotFound"))
    });
    t.case("--cascade=foreground takes dependents along first", |k| {
        let owner = make_owner(k, "fg")?;
        k.cmd("create -f -").stdin(owned("fg-child", &[owner])).ok()?;
        k.cmd("delete configmap fg --cascade=foreground").ok()?.has("configmap \"fg\" deleted")?;
        k.cmd("get configmap fg-child").fails()?.complains("NotFound")
    });
    t.case("--cascade=foreground waits for a dependent that is held", |k| {
        let owner = make_owner(k, "held")?;
        k.cmd("create -f -").stdin(with_metadata(&owned("held-child", &[owner]), HOLD)).ok()?;
        k.cmd("delete configmap held --cascade=foreground --wait=false").ok()?;
        k.eventually("get configmap held-child -o json", |outcome| {
            let deleting = outcome.json()?["metadata"]["deletionTimestamp"].is_string();
            outcome.holds(deleting, "expected the dependent to be deleted")
        })?;
        let owner =
            k.cmd("get configmap held -o json").ok()?.at("/metadata/finalizers/0", "foregroundDeletion")?;
        let deleting = owner.json()?["metadata"]["deletionTimestamp"].is_string();
        owner.holds(deleting, "expected the owner to wait in deletion")?;
        k.cmd("patch configmap held-child --type=merge -p '{\"metadata\":{\"finalizers\":null}}'").ok()?;
        k.cmd("wait configmap/held configmap/held-child --for=delete --timeout=30s").ok()
    });
    t.case("--cascade=orphan leaves dependents without their owner", |k| {
        let owner = make_owner(k, "or")?;
        k.cmd("create -f -").stdin(owned("or-child", &[owner])).ok()?;
        k.cmd("delete configmap or --cascade=orphan").ok()?.has("configmap \"or\" deleted")?;
        k.cmd("get configmap or-child -o json").ok()?.at("/metadata/ownerReferences", Value::Null)
    });
    t.case("a dependent of two owners stays while one lives", |k| {
        let owners = [make_owner(k, "first")?, make_owner(k, "second")?];
        k.cmd("create -f -").stdin(owned("of-both", &owners)).ok()?;
        k.cmd("delete configmap first").ok()?;
        k.eventually("get configmap of-both -o json", |outcome| {
            outcome
                .at("/metadata/ownerReferences/0/name", "second")?
                .at("/metadata/ownerReferences/1", Value::Null)
        })?;
        k.cmd("delete configmap second").ok()?;
        k.eventually("get configmap of-both", |outcome| outcome.exits(1)?.complains("NotFound"))
    });
    t.case("an object whose owner does not exist is collected", |k| {
        let nobody = owner_reference("nobody", "11111111-2222-3333-4444-555555555555");
        k.cmd("create -f -").stdin(owned("stray", &[nobody])).ok()?;
        k.eventually("get configmap stray", |outcome| outcome.exits(1)?.complains("NotFound"))
    });
}

fn finalizers(t: &mut Topic<'_>) {
    t.case("a finalizer holds the object until it is removed", |k| {
        k.cmd("create -f -").stdin(with_metadata(&config_map("f", &["k: v"]), HOLD)).ok()?;
        k.cmd("delete configmap f --wait=false").ok()?.has("configmap \"f\" deleted")?;
        let outcome =
            k.cmd("get configmap f -o json").ok()?.at("/metadata/finalizers/0", "example.com/hold")?;
        let deleting = outcome.json()?["metadata"]["deletionTimestamp"].is_string();
        outcome.holds(deleting, "expected a deletion time")?;
        k.cmd("delete configmap f --timeout=1s")
            .fails()?
            .complains("timed out waiting for the condition on configmaps/f")?;
        k.cmd("patch configmap f --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'")
            .ok()?;
        k.cmd("get configmap f").fails()?.complains("NotFound")
    });
    t.case("no finalizer is added to what is being deleted", |k| {
        k.cmd("create -f -").stdin(with_metadata(&config_map("g", &["k: v"]), HOLD)).ok()?;
        k.cmd("delete configmap g --wait=false").ok()?;
        k.cmd(
            "patch configmap g --type=merge -p \
            '{\"metadata\":{\"finalizers\":[\"example.com/hold\",\"example.com/more\"]}}'",
        )
        .fails()?
        .complains(
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object \
                is being deleted",
        )?;
        k.cmd("patch configmap g --type=merge -p '{\"metadata\":{\"finalizers\":null}}'").ok()
    });
}

fn namespaces(t: &mut Topic<'_>) {
    t.case("a namespace takes its contents along", |k| {
        k.cmd("create namespace t-delete-all").ok()?;
        k.cmd("create configmap c -n t-delete-all --from-literal=k=v").ok()?;
        k.cmd("create -n t-delete-all -f -").stdin(workload("web", "nginx:1")).ok()?;
        k.cmd("delete namespace t-delete-all").ok()?.is("namespace \"t-delete-all\" deleted\n")?;
        k.cmd("get namespace t-delete-all").fails()?.complains("namespaces \"t-delete-all\" not found")?;
        k.cmd("create namespace t-delete-all").ok()?;
        k.cmd("get configmaps,workloads -n t-delete-all -o name").ok()?.is("")
    });
    t.case("a namespace waits for what is held, and takes nothing new", |k| {
        let held = with_metadata(&config_map("held", &["k: v"]), HOLD);
        k.cmd("create namespace t-delete-held").ok()?;
        k.cmd("create -n t-delete-held -f -").stdin(held).ok()?;
        k.cmd("delete namespace t-delete-held --wait=false").ok()?;
        k.cmd("get namespace t-delete-held").ok()?.row("t-delete-held Terminating *")?;
        k.cmd("create configmap late -n t-delete-held --from-literal=k=v").fails()?.complains(
            "configmaps \"late\" is forbidden: unable to create new content in namespace \
            t-delete-held because it is being terminated",
        )?;
        k.cmd(
            "patch configmap held -n t-delete-held --type=merge -p \
            '{\"metadata\":{\"finalizers\":null}}'",
        )
        .ok()?;
        k.cmd("wait namespace/t-delete-held --for=delete --timeout=30s").ok()
    });
    t.case("the default namespace stays", |k| {
        k.cmd("delete namespace default")
            .fails()?
            .complains("namespaces \"default\" is forbidden: this namespace may not be deleted")
    });
}
