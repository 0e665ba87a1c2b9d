"""Patches of every type."""

from kubernetes import client

from support import APPLY, MERGE, NAMESPACE, check, core, expect, fails, make_map, meta, sending


@check("patches: JSON patch")
def _():
    make_map("patched", k="one")
    body = [{"op": "test", "path": "/data/k", "value": "one"}, {"op": "replace", "path": "/data/k", "value": "two"}]
    expect(core.patch_namespaced_config_map("patched", NAMESPACE, body).data, {"k": "two"})
    fails(422, "Invalid", core.patch_namespaced_config_map, "patched", NAMESPACE, body)


@check("patches: merge patch")
def _():
    merging, _ = sending(MERGE)
    body = {"data": {"k": None, "new": "x"}}
    expect(merging.patch_namespaced_config_map("patched", NAMESPACE, body).data, {"new": "x"})


@check("patches: strategic merge patch")
def _():
    containers = [client.V1Container(name="app", image="nginx:1"), client.V1Container(name="side", image="busybox:1")]
    core.create_namespaced_pod(NAMESPACE, client.V1Pod(metadata=meta("sm"), spec=client.V1PodSpec(containers=containers)))
    body = {"spec": {"containers": [{"name": "side", "image": "busybox:2"}]}}
    patched = core.patch_namespaced_pod("sm", NAMESPACE, body)
    expect([container.image for container in patched.spec.containers], ["nginx:1", "busybox:2"])


@check("patches: apply patch, conflict and force")
def _():
    applying, _ = sending(APPLY)

    def apply(manager, value, **more):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"k": value}}
        return applying.patch_namespaced_config_map("applied", NAMESPACE, body, field_manager=manager, **more)

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
