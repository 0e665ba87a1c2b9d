//! Lists in pages, at revisions, with selectors.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, VersionMatch};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::common::{Fixture, refusal, refused};

both_transports!(pages_are_one_snapshot, old_pages_go_on_anew, lists_at_revisions, lists_by_selectors);

async fn make(api: &Api<ConfigMap>, names: impl IntoIterator<Item = String>) {
    for name in names {
        let object = json!({ "metadata": { "name": name, "labels": { "name": name } } });
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }
}

async fn touch(api: &Api<ConfigMap>, name: &str, value: impl ToString) {
    let patch = json!({ "data": { "v": value.to_string() } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

fn names(items: &[ConfigMap]) -> Vec<String> {
    items.iter().map(|item| item.name_any()).collect()
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

async fn pages_are_one_snapshot(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, (0..10).map(|i| format!("c{i}"))).await;
    let whole = api.list(&ListParams::default()).await.unwrap();
    let mut page = api.list(&ListParams::default().limit(3)).await.unwrap();
    assert_eq!(page.metadata.remaining_item_count, Some(7));
    let mut pages = vec![page.items.clone()];
    let mut round = 0;
    while let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) {
        // Before, inside and behind what has been read already.
        touch(&api, "c9", round).await;
        make(&api, [format!("b{round}"), format!("c5x{round}")]).await;
        api.delete(&format!("c{}", 6 + round), &DeleteParams::default()).await.unwrap();
        page = api.list(&ListParams::default().limit(3).continue_token(&token)).await.unwrap();
        assert_eq!(page.metadata.resource_version, whole.metadata.resource_version);
        pages.push(page.items.clone());
        round += 1;
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3, 1]);
    assert_eq!(pages.concat(), whole.items, "all pages show the moment of the first");
    let now = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(now.items.len(), 10 + 2 * 3 - 3);
}

async fn old_pages_go_on_anew(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, (0..6).map(|i| format!("c{i}"))).await;
    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let behind = maps(&fixture.backdoor());
    for round in 0..1030 {
        touch(&behind, "c5", round).await;
    }
    let status = refusal(api.list(&ListParams::default().limit(2).continue_token(&token)).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let fresh = status.metadata.and_then(|metadata| metadata.continue_).expect("a token to go on with");
    let rest = api.list(&ListParams::default().continue_token(&fresh)).await.unwrap();
    assert_eq!(names(&rest.items), ["c2", "c3", "c4", "c5"]);
    assert_eq!(rest.items[3].data.as_ref().unwrap()["v"], "1029");
    let bad = api.list(&ListParams::default().continue_token("rubbish")).await;
    assert_eq!(refused(bad), (400, "BadRequest".to_owned()));
}

async fn lists_at_revisions(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, ["a".to_owned(), "b".to_owned()]).await;
    let then = api.list(&ListParams::default()).await.unwrap();
    let revision = then.metadata.resource_version.clone().unwrap();
    touch(&api, "a", 1).await;
    api.delete("b", &DeleteParams::default()).await.unwrap();
    make(&api, ["c".to_owned()]).await;
    let now = api.list(&ListParams::default()).await.unwrap();

    let exact = ListParams::default().at(&revision).matching(VersionMatch::Exact);
    let found = api.list(&exact).await.unwrap();
    assert_eq!(
        (&found.items, &found.metadata.resource_version),
        (&then.items, &then.metadata.resource_version)
    );
    let newer = ListParams::default().at(&revision).matching(VersionMatch::NotOlderThan);
    assert_eq!(api.list(&newer).await.unwrap().items, now.items);
    assert_eq!(api.list(&ListParams::default().match_any()).await.unwrap().items, now.items);
    let paged = ListParams::default().at(&revision).matching(VersionMatch::Exact).limit(1);
    let page = api.list(&paged).await.unwrap();
    assert_eq!(names(&page.items), ["a"]);
    let token = page.metadata.continue_.unwrap();
    let page = api.list(&ListParams::default().limit(1).continue_token(&token)).await.unwrap();
    assert_eq!(names(&page.items), ["b"], "the second page is of that revision too");
}

async fn lists_by_selectors(fixture: Fixture) {
    let api = maps(&fixture.client);
    make(&api, (0..5).map(|i| format!("c{i}"))).await;
    let list = async |params: ListParams| names(&api.list(&params).await.unwrap().items);
    let all = ListParams::default;
    assert_eq!(list(all().labels("name in (c1,c3,c9)")).await, ["c1", "c3"]);
    assert_eq!(list(all().labels("name notin (c1,c3),name")).await, ["c0", "c2", "c4"]);
    assert_eq!(list(all().labels("!name")).await, [""; 0]);
    assert_eq!(list(all().fields("metadata.name=c2")).await, ["c2"]);
    assert_eq!(
        list(all().fields("metadata.name!=c2,metadata.namespace=default").labels("name!=c0")).await,
        ["c1", "c3", "c4"]
    );
    assert_eq!(list(all().labels("name!=c0").limit(2)).await, ["c1", "c2"]);
    assert_eq!(refused(api.list(&all().labels("a b")).await), (400, "BadRequest".to_owned()));
    assert_eq!(refused(api.list(&all().fields("spec.nothing=1")).await), (400, "BadRequest".to_owned()));
    let everywhere: Api<ConfigMap> = Api::all(fixture.client.clone());
    assert_eq!(everywhere.list(&all()).await.unwrap().items.len(), 5);
}
