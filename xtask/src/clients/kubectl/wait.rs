//! wait: watches until a condition holds, an object appears or goes, or the time is up.

use super::super::harness::Topic;
use super::workload;

/// A status that says that the workload is available.
const AVAILABLE: &str = concat!(
    r#"{"status":{"replicas":2,"conditions":[{"type":"Available","status":"True","reason":"Ready","message":"","#,
    r#""lastTransitionTime":"2030-01-01T00:00:00Z"}]}}"#
);

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("--for=condition times out with the right error", |k| {
        k.cmd("create -f -").stdin(workload("web", "nginx:1")).ok()?;
        k.cmd("wait workload/web --for=condition=Available --timeout=1s")
            .fails()?
            .complains("error: timed out waiting for the condition on workloads/web")
    });
    t.case("--for=condition is met by a later change", |k| {
        let wait = k.cmd("wait workload/web --for=condition=Available --timeout=30s").start()?;
        k.cmd(&format!("patch workload web --subresource=status --type=merge -p '{AVAILABLE}'")).ok()?;
        wait.end()?.exits(0)?.is("workload.compute.datumapis.com/web condition met\n")
    });
    t.case("--for=condition=…=False", |k| {
        k.cmd("wait workload/web --for=condition=Available=False --timeout=1s")
            .fails()?
            .complains("timed out")
    });
    t.case("--for=jsonpath", |k| {
        k.cmd("wait workload/web --for=jsonpath='{.status.replicas}'=2 --timeout=10s")
            .ok()?
            .is("workload.compute.datumapis.com/web condition met\n")
    });
    t.case("--for=jsonpath is met by a later change", |k| {
        let wait =
            k.cmd("wait workload/web --for=jsonpath='{.metadata.labels.go}'=yes --timeout=30s").start()?;
        k.cmd("label workload web go=yes").ok()?;
        wait.end()?.exits(0)
    });
    t.case("--for=create", |k| {
        let wait = k.cmd("wait configmap/later --for=create --timeout=30s").start()?;
        k.cmd("create configmap later --from-literal=k=v").ok()?;
        wait.end()?.exits(0)?.is("configmap/later condition met\n")
    });
    t.case("--for=delete", |k| {
        k.cmd(
            "patch configmap later --type=merge -p '{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}'",
        )
        .ok()?;
        k.cmd("delete configmap later --wait=false").ok()?;
        k.cmd("wait configmap/later --for=delete --timeout=1s")
            .fails()?
            .complains("timed out waiting for the condition on configmaps/later")?;
        let wait = k.cmd("wait configmap/later --for=delete --timeout=30s").start()?;
        k.cmd("patch configmap later --type=merge -p '{\"metadata\":{\"finalizers\":null}}'").ok()?;
        wait.end()?.exits(0)
    });
    t.case("--for=delete of what does not exist", |k| {
        k.cmd("wait configmap/later --for=delete --timeout=10s").ok()
    });
    t.case("--for=condition of what does not exist", |k| {
        k.cmd("wait workload/nope --for=condition=Available --timeout=10s").fails()?.complains("NotFound")
    });
}
