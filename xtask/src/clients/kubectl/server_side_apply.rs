//! apply --server-side: field ownership, conflicts, and who manages what.

use serde_json::Value;

use super::super::harness::Topic;
use super::{config_map, pod, workload};

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("creates, and the same again changes nothing", |k| {
        let object = config_map("shared", &["k: one", "mine: x"]);
        let line = "apply --server-side --field-manager=ann -f -";
        k.cmd(line).stdin(&*object).ok()?.is("configmap/shared serverside-applied\n")?;
        let version = k.field("configmap/shared", ".metadata.resourceVersion")?;
        k.cmd(line).stdin(object).ok()?.is("configmap/shared serverside-applied\n")?;
        k.cmd("get configmap shared -o json").ok()?.at("/metadata/resourceVersion", version)
    });
    t.case("a conflict names manager and field", |k| {
        k.cmd("apply --server-side --field-manager=bob -f -")
            .stdin(config_map("shared", &["k: two"]))
            .fails()?
            .complains("Apply failed with 1 conflict: conflict with \"ann\": .data.k")?
            .complains("--force-conflicts")?;
        k.cmd("get configmap shared -o jsonpath='{.data.k}'").ok()?.is("one")
    });
    t.case("--force-conflicts takes the field over", |k| {
        k.cmd("apply --server-side --field-manager=bob --force-conflicts -f -")
            .stdin(config_map("shared", &["k: two"]))
            .ok()?
            .is("configmap/shared serverside-applied\n")?;
        k.cmd("get configmap shared -o json").ok()?.at("/data/k", "two")?.at("/data/mine", "x")
    });
    t.case("--show-managed-fields", |k| {
        k.cmd("get configmap shared -o json").ok()?.lacks("managedFields")?;
        k.cmd("get configmap shared -o json --show-managed-fields")
            .ok()?
            .at("/metadata/managedFields/0/manager", "ann")?
            .at("/metadata/managedFields/0/operation", "Apply")?
            .at("/metadata/managedFields/0/fieldsV1/f:data/f:mine", serde_json::json!({}))?
            .at("/metadata/managedFields/0/fieldsV1/f:data/f:k", Value::Null)?
            .at("/metadata/managedFields/1/manager", "bob")?
            .at("/metadata/managedFields/1/fieldsV1/f:data/f:k", serde_json::json!({}))
    });
    t.case("equal values are shared without a conflict", |k| {
        k.cmd("apply --server-side --field-manager=cid -f -")
            .stdin(config_map("shared", &["k: two"]))
            .ok()?;
        k.cmd("apply --server-side --field-manager=bob -f -").stdin(config_map("shared", &["b: x"])).ok()?;
        k.cmd("get configmap shared -o jsonpath='{.data.k}'").ok()?.is("two")
    });
    t.case("a field goes when its last manager drops it", |k| {
        k.cmd("apply --server-side --field-manager=cid -f -").stdin(config_map("shared", &["c: x"])).ok()?;
        k.cmd("get configmap shared -o json")
            .ok()?
            .at("/data/k", Value::Null)?
            .at("/data/mine", "x")?
            .at("/data/b", "x")
    });
    t.case("a change by update conflicts too", |k| {
        k.cmd("patch configmap shared --field-manager=hand --type=merge -p '{\"data\":{\"mine\":\"y\"}}'")
            .ok()?;
        k.cmd("apply --server-side --field-manager=ann -f -")
            .stdin(config_map("shared", &["mine: x"]))
            .fails()?
            .complains("conflict with \"hand\" using v1: .data.mine")
    });
    t.case("containers of a workload are owned one by one", |k| {
        let line = |manager: &str| format!("apply --server-side --field-manager={manager} -f -");
        let name = "workload.compute.datumapis.com/web serverside-applied\n";
        k.cmd(&line("ann")).stdin(workload("web", "nginx:1")).ok()?.is(name)?;
        let side = "apiVersion: compute.datumapis.com/v1alpha
kind: Workload
metadata: {name: web}
spec:
  template:
    spec:
      runtime:
        sandbox:
          containers:
          - {name: side, image: 'busybox:1'}
";
        k.cmd(&line("bob")).stdin(side).ok()?.is(name)?;
        let containers = "/spec/template/spec/runtime/sandbox/containers";
        k.cmd("get workload web -o json")
            .ok()?
            .at(&format!("{containers}/0/name"), "app")?
            .at(&format!("{containers}/1/name"), "side")?;
        k.cmd(&line("bob")).stdin(side.replace("name: side", "name: app")).fails()?.complains(
            "conflict with \"ann\": .spec.template.spec.runtime.sandbox.containers[name=\"app\"].image",
        )
    });
    t.case("containers of a pod are owned one by one", |k| {
        k.cmd("apply --server-side --field-manager=ann -f -")
            .stdin(pod("web", "nginx:1"))
            .ok()?
            .is("pod/web serverside-applied\n")?;
        k.cmd("apply --server-side --field-manager=bob -f -")
            .stdin(pod("web", "nginx:2"))
            .fails()?
            .complains("conflict with \"ann\": .spec.containers[name=\"app\"].image")
    });
    t.case("what was applied by the client goes over to the server", |k| {
        k.cmd("apply -f -").stdin(config_map("moved", &["k: one", "gone: x"])).ok()?;
        k.cmd("apply --server-side -f -")
            .stdin(config_map("moved", &["k: two"]))
            .ok()?
            .is("configmap/moved serverside-applied\n")?;
        k.cmd("get configmap moved -o json").ok()?.at("/data/k", "two")?.at("/data/gone", Value::Null)
    });
    t.case("an unknown field is refused", |k| {
        k.cmd("apply --server-side -f -")
            .stdin(config_map("typo", &["k: v"]).replace("\ndata:", "\ndta:"))
            .fails()?
            .complains("dta")?;
        k.cmd("get configmap typo").fails()?.complains("NotFound")
    });
    t.case("--dry-run=server stores nothing", |k| {
        k.cmd("apply --server-side --dry-run=server -f -")
            .stdin(config_map("dry", &["k: v"]))
            .ok()?
            .is("configmap/dry serverside-applied (server dry run)\n")?;
        k.cmd("get configmap dry").fails()?.complains("NotFound")
    });
}
