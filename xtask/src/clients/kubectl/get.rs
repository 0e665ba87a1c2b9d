//! get: output formats, selectors, sorting, pages.

use super::super::harness::Topic;
use super::{config_map, on_node, pod, with_metadata, workload};

/// Enough for more than two pages of two.
const GREEK: [&str; 5] = ["alpha", "beta", "delta", "epsilon", "gamma"];

/// A ConfigMap with labels to select it by.
fn sized(name: &str, size: u32) -> String {
    let tier = if size.is_multiple_of(2) { "even" } else { "odd" };
    let labels = format!("labels: {{app: {name}, size: '{size}', tier: {tier}}}");
    with_metadata(&config_map(name, &[&format!("size: '{size}'")]), &labels)
}

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("none found", |k| {
        k.cmd("get pods").ok()?.is("")?.complains("No resources found in t-get namespace.\n")
    });
    t.case("its objects are created", |k| {
        let mut objects: Vec<String> =
            (1..=5).rev().zip(GREEK).map(|(size, name)| sized(name, size)).collect();
        objects.push(config_map("bare", &["a: x", "b: x"]));
        k.cmd("create -f -")
            .stdin(objects.join("---\n"))
            .ok()?
            .has("configmap/gamma created\nconfigmap/bare created\n")?;
        k.cmd("create secret generic hidden --from-literal=k=v").ok()?;
        let pods = [on_node(&pod("placed", "nginx:1"), "n1"), pod("loose", "nginx:1")];
        k.cmd("create -f -").stdin(pods.join("---\n")).ok()?;
        k.cmd(
            "patch pod placed --subresource=status --type=merge -p \
            '{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\"}}'",
        )
        .ok()?;
        k.cmd("create -f -").stdin(workload("web", "nginx:1")).ok()
    });
    t.case("a table", |k| {
        k.cmd("get configmaps").ok()?.row("NAME DATA AGE")?.row("alpha 1 *s")?.row("bare 2 *s")?.quiet()
    });
    t.case("a table of workloads has their columns", |k| {
        k.cmd("get workloads")
            .ok()?
            .row("NAME AGE AVAILABLE REASON DEPLOYMENTS REPLICAS READY DESIRED UP-TO-DATE")?
            .row("web *s Unknown Pending 0 0 0 0 0")
    });
    t.case("a table of pods", |k| {
        k.cmd("get pods")
            .ok()?
            .row("NAME READY STATUS RESTARTS AGE")?
            .row("placed 0/2 Running 0 *s")?
            .row("loose 0/2 Pending 0 *s")
    });
    t.case("-o wide", |k| {
        k.cmd("get pods -o wide")
            .ok()?
            .row("NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES")?
            .row("placed 0/2 Running 0 *s 10.1.2.3 n1 <none> <none>")
    });
    t.case("one by name", |k| k.cmd("get cm alpha --no-headers").ok()?.row("alpha 1 *s")?.lacks("NAME"));
    t.case("one that does not exist", |k| {
        k.cmd("get configmap nope")
            .fails()?
            .is("")?
            .complains("Error from server (NotFound): configmaps \"nope\" not found\n")
    });
    t.case("a workload that does not exist", |k| {
        k.cmd("get workload nope")
            .fails()?
            .complains("Error from server (NotFound): workloads.compute.datumapis.com \"nope\" not found\n")
    });
    t.case("--ignore-not-found", |k| k.cmd("get configmap nope --ignore-not-found").ok()?.is("")?.quiet());
    t.case("-A", |k| {
        k.cmd("get configmaps -A")
            .ok()?
            .row("NAMESPACE NAME DATA AGE")?
            .row("t-get alpha 1 *s")?
            .row("t-create plain 2 *")
    });
    selectors(t);
    formats(t);
    t.case("--sort-by", |k| {
        k.cmd("get configmaps -l app --sort-by='{.data.size}' -o name")
            .ok()?
            .is("configmap/gamma\nconfigmap/epsilon\nconfigmap/delta\nconfigmap/beta\nconfigmap/alpha\n")?;
        k.cmd("get configmaps -l app --sort-by=.metadata.name").ok()?.row("NAME DATA AGE")?.row("gamma 1 *s")
    });
    t.case("--chunk-size asks page by page", |k| {
        let outcome = k.cmd("get configmaps -l app --chunk-size=2 -o name -v=6").ok()?;
        let requests = outcome.stderr().matches("limit=2").count();
        let continued = outcome.stderr().matches("continue=").count();
        let names: String = GREEK.iter().map(|name| format!("configmap/{name}\n")).collect();
        outcome
            .is(&names)?
            .holds(requests == 3 && continued == 2, "expected three pages, two of them by continue")
    });
    t.case("--chunk-size with a table", |k| {
        k.cmd("get configmaps --chunk-size=1").ok()?.row("alpha 1 *s")?.row("gamma 1 *s")?.row("bare 2 *s")
    });
    t.case("--show-labels and -L", |k| {
        k.cmd("get configmap alpha --show-labels")
            .ok()?
            .row("NAME DATA AGE LABELS")?
            .row("alpha 1 *s app=alpha,size=5,tier=odd")?;
        k.cmd("get configmap alpha -L app,tier")
            .ok()?
            .row("NAME DATA AGE APP TIER")?
            .row("alpha 1 *s alpha odd")
    });
    t.case("several kinds at once", |k| {
        k.cmd("get configmaps,secrets,workloads")
            .ok()?
            .row("configmap/alpha 1 *s")?
            .row("secret/hidden Opaque 1 *s")?
            .row("workload.compute.datumapis.com/web *s Unknown Pending 0 0 0 0 0")?;
        k.cmd("get configmap/alpha secret/hidden -o name").ok()?.is("configmap/alpha\nsecret/hidden\n")
    });
    t.case("all", |k| k.cmd("get all").ok()?.row("pod/placed 0/2 Running 0 *s")?.lacks("configmap"));
    t.case("-f", |k| {
        k.cmd("get -f - -o name").stdin(config_map("alpha", &["k: v"])).ok()?.is("configmap/alpha\n")
    });
    t.case("--subresource", |k| {
        k.cmd("get workload web --subresource=status -o json")
            .ok()?
            .at("/kind", "Workload")?
            .at("/status/replicas", 0)?;
        k.cmd("get configmap alpha --subresource=status").fails()?.complains("NotFound")
    });
    t.case("--raw a list", |k| {
        k.cmd("--context=core get --raw '/api/v1/namespaces?limit=1'")
            .ok()?
            .at("/kind", "NamespaceList")?
            .at("/items/0/metadata/name", "default")?
            .at("/items/1", serde_json::Value::Null)
    });
    t.case("nodes are cluster-scoped", |k| {
        let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {zone: a}}\nspec: \
            {}\nstatus: {nodeInfo: {kubeletVersion: v1.35.0}}\n";
        k.cmd("create -f -").stdin(node).ok()?.is("node/n1 created\n")?;
        k.cmd("get nodes").ok()?.row("NAME STATUS ROLES AGE VERSION")?.row("n1 Unknown <none> *s *")?;
        k.cmd("get nodes -l zone=a -o json")
            .ok()?
            .at("/items/0/metadata/namespace", serde_json::Value::Null)?;
        k.cmd("cordon n1").ok()?.is("node/n1 cordoned\n")?;
        k.cmd("get nodes").ok()?.row("n1 Unknown,SchedulingDisabled <none> *s *")?;
        k.cmd("taint nodes n1 team=a:NoSchedule").ok()?.is("node/n1 tainted\n")?;
        k.cmd("uncordon n1").ok()?.is("node/n1 uncordoned\n")
    });
}

