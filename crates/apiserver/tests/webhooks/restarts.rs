//! Configurations that are found on disk or come with a template count from the first request on.

use std::path::Path;

use compute_apiserver::Options;

use super::*;
use crate::common::{eventually, widget_crd};
use crate::server::deny;

async fn open(folder: &Path) -> World {
    // The last server lets go of the folder when its last task ends.
    let server = eventually("the folder is free", async || ApiServer::open(Options::default(), folder)).await;
    let plane = common::plane(&server, "test").await;
    World { server, plane }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|review| deny(review, &json!({ "code": 403, "message": "no" }))).await;
    let world = open(folder.path()).await;
    world.validate_by("c", &[webhook("a.example.com", &server)]).await;
    assert_eq!(world.post(WIDGETS, &widget("w")).await.code, 403);
    drop(world);
    let world = open(folder.path()).await;
    assert_eq!(world.post(WIDGETS, &widget("w")).await.code, 403);
    assert_eq!(world.delete(&format!("{VALIDATING}/c")).await.code, 200);
    world.made(WIDGETS, &widget("w")).await;
    drop(world);
    let world = open(folder.path()).await;
    world.merged(&one("w"), &json!({ "spec": { "replicas": 2 } })).await;
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn with_a_template() {
    let server = Server::start(|review| deny(review, &json!({ "code": 403, "message": "no" }))).await;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "c" }, "webhooks": [webhook("a.example.com", &server)],
    });
    let api = common::server();
    let [one, two] = ["one", "two"];
    let one = World {
        plane: common::plane_with(&api, one, &[widget_crd(), configuration.clone()]).await,
        server: api.clone(),
    };
    let two =
        World { plane: common::plane_with(&api, two, &[widget_crd(), configuration]).await, server: api };
    for world in [&one, &two] {
        assert_eq!(world.post(WIDGETS, &widget("w")).await.code, 403);
    }
    assert_eq!(one.delete(&format!("{VALIDATING}/c")).await.code, 200);
    one.made(WIDGETS, &widget("w")).await;
    assert_eq!(two.post(WIDGETS, &widget("w")).await.code, 403);
}
