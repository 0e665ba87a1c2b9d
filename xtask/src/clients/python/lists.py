"""Lists: selectors, pages, resource versions."""

from support import NAMESPACE, check, core, expect, fails, make_map


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
