"""Errors: the HTTP status, and the reason and details in the body."""

from kubernetes import client

from support import GROUP, NAMESPACE, VERSION, check, core, custom, expect, fails, make_map, meta, workload


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
    settings.refresh_api_key_hook = None
    settings.api_key = {"authorization": "Bearer bad"}
    with client.ApiClient(settings) as stranger:
        fails(401, "Unauthorized", client.CoreV1Api(stranger).list_namespace)


@check("errors: a verb that a resource does not have is 405")
def _():
    call = core.api_client.call_api
    fails(405, "MethodNotAllowed", call, "/api/v1/namespaces", "DELETE", auth_settings=["BearerToken"])
