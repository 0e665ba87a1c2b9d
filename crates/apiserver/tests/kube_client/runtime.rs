//! Parts of kube's runtime that work beside controllers: leases, events, waiting.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event as EventsEvent;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use crate::common::{Fixture, Widget, eventually, soon, widget};

both_transports!(leader_election, events, waiting);

/// Takes or renews the lease, as the given version allows: `None` if another candidate was faster or holds it.
async fn try_to_lead(api: &Api<Lease>, who: &str) -> Option<Lease> {
    let Some(mut lease) = api.get_opt("leader").await.unwrap() else {
        let lease = Lease {
            metadata: ObjectMeta { name: Some("leader".to_owned()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(who.to_owned()),
                lease_duration_seconds: Some(15),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        };
        return taken(api.create(&PostParams::default(), &lease).await);
    };
    let spec = lease.spec.get_or_insert_default();
    match spec.holder_identity.as_deref() {
        Some(holder) if holder == who => {}
        None | Some("") => {
            spec.holder_identity = Some(who.to_owned());
            spec.lease_transitions = spec.lease_transitions.map(|count| count + 1);
        }
        Some(_) => return None,
    }
    taken(api.replace("leader", &PostParams::default(), &lease).await)
}

fn taken(result: Result<Lease, kube::Error>) -> Option<Lease> {
    match result {
        Ok(lease) => Some(lease),
        Err(kube::Error::Api(status)) if status.code == 409 => None,
        Err(error) => panic!("{error}"),
    }
}

/// Leads `terms` times and resigns after each; while it leads nobody else may.
async fn candidate(api: &Api<Lease>, who: &str, terms: usize, leading: &tokio::sync::Mutex<()>) {
    for _ in 0..terms {
        let mut held =
            eventually("the lease is free", async || try_to_lead(api, who).await.ok_or("held")).await;
        let alone = leading.try_lock().expect("two candidates lead at once");
        tokio::task::yield_now().await;
        held.spec.as_mut().unwrap().holder_identity = None;
        drop(alone);
        api.replace("leader", &PostParams::default(), &held).await.unwrap();
    }
}

async fn leader_election(fixture: Fixture) {
    let api: Api<Lease> = Api::default_namespaced(fixture.client.clone());
    let leading = tokio::sync::Mutex::new(());
    tokio::join!(candidate(&api, "ann", 5, &leading), candidate(&api, "bob", 5, &leading));
    let spec = api.get("leader").await.unwrap().spec.unwrap();
    assert_eq!(spec.lease_transitions, Some(9), "each term but the first is a transition");
    let wrong = json!({ "spec": { "leaseDurationSeconds": 0 } });
    assert!(api.patch("leader", &PatchParams::default(), &Patch::Merge(&wrong)).await.is_err());
}

async fn events(fixture: Fixture) {
    let widgets: Api<Widget> = Api::default_namespaced(fixture.client.clone());
    let object = widgets.create(&PostParams::default(), &widget("w", 1)).await.unwrap();
    let recorder =
        Recorder::new(fixture.client.clone(), Reporter { controller: "tester".to_owned(), instance: None });
    let event = |note: &str| Event {
        type_: EventType::Warning,
        reason: "Tested".to_owned(),
        note: Some(note.to_owned()),
        action: "Testing".to_owned(),
        secondary: None,
    };
    for note in ["once", "twice", "three times"] {
        recorder.publish(&event(note), &object.object_ref(&())).await.unwrap();
    }
    let api: Api<EventsEvent> = Api::default_namespaced(fixture.client);
    let regarding =
        ListParams::default().fields(&format!("regarding.uid={},reason=Tested", object.uid().unwrap()));
    let found = api.list(&regarding).await.unwrap().items;
    assert_eq!(found.len(), 1, "the same event again is one of a series");
    assert_eq!(found[0].series.as_ref().unwrap().count, 3);
    assert_eq!(found[0].reporting_controller.as_deref(), Some("tester"));
}

async fn waiting(fixture: Fixture) {
    let maps: Api<ConfigMap> = Api::default_namespaced(fixture.client);
    let created = tokio::spawn(await_condition(maps.clone(), "c", conditions::is_created()));
    let filled = |object: Option<&ConfigMap>| object.is_some_and(|found| found.data.is_some());
    let filled = tokio::spawn(await_condition(maps.clone(), "c", filled));
    let other =
        serde_json::from_value(json!({ "metadata": { "name": "other" }, "data": { "a": "1" } })).unwrap();
    maps.create(&PostParams::default(), &other).await.unwrap();
    let map = serde_json::from_value(json!({ "metadata": { "name": "c" } })).unwrap();
    let map: ConfigMap = maps.create(&PostParams::default(), &map).await.unwrap();
    let found = soon("the object is seen", created).await.unwrap().unwrap().unwrap();
    assert_eq!(found.uid(), map.uid());
    let patch = json!({ "data": { "a": "1" } });
    maps.patch("c", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let found = soon("the change is seen", filled).await.unwrap().unwrap().unwrap();
    assert_eq!(found.data.unwrap()["a"], "1");

    let uid = map.uid().unwrap();
    let deleted = tokio::spawn({
        let maps = maps.clone();
        async move { await_condition(maps, "c", conditions::is_deleted(&uid)).await.map(drop) }
    });
    let params = DeleteParams::default();
    soon("delete_and_finalize returns", delete_and_finalize(maps, "c", &params)).await.unwrap();
    soon("the deletion is seen", deleted).await.unwrap().unwrap();
}
