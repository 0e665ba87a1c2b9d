"""Checks of the official Python client against the embedded API server.

Prints `ok   <name>` or `FAIL <name>` (with indented details) for every check, and `done` at the end. The only
argument is the kubeconfig.
"""

import base64
import json
import sys
import threading
import traceback

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

GROUP, VERSION = "compute.datumapis.com", "v1alpha"
NAMESPACE = "t-python"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
extensions = client.ApiextensionsV1Api()
leases = client.CoordinationV1Api()

CHECKS = []


def check(name):
    """Registers a check under a name."""
    def register(function):
        CHECKS.append((name, function))
        return function
    return register


def expect(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def fails(status, reason, function, *args, **kwargs):
    """Calls, and expects an ApiException with this status and this reason in its body; gives the body."""
    try:
        function(*args, **kwargs)
    except ApiException as error:
        expect(error.status, status)
        body = json.loads(error.body)
        expect(body["kind"], "Status")
        expect(body["status"], "Failure")
        expect(body["code"], status)
        expect(body["reason"], reason)
        return body
    raise AssertionError(f"expected failure {status}, but the call succeeded")


def meta(name, **more):
    return client.V1ObjectMeta(name=name, **more)


def make_map(name, labels=None, **data):
    body = client.V1ConfigMap(metadata=meta(name, labels=labels), data=data)
    return core.create_namespaced_config_map(NAMESPACE, body)


def workload(name, image="nginx:1"):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Workload",
        "metadata": {"name": name},
        "spec": {
            "template": {"spec": {
                "networkInterfaces": [{"network": {"name": "default"}}],
                "runtime": {
                    "resources": {"instanceType": "datumcloud/d1-standard-2"},
                    "sandbox": {"containers": [{"name": "app", "image": image}]},
                },
            }},
            "placements": [{"name": "us", "cityCodes": ["DFW"], "scaleSettings": {"minReplicas": 1}}],
        },
    }


def deployment(name, replicas):
    spec = workload(name)["spec"]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "WorkloadDeployment",
        "metadata": {"name": name},
        "spec": {
            "workloadRef": {"name": "web", "uid": "11111111-2222-3333-4444-555555555555"},
            "placementName": "us",
            "cityCode": "DFW",
            "replicas": replicas,
            "scaleSettings": {"minReplicas": 1},
            "template": spec["template"],
        },
    }


# Built-in kinds


@check("version")
def _():
    expect(client.VersionApi().get_code().major, "1")


@check("namespaces: create, read, list, patch")
def _():
    created = core.create_namespace(client.V1Namespace(metadata=meta(NAMESPACE)))
    expect(created.status.phase, "Active")
    expect(core.read_namespace(NAMESPACE).metadata.uid, created.metadata.uid)
    assert NAMESPACE in [item.metadata.name for item in core.list_namespace().items]
    patched = core.patch_namespace(NAMESPACE, {"metadata": {"labels": {"team": "a"}}})
    expect(patched.metadata.labels["team"], "a")
    expect(patched.metadata.labels["kubernetes.io/metadata.name"], NAMESPACE)


@check("namespaces: delete takes the contents along")
def _():
    name = NAMESPACE + "-gone"
    core.create_namespace(client.V1Namespace(metadata=meta(name)))
    core.create_namespaced_config_map(name, client.V1ConfigMap(metadata=meta("c"), data={"k": "v"}))
    start = core.list_namespace().metadata.resource_version
    core.delete_namespace(name)
    for event in watch.Watch().stream(core.list_namespace, resource_version=start, timeout_seconds=30,
                                      field_selector=f"metadata.name={name}"):
        if event["type"] == "DELETED":
            break
    else:
        raise AssertionError("the namespace is still there")
    fails(404, "NotFound", core.read_namespace, name)
    expect(core.list_namespaced_config_map(name).items, [])


@check("configmaps: create, read, replace, delete")
def _():
    created = make_map("crud", k="one")
    expect(created.data, {"k": "one"})
    read = core.read_namespaced_config_map("crud", NAMESPACE)
    expect(read.metadata.resource_version, created.metadata.resource_version)
    read.data["k"] = "two"
    replaced = core.replace_namespaced_config_map("crud", NAMESPACE, read)
    expect(replaced.data, {"k": "two"})
    assert replaced.metadata.resource_version != created.metadata.resource_version
    expect(core.delete_namespaced_config_map("crud", NAMESPACE).status, "Success")
    body = fails(404, "NotFound", core.read_namespaced_config_map, "crud", NAMESPACE)
    expect(body["details"], {"name": "crud", "kind": "configmaps"})
    expect(body["message"], 'configmaps "crud" not found')


