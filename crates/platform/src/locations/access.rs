//! Access to services: the catalog in core, and what becomes of a project's requests.
//!
//! A request for a service that the catalog has is granted after a while, and says meanwhile that it is being activated. What somebody has
//! decided stands.

use compute_api::conditions;
use compute_api::k8s::ObjectMeta;
use compute_api::kube::{Api, Resource as _};
use compute_api::milo::{
    self, COMPUTE_ENTITLEMENT, ServiceConfiguration, ServiceConfigurationSpec, ServiceEntitlement,
    ServiceLocations,
};
use compute_core::location::offer::{self, DATUM_MANAGED, Progress};
use compute_core::meta;
use compute_runtime::controller::Error;
use compute_runtime::write::{self, Writer};
use compute_runtime::{Next, Plane};
use serde_json::json;

use super::offers::{Offers, Project, gone_is_fine};

/// The compute service's entry of the catalog, for the core plane.
pub fn catalog() -> ServiceConfiguration {
    let supported_classes = vec![DATUM_MANAGED.to_owned()];
    ServiceConfiguration {
        metadata: ObjectMeta { name: Some(COMPUTE_ENTITLEMENT.to_owned()), ..ObjectMeta::default() },
        spec: ServiceConfigurationSpec { locations: ServiceLocations { supported_classes } },
    }
}

/// Makes the compute service's entry of the catalog in the core plane. What is there stays as it is.
///
/// # Errors
/// If it cannot be made. May be tried again.
pub async fn seed_core(core: &Plane) -> write::Result<()> {
    let api: Api<ServiceConfiguration> = Api::all(core.client().clone());
    match Writer::new("catalog").create(&api, &catalog()).await {
        Ok(_) | Err(write::Error::AlreadyExists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

impl Offers {
    /// Grants requests for access; when the next one is due.
    pub(super) async fn grant(&self, project: &Project) -> Result<Next, Error> {
        let now = project.plane.runtime().clock().now();
        let mut next = None;
        for request in project.entitlements.list() {
            let service = &request.spec.service_ref.name;
            if self.core.catalog.is_unreadable("", service) {
                continue;
            }
            let entry = self.core.catalog.get("", service);
            let offered = entry.is_some_and(|entry| !meta::is_being_deleted(&entry.metadata));
            let Progress { say, again } = offer::progress(&request, offered, self.rules.entitle_after, now);
            next = [next, again].into_iter().flatten().min();
            let Some(update) = say else { continue };
            let held = request.status.as_ref().map_or(&[][..], |status| &status.conditions);
            let held = conditions::find(held, milo::CONDITION_READY);
            let update = update.of_generation(request.metadata.generation);
            let fields = json!({
                "apiVersion": ServiceEntitlement::api_version(&()), "kind": ServiceEntitlement::kind(&()),
                "metadata": { "uid": request.metadata.uid },
                "status": { "conditions": [conditions::next(held, update, now)] },
            });
            let api: Api<ServiceEntitlement> = Api::all(project.plane.client().clone());
            gone_is_fine(self.writer.apply_status(&api, meta::name(&request.metadata), &fields).await)?;
        }
        Ok(next.map_or(Next::Done, Next::After))
    }

    /// The classes of locations that the compute service supports; `None` if its entry cannot be read.
    pub(super) fn supported_classes(&self) -> Option<Vec<String>> {
        let catalog = &self.core.catalog;
        if catalog.is_unreadable("", COMPUTE_ENTITLEMENT) {
            return None;
        }
        let entry = catalog.get("", COMPUTE_ENTITLEMENT);
        Some(entry.map(|entry| entry.spec.locations.supported_classes.clone()).unwrap_or_default())
    }
}
