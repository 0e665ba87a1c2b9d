//! The template that a deployment's instances should be on, and whether one is.
//!
//! That is the stored template with the later of its own `restartedAt` and the deployment's.

use compute_api::{
    annotations::{ALLOWED_IN_TEMPLATES, RESTARTED_AT},
    compute::{Instance, InstanceSpec, InstanceTemplate, WorkloadDeployment},
    template_hash,
};

use super::build;
use crate::{meta, restart};

/// The template that instances should be on.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The template.
    pub template: InstanceTemplate,
    /// Its hash.
    pub hash: String,
}

/// The template that the instances of a deployment should be on.
pub fn desired(deployment: &WorkloadDeployment) -> Desired {
    let own = meta::annotation(&deployment.metadata, RESTARTED_AT);
    let template = restart::with_later(deployment.spec.template.clone(), own);
    let hash = template_hash::of(&template);
    Desired { template, hash }
}

impl Desired {
    /// Whether the instance was made from this template. A hash of another form says nothing; such an
    /// instance is compared by content.
    pub fn matches(&self, instance: &Instance) -> bool {
        match instance.spec.template_hash() {
            Some(hash) if template_hash::is_ours(hash) => hash == self.hash,
            _ => self.has_content_of(instance),
        }
    }

    /// Whether the provider says that it runs this template.
    pub fn is_observed(&self, instance: &Instance) -> bool {
        let Some(observed) = instance.status.as_ref().and_then(|status| status.observed_template_hash())
        else {
            return false;
        };
        observed == self.hash
            || (!template_hash::is_ours(observed)
                && instance.spec.template_hash() == Some(observed)
                && self.has_content_of(instance))
    }

    fn has_content_of(&self, instance: &Instance) -> bool {
        let bare = |spec: &InstanceSpec| InstanceSpec { controller: None, location: None, ..spec.clone() };
        let wanted = build::template_metadata(&self.template);
        // Whoever made the instance has added to its metadata, so only what the template asks for is looked
        // at; the keys of ours that a template may carry have no other source and must be equal.
        let ours_equal = ALLOWED_IN_TEMPLATES.iter().all(|key| {
            wanted.annotations.get(*key).map(String::as_str) == meta::annotation(&instance.metadata, key)
        });
        ours_equal
            && meta::covers(instance.metadata.labels.as_ref(), Some(&wanted.labels))
            && meta::covers(instance.metadata.annotations.as_ref(), Some(&wanted.annotations))
            && template_hash::same_content(&bare(&self.template.spec), &bare(&instance.spec))
    }
}
