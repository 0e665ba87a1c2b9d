//! Concurrent writers lose no update: neither with read, change and conditional write, nor with patches that say only
//! what changes.

use std::collections::BTreeMap;

use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use proptest::prelude::*;
use serde_json::json;

use crate::common::{Widget, widget};
use crate::{check, raced};

/// Runs one task per writer and fails if one of them does.
async fn together<F: Future<Output = ()> + Send + 'static>(writers: impl Iterator<Item = F>) {
    join_all(writers.map(tokio::spawn)).await.into_iter().for_each(|writer| writer.unwrap());
}

async fn add_one(client: &Client, by_patch: bool) {
    let api: Api<Widget> = Api::default_namespaced(client.clone());
    loop {
        let mut found = api.get("counter").await.unwrap();
        found.spec.replicas += 1;
        let written = if by_patch {
            let metadata = json!({ "resourceVersion": found.metadata.resource_version });
            let patch = json!({ "metadata": metadata, "spec": { "replicas": found.spec.replicas } });
            raced(api.patch("counter", &PatchParams::default(), &Patch::Merge(&patch)).await)
        } else {
            raced(api.replace("counter", &PostParams::default(), &found).await)
        };
        if written.is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn counters_lose_no_increment() {
    let writers = proptest::collection::vec((1..12i32, any::<bool>()), 2..8);
    check(8, writers, |client, writers| async move {
        let api: Api<Widget> = Api::default_namespaced(client.clone());
        let made = api.create(&PostParams::default(), &widget("counter", 0)).await.unwrap();
        let expected: i32 = writers.iter().map(|(count, _)| count).sum();
        together(writers.into_iter().map(|(count, by_patch)| {
            let client = client.clone();
            async move {
                for _ in 0..count {
                    add_one(&client, by_patch).await;
                }
            }
        }))
        .await;
        let found = api.get("counter").await.unwrap();
        assert_eq!(found.spec.replicas, expected);
        let generation = made.metadata.generation.unwrap() + i64::from(expected);
        assert_eq!(found.metadata.generation, Some(generation), "each increment is one new state");
    });
}

/// How a writer sets its key.
#[derive(Clone, Copy, Debug)]
enum Form {
    Merge,
    Strategic,
    Json,
    Apply,
}

async fn set(client: &Client, form: Form, key: &str, value: usize) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let change = json!({ "data": { key: value.to_string() } });
    let params = PatchParams { field_manager: Some(format!("writer-{key}")), ..PatchParams::default() };
    let patched = match form {
        Form::Merge => api.patch("shared", &params, &Patch::Merge(&change)).await,
        Form::Strategic => api.patch("shared", &params, &Patch::Strategic(&change)).await,
        Form::Json => {
            let add = json!([{ "op": "add", "path": format!("/data/{key}"), "value": value.to_string() }]);
            api.patch("shared", &params, &Patch::<()>::Json(serde_json::from_value(add).unwrap())).await
        }
        Form::Apply => {
            let config =
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { key: value.to_string() } });
            api.patch("shared", &params, &Patch::Apply(&config)).await
        }
    };
    assert_eq!(
        patched.unwrap().data.unwrap()[key],
        value.to_string(),
        "the answer shows the writer's own change"
    );
}

#[test]
fn patches_of_distinct_keys_all_land() {
    let form = prop_oneof![Just(Form::Merge), Just(Form::Strategic), Just(Form::Json), Just(Form::Apply)];
    let writers = proptest::collection::vec((form, 1..12usize), 2..10);
    check(8, writers, |client, writers| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let shared = json!({ "metadata": { "name": "shared" }, "data": { "first": "0" } });
        api.create(&PostParams::default(), &serde_json::from_value(shared).unwrap()).await.unwrap();
        let mut expected = BTreeMap::from([("first".to_owned(), "0".to_owned())]);
        expected
            .extend(writers.iter().enumerate().map(|(at, (_, count))| (format!("k{at}"), count.to_string())));
        together(writers.into_iter().enumerate().map(|(at, (form, count))| {
            let client = client.clone();
            async move {
                for value in 1..=count {
                    set(&client, form, &format!("k{at}"), value).await;
                }
            }
        }))
        .await;
        assert_eq!(api.get("shared").await.unwrap().data.unwrap(), expected);
    });
}

#[test]
fn of_many_creators_of_one_name_exactly_one_wins() {
    check(10, (2..8usize, 1..6usize), |client, (creators, names)| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let wins: Vec<_> = (0..creators)
            .map(|_| {
                let api = api.clone();
                tokio::spawn(async move {
                    let mut won = 0;
                    for at in 0..names {
                        let object = json!({ "metadata": { "name": format!("c{at}") } });
                        let made = api
                            .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
                            .await;
                        won += usize::from(raced(made).is_some());
                    }
                    won
                })
            })
            .collect();
        let wins: usize = join_all(wins).await.into_iter().map(|won| won.unwrap()).sum();
        assert_eq!(wins, names);
        assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), names);
    });
}
