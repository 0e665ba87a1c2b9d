//! Requests to a project's ledger, and what their failures are. One that hangs is not asked, but for a probe now and then.

use std::time::Duration;

use compute_api::quota::{AllowanceBucket, ResourceClaim};
use compute_core::meta;
use compute_core::quota::claim::Failure;
use compute_runtime::write::{Error, Outage, Result, Target, Writer};
use kube::Api;
use kube::api::{ListParams, PropagationPolicy};

use super::project::Project;

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
        project: &Project,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ResourceClaim>, Failure> {
        let api: Api<ResourceClaim> = Api::namespaced(project.client().clone(), namespace);
        match self.ask(project, self.0.request(api.get(name))).await {
            Ok(claim) => Ok(Some(claim)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Makes a claim. `None` if there is one of that name.
    pub(super) async fn create(
        &self,
        project: &Project,
        claim: &ResourceClaim,
    ) -> Result<Option<ResourceClaim>, Failure> {
        let api = Api::namespaced(project.client().clone(), meta::namespace(&claim.metadata));
        match self.ask(project, self.0.create(&api, claim)).await {
            Ok(claim) => Ok(Some(claim)),
            Err(Error::AlreadyExists(_)) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    /// Deletes exactly this claim. One that is gone, or has a successor, is fine.
    pub(super) async fn delete(&self, project: &Project, claim: &ResourceClaim) -> Result<(), Failure> {
        let api: Api<ResourceClaim> =
            Api::namespaced(project.client().clone(), meta::namespace(&claim.metadata));
        let Some(target) = Target::of(claim) else { return Ok(()) };
        match self.ask(project, self.0.delete(&api, &target, PropagationPolicy::Background)).await {
            Ok(()) | Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(()),
            Err(error) => Err(failure(&error)),
        }
    }

    /// The budgets of a project that can be read.
    pub(super) async fn buckets(&self, project: &Project) -> Vec<AllowanceBucket> {
        let api: Api<AllowanceBucket> = Api::all(project.client().clone());
        let name = project.name();
        let of_project = format!("spec.consumerRef.kind=Project,spec.consumerRef.name={name}");
        let params = ListParams::default().fields(&of_project);
        match self.ask(project, self.0.request(api.list(&params))).await {
            Ok(found) => found.items,
            Err(error) => {
                tracing::debug!(project = name, error = error.kind(), "budgets cannot be read");
                Vec::new()
            }
        }
    }

    /// Makes a request, unless the ledger is known to hang.
    async fn ask<T>(&self, project: &Project, request: impl Future<Output = Result<T>>) -> Result<T> {
        if !project.may_be_asked() {
            return Err(Error::Unavailable(Outage::Timeout));
        }
        let result = request.await;
        project.answers(!matches!(result, Err(Error::Unavailable(Outage::Timeout))));
        result
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
