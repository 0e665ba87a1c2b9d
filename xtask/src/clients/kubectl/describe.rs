//! describe: needs objects, what belongs to them, and their events.

use super::super::harness::Topic;
use super::{config_map, on_node, pod, workload};

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("its objects are created", |k| {
        let placed = on_node(&pod("web", "nginx:1"), "n2");
        let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nspec: {podCIDR: \
            10.0.0.0/24}\nstatus: {allocatable: {cpu: '4', memory: 8Gi}}\n";
        let all = [workload("web", "nginx:1"), config_map("plain", &["k: one"]), placed, node.to_owned()];
        k.cmd("create -f -").stdin(all.join("---\n")).ok()?;
        let uid = k.field("pod/web", ".metadata.uid")?;
        let event = format!(
            "apiVersion: v1
kind: Event
metadata: {{name: web.1}}
involvedObject: {{apiVersion: v1, kind: Pod, name: web, namespace: {}, uid: {uid}}}
type: Normal
reason: Pulled
message: the image is here
source: {{component: tester}}
firstTimestamp: '2030-01-01T00:00:00Z'
lastTimestamp: '2030-01-01T00:00:00Z'
count: 1
",
            k.namespace()
        );
        k.cmd("create -f -").stdin(event).ok()?.is("event/web.1 created\n")
    });
    t.case("a workload", |k| {
        k.cmd("describe workload web")
            .ok()?
            .row("Name: web")?
            .row("Namespace: t-describe")?
            .row("API Version: compute.datumapis.com/v1alpha")?
            .row("Kind: Workload")?
            .row("Image: nginx:1")?
            .row("Min Replicas: 1")?
            .row("Message: Waiting for controller")?
            .row("Events: <none>")
    });
    t.case("a configmap", |k| {
        k.cmd("describe configmap plain")
            .ok()?
            .row("Name: plain")?
            .has("k:\n----\none\n")?
            .row("Events: <none>")
    });
    t.case("a pod with its events", |k| {
        k.cmd("describe pod web")
            .ok()?
            .row("Node: n2/")?
            .row("Labels: app=web")?
            .row("Status: Pending")?
            .row("Image: busybox:1")?
            .row("QoS Class: BestEffort")?
            .row("Normal Pulled * tester the image is here")
    });
    t.case("a node with its pods", |k| {
        k.cmd("describe node n2")
            .ok()?
            .row("Name: n2")?
            .row("PodCIDR: 10.0.0.0/24")?
            .row("t-describe web 0 (0%) 0 (0%) 0 (0%) 0 (0%) *")
    });
    t.case("a namespace", |k| {
        k.cmd("describe namespace t-describe")
            .ok()?
            .row("Name: t-describe")?
            .row("Status: Active")?
            .row("Labels: kubernetes.io/metadata.name=t-describe")
    });
    t.case("a secret hides its values", |k| {
        k.cmd("create secret generic hidden --from-literal=k=value").ok()?;
        k.cmd("describe secret hidden").ok()?.row("Type: Opaque")?.row("k: 5 bytes")?.lacks("value")
    });
    t.case("a service", |k| {
        k.cmd("create service clusterip web --tcp=80:8080").ok()?;
        k.cmd("describe service web")
            .ok()?
            .row("Type: ClusterIP")?
            .row("Selector: app=web")?
            .row("Port: 80-8080 80/TCP")
    });
    t.case("several by selector", |k| k.cmd("describe pods -l app=web").ok()?.row("Name: web"));
    t.case("by a prefix of the name", |k| k.cmd("describe configmap pla").ok()?.row("Name: plain"));
    t.case("what does not exist", |k| {
        k.cmd("describe configmap nope")
            .fails()?
            .complains("Error from server (NotFound): configmaps \"nope\" not found")
    });
    t.case("a CRD", |k| {
        k.cmd("describe crd workloads.compute.datumapis.com")
            .ok()?
            .row("Kind: CustomResourceDefinition")?
            .row("Type: Established")
    });
}
