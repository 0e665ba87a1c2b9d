//! Requests to a project's ledger, and what their failures are.

use std::time::Duration;

use compute_api::quota::{AllowanceBucket, ResourceClaim};
use compute_core::meta;
use compute_core::quota::claim::Failure;
use compute_runtime::write::{Error, Target, Writer};
use kube::api::{ListParams, PropagationPolicy};
use kube::{Api, Client};

/// How long a ledger may take: a pass makes a few of these requests at most.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Makes requests to ledgers.
pub(super) struct Claims(Writer);

impl Claims {
    pub(super) fn new() -> Self {
        Self(Writer::new("instance").with_timeout(TIMEOUT))
    }

    /// The claim of a name, if there is one.
    pub(super) async fn get(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ResourceClaim>, Failure> {
        let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
        match self.0.request(api.get(name)).await {
            Ok(claim) => Ok(Some(claim)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Makes a claim. `None` if there is one of that name.
    pub(super) async fn create(
        &self,
        client: &Client,
        claim: &ResourceClaim,
    ) -> Result<Option<ResourceClaim>, Failure> {
        let api = Api::namespaced(client.clone(), meta::namespace(&claim.metadata));
        match self.0.create(&api, claim).await {
            Ok(claim) => Ok(Some(claim)),
            Err(Error::AlreadyExists(_)) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Deletes exactly this claim. One that is gone, or has a successor, is fine.
    pub(super) async fn delete(&self, client: &Client, claim: &ResourceClaim) -> Result<(), Failure> {
        let api: Api<ResourceClaim> = Api::namespaced(client.clone(), meta::namespace(&claim.metadata));
        let Some(target) = Target::of(claim) else { return Ok(()) };
        match self.0.delete(&api, &target, PropagationPolicy::Background).await {
            Ok(()) | Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }

    /// The budgets of a project that can be read.
    pub(super) async fn buckets(&self, client: &Client, project: &str) -> Vec<AllowanceBucket> {
        let api: Api<AllowanceBucket> = Api::all(client.clone());
        let of_project = format!("spec.consumerRef.kind=Project,spec.consumerRef.name={project}");
        match self.0.request(api.list(&ListParams::default().fields(&of_project))).await {
            Ok(found) => found.items,
            Err(error) => {
                tracing::debug!(project, error = error.kind(), "budgets cannot be read");
                Vec::new()
            }
        }
    }
}

/// A failed request, as a value.
fn failure(error: &Error) -> Failure {
    let status = error.status();
    Failure {
        code: status.map(|status| status.code).filter(|code| *code > 0),
        kind: status.and_then(|status| status.details.as_ref()).map(|details| details.kind.clone()),
        // Without an answer there is nothing to say but that, and the words of a transport are not for people.
        message: status.map(|status| status.message.clone()).unwrap_or_default(),
    }
}
