//! apply, client side: three-way merge through the last applied configuration.

use serde_json::Value;

use super::super::harness::Topic;
use super::{config_map, pod, with_metadata, workload};

const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// A service whose web port goes to `target`.
fn service(target: u32) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: web}}
spec:
  selector: {{app: web}}
  ports:
  - {{name: http, port: 80, targetPort: {target}}}
  - {{name: https, port: 443, targetPort: 8443}}
"
    )
}

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("creates", |k| {
        k.cmd("apply -f -")
            .stdin(config_map("a", &["k: one", "gone: x"]))
            .ok()?
            .is("configmap/a created\n")?;
        let outcome = k.cmd("get configmap a -o json").ok()?;
        let kept = outcome.json()?.pointer(LAST_APPLIED).is_some();
        outcome.holds(kept, "expected the last applied configuration")
    });
    t.case("the same again is unchanged", |k| {
        let version = k.field("configmap/a", ".metadata.resourceVersion")?;
        k.cmd("apply -f -")
            .stdin(config_map("a", &["k: one", "gone: x"]))
            .ok()?
            .is("configmap/a unchanged\n")?;
        k.cmd("get configmap a -o json").ok()?.at("/metadata/resourceVersion", version)
    });
    t.case("a change is configured, a removed field goes, a field of others stays", |k| {
        k.cmd("patch configmap a --type=merge -p '{\"data\":{\"other\":\"stays\"}}'").ok()?;
        k.cmd("apply -f -").stdin(config_map("a", &["k: two"])).ok()?.is("configmap/a configured\n")?;
        k.cmd("get configmap a -o json")
            .ok()?
            .at("/data/k", "two")?
            .at("/data/gone", Value::Null)?
            .at("/data/other", "stays")
    });
    t.case("view-last-applied", |k| k.cmd("apply view-last-applied configmap/a").ok()?.has("  k: two\n"));
    t.case("a pod's container is merged by name", |k| {
        k.cmd("apply -f -").stdin(pod("web", "nginx:1")).ok()?.is("pod/web created\n")?;
        k.cmd("apply -f -").stdin(pod("web", "nginx:1")).ok()?.is("pod/web unchanged\n")?;
        k.cmd("apply -f -").stdin(pod("web", "nginx:2")).ok()?.is("pod/web configured\n")?;
        k.cmd("get pod web -o json")
            .ok()?
            .at("/spec/containers/0/image", "nginx:2")?
            .at("/spec/containers/1/image", "busybox:1")
    });
    t.case("a service's ports are merged by number, and a port of others stays", |k| {
        k.cmd("apply -f -").stdin(service(8080)).ok()?.is("service/web created\n")?;
        k.cmd("patch service web -p '{\"spec\":{\"ports\":[{\"name\":\"metrics\",\"port\":9090}]}}'").ok()?;
        k.cmd("apply -f -").stdin(service(8081)).ok()?.is("service/web configured\n")?;
        k.cmd("get service web -o jsonpath='{range .spec.ports[*]}{.name}:{.port}:{.targetPort} {end}'")
            .ok()?
            .has("http:80:8081 ")?
            .has("https:443:8443 ")?
            .has("metrics:9090:9090 ")?;
        let without = service(8081).replace("  - {name: https, port: 443, targetPort: 8443}\n", "");
        k.cmd("apply -f -").stdin(without).ok()?.is("service/web configured\n")?;
        k.cmd("get service web -o json").ok()?.lacks("\"https\"")?.has("\"metrics\"")
    });
    t.case("a workload is created, unchanged and configured", |k| {
        let name = "workload.compute.datumapis.com/web";
        // Placements are replaced as a whole: a default that the server fills in would be a change for kubectl.
        let full = |image: &str| {
            workload("web", image)
                .replace("{minReplicas: 1}", "{minReplicas: 1, instanceManagementPolicy: Parallel}")
        };
        k.cmd("apply -f -").stdin(full("nginx:1")).ok()?.is(&format!("{name} created\n"))?;
        k.cmd("apply -f -").stdin(full("nginx:1")).ok()?.is(&format!("{name} unchanged\n"))?;
        k.cmd("apply -f -").stdin(full("nginx:2")).ok()?.is(&format!("{name} configured\n"))?;
        k.cmd("get workload web -o json")
            .ok()?
            .at("/metadata/generation", 2)?
            .at("/spec/template/spec/runtime/sandbox/containers/0/image", "nginx:2")
    });
    t.case("an unknown field of a new object is refused", |k| {
        k.cmd("apply -f -")
            .stdin(config_map("typo", &["k: v"]).replace("\ndata:", "\ndta:"))
            .fails()?
            .complains(
                "Error from server (BadRequest): error when creating \"STDIN\": ConfigMap in version \
            \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"dta\"",
            )?;
        k.cmd("get configmap typo").fails()
    });
    t.case("an unknown field of a workload is refused, with its path", |k| {
        let typo =
            workload("typo", "nginx:1").replace("cityCodes: [DFW]", "cityCodes: [DFW]\n    citiCodes: [IAD]");
        k.cmd("apply -f -").stdin(typo).fails()?.complains(
            "Workload in version \"v1alpha\" cannot be handled as a Workload: strict decoding error: \
            unknown field \"spec.placements[0].citiCodes\"",
        )
    });
    t.case("an unknown field in a change is refused", |k| {
        let typo = config_map("a", &["k: two"]).replace("\ndata:", "\ndta: {x: y}\ndata:");
        k.cmd("apply -f -").stdin(typo).fails()?.complains("strict decoding error: unknown field \"dta\"")
    });
    t.case("--validate=warn warns and drops the field", |k| {
        let typo = config_map("warned", &["k: v"]).replace("\ndata:", "\ndta: {x: y}\ndata:");
        k.cmd("apply --validate=warn -f -")
            .stdin(typo)
            .ok()?
            .is("configmap/warned created\n")?
            .complains("Warning: unknown field \"dta\"")?;
        k.cmd("get configmap warned -o json").ok()?.at("/dta", Value::Null)
    });
    t.case("--validate=false says nothing", |k| {
        let typo = config_map("silent", &["k: v"]).replace("\ndata:", "\ndta: {x: y}\ndata:");
        k.cmd("apply --validate=false -f -").stdin(typo).ok()?.is("configmap/silent created\n")?.quiet()
    });
    t.case("what was not applied before is taken over with a warning", |k| {
        k.cmd("create configmap found --from-literal=k=one").ok()?;
        k.cmd("apply -f -")
            .stdin(config_map("found", &["k: two"]))
            .ok()?
            .is("configmap/found configured\n")?
            .complains("is missing the kubectl.kubernetes.io/last-applied-configuration annotation")
    });
    t.case("--prune removes what is no longer listed", |k| {
        let labelled = |name: &str| with_metadata(&config_map(name, &["k: v"]), "labels: {set: s}");
        let both = format!("{}---\n{}", labelled("keep"), labelled("drop"));
        k.cmd("apply -f -").stdin(both).ok()?.is("configmap/keep created\nconfigmap/drop created\n")?;
        k.cmd("apply --prune -l set=s --prune-allowlist=core/v1/ConfigMap -f -")
            .stdin(labelled("keep"))
            .ok()?
            .has("configmap/keep unchanged\n")?
            .has("configmap/drop pruned\n")?;
        k.cmd("get configmaps -l set=s -o name").ok()?.is("configmap/keep\n")
    });
}
