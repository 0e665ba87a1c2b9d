//! create, run, expose, replace, edit.

use super::super::harness::Topic;
use super::{config_map, pod, with_metadata, workload};

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("create configmap --from-literal", |k| {
        k.cmd("create configmap plain --from-literal=a=1 --from-literal=b=before")
            .ok()?
            .is("configmap/plain created\n")?;
        k.cmd("get configmap plain -o json").ok()?.at("/data/a", "1")?.at("/data/b", "before")
    });
    t.case("create secret generic", |k| {
        k.cmd("create secret generic key --from-literal=password=open").ok()?.is("secret/key created\n")?;
        k.cmd("get secret key -o json").ok()?.at("/data/password", "b3Blbg==")?.at("/type", "Opaque")
    });
    t.case("a secret's stringData becomes data", |k| {
        let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: text}\nstringData: {a: open}\n";
        k.cmd("create -f -").stdin(secret).ok()?.is("secret/text created\n")?;
        k.cmd("get secret text -o json").ok()?.at("/data/a", "b3Blbg==")?.lacks("stringData")
    });
    t.case("create serviceaccount", |k| {
        k.cmd("create serviceaccount robot").ok()?.is("serviceaccount/robot created\n")?;
        k.cmd("get sa robot -o name").ok()?.is("serviceaccount/robot\n")
    });
    t.case("create namespace", |k| {
        k.cmd("create namespace t-create-other").ok()?.is("namespace/t-create-other created\n")?;
        k.cmd("get namespace t-create-other -o json")
            .ok()?
            .at("/status/phase", "Active")?
            .at("/metadata/labels/kubernetes.io~1metadata.name", "t-create-other")
    });
    t.case("create service clusterip gets an address", |k| {
        k.cmd("create service clusterip web --tcp=80:8080").ok()?.is("service/web created\n")?;
        k.cmd("get service web")
            .ok()?
            .row("NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE")?
            .row("web ClusterIP *.*.*.* <none> 80/TCP *")
    });
    t.case("run makes a pod with its defaults", |k| {
        k.cmd("run lone --image=nginx:1").ok()?.is("pod/lone created\n")?;
        k.cmd("get pod lone -o json")
            .ok()?
            .at("/spec/restartPolicy", "Always")?
            .at("/spec/containers/0/imagePullPolicy", "IfNotPresent")?
            .at("/spec/terminationGracePeriodSeconds", 30)?
            .at("/status/phase", "Pending")
    });
    t.case("expose a pod", |k| {
        k.cmd("expose pod lone --port=80 --name=lone-svc").ok()?.is("service/lone-svc exposed\n")?;
        k.cmd("get service lone-svc -o json")
            .ok()?
            .at("/spec/selector/run", "lone")?
            .at("/spec/ports/0/targetPort", 80)
    });
    t.case("create -f a workload", |k| {
        k.cmd("create -f -")
            .stdin(workload("web", "nginx:1"))
            .ok()?
            .is("workload.compute.datumapis.com/web created\n")?;
        k.cmd("get workload web -o json")
            .ok()?
            .at("/metadata/generation", 1)?
            .at("/spec/placements/0/scaleSettings/instanceManagementPolicy", "OrderedReady")?
            .at("/status/conditions/0/reason", "Pending")
    });
    t.case("create -f twice", |k| {
        k.cmd("create -f -").stdin(config_map("twice", &["k: v"])).ok()?.is("configmap/twice created\n")?;
        k.cmd("create -f -").stdin(config_map("twice", &["k: v"])).fails()?.complains(
            "Error from server (AlreadyExists): error when creating \"STDIN\": configmaps \
                \"twice\" already exists",
        )
    });
    t.case("create -f with several objects goes on after one that fails", |k| {
        let both = format!("{}---\n{}", config_map("twice", &["k: v"]), config_map("other", &["k: v"]));
        k.cmd("create -f -").stdin(both).fails()?.is("configmap/other created\n")?.complains("AlreadyExists")
    });
    t.case("create with generateName", |k| {
        let named = config_map("x", &["k: v"]).replace("name: x", "generateName: made-");
        let outcome = k.cmd("create -f - -o name").stdin(named).ok()?;
        let suffix = outcome.stdout().trim().strip_prefix("configmap/made-").map(str::len);
        outcome.holds(suffix == Some(5), "expected a suffix of five characters")
    });
    t.case("create in a namespace that does not exist", |k| {
        k.cmd("create configmap x -n nowhere --from-literal=k=v")
            .fails()?
            .complains("namespaces \"nowhere\" not found")
    });
    t.case("create with a bad name", |k| {
        k.cmd("create -f -").stdin(config_map("Bad_Name", &["k: v"])).fails()?.complains(
            "The ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \
                \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of",
        )
    });
    t.case("create a pod that lacks what it needs", |k| {
        let bad = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{name: app}]}\n";
        k.cmd("create -f -")
            .stdin(bad)
            .fails()?
            .complains("The Pod \"bad\" is invalid: spec.containers[0].image: Required value")
    });
    t.case("create a workload that breaks its schema", |k| {
        let bad = workload("bad", "nginx:1").replace("cityCodes: [DFW]", "cityCodes: DFW");
        k.cmd("create -f -").stdin(bad).fails()?.complains("The Workload \"bad\" is invalid: ")?.complains(
            "spec.placements[0].cityCodes: Invalid value: \"string\": \
                spec.placements[0].cityCodes in body must be of type array: \"string\"",
        )
    });
    t.case("replace", |k| {
        k.cmd("replace -f -")
            .stdin(config_map("twice", &["new: v"]))
            .ok()?
            .is("configmap/twice replaced\n")?;
        k.cmd("get configmap twice -o json")
            .ok()?
            .at("/data/new", "v")?
            .at("/data/k", serde_json::Value::Null)
    });
    t.case("replace with a resource version that is no longer current", |k| {
        let version = k.field("configmap/twice", ".metadata.resourceVersion")?;
        k.cmd("label configmap twice touched=yes").ok()?;
        let stale = with_metadata(&config_map("twice", &["k: v"]), &format!("resourceVersion: '{version}'"));
        k.cmd("replace -f -").stdin(stale).fails()?.complains(
            "Error from server (Conflict): error when replacing \"STDIN\": Operation cannot be \
            fulfilled on configmaps \"twice\": the object has been modified; please apply your \
            changes to the latest version and try again",
        )
    });
    t.case("replace what does not exist", |k| {
        k.cmd("replace -f -").stdin(config_map("nope", &["k: v"])).fails()?.complains(
            "Error from server (NotFound): error when replacing \"STDIN\": configmaps \"nope\" not found",
        )
    });
    t.case("replace --force makes it anew", |k| {
        let before = k.field("configmap/twice", ".metadata.uid")?;
        k.cmd("replace --force -f -")
            .stdin(config_map("twice", &["k: v"]))
            .ok()?
            .has("configmap/twice replaced\n")?;
        let after = k.field("configmap/twice", ".metadata.uid")?;
        k.cmd("get configmap twice").ok()?.holds(before != after, "expected another uid")
    });
    t.case("edit with a scripted editor", |k| {
        k.cmd("edit configmap plain")
            .env("KUBE_EDITOR", "sed -i s/before/after/")
            .ok()?
            .is("configmap/plain edited\n")?;
        k.cmd("get configmap plain -o jsonpath='{.data.b}'").ok()?.is("after")
    });
    t.case("edit a workload", |k| {
        k.cmd("edit workload web")
            .env("KUBE_EDITOR", "sed -i s/nginx:1/nginx:2/")
            .ok()?
            .is("workload.compute.datumapis.com/web edited\n")?;
        k.cmd("get workload web -o json")
            .ok()?
            .at("/metadata/generation", 2)?
            .at("/spec/template/spec/runtime/sandbox/containers/0/image", "nginx:2")
    });
    t.case("edit without a change", |k| {
        k.cmd("edit configmap plain")
            .env("KUBE_EDITOR", "true")
            .ok()?
            .complains("Edit cancelled, no changes made.")
    });
    t.case("an edit that is refused is not stored", |k| {
        k.cmd("edit workload web")
            .env("KUBE_EDITOR", "sed -i s/minReplicas:.1/minReplicas:\\ many/")
            .fails()?
            .complains("Edit cancelled, no valid changes were saved")?;
        k.cmd("get workload web -o jsonpath='{.spec.placements[0].scaleSettings.minReplicas}'").ok()?.is("1")
    });
    t.case("create -f a pod", |k| {
        k.cmd("create -f -").stdin(pod("two", "nginx:1")).ok()?.is("pod/two created\n")
    });
}