@check("configmaps: binary data comes back as it went")
def _():
    raw = base64.b64encode(bytes(range(256))).decode()
    body = client.V1ConfigMap(metadata=meta("binary"), binary_data={"raw": raw})
    core.create_namespaced_config_map(NAMESPACE, body)
    expect(core.read_namespaced_config_map("binary", NAMESPACE).binary_data, {"raw": raw})


@check("secrets: string data becomes data")
def _():
    core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=meta("s"), string_data={"p": "open"}))
    read = core.read_namespaced_secret("s", NAMESPACE)
    expect((read.data, read.type), ({"p": "b3Blbg=="}, "Opaque"))


@check("pods: create with defaults, read, status, delete")
def _():
    spec = client.V1PodSpec(containers=[client.V1Container(name="app", image="nginx:1")])
    created = core.create_namespaced_pod(NAMESPACE, client.V1Pod(metadata=meta("p"), spec=spec))
    expect((created.spec.restart_policy, created.status.phase), ("Always", "Pending"))
    expect(created.spec.containers[0].image_pull_policy, "IfNotPresent")
    patched = core.patch_namespaced_pod_status("p", NAMESPACE, {"status": {"phase": "Running"}})
    expect(patched.status.phase, "Running")
    expect(core.read_namespaced_pod_status("p", NAMESPACE).status.phase, "Running")
    found = core.list_namespaced_pod(NAMESPACE, field_selector="status.phase=Running").items
    expect([pod.metadata.name for pod in found], ["p"])
    core.delete_namespaced_pod("p", NAMESPACE, grace_period_seconds=0)
    fails(404, "NotFound", core.read_namespaced_pod, "p", NAMESPACE)


@check("leases: the micro time of a renewal is kept")
def _():
    from datetime import datetime, timezone
    when = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time=when)
    leases.create_namespaced_lease(NAMESPACE, client.V1Lease(metadata=meta("l"), spec=spec))
    expect(leases.read_namespaced_lease("l", NAMESPACE).spec.renew_time, when)


@check("CRDs: ours are read as typed objects")
def _():
    crd = extensions.read_custom_resource_definition(f"workloads.{GROUP}")
    expect((crd.spec.names.kind, crd.spec.scope), ("Workload", "Namespaced"))
    conditions = {condition.type: condition.status for condition in crd.status.conditions}
    expect((conditions["Established"], conditions["NamesAccepted"]), ("True", "True"))


# Errors


@check("errors: a second create is 409 AlreadyExists")
def _():
    make_map("twice")
    body = fails(409, "AlreadyExists", make_map, "twice")
    expect(body["details"], {"name": "twice", "kind": "configmaps"})


@check("errors: a stale replace is 409 Conflict")
def _():
    stale = make_map("stale", k="one")
    core.patch_namespaced_config_map("stale", NAMESPACE, {"data": {"k": "two"}})
    body = fails(409, "Conflict", core.replace_namespaced_config_map, "stale", NAMESPACE, stale)
    assert "the object has been modified" in body["message"], body


@check("errors: a wrong precondition of a delete is 409 Conflict")
def _():
    make_map("guarded")
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="11111111-2222-3333-4444-555555555555"))
    fails(409, "Conflict", core.delete_namespaced_config_map, "guarded", NAMESPACE, body=options)
    core.read_namespaced_config_map("guarded", NAMESPACE)


