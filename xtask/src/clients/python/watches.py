"""Watches: complete, in order, and to be resumed."""

import threading

from kubernetes import watch
from kubernetes.client.exceptions import ApiException

from support import NAMESPACE, check, core, expect, make_map


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
