//! Planes: every context is a cluster of its own, and a token opens one only.

use super::super::harness::Topic;

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("the kubeconfig has a context per plane", |k| {
        k.cmd("config current-context").ok()?.is("project-demo\n")?;
        k.cmd("config get-contexts -o name")
            .ok()?
            .row("core")?
            .row("hub")?
            .row("cell-dfw")?
            .row("cell-iad")?
            .row("project-demo")
    });
    for plane in ["core", "hub", "cell-dfw", "cell-iad", "project-demo"] {
        t.case(&format!("{plane} is a cluster with its own namespaces"), |k| {
            k.cmd(&format!("--context={plane} get namespace default")).ok()?.row("default Active *")
        });
    }
    for plane in ["hub", "cell-dfw", "project-demo"] {
        t.case(&format!("{plane} serves our kinds"), |k| {
            let line = format!("--context={plane} api-resources --api-group=compute.datumapis.com \
                --sort-by=name -o name");
            k.cmd(&line).ok()?.is(
                "instances.compute.datumapis.com\nworkloaddeployments.compute.datumapis.com\nworkloads.compute.datumapis.com\n",
            )
        });
    }
    t.case("what is made in one plane is not in another", |k| {
        k.cmd("create configmap here -n default --from-literal=k=v").ok()?;
        k.cmd("--context=hub get configmap here -n default")
            .fails()?
            .complains("configmaps \"here\" not found")?;
        k.cmd("--context=cell-dfw create configmap here -n default --from-literal=k=other").ok()?;
        k.cmd("get configmap here -n default -o jsonpath='{.data.k}'").ok()?.is("v")?;
        k.cmd("--context=cell-dfw delete configmap here -n default").ok()?;
        k.cmd("get configmap here -n default").ok()
    });
    t.case("a CRD of one plane is not in another", |k| {
        k.cmd("--context=cell-iad get crd workloads.compute.datumapis.com -o name")
            .ok()?
            .is("customresourcedefinition.apiextensions.k8s.io/workloads.compute.datumapis.com\n")?;
        k.cmd("--context=cell-iad delete crd instances.compute.datumapis.com").ok()?;
        // kubectl remembers what the server serves; this makes it ask again.
        k.cmd("--context=cell-iad api-resources").ok()?.lacks("instances.compute")?;
        k.cmd("--context=cell-iad get instances")
            .fails()?
            .complains("the server doesn't have a resource type \"instances\"")?;
        k.cmd("get instances -A").ok()
    });
    t.case("a bad token is refused", |k| {
        k.cmd("--token=bad get namespaces").fails()?.complains("You must be logged in to the server")
    });
    t.case("the token of one plane does not open another", |k| {
        k.cmd("--cluster=hub --user=project-demo get namespaces")
            .fails()?
            .complains("Error from server (Forbidden)")
    });
}
