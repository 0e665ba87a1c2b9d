//! --dry-run and diff: what would happen, without it happening.

use super::super::harness::Topic;
use super::{config_map, workload};

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("create --dry-run=server stores nothing", |k| {
        k.cmd("create -f - --dry-run=server")
            .stdin(workload("web", "nginx:1"))
            .ok()?
            .is("workload.compute.datumapis.com/web created (server dry run)\n")?;
        k.cmd("get workload web").fails()?.complains("NotFound")
    });
    t.case("create --dry-run=server -o json has the server's defaults", |k| {
        k.cmd("create -f - --dry-run=server -o json")
            .stdin(workload("web", "nginx:1"))
            .ok()?
            .at("/spec/placements/0/scaleSettings/instanceManagementPolicy", "OrderedReady")?
            .at("/metadata/generation", 1)
    });
    t.case("create --dry-run=server refuses what create would", |k| {
        let bad = workload("web", "nginx:1").replace("minReplicas: 1", "minReplicas: many");
        k.cmd("create -f - --dry-run=server")
            .stdin(bad)
            .fails()?
            .complains("spec.placements[0].scaleSettings.minReplicas: Invalid value: \"string\"")
    });
    t.case("create --dry-run=client", |k| {
        k.cmd("create configmap dry --from-literal=k=v --dry-run=client")
            .ok()?
            .is("configmap/dry created (dry run)\n")?;
        k.cmd("create configmap dry --from-literal=k=v --dry-run=client -o yaml")
            .ok()?
            .has("kind: ConfigMap\n")?;
        k.cmd("get configmap dry").fails()?.complains("NotFound")
    });
    t.case("apply --dry-run=server", |k| {
        k.cmd("apply -f - --dry-run=server")
            .stdin(config_map("a", &["k: one"]))
            .ok()?
            .is("configmap/a created (server dry run)\n")?;
        k.cmd("get configmap a").fails()?;
        k.cmd("apply -f -").stdin(config_map("a", &["k: one"])).ok()?;
        k.cmd("apply -f - --dry-run=server")
            .stdin(config_map("a", &["k: two"]))
            .ok()?
            .is("configmap/a configured (server dry run)\n")?;
        k.cmd("get configmap a -o jsonpath='{.data.k}'").ok()?.is("one")
    });
    t.case("apply --dry-run=client", |k| {
        k.cmd("apply -f - --dry-run=client")
            .stdin(config_map("b", &["k: v"]))
            .ok()?
            .is("configmap/b created (dry run)\n")?;
        k.cmd("get configmap b").fails()
    });
    t.case("patch, label and delete --dry-run=server", |k| {
        k.cmd(
            "patch configmap a --dry-run=server --type=merge -p '{\"data\":{\"k\":\"two\"}}' -o \
            jsonpath='{.data.k}'",
        )
        .ok()?
        .is("two")?;
        k.cmd("label configmap a env=dev --dry-run=server")
            .ok()?
            .is("configmap/a labeled (server dry run)\n")?;
        k.cmd("delete configmap a --dry-run=server")
            .ok()?
            .has("configmap \"a\" deleted")?
            .has("(server dry run)")?;
        k.cmd("get configmap a -o json")
            .ok()?
            .at("/data/k", "one")?
            .at("/metadata/labels", serde_json::Value::Null)
    });
    t.case("diff shows the changed line and exits with 1", |k| {
        k.cmd("diff -f -")
            .stdin(config_map("a", &["k: two"]))
            .fails()?
            .has("\n-  k: one\n+  k: two\n")?
            .quiet()
    });
    t.case("diff of the same exits with 0", |k| {
        k.cmd("diff -f -").stdin(config_map("a", &["k: one"])).ok()?.is("")
    });
    t.case("diff of something new", |k| {
        k.cmd("diff -f -").stdin(config_map("new", &["k: v"])).fails()?.has("\n+kind: ConfigMap\n")
    });
    t.case("diff --server-side", |k| {
        k.cmd("diff --server-side --field-manager=kubectl-client-side-apply --force-conflicts -f -")
            .stdin(config_map("a", &["k: three"]))
            .fails()?
            .has("\n-  k: one\n+  k: three\n")
    });
    t.case("diff of a workload shows the new generation", |k| {
        k.cmd("apply -f -").stdin(workload("web", "nginx:1")).ok()?;
        k.cmd("diff -f -").stdin(workload("web", "nginx:1")).ok()?.is("")?;
        k.cmd("diff -f -")
            .stdin(workload("web", "nginx:2"))
            .fails()?
            .has("\n-  generation: 1\n+  generation: 2\n")?
            .has("image: nginx:2\n")
    });
}