fn selectors(t: &mut Topic<'_>) {
    for (name, selector, expected) in [
        ("equality", "app=alpha", "configmap/alpha\n"),
        ("two equalities", "tier=odd,app!=alpha", "configmap/delta\nconfigmap/gamma\n"),
        ("in", "app in (beta, gamma)", "configmap/beta\nconfigmap/gamma\n"),
        ("notin", "app,app notin (beta,gamma)", "configmap/alpha\nconfigmap/delta\nconfigmap/epsilon\n"),
        ("exists", "app,size=1", "configmap/gamma\n"),
        ("does not exist", "!app", "configmap/bare\n"),
        ("greater than", "size>3", "configmap/alpha\nconfigmap/beta\n"),
    ] {
        t.case(&format!("-l {name}"), |k| {
            k.cmd(&format!("get configmaps -o name -l '{selector}'")).ok()?.is(expected)
        });
    }
    t.case("-l that makes no sense", |k| {
        k.cmd("get configmaps -l 'a in b'").fails()?.complains("unable to parse requirement")
    });
    for (kind, selector, expected) in [
        ("configmaps", "metadata.name=alpha", "configmap/alpha\n"),
        ("configmaps", "metadata.namespace=t-get,metadata.name=bare", "configmap/bare\n"),
        ("pods", "status.phase=Running", "pod/placed\n"),
        ("pods", "status.phase!=Running", "pod/loose\n"),
        ("pods", "spec.nodeName=n1", "pod/placed\n"),
        ("pods", "spec.nodeName=", "pod/loose\n"),
        ("secrets", "type=Opaque", "secret/hidden\n"),
        ("workloads", "metadata.name=web", "workload.compute.datumapis.com/web\n"),
    ] {
        t.case(&format!("--field-selector {kind} {selector}"), |k| {
            k.cmd(&format!("get {kind} -o name --field-selector='{selector}'")).ok()?.is(expected)
        });
    }
    t.case("--field-selector on a field that cannot be selected", |k| {
        k.cmd("get pods --field-selector=spec.nope=x")
            .fails()?
            .complains("Error from server (BadRequest)")?
            .complains("field label not supported: spec.nope")
    });
}

