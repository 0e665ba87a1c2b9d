"""What all checks use: the clients, how a check is registered, and objects to work with."""

import json
import sys

from kubernetes import client, config
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


def sending(content_type):
    """The core and custom objects APIs, with every body sent as this type; the client itself guesses."""
    api = client.ApiClient()
    api.set_default_header("Content-Type", content_type)
    return client.CoreV1Api(api), client.CustomObjectsApi(api)


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