@check("errors: an invalid object is 422 Invalid with causes")
def _():
    bad = workload("bad")
    bad["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = "many"
    del bad["spec"]["placements"][0]["cityCodes"]
    body = fails(422, "Invalid", custom.create_namespaced_custom_object, GROUP, VERSION, NAMESPACE, "workloads", bad)
    expect((body["details"]["kind"], body["details"]["group"]), ("Workload", GROUP))
    causes = {cause["field"]: cause["reason"] for cause in body["details"]["causes"]}
    expect(causes["spec.placements[0].cityCodes"], "FieldValueRequired")
    assert "spec.placements[0].scaleSettings.minReplicas" in causes, causes


@check("errors: a namespace that does not exist is 404")
def _():
    body = fails(404, "NotFound", core.create_namespaced_config_map, "nowhere", client.V1ConfigMap(metadata=meta("c")))
    expect(body["message"], 'namespaces "nowhere" not found')


@check("errors: a body that is no object is 400")
def _():
    fails(400, "BadRequest", custom.create_namespaced_custom_object, GROUP, VERSION, NAMESPACE, "workloads", [1])


@check("errors: a bad token is 401")
def _():
    settings = client.Configuration.get_default_copy()
    settings.api_key = {"authorization": "Bearer bad"}
    with client.ApiClient(settings) as stranger:
        fails(401, "Unauthorized", client.CoreV1Api(stranger).list_namespace)


@check("errors: a verb that a resource does not have is 405")
def _():
    call = core.api_client.call_api
    fails(405, "MethodNotAllowed", call, "/api/v1/namespaces", "DELETE", auth_settings=["BearerToken"])


# Lists


@check("lists: selectors")
def _():
    for index in range(7):
        make_map(f"page-{index}", labels={"page": "yes", "even": str(index % 2 == 0).lower()}, k=str(index))
    names = lambda **by: [item.metadata.name for item in core.list_namespaced_config_map(NAMESPACE, **by).items]
    expect(names(label_selector="page,even=false"), ["page-1", "page-3", "page-5"])
    expect(names(label_selector="page", field_selector="metadata.name!=page-0")[0], "page-1")
    body = fails(400, "BadRequest", core.list_namespaced_config_map, NAMESPACE, field_selector="data.k=1")
    assert "field label not supported: data.k" in body["message"], body


@check("lists: pages are one consistent list")
def _():
    by = {"label_selector": "page", "limit": 3}
    first = core.list_namespaced_config_map(NAMESPACE, **by)
    core.delete_namespaced_config_map("page-5", NAMESPACE)
    make_map("page-9", labels={"page": "yes"})
    pages, token = [first], first.metadata._continue
    while token:
        pages.append(core.list_namespaced_config_map(NAMESPACE, _continue=token, **by))
        token = pages[-1].metadata._continue
    expect([len(page.items) for page in pages], [3, 3, 1])
    expect({page.metadata.resource_version for page in pages}, {first.metadata.resource_version})
    names = [item.metadata.name for page in pages for item in page.items]
    expect(names, [f"page-{index}" for index in range(7)])


@check("lists: how many remain")
def _():
    page = core.list_namespaced_config_map(NAMESPACE, limit=2)
    total = len(core.list_namespaced_config_map(NAMESPACE).items)
    expect(page.metadata.remaining_item_count, total - 2)


@check("lists: a continue token that is none is 400")
def _():
    fails(400, "BadRequest", core.list_namespaced_config_map, NAMESPACE, limit=2, _continue="nonsense")


@check("lists: at an exact resource version")
def _():
    before = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    make_map("after-exact")
    listed = core.list_namespaced_config_map(NAMESPACE, resource_version=before, resource_version_match="Exact")
    assert "after-exact" not in [item.metadata.name for item in listed.items]
    expect(listed.metadata.resource_version, before)


@check("lists: a resource version of the future is a timeout")
def _():
    future = str(int(core.list_namespace().metadata.resource_version) + 10**9)
    fails(504, "Timeout", core.list_namespaced_config_map, NAMESPACE, resource_version=future,
          resource_version_match="NotOlderThan")


@check("deletecollection: by selector")
def _():
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="page")
    expect(core.list_namespaced_config_map(NAMESPACE, label_selector="page").items, [])
    core.read_namespaced_config_map("twice", NAMESPACE)


# Watches


def events(start, count, timeout=20, **by):
    """Takes `count` events from `start` on; gives what they are, and where the last one was."""
    taken, stream = [], watch.Watch()
    for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, resource_version=start,
                               timeout_seconds=timeout, **by):
        taken.append((event["type"], event["object"].metadata.name))
        start = event["object"].metadata.resource_version
        if len(taken) == count:
            stream.stop()
    return taken, start


