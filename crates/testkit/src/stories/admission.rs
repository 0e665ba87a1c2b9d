//! What may be written to a project, and by whom.

use compute_api::compute::{Instance, Workload};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};

use crate::objects::{placement, workload};
use crate::stack::Stack;
use crate::view::{View, list};
use crate::wait::eventually;

/// A bad workload is refused for everything that is wrong with it, made or changed; what is good about it makes no difference.
pub async fn bad_workload_is_refused_whole(stack: &impl Stack) {
    let view = View::new(stack, "refused").await;
    let city = &stack.cities()[0];
    let mut bad = workload("web", &[city, "ATLANTIS"], 1);
    bad.spec.template.spec.runtime.resources.instance_type = "huge".to_owned();
    bad.spec.template.spec.network_interfaces[0].network.name = "nowhere".to_owned();
    let fields = async |write: Result<Workload, kube::Error>| match write {
        Err(kube::Error::Api(status)) if status.reason == "Invalid" => {
            let causes = status.details.unwrap().causes;
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        }
        other => panic!("not refused as invalid: {other:?}"),
    };
    let expected = [
        "spec.template.spec.runtime.resources.instanceType",
        "spec.template.spec.networkInterfaces[0].network.name",
        "spec.placements[0].cityCodes[1]",
    ];
    assert_eq!(fields(view.mine().create(&PostParams::default(), &bad).await).await, expected);
    view.create(&workload("web", &[city], 1)).await;
    let patch = Patch::Merge(json!({ "spec": bad.spec }));
    assert_eq!(fields(view.mine().patch("web", &PatchParams::default(), &patch).await).await, expected);
    // Nothing of it has come through.
    view.set_placements("web", &[placement("main", &[city], 2)]).await;
    view.until_ready("web", &[(&format!("web-main-{}", city.to_lowercase()), 2)]).await;
}

/// People see instances in their project and cannot change them, whatever else they may do there.
pub async fn instances_are_read_only_for_people(stack: &impl Stack) {
    let view = View::new(stack, "read-only").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "ann-does-everything" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann" }],
    }))
    .unwrap();
    Api::all(view.client()).create(&PostParams::default(), &binding).await.unwrap();
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;
    let before = eventually("they are shown as they are in the cell", async || {
        let shown = list(&view.mine::<Instance>(), &ListParams::default()).await;
        let real = view.instances_in(city).await;
        let same = real.iter().all(|(name, real)| {
            shown.get(name).is_some_and(|shown| shown.spec == real.spec && shown.status == real.status)
        });
        if same { Ok(shown) } else { Err(format!("{shown:?} {real:?}")) }
    })
    .await;

    let all = Instance::url_path(&(), Some("default"));
    let one = format!("{all}/{name}-0");
    let label = json!({ "metadata": { "labels": { "mine": "yes" } } });
    let client = view.client();
    for (method, path, body) in [
        ("PATCH", one.clone(), label.clone()),
        ("PATCH", format!("{one}/status"), json!({ "status": { "conditions": null } })),
        ("DELETE", one.clone(), json!({})),
        ("DELETE", all.clone(), json!({})),
    ] {
        let refused = as_ann(&client, method, &path, &body).await.unwrap_err();
        let kube::Error::Api(status) = refused else { panic!("{method} {path}: {refused}") };
        assert_eq!(status.code, 403, "{method} {path}: {}", status.message);
        for words in ["Instances in a project are read-only", "Change Workload \"web\" instead"] {
            assert!(status.message.contains(words), "{method} {path}: {}", status.message);
        }
    }
    as_ann(&client, "GET", &one, &json!({})).await.unwrap();
    assert_eq!(list(&view.mine::<Instance>(), &ListParams::default()).await, before);
    // The workload is hers to change.
    let path = format!("{}/web", Workload::url_path(&(), Some("default")));
    as_ann(&client, "PATCH", &path, &json!({ "spec": { "placements": [placement("main", &[city], 2)] } }))
        .await
        .unwrap();
    view.until_ready("web", &[(&name, 2)]).await;
    as_ann(&client, "DELETE", &path, &json!({})).await.unwrap();
    view.until_gone("web").await;
}

async fn as_ann(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = if method == "GET" { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .header("impersonate-user", "ann")
        .body(body)
        .unwrap();
    client.request(request).await
}