fn formats(t: &mut Topic<'_>) {
    t.case("-o json of one", |k| {
        k.cmd("get configmap alpha -o json")
            .ok()?
            .at("/apiVersion", "v1")?
            .at("/kind", "ConfigMap")?
            .at("/metadata/namespace", "t-get")?
            .at("/data/size", "5")?
            .lacks("managedFields")
    });
    t.case("-o json of many", |k| {
        k.cmd("get configmaps -l app -o json")
            .ok()?
            .at("/kind", "List")?
            .at("/items/0/kind", "ConfigMap")?
            .at("/items/4/metadata/name", "gamma")
    });
    t.case("-o yaml", |k| {
        k.cmd("get workload web -o yaml").ok()?.has("kind: Workload\n")?.has("  - cityCodes:\n    - DFW\n")
    });
    t.case("-o name", |k| k.cmd("get workload web -o name").ok()?.is("workload.compute.datumapis.com/web\n"));
    t.case("-o jsonpath", |k| {
        k.cmd("get configmaps -l app -o jsonpath='{range .items[*]}{.metadata.name}={.data.size} {end}'")
            .ok()?
            .is("alpha=5 beta=4 delta=3 epsilon=2 gamma=1 ")
    });
    t.case("-o custom-columns", |k| {
        k.cmd(
            "get configmaps -l tier=even -o \
            custom-columns=NAME:.metadata.name,SIZE:.data.size,NONE:.data.none",
        )
        .ok()?
        .row("NAME SIZE NONE")?
        .row("beta 4 <none>")?
        .row("epsilon 2 <none>")
    });
    t.case("-o go-template", |k| {
        k.cmd("get configmap alpha -o go-template='{{index .data \"size\"}}'").ok()?.is("5")
    });
}