@check("watches: every change from a list on, in order")
def _():
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    make_map("w", k="one")
    core.patch_namespaced_config_map("w", NAMESPACE, {"data": {"k": "two"}})
    core.delete_namespaced_config_map("w", NAMESPACE)
    taken, _ = events(start, 3)
    expect(taken, [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")])


@check("watches: resume loses nothing and repeats nothing")
def _():
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    names = [f"resume-{index}" for index in range(20)]
    writer = threading.Thread(target=lambda: [make_map(name, labels={"resume": "yes"}) for name in names])
    writer.start()
    seen = []
    while len(seen) < len(names):
        taken, start = events(start, 3, timeout=5, label_selector="resume")
        assert taken, f"nothing more after {len(seen)} events"
        seen += taken
    writer.join()
    expect(seen, [("ADDED", name) for name in names])


@check("watches: changes made while nobody watches are there")
def _():
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    _, start = events(start, 1, timeout=1)
    for index in range(50):
        core.patch_namespaced_config_map("twice", NAMESPACE, {"data": {"k": str(index)}})
    taken, _ = events(start, 50)
    expect(taken, [("MODIFIED", "twice")] * 50)


@check("watches: without a version they start with what is there")
def _():
    first = next(watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, timeout_seconds=5,
                                      field_selector="metadata.name=twice"))
    expect((first["type"], first["object"].metadata.name), ("ADDED", "twice"))


@check("watches: an object that leaves the selection is DELETED")
def _():
    make_map("leaver", labels={"stay": "yes"})
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.patch_namespaced_config_map("leaver", NAMESPACE, {"metadata": {"labels": {"stay": "no"}}})
    core.patch_namespaced_config_map("leaver", NAMESPACE, {"metadata": {"labels": {"stay": "yes"}}})
    taken, _ = events(start, 2, label_selector="stay=yes")
    expect(taken, [("DELETED", "leaver"), ("ADDED", "leaver")])


@check("watches: the timeout ends them")
def _():
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    expect(events(start, 1, timeout=1)[0], [])


@check("watches: a version that is too old is 410")
def _():
    try:
        list(watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version="1", timeout_seconds=5))
    except ApiException as error:
        expect(error.status, 410)
        # Either the answer itself or an event of the stream says it.
        assert "Expired" in (error.reason or "") + str(error.body), error
        return
    raise AssertionError("expected 410")


@check("watches: bookmarks end the initial objects of a streaming list")
def _():
    call = core.list_namespaced_config_map
    query = {"allow_watch_bookmarks": True, "send_initial_events": True, "resource_version_match": "NotOlderThan",
             "timeout_seconds": 5}
    names = []
    for event in watch.Watch().stream(call, NAMESPACE, **query):
        if event["type"] == "BOOKMARK":
            annotations = event["raw_object"]["metadata"]["annotations"]
            expect(annotations, {"k8s.io/initial-events-end": "true"})
            break
        names.append(event["object"].metadata.name)
    else:
        raise AssertionError("no bookmark")
    expect(names, [item.metadata.name for item in call(NAMESPACE).items])


# Patches


@check("patches: JSON patch")
def _():
    make_map("patched", k="one")
    body = [{"op": "test", "path": "/data/k", "value": "one"}, {"op": "replace", "path": "/data/k", "value": "two"}]
    expect(core.patch_namespaced_config_map("patched", NAMESPACE, body).data, {"k": "two"})
    fails(422, "Invalid", core.patch_namespaced_config_map, "patched", NAMESPACE, body)


@check("patches: merge patch")
def _():
    body = {"data": {"k": None, "new": "x"}}
    expect(core.patch_namespaced_config_map("patched", NAMESPACE, body, _content_type=MERGE).data, {"new": "x"})


@check("patches: strategic merge patch")
def _():
    containers = [client.V1Container(name="app", image="nginx:1"), client.V1Container(name="side", image="busybox:1")]
    core.create_namespaced_pod(NAMESPACE, client.V1Pod(metadata=meta("sm"), spec=client.V1PodSpec(containers=containers)))
    body = {"spec": {"containers": [{"name": "side", "image": "busybox:2"}]}}
    patched = core.patch_namespaced_pod("sm", NAMESPACE, body, _content_type=STRATEGIC)
    expect([container.image for container in patched.spec.containers], ["nginx:1", "busybox:2"])


