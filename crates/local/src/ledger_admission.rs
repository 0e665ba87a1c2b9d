//! The quota ledger's say in what claims are made: a claim that it could never answer is refused when it is made, and what a claim asks
//! for cannot be changed. What is refused, and why, is decided in [`compute_core::ledger::admission`].
//!
//! # Guarantees
//!
//! - A claim is refused only by what core itself says at that moment: a watch that is behind, or broken, refuses nothing. What passes
//!   by mistake the ledger calls invalid later.
//! - The server keeps the hook for ever, and the hook keeps nothing of the platform: it lets everything through once that is gone.

use std::sync::{Arc, Weak};

use compute_api::quota::{GROUP, ResourceClaim, ResourceRegistration};
use compute_apiserver::hooks::{AdmissionRequest, Denial, Hook, HookError, Operation, Outcome, Rule, Rules};
use compute_core::ledger::admission::{Problem, check, check_update};
use compute_runtime::{Cache, Plane};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::planes;

const NAME: &str = "claims.quota.miloapis.com";

/// What is registered in core.
pub struct Registrations {
    core: Plane,
    cache: Cache<ResourceRegistration>,
}

impl Registrations {
    /// Those of this core plane, from now on.
    pub fn of(core: Plane) -> Arc<Self> {
        Arc::new(Self { cache: core.cache(), core })
    }

    /// Whether a claim fits them.
    async fn check(&self, claim: &ResourceClaim) -> Result<Result<(), Problem>, HookError> {
        let known = self.cache.list();
        let known: Vec<_> = known.iter().map(|one| &**one).collect();
        if check(&claim.spec, &known).is_ok() {
            return Ok(Ok(()));
        }
        // What was registered a moment ago may not be known yet.
        let kind = ApiResource::erase::<ResourceRegistration>(&());
        let api: Api<DynamicObject> = Api::all_with(self.core.client().clone(), &kind);
        let found = api.list(&ListParams::default()).await?;
        // One that cannot be read registers nothing, and stands in nobody's way.
        let found: Vec<ResourceRegistration> =
            found.items.into_iter().filter_map(|one| one.try_parse().ok()).collect();
        Ok(check(&claim.spec, &found.iter().collect::<Vec<_>>()).map(|_| ()))
    }
}

/// The hook that refuses claims in projects.
pub fn hook(registrations: &Arc<Registrations>) -> Arc<dyn Hook> {
    let rule = Rule::new(&[Operation::Create, Operation::Update], GROUP, &["resourceclaims"]);
    Arc::new(Claims { registrations: Arc::downgrade(registrations), rules: Rules(vec![rule]) })
}

struct Claims {
    registrations: Weak<Registrations>,
    rules: Rules,
}

impl Claims {
    async fn judge(&self, request: &AdmissionRequest) -> Result<Outcome, HookError> {
        let Some(new) = &request.object else { return Ok(Outcome::allow()) };
        let new: ResourceClaim = decode(new)?;
        let judged = match &request.old_object {
            // One that could not be read can be mended.
            Some(old) => match decode::<ResourceClaim>(old) {
                Ok(old) => check_update(&old.spec, &new.spec),
                Err(_) => Ok(()),
            },
            None => match self.registrations.upgrade() {
                Some(registrations) => registrations.check(&new).await?,
                None => Ok(()),
            },
        };
        Ok(judged.map_or_else(|problem| Outcome::deny(denial(&problem)), |()| Outcome::allow()))
    }
}

fn decode<K: DeserializeOwned>(object: &Value) -> Result<K, HookError> {
    // The text of the failure could show the object.
    serde::Deserialize::deserialize(object).map_err(|_: serde_json::Error| "the claim cannot be read".into())
}

fn denial(problem: &Problem) -> Denial {
    let message = format!("the quota ledger does not take the claim: {problem}");
    match problem {
        Problem::NotRegistered(_) => Denial::new(403, "Forbidden", message),
        _ => Denial::new(422, "Invalid", message),
    }
}

impl Hook for Claims {
    fn name(&self) -> &str {
        NAME
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn in_plane(&self, plane: &str) -> bool {
        planes::is_project_name(plane)
    }

    fn validate<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, Result<Outcome, HookError>> {
        self.judge(request).boxed()
    }
}
