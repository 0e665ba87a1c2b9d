//! patch, label, annotate, set, scale, and the status subresource.

use serde_json::Value;

use super::super::harness::Topic;
use super::{config_map, pod, workload, workload_deployment};

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("its objects are created", |k| {
        let objects = [
            config_map("c", &["k: one", "gone: x"]),
            pod("web", "nginx:1"),
            workload("web", "nginx:1"),
            workload_deployment("web", 1),
        ];
        k.cmd("create -f -").stdin(objects.join("---\n")).ok()
    });
    types(t);
    status(t);
    scale(t);
    labels(t);
}

fn types(t: &mut Topic<'_>) {
    t.case("--type=merge sets and removes", |k| {
        k.cmd("patch configmap c --type=merge -p '{\"data\":{\"k\":\"two\",\"gone\":null}}'")
            .ok()?
            .is("configmap/c patched\n")?;
        k.cmd("get configmap c -o json").ok()?.at("/data/k", "two")?.at("/data/gone", Value::Null)
    });
    t.case("a patch that changes nothing", |k| {
        k.cmd("patch configmap c --type=merge -p '{\"data\":{\"k\":\"two\"}}'")
            .ok()?
            .is("configmap/c patched (no change)\n")
    });
    t.case("--type=json", |k| {
        let patch = concat!(
            r#"[{"op":"test","path":"/data/k","value":"two"},"#,
            r#"{"op":"replace","path":"/data/k","value":"three"},{"op":"add","path":"/data/new","value":"x"}]"#,
        );
        k.cmd(&format!("patch configmap c --type=json -p '{patch}'")).ok()?.is("configmap/c patched\n")?;
        k.cmd("get configmap c -o json").ok()?.at("/data/k", "three")?.at("/data/new", "x")
    });
    t.case("--type=json whose test does not hold", |k| {
        let patch = r#"[{"op":"test","path":"/data/k","value":"two"},{"op":"remove","path":"/data/k"}]"#;
        k.cmd(&format!("patch configmap c --type=json -p '{patch}'"))
            .fails()?
            .complains("The request is invalid: ")?;
        k.cmd("get configmap c -o jsonpath='{.data.k}'").ok()?.is("three")
    });
    t.case("--type=strategic merges containers by name", |k| {
        let patch = r#"{"spec":{"containers":[{"name":"side","image":"busybox:2"}]}}"#;
        k.cmd(&format!("patch pod web --type=strategic -p '{patch}'")).ok()?.is("pod/web patched\n")?;
        k.cmd("get pod web -o json")
            .ok()?
            .at("/spec/containers/0/image", "nginx:1")?
            .at("/spec/containers/1/image", "busybox:2")
    });
    t.case("--type=strategic replaces and deletes by directive", |k| {
        k.cmd("patch pod web -p '{\"metadata\":{\"labels\":{\"$patch\":\"replace\",\"only\":\"this\"}}}'")
            .ok()?;
        k.cmd("get pod web -o json").ok()?.at("/metadata/labels", serde_json::json!({ "only": "this" }))
    });
    t.case("--type=strategic on a custom kind is refused", |k| {
        k.cmd("patch workload web --type=strategic -p '{\"spec\":{\"paused\":true}}'").fails()?.complains(
            "application/strategic-merge-patch+json is not supported by \
                compute.datumapis.com/v1alpha, Kind=Workload",
        )
    });
    t.case("--type=json on a custom kind", |k| {
        let patch = r#"[{"op":"add","path":"/spec/placements/0/cityCodes/-","value":"IAD"}]"#;
        k.cmd(&format!("patch workload web --type=json -p '{patch}'"))
            .ok()?
            .is("workload.compute.datumapis.com/web patched\n")?;
        k.cmd("get workload web -o json")
            .ok()?
            .at("/spec/placements/0/cityCodes/1", "IAD")?
            .at("/metadata/generation", 2)
    });
    t.case("a patch that breaks the schema", |k| {
        k.cmd("patch workload web --type=merge -p '{\"spec\":{\"placements\":[]}}'")
            .fails()?
            .complains("The Workload \"web\" is invalid: spec.placements: Invalid value")?
            .complains("should have at least 1 items")
    });
    t.case("set image", |k| {
        k.cmd("set image pod/web app=nginx:3").ok()?.is("pod/web image updated\n")?;
        k.cmd("get pod web -o jsonpath='{.spec.containers[*].image}'").ok()?.is("nginx:3 busybox:2")
    });
    t.case("a pod's other fields cannot be changed", |k| {
        k.cmd("patch pod web --type=merge -p '{\"spec\":{\"restartPolicy\":\"Never\"}}'").fails()?.complains(
            "The Pod \"web\" is invalid: spec: Forbidden: pod updates may not change fields other than",
        )
    });
    t.case("an immutable configmap cannot be changed", |k| {
        k.cmd("create -f -").stdin(format!("{}immutable: true\n", config_map("fixed", &["k: one"]))).ok()?;
        k.cmd("patch configmap fixed --type=merge -p '{\"data\":{\"k\":\"two\"}}'").fails()?.complains(
            "The ConfigMap \"fixed\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
        )
    });
    t.case("metadata that never changes", |k| {
        let uid = k.field("configmap/c", ".metadata.uid")?;
        k.cmd(
            "patch configmap c --type=merge -p \
            '{\"metadata\":{\"uid\":\"11111111-2222-3333-4444-555555555555\"}}'",
        )
        .fails()?
        .complains(
            "Precondition failed: UID in precondition: \
                11111111-2222-3333-4444-555555555555, UID in object meta: ",
        )?
        .complains(&uid)
    });
}