@check("patches: apply patch, conflict and force")
def _():
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"k": "one"}}
    def apply(manager, value, **more):
        body["data"]["k"] = value
        return core.patch_namespaced_config_map("applied", NAMESPACE, body, _content_type=APPLY,
                                                field_manager=manager, **more)
    expect(apply("ann", "one").data, {"k": "one"})
    status = fails(409, "Conflict", apply, "bob", "two")
    expect(status["details"]["causes"][0]["reason"], "FieldManagerConflict")
    expect(status["details"]["causes"][0]["field"], ".data.k")
    assert 'conflict with "ann"' in status["message"], status
    forced = apply("bob", "two", force=True)
    expect(forced.data, {"k": "two"})
    expect([(entry.manager, entry.operation) for entry in forced.metadata.managed_fields], [("bob", "Apply")])


@check("patches: dry run stores nothing")
def _():
    patched = core.patch_namespaced_config_map("patched", NAMESPACE, {"data": {"dry": "x"}}, dry_run="All")
    expect(patched.data["dry"], "x")
    assert "dry" not in core.read_namespaced_config_map("patched", NAMESPACE).data


# Custom objects


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
    patched = custom.patch_namespaced_custom_object(*where, "web", {"spec": {"paused": True}}, _content_type=MERGE)
    expect(patched["spec"]["paused"], True)
    body = [{"op": "add", "path": "/spec/placements/0/cityCodes/-", "value": "IAD"}]
    patched = custom.patch_namespaced_custom_object(*where, "web", body)
    expect(patched["spec"]["placements"][0]["cityCodes"], ["DFW", "IAD"])


@check("custom objects: a strategic merge patch is 415")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloads", "web", {"spec": {"paused": False}})
    fails(415, "UnsupportedMediaType", custom.patch_namespaced_custom_object, *where, _content_type=STRATEGIC)


@check("custom objects: the status subresource")
def _():
    where = (GROUP, VERSION, NAMESPACE, "workloads", "web")
    before = custom.get_namespaced_custom_object_status(*where)
    body = {"status": {"replicas": 2}, "spec": {"paused": False}}
    after = custom.patch_namespaced_custom_object_status(*where, body, _content_type=MERGE)
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


# The dynamic client


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
    arguments = {"name": "ssa", "namespace": NAMESPACE, "field_manager": "ann"}
    expect(resource.server_side_apply(body=workload("ssa"), **arguments).metadata.generation, 1)
    applied = resource.server_side_apply(body=workload("ssa", image="nginx:2"), **arguments)
    expect(applied.metadata.generation, 2)
    expect(applied.metadata.managedFields[0].manager, "ann")
    try:
        resource.server_side_apply(body=workload("ssa"), **{**arguments, "field_manager": "bob"})
    except dynamic.exceptions.ConflictError as error:
        assert 'conflict with "ann"' in json.loads(error.body)["message"], error.body
    else:
        raise AssertionError("expected a conflict")
    forced = resource.server_side_apply(body=workload("ssa"), **{**arguments, "field_manager": "bob"}, force_conflicts=True)
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


@check("garbage collection: foreground, background and orphan")
def _():
    for policy in ("Foreground", "Background", "Orphan"):
        name = f"owner-{policy.lower()}"
        owner = make_map(name)
        reference = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name=name, uid=owner.metadata.uid,
                                            block_owner_deletion=True)
        child = client.V1ConfigMap(metadata=meta(f"{name}-child", owner_references=[reference]))
        start = core.create_namespaced_config_map(NAMESPACE, child).metadata.resource_version
        core.delete_namespaced_config_map(name, NAMESPACE, propagation_policy=policy)
        gone = []
        for event in watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=start, timeout_seconds=20):
            if event["type"] == "DELETED":
                gone.append(event["object"].metadata.name)
            if len(gone) == (1 if policy == "Orphan" else 2):
                break
        order = {"Foreground": [f"{name}-child", name], "Background": [name, f"{name}-child"], "Orphan": [name]}
        expect(gone, order[policy])
        if policy == "Orphan":
            expect(core.read_namespaced_config_map(f"{name}-child", NAMESPACE).metadata.owner_references, None)


for title, function in CHECKS:
    try:
        function()
        print(f"ok   python: {title}")
    except Exception:  # A check may fail in any way; the others still run.
        print(f"FAIL python: {title}")
        for line in traceback.format_exc().splitlines():
            print(f"     {line}")
print("done")
