//! Reading from the project: each function is one request.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::k8s::ConfigMap;
use compute_api::networking::LocationBinding;
use compute_api::quota::{AllowanceBucket, ResourceClaim};
use compute_api::{labels, names};
use compute_core::meta;
use compute_core::revisions::History;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use serde_json::Value;

use crate::failure::{Exit, Failure, Result, from_kube};
use crate::session::Session;

/// A stored workload: as it is, to the last field, and as this program reads it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// All of it.
    pub(crate) object: DynamicObject,
    /// What this program reads of it.
    pub(crate) workload: Workload,
}

impl Found {
    /// Its spec, to the last field.
    pub(crate) fn spec(&self) -> &Value {
        &self.object.data["spec"]
    }

    /// Reads an object.
    pub(crate) fn of(object: DynamicObject) -> Result<Self> {
        let name = object.metadata.name.clone().unwrap_or_default();
        match object.clone().try_parse() {
            Ok(workload) => Ok(Self { object, workload }),
            Err(_) => Err(unreadable(&name)),
        }
    }
}

/// The failure when a workload is not what this program knows.
pub(crate) fn unreadable(name: &str) -> Failure {
    Failure::new(
        format!("cannot read workload {name}"),
        "it has fields that this version of the program does not know how to read",
    )
    .advice("update this program")
}

/// Workloads, to the last field.
pub(crate) fn raw_workloads(session: &Session) -> Api<DynamicObject> {
    let kind = ApiResource::erase::<Workload>(&());
    Api::namespaced_with(session.client.clone(), &session.namespace, &kind)
}

/// A workload, if there is one of that name.
pub(crate) async fn workload(session: &Session, name: &str) -> Result<Option<Found>> {
    let found = raw_workloads(session).get_opt(name).await;
    let found = found.map_err(|error| from_kube(format!("cannot read workload {name}"), &error))?;
    found.map(Found::of).transpose()
}

/// A workload that has to be there. `what` is what cannot be done without it.
pub(crate) async fn required(session: &Session, name: &str, what: &str) -> Result<Found> {
    match workload(session, name).await? {
        Some(found) => Ok(found),
        None => Err(no_workload(session, name, what).await),
    }
}

/// There is no workload of that name; perhaps one that is spelled like it.
async fn no_workload(session: &Session, name: &str, what: &str) -> Failure {
    let known: Vec<String> = match workloads(session).await {
        Ok(all) => all.iter().map(|one| meta::name(&one.metadata).to_owned()).collect(),
        Err(_) => Vec::new(),
    };
    not_found(name, what, &known)
}

/// The failure when there is no workload of that name.
pub(crate) fn not_found(name: &str, what: &str, known: &[String]) -> Failure {
    let near = known.iter().map(|one| (strsim::damerau_levenshtein(one, name), one)).min();
    let failure = Failure::new(what, format!("there is no workload {name:?}"));
    match near.filter(|(distance, _)| *distance <= 3) {
        Some((_, near)) => {
            failure.advice(format!("did you mean {near}?")).next("workloads", "list the workloads")
        }
        None => failure.next("workloads", "list the workloads"),
    }
}

/// All workloads of the namespace, by name.
pub(crate) async fn workloads(session: &Session) -> Result<Vec<Workload>> {
    let all = session.api::<Workload>().list(&ListParams::default()).await;
    Ok(all.map_err(|error| from_kube("cannot read the workloads", &error))?.items)
}

fn of_workload(workload: Option<&str>) -> ListParams {
    match workload {
        Some(name) => ListParams::default().labels(&format!("{}={name}", labels::WORKLOAD_NAME)),
        None => ListParams::default(),
    }
}

/// What runs of a workload, or of all, city by city.
pub(crate) async fn deployments(
    session: &Session,
    workload: Option<&str>,
) -> Result<Vec<WorkloadDeployment>> {
    let all = session.api::<WorkloadDeployment>().list(&of_workload(workload)).await;
    Ok(all.map_err(|error| from_kube("cannot read how the cities are", &error))?.items)
}

/// Instances of a workload, or of all.
pub(crate) async fn instances(session: &Session, workload: Option<&str>) -> Result<Vec<Instance>> {
    let all = session.api::<Instance>().list(&of_workload(workload)).await;
    Ok(all.map_err(|error| from_kube("cannot read the instances", &error))?.items)
}

/// What offers cities to the project.
pub(crate) async fn bindings(session: &Session) -> Result<Vec<LocationBinding>> {
    let all = session.cluster_api::<LocationBinding>().list(&ListParams::default()).await;
    Ok(all.map_err(|error| from_kube("cannot read the cities", &error))?.items)
}

/// What there is of quota. Nothing, where the platform has none.
pub(crate) async fn buckets(session: &Session) -> Result<Vec<AllowanceBucket>> {
    let all: Api<AllowanceBucket> = Api::all(session.client.clone());
    match all.list(&ListParams::default()).await {
        Ok(found) => Ok(found.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(from_kube("cannot read the quota", &error)),
    }
}

/// What instances have asked for. Nothing, where the platform has no quota.
pub(crate) async fn claims(session: &Session) -> Result<Vec<ResourceClaim>> {
    match session.api::<ResourceClaim>().list(&ListParams::default()).await {
        Ok(found) => Ok(found.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(from_kube("cannot read what quota is used for", &error)),
    }
}

/// The history of a workload, with the object that keeps it. What belongs to a workload of that name that is gone does not count.
pub(crate) async fn history(session: &Session, workload: &Workload) -> Result<(Option<ConfigMap>, History)> {
    let name = names::revision_history_name(meta::name(&workload.metadata));
    let found = session.api::<ConfigMap>().get_opt(&name).await;
    let found = found.map_err(|error| from_kube("cannot read the history", &error))?;
    let uid = meta::uid(&workload.metadata);
    let is_ours = |map: &ConfigMap| {
        let owners = map.metadata.owner_references.as_deref().unwrap_or_default();
        owners.is_empty() || owners.iter().any(|owner| owner.uid == uid)
    };
    let data = found.as_ref().filter(|map| is_ours(map)).and_then(|map| map.data.as_ref());
    let history = data.map(History::read).unwrap_or_default();
    Ok((found, history))
}

/// The history of a workload, as far as the caller may read it: who may not sees none.
pub(crate) async fn readable_history(session: &Session, workload: &Workload) -> Result<History> {
    match history(session, workload).await {
        Ok((_, history)) => Ok(history),
        Err(failure) if failure.exit == Exit::NotAllowed => Ok(History::default()),
        Err(failure) => Err(failure),
    }
}

/// Who the caller is to the server; `None` if it does not tell.
pub(crate) async fn who(session: &Session) -> Option<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(session.client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    review.status?.user_info?.username.filter(|name| !name.is_empty())
}