fn status(t: &mut Topic<'_>) {
    t.case("--subresource=status writes status alone", |k| {
        let patch = r#"{"status":{"replicas":2},"spec":{"paused":true}}"#;
        k.cmd(&format!("patch workload web --subresource=status --type=merge -p '{patch}'"))
            .ok()?
            .is("workload.compute.datumapis.com/web patched\n")?;
        k.cmd("get workload web -o json")
            .ok()?
            .at("/status/replicas", 2)?
            .at("/spec/paused", Value::Null)?
            .at("/metadata/generation", 2)
    });
    t.case("the main resource does not write status", |k| {
        k.cmd("patch workload web --type=merge -p '{\"status\":{\"replicas\":9}}'")
            .ok()?
            .is("workload.compute.datumapis.com/web patched (no change)\n")?;
        k.cmd("get workload web -o jsonpath='{.status.replicas}'").ok()?.is("2")
    });
    t.case("a status that breaks the schema", |k| {
        k.cmd("patch workload web --subresource=status --type=merge -p '{\"status\":{\"replicas\":\"two\"}}'")
            .fails()?
            .complains(
                "status.replicas: Invalid value: \"string\": status.replicas in body must be of type integer",
            )
    });
    t.case("edit --subresource=status", |k| {
        k.cmd("edit workload web --subresource=status")
            .env("KUBE_EDITOR", "sed -i s/replicas:.2/replicas:\\ 4/")
            .ok()?
            .is("workload.compute.datumapis.com/web edited\n")?;
        k.cmd("get workload web -o jsonpath='{.status.replicas}'").ok()?.is("4")
    });
}

fn scale(t: &mut Topic<'_>) {
    t.case("scale", |k| {
        k.cmd("scale workloaddeployment web --replicas=3")
            .ok()?
            .is("workloaddeployment.compute.datumapis.com/web scaled\n")?;
        k.cmd("get workloaddeployment web -o json")
            .ok()?
            .at("/spec/replicas", 3)?
            .at("/metadata/generation", 2)
    });
    t.case("scale --current-replicas that does not hold", |k| {
        k.cmd("scale workloaddeployment web --replicas=5 --current-replicas=9")
            .fails()?
            .complains("Expected replicas to be 9, was 3")?;
        k.cmd("get workloaddeployment web -o jsonpath='{.spec.replicas}'").ok()?.is("3")
    });
    t.case("scale --current-replicas that holds", |k| {
        k.cmd("scale workloaddeployment web --replicas=4 --current-replicas=3")
            .ok()?
            .is("workloaddeployment.compute.datumapis.com/web scaled\n")
    });
    t.case("scale to nothing and back", |k| {
        k.cmd("scale workloaddeployment web --replicas=0").ok()?;
        k.cmd("get workloaddeployment web -o jsonpath='{.spec.replicas}'").ok()?.is("0")?;
        k.cmd("scale workloaddeployment web --replicas=4 --current-replicas=0").ok()
    });
    t.case("get --subresource=scale", |k| {
        k.cmd("get workloaddeployment web --subresource=scale -o json")
            .ok()?
            .at("/apiVersion", "autoscaling/v1")?
            .at("/kind", "Scale")?
            .at("/spec/replicas", 4)?
            .at("/status/replicas", 0)
    });
    t.case("patch --subresource=scale", |k| {
        k.cmd(
            "patch workloaddeployment web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":6}}'",
        )
        .ok()?
        .has("/web patched\n")?;
        k.cmd("get workloaddeployment web -o jsonpath='{.spec.replicas}'").ok()?.is("6")
    });
    t.case("scale what has no scale", |k| {
        k.cmd("scale workload web --replicas=3")
            .fails()?
            .complains("the server could not find the requested resource")
    });
}

fn labels(t: &mut Topic<'_>) {
    t.case("label adds", |k| {
        k.cmd("label configmap c env=dev").ok()?.is("configmap/c labeled\n")?;
        k.cmd("label configmap c env=dev").ok()?.is("configmap/c not labeled\n")
    });
    t.case("label does not overwrite unless told", |k| {
        k.cmd("label configmap c env=prod")
            .fails()?
            .complains("'env' already has a value (dev), and --overwrite is false")?;
        k.cmd("label configmap c env=prod --overwrite").ok()?.is("configmap/c labeled\n")?;
        k.cmd("label configmap c --list").ok()?.is("env=prod\n")
    });
    t.case("label removes", |k| {
        k.cmd("label configmap c env-").ok()?.is("configmap/c unlabeled\n")?;
        k.cmd("get configmap c -o json").ok()?.at("/metadata/labels/env", Value::Null)
    });
    t.case("label all of a kind", |k| {
        k.cmd("label configmaps --all batch=1")
            .ok()?
            .row("configmap/c labeled")?
            .row("configmap/fixed labeled")
    });
    t.case("annotate", |k| {
        k.cmd("annotate configmap c note='two words'").ok()?.is("configmap/c annotated\n")?;
        k.cmd("annotate configmap c note=new").fails()?.complains("--overwrite is false")?;
        k.cmd("get configmap c -o jsonpath='{.metadata.annotations.note}'").ok()?.is("two words")?;
        k.cmd("annotate configmap c note-").ok()?.is("configmap/c annotated\n")
    });
    t.case("a label value that is not allowed", |k| {
        k.cmd("patch configmap c --type=merge -p '{\"metadata\":{\"labels\":{\"a\":\"not ok!\"}}}'")
            .fails()?
            .complains(
                "The ConfigMap \"c\" is invalid: metadata.labels: Invalid value: \"not ok!\": \
                a valid label must be an empty string or consist of",
            )
    });
}
