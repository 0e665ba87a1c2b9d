"""Custom objects and their subresources."""

from kubernetes import watch

from support import (
    GROUP, MERGE, NAMESPACE, STRATEGIC, VERSION, check, custom, deployment, expect, fails, sending, workload,
)


@check("custom objects: create, get, list, replace, delete")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloads")
    created = custom.create_namespaced_custom_object(*where, workload("web"))
    expect(created["metadata"]["generation"], 1)
    expect(created["spec"]["placements"][0]["scaleSettings"]["instanceManagementPolicy"], "OrderedReady")
    expect(created["status"]["conditions"][0]["reason"], "Pending")
    found = custom.get_namespaced_custom_object(*where, "web")
    found["spec"]["paused"] = True
    expect(custom.replace_namespaced_custom_object(*where, "web", found)["metadata"]["generation"], 2)
    listed = custom.list_namespaced_custom_object(*where)
    expect((listed["kind"], len(listed["items"])), ("WorkloadList", 1))
    expect(len(custom.list_cluster_custom_object(GROUP, VERSION, "workloads", label_selector="none=such")["items"]), 0)
    expect(custom.delete_namespaced_custom_object(*where, "web")["status"], "Success")
    fails(404, "NotFound", custom.get_namespaced_custom_object, *where, "web")


@check("custom objects: merge patch and JSON patch")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloads")
    custom.create_namespaced_custom_object(*where, workload("web"))
    patched = custom.patch_namespaced_custom_object(*where, "web", {"spec": {"paused": True}})
    expect(patched["spec"]["paused"], True)
    body = [{"op": "add", "path": "/spec/placements/0/cityCodes/-", "value": "IAD"}]
    _, editing = sending("application/json-patch+json")
    patched = editing.patch_namespaced_custom_object(*where, "web", body)
    expect(patched["spec"]["placements"][0]["cityCodes"], ["DFW", "IAD"])


@check("custom objects: a strategic merge patch is 415")
def _():
    _, strategic = sending(STRATEGIC)
    where = (GROUP, VERSION, NAMESPACE, "workloads", "web", {"spec": {"paused": False}})
    fails(415, "UnsupportedMediaType", strategic.patch_namespaced_custom_object, *where)


@check("custom objects: the status subresource")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloads", "web")
    before = custom.get_namespaced_custom_object_status(*where)
    body = {"status": {"replicas": 2}, "spec": {"paused": False}}
    _, merging = sending(MERGE)
    after = merging.patch_namespaced_custom_object_status(*where, body)
    expect((after["status"]["replicas"], after["spec"]), (2, before["spec"]))
    expect(after["metadata"]["generation"], before["metadata"]["generation"])
    after["status"]["replicas"] = 3
    expect(custom.replace_namespaced_custom_object_status(*where, after)["status"]["replicas"], 3)


@check("custom objects: the scale subresource")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloaddeployments")
    custom.create_namespaced_custom_object(*where, deployment("web", 2))
    scale = custom.get_namespaced_custom_object_scale(*where, "web")
    expect((scale["kind"], scale["spec"]["replicas"]), ("Scale", 2))
    scale["spec"]["replicas"] = 5
    expect(custom.replace_namespaced_custom_object_scale(*where, "web", scale)["spec"]["replicas"], 5)
    found = custom.get_namespaced_custom_object(*where, "web")
    expect((found["spec"]["replicas"], found["metadata"]["generation"]), (5, 2))


@check("custom objects: watch")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloads")
    start = custom.list_namespaced_custom_object(*where)["metadata"]["resourceVersion"]
    custom.delete_namespaced_custom_object(*where, "web")
    stream = watch.Watch().stream(custom.list_namespaced_custom_object, *where, resource_version=start, timeout_seconds=10)
    event = next(stream)
    expect((event["type"], event["object"]["metadata"]["name"]), ("DELETED", "web"))
