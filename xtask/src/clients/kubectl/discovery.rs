//! What the server says of itself: version, groups, resources, schemas.

use super::super::harness::Topic;

pub(super) fn cases(t: &mut Topic<'_>) {
    t.case("version tells the server's version", |k| {
        k.cmd("version").ok()?.has("Client Version: v1.")?.has("Server Version: v1.")
    });
    t.case("version as JSON", |k| {
        let outcome = k.cmd("version -o json").ok()?.at("/serverVersion/major", "1")?;
        let minor =
            outcome.json()?["serverVersion"]["minor"].as_str().and_then(|minor| minor.parse::<u32>().ok());
        outcome.holds(minor.is_some_and(|minor| minor >= 32), "expected a minor version of 32 or more")
    });
    t.case("api-resources lists built-in kinds with their short names", |k| {
        k.cmd("api-resources")
            .ok()?
            .row("NAME SHORTNAMES APIVERSION NAMESPACED KIND")?
            .row("configmaps cm v1 true ConfigMap")?
            .row("namespaces ns v1 false Namespace")?
            .row("nodes no v1 false Node")?
            .row("pods po v1 true Pod")?
            .row("secrets v1 true Secret")?
            .row("services svc v1 true Service")?
            .row("serviceaccounts sa v1 true ServiceAccount")?
            .row("events ev v1 true Event")?
            .row("events ev events.k8s.io/v1 true Event")?
            .row("leases coordination.k8s.io/v1 true Lease")?
            .row("customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition")?
            .quiet()
    });
    t.case("api-resources lists our kinds", |k| {
        k.cmd("api-resources --api-group=compute.datumapis.com --sort-by=name -o name").ok()?.is(concat!(
            "instances.compute.datumapis.com\n",
            "workloaddeployments.compute.datumapis.com\n",
            "workloads.compute.datumapis.com\n",
        ))
    });
    t.case("api-resources -o wide tells verbs and categories", |k| {
        k.cmd("api-resources -o wide")
            .ok()?
            .row("pods po v1 true Pod create,delete,deletecollection,get,list,patch,update,watch all")?
            .row("namespaces ns v1 false Namespace create,delete,get,list,patch,update,watch")
    });
    t.case("api-resources picks by scope", |k| {
        k.cmd("api-resources --namespaced=false -o name").ok()?.has("nodes\n")?.lacks("configmaps")
    });
    t.case("api-resources picks by verb", |k| {
        k.cmd("api-resources --verbs=list,watch --categories=all -o name").ok()?.is("pods\nservices\n")
    });
    t.case("api-versions lists groups and versions", |k| {
        k.cmd("api-versions")
            .ok()?
            .row("v1")?
            .row("compute.datumapis.com/v1alpha")?
            .row("apiextensions.k8s.io/v1")?
            .row("coordination.k8s.io/v1")?
            .row("events.k8s.io/v1")
    });
    t.case("explain a field of a custom kind", |k| {
        k.cmd("explain workload.spec.placements")
            .ok()?
            .row("GROUP: compute.datumapis.com")?
            .row("KIND: Workload")?
            .row("VERSION: v1alpha")?
            .row("FIELD: placements <[]Object>")?
            .has("Where instances run, and how many of them.")?
            .row("cityCodes <[]string> -required-")?
            .row("scaleSettings <Object> -required-")
    });
    t.case("explain a field of a built-in kind", |k| {
        k.cmd("explain pod.spec.containers")
            .ok()?
            .row("KIND: Pod")?
            .row("VERSION: v1")?
            .row("FIELD: containers <[]Container>")?
            .row("image <string>")?
            .row("name <string> -required-")?
            .row("resources <ResourceRequirements>")
    });
    t.case("explain --recursive", |k| {
        k.cmd("explain workload --recursive")
            .ok()?
            .row("metadata <ObjectMeta>")?
            .row("placements <[]Object> -required-")?
            .row("minReplicas <integer> -required-")?
            .row("resourceVersion <string>")
    });
    t.case("explain --api-version", |k| {
        k.cmd("explain event --api-version=events.k8s.io/v1").ok()?.row("regarding <ObjectReference>")
    });
    t.case("explain a field that does not exist", |k| {
        k.cmd("explain workload.spec.nope").fails()?.complains("field \"nope\" does not exist")
    });
    t.case("a resource type that does not exist", |k| {
        k.cmd("get nopes").fails()?.complains("the server doesn't have a resource type \"nopes\"")
    });
    t.case("get --raw /version", |k| k.cmd("--context=core get --raw /version").ok()?.at("/major", "1"));
    t.case("get --raw /readyz, /livez and /healthz", |k| {
        k.cmd("--context=core get --raw /readyz").ok()?.has("ok")?;
        k.cmd("--context=core get --raw /livez").ok()?.has("ok")?;
        k.cmd("--context=core get --raw /healthz").ok()?.has("ok")
    });
    t.case("get --raw /openapi/v3 lists group versions, each with its document", |k| {
        let outcome = k.cmd("--context=core get --raw /openapi/v3").ok()?;
        let index = outcome.json()?;
        let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap_or_default();
        outcome.holds(url.starts_with("/openapi/v3/api/v1?hash="), "expected a URL with a hash")?;
        let document = k.cmd(&format!("--context=core get --raw {url}")).ok()?;
        let found = document.json()?["components"]["schemas"]["io.k8s.api.core.v1.Pod"].is_object();
        document.holds(found, "expected the schema of pods")
    });
    t.case("get --raw a path that does not exist", |k| {
        k.cmd("--context=core get --raw /apis/nope.example.com/v1")
            .fails()?
            .complains("Error from server (NotFound): the server could not find the requested resource")
    });
}
