//! What leaves the hub: the copy of a deployment that is being deleted, copies in the hub namespace of a predecessor, and copies whose
//! project has no such deployment.

use std::collections::BTreeSet;

use anyhow::Context as _;
use compute_api::compute::WorkloadDeployment;
use compute_api::k8s::ObjectMeta;
use compute_api::kube::Api;
use compute_api::kube::api::PropagationPolicy;
use compute_api::{annotations, finalizers, names};
use compute_core::federation::copy::{self, Superseded};
use compute_core::meta;
use compute_runtime::Key;
use compute_runtime::controller::Error;
use compute_runtime::write::{self, MetadataPatch, Target};

use super::deployments::{DeploymentFederator, deployments_of};
use crate::management::requests::{gone, says_absent};
use crate::management::view::{Hub, Project};

impl DeploymentFederator {
    /// Makes the delete calls for every copy there may be, then lets the project's object go.
    pub(super) async fn release(
        &self,
        key: &Key,
        project: &Project,
        deployment: &ObjectMeta,
    ) -> Result<(), Error> {
        let finalizers = deployment.finalizers.as_deref().unwrap_or_default();
        let (ours, others): (Vec<_>, Vec<_>) =
            finalizers.iter().cloned().partition(|held| held == finalizers::FEDERATOR);
        if ours.is_empty() {
            return Ok(());
        }
        self.remove_superseded(key, None).await?;
        for hub_namespace in recorded(project, deployment) {
            // The watch may be behind: what was written a moment ago must not be left. Metadata will do, and can be decoded whatever
            // the copy is like.
            let api: Api<WorkloadDeployment> = Api::namespaced(self.hub.client(), &hub_namespace);
            let found = self.writer.request(api.get_metadata_opt(&key.name)).await;
            let found = found.context("reading the copy")?;
            let found = found.filter(|found| Hub::upstream_key(&found.metadata).as_ref() == Some(key));
            let target = found.filter(|found| !meta::is_being_deleted(&found.metadata));
            if let Some(target) = target.as_ref().and_then(Target::of) {
                let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
                gone(deleted).context("deleting the copy")?;
            }
        }
        let patch = MetadataPatch {
            uid: deployment.uid.clone(),
            resource_version: deployment.resource_version.clone(),
            finalizers: Some(others),
            ..MetadataPatch::default()
        };
        let api = deployments_of(project, deployment);
        match self.writer.patch_metadata(&api, &key.name, &patch).await {
            Ok(_) | Err(write::Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error).context("taking the finalizer off"),
        }
    }

    /// The same for a deployment that cannot be decoded, if it is being deleted: what is needed to let it go is its metadata.
    pub(super) async fn release_unreadable(&self, key: &Key, project: &Project) -> Result<(), Error> {
        let api: Api<WorkloadDeployment> = Api::namespaced(project.client(), &key.namespace);
        let found = self.writer.request(api.get_metadata_opt(&key.name)).await;
        match found.context("reading the metadata of the deployment")? {
            Some(found) if meta::is_being_deleted(&found.metadata) => {
                self.release(key, project, &found.metadata).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Deletes the copies of a name in all hub namespaces but the one where it belongs now.
    pub(super) async fn remove_superseded(&self, key: &Key, stays_in: Option<&str>) -> Result<(), Error> {
        for copy in self.hub.copies(key) {
            if stays_in != Some(meta::namespace(&copy.metadata)) && !meta::is_being_deleted(&copy.metadata) {
                let why = stays_in.map_or(Superseded::Deleted, |_| Superseded::Predecessor);
                self.delete_copy(&copy, why).await?;
            }
        }
        Ok(())
    }

    /// Deletes copies that stand for nothing: the project itself says that it has no such deployment.
    pub(super) async fn remove_orphans(&self, key: &Key, project: &Project) -> Result<(), Error> {
        let copies = self.hub.copies(key);
        if !copies.iter().any(|copy| copy::is_orphan(copy, true)) {
            return Ok(());
        }
        let api: Api<WorkloadDeployment> = Api::namespaced(project.client(), &key.namespace);
        // Metadata will do, and can be decoded whatever the object is like.
        let absent = match self.writer.request(api.get_metadata(&key.name)).await {
            Ok(_) => false,
            Err(error) if says_absent(&error, "workloaddeployments", &key.name) => true,
            Err(error) => return Err(error).context("asking the project for the deployment"),
        };
        for copy in copies.iter().filter(|copy| copy::is_orphan(copy, absent)) {
            self.delete_copy(copy, Superseded::Deleted).await?;
        }
        Ok(())
    }

    async fn delete_copy(&self, copy: &WorkloadDeployment, why: Superseded) -> Result<(), Error> {
        let (namespace, name) = (meta::namespace(&copy.metadata), meta::name(&copy.metadata));
        tracing::info!(hub_namespace = namespace, deployment = name, ?why, "deleting a copy");
        let Some(target) = Target::of(copy) else { return Ok(()) };
        let api: Api<WorkloadDeployment> = Api::namespaced(self.hub.client(), namespace);
        let deleted = self.writer.delete(&api, &target, PropagationPolicy::Background).await;
        gone(deleted).with_context(|| format!("deleting the copy in {namespace}"))
    }
}

/// Hub namespaces in which a deployment may have a copy: the one that it records, and the one that its namespace has now. What a person
/// has written there instead is only taken if it has the form of such a namespace.
fn recorded(project: &Project, deployment: &ObjectMeta) -> BTreeSet<String> {
    let namespace = meta::namespace(deployment);
    let active = project.active();
    let held = active.as_ref().and_then(|active| active.federated.as_ref()?.namespaces.get("", namespace));
    let present = held.map(|held| names::hub_namespace(meta::uid(&held.metadata)));
    let recorded = meta::annotation(deployment, annotations::FEDERATION_NAMESPACE);
    recorded
        .filter(|recorded| is_hub_namespace(recorded))
        .map(str::to_owned)
        .into_iter()
        .chain(present)
        .collect()
}

fn is_hub_namespace(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    names::project_namespace_uid(name).is_some()
        && name.len() <= names::MAX_LABEL_VALUE
        && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_form_of_a_hub_namespace_is_taken() {
        assert!(is_hub_namespace("ns-0f2c6e9e-7d3b-4f7e-9b7a-0d5a4a1f2b3c"));
        for other in ["", "ns-", "default", "kube-system", "ns-a/../b", "ns-A", "ns-a?x"] {
            assert!(!is_hub_namespace(other), "{other}");
        }
    }
}
