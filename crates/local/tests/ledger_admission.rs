//! Claims that the quota ledger could never answer are refused when they are made, in projects and nowhere else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use compute_api::quota::{
    ObjectReference, RESOURCE_INSTANCES, RESOURCE_VCPUS, ResourceClaim, ResourceRegistration, ResourceRequest,
};
use compute_apiserver::{ApiServer, Options};
use compute_local::{Platform, Settings, planes};
use compute_runtime::Runtime;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use serde_json::json;

fn claim(name: &str, change: impl FnOnce(&mut ResourceClaim)) -> ResourceClaim {
    let mut claim = ResourceClaim::default();
    claim.metadata.name = Some(name.to_owned());
    claim.spec.consumer_ref = Some(ObjectReference::project("p"));
    claim.spec.resource_ref = Some(ObjectReference::project("p"));
    claim.spec.requests = [(RESOURCE_INSTANCES, 1), (RESOURCE_VCPUS, 1000)]
        .map(|(resource, amount)| ResourceRequest { resource_type: resource.to_owned(), amount })
        .to_vec();
    change(&mut claim);
    claim
}

/// Code, reason and message of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String, String) {
    match result.unwrap_err() {
        Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_claim_without_a_registration_is_refused_when_it_is_made() {
    let server = ApiServer::new(Options::default());
    let settings = Settings { cities: vec!["DFW".to_owned()], ..Settings::default() };
    let platform = Platform::new(&server, Runtime::system(), settings).await.unwrap();
    platform.make_idle_project("p").await.unwrap();
    let project = platform.client(&planes::project("p").unwrap());
    let claims: Api<ResourceClaim> = Api::namespaced(project, "default");
    let create = async |claim: &ResourceClaim| claims.create(&PostParams::default(), claim).await;

    type Change = fn(&mut ResourceClaim);
    let unfit: [(Change, &str); 3] = [
        (
            |one| one.spec.requests[0].resource_type = "example.com/gpus".to_owned(),
            "example.com/gpus is not registered",
        ),
        (
            |one| one.spec.consumer_ref.as_mut().unwrap().kind = "Organization".to_owned(),
            "by a Organization for a Project",
        ),
        (|one| one.spec.resource_ref.as_mut().unwrap().kind = "Pod".to_owned(), "by a Project for a Pod"),
    ];
    for (change, why) in unfit {
        let (code, reason, message) = refusal(create(&claim("bad", change)).await);
        assert_eq!((code, reason.as_str()), (403, "Forbidden"), "{message}");
        assert!(message.contains(why), "{message}");
    }
    let malformed: [(Change, &str); 2] = [
        (|one| one.spec.consumer_ref = None, "it names no consumer"),
        (|one| one.spec.requests[1].resource_type = RESOURCE_INSTANCES.to_owned(), "twice"),
    ];
    for (change, why) in malformed {
        let (code, reason, message) = refusal(create(&claim("bad", change)).await);
        assert_eq!((code, reason.as_str()), (422, "Invalid"), "{message}");
        assert!(message.contains(why), "{message}");
    }

    // One that fits is taken, and asks for the same for ever; labels and status are its own matter.
    create(&claim("good", |_| {})).await.unwrap();
    let more = Patch::Merge(
        json!({ "spec": { "requests": [{ "resourceType": RESOURCE_INSTANCES, "amount": 2 }] } }),
    );
    let (code, _, message) = refusal(claims.patch("good", &PatchParams::default(), &more).await);
    assert_eq!(code, 422, "{message}");
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    claims.patch("good", &PatchParams::default(), &label).await.unwrap();
    let said = Patch::Merge(json!({ "status": { "observedGeneration": 1 } }));
    claims.patch_status("good", &PatchParams::default(), &said).await.unwrap();
    claims.delete("good", &DeleteParams::default()).await.unwrap();

    // What is registered this moment counts this moment, and what is not registered any more does not for long.
    let core: Api<ResourceRegistration> = Api::all(platform.client(&planes::core()));
    let mut gpus = core.get("compute-instances").await.unwrap();
    gpus.metadata = kube::api::ObjectMeta { name: Some("gpus".to_owned()), ..Default::default() };
    gpus.spec.resource_type = "example.com/gpus".to_owned();
    core.create(&PostParams::default(), &gpus).await.unwrap();
    create(&claim("gpus", unfit[0].0)).await.unwrap();

    // Elsewhere nobody is asked: there is no ledger there.
    let elsewhere: Api<ResourceClaim> = Api::namespaced(platform.client(&planes::core()), "default");
    elsewhere.create(&PostParams::default(), &claim("bad", unfit[1].0)).await.unwrap();
    // Nor once the platform is gone.
    drop(platform);
    create(&claim("bad", unfit[1].0)).await.unwrap();
}
