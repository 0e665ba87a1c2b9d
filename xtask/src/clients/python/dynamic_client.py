"""The dynamic client, which finds kinds by discovery."""

import json

from kubernetes import dynamic

from support import GROUP, MERGE, NAMESPACE, VERSION, check, core, expect, workload


@check("dynamic client: discovery, create, get, list, patch, delete")
def _():
    resource = dynamic.DynamicClient(core.api_client).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Workload")
    expect((resource.name, resource.namespaced), ("workloads", True))
    expect(resource.create(body=workload("dyn"), namespace=NAMESPACE).metadata.generation, 1)
    expect(resource.get(name="dyn", namespace=NAMESPACE).spec.placements[0].name, "us")
    expect([item.metadata.name for item in resource.get(namespace=NAMESPACE).items], ["dyn"])
    body = {"spec": {"paused": True}}
    expect(resource.patch(name="dyn", namespace=NAMESPACE, body=body, content_type=MERGE).spec.paused, True)
    status = resource.status.patch(name="dyn", namespace=NAMESPACE, body={"status": {"replicas": 1}}, content_type=MERGE)
    expect(status.status.replicas, 1)
    resource.delete(name="dyn", namespace=NAMESPACE)
    try:
        resource.get(name="dyn", namespace=NAMESPACE)
    except dynamic.exceptions.NotFoundError as error:
        expect(error.status, 404)
    else:
        raise AssertionError("still there")


@check("dynamic client: server-side apply")
def _():
    resource = dynamic.DynamicClient(core.api_client).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Workload")

    def apply(manager, image, **more):
        body = workload("ssa", image)
        # Placements are owned as a whole; a default that the server fills in would be a change of them.
        body["spec"]["placements"][0]["scaleSettings"]["instanceManagementPolicy"] = "Parallel"
        return resource.server_side_apply(name="ssa", namespace=NAMESPACE, body=body, field_manager=manager, **more)

    expect(apply("ann", "nginx:1").metadata.generation, 1)
    applied = apply("ann", "nginx:2")
    expect((applied.metadata.generation, applied.metadata.managedFields[0].manager), (2, "ann"))
    try:
        apply("bob", "nginx:1")
    except dynamic.exceptions.ConflictError as error:
        expect([cause["field"] for cause in json.loads(error.body)["details"]["causes"]],
               ['.spec.template.spec.runtime.sandbox.containers[name="app"].image'])
    else:
        raise AssertionError("expected a conflict")
    forced = apply("bob", "nginx:1", force_conflicts=True)
    expect(forced.spec.template.spec.runtime.sandbox.containers[0].image, "nginx:1")


@check("dynamic client: watch")
def _():
    resource = dynamic.DynamicClient(core.api_client).resources.get(api_version="v1", kind="ConfigMap")
    start = resource.get(namespace=NAMESPACE).metadata.resourceVersion
    resource.create(body={"metadata": {"name": "dyn-watch"}}, namespace=NAMESPACE)
    resource.delete(name="dyn-watch", namespace=NAMESPACE)
    seen = []
    for event in resource.watch(namespace=NAMESPACE, resource_version=start, timeout=10):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            break
    expect(seen, [("ADDED", "dyn-watch"), ("DELETED", "dyn-watch")])
