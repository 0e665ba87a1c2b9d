//! Giving back what an instance took.

use compute_api::compute::Instance;
use compute_api::names;
use compute_core::meta;
use compute_core::quota::claim::{self, Failure, Found, Release};
use compute_runtime::Key;
use compute_runtime::write::Error;
use kube::Api;

use super::Ledger;
use super::namespaces::Stands;
use super::project::Project;

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cell) enum Released {
    /// The instance holds nothing.
    Done,
    /// What it holds cannot be asked for any more. Why.
    Orphaned(String),
}

impl Ledger {
    pub(super) async fn release(&self, key: &Key, instance: &Instance) -> Result<Released, anyhow::Error> {
        let upstream = match self.namespaces.upstream(&key.namespace).await {
            Ok(Stands::For(upstream)) => upstream,
            Ok(Stands::ForNothing(why)) => return Ok(self.orphaned(key, why)),
            Err(error) => return Err(anyhow::Error::new(error).context("reading the namespace")),
        };
        let project = self.projects.join(&upstream, key)?;
        let name = names::claim_name(meta::name(&instance.metadata));
        let held = match self.claims.get(&project, &upstream.namespace, &name).await {
            Ok(held) => held,
            Err(failure) => return self.failed(key, &project, &failure).await,
        };
        let Some(held) = held else { return Ok(done(key, &project, false)) };
        let now = self.cell.runtime().clock().now();
        let ours = match claim::read(&held, self.claimant(instance, &upstream), None, [], now) {
            Found::Own(_) | Found::Wrong => true,
            // Of an earlier instance, which is gone, unless what we know of this one is old and the claim is its successor's.
            Found::Leftover { leaving, .. } => !leaving && self.is_still_there(instance).await?,
            Found::Foreign { .. } => false,
        };
        if ours && let Err(failure) = self.claims.delete(&project, &held).await {
            return self.failed(key, &project, &failure).await;
        }
        Ok(done(key, &project, ours && claim::is_granted(&held)))
    }

    /// Whether the cell's server still has this very instance.
    pub(super) async fn is_still_there(&self, instance: &Instance) -> Result<bool, Error> {
        let api: Api<Instance> =
            Api::namespaced(self.cell.client().clone(), meta::namespace(&instance.metadata));
        let found = self.namespaces.read(api.get_metadata_opt(meta::name(&instance.metadata))).await?;
        Ok(found.is_some_and(|found| found.metadata.uid == instance.metadata.uid))
    }

    async fn failed(
        &self,
        key: &Key,
        project: &Project,
        failure: &Failure,
    ) -> Result<Released, anyhow::Error> {
        // Only a refusal can mean that nobody may ask any more.
        let leaving = failure.code == Some(403) && self.namespaces.is_being_deleted(&key.namespace).await?;
        match claim::release_failed(failure, leaving) {
            Release::Released => Ok(done(key, project, false)),
            Release::Orphaned => {
                project.leave_line(key);
                Ok(self.orphaned(key, format!("The ledger refuses to release it: {}", failure.message)))
            }
            Release::Held => {
                let code = failure.code.map_or("no answer".to_owned(), |code| code.to_string());
                Err(anyhow::anyhow!("the quota claim cannot be released ({code}): {}", failure.message))
            }
        }
    }

    fn orphaned(&self, key: &Key, why: String) -> Released {
        tracing::error!(%key, why, "a quota claim is orphaned");
        self.metrics.orphaned();
        Released::Orphaned(why)
    }
}

/// The instance waits for nothing any more, and what it may have given back is for the others.
fn done(key: &Key, project: &Project, gave_back: bool) -> Released {
    project.forget(key);
    project.leave_line(key);
    if gave_back {
        project.released();
    }
    Released::Done
}
