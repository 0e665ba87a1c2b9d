"""Objects of built-in kinds: made, read, changed, deleted, and what goes with them."""

import base64
from datetime import datetime, timezone

from kubernetes import client, watch

from support import GROUP, NAMESPACE, check, core, expect, extensions, fails, leases, make_map, meta


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
