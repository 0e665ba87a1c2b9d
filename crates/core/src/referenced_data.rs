//! ConfigMaps and Secrets that a template names: which they are, and whether their companions are there.
//!
//! [`required`] reads a template. The resolver records the companions that it expects on the deployment
//! ([`Expected`]), and a cell compares that with what has arrived ([`condition`]).

use std::collections::BTreeSet;

use compute_api::{compute::InstanceSpec, names};

/// A ConfigMap or Secret of a project, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A ConfigMap.
    ConfigMap(String),
    /// A Secret.
    Secret(String),
}

impl Source {
    /// The name of its companion on the hub and in cells.
    pub fn companion_name(&self) -> String {
        match self {
            Self::ConfigMap(name) => names::config_map_companion_name(name),
            Self::Secret(name) => names::secret_companion_name(name),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ConfigMap(_) => "ConfigMap",
            Self::Secret(_) => "Secret",
        }
    }

    /// Its name in the project.
    pub fn name(&self) -> &str {
        match self {
            Self::ConfigMap(name) | Self::Secret(name) => name,
        }
    }
}

/// The sources that an instance cannot start without. Those that are only ever named as optional are left
/// out: nothing waits for them and nothing carries them.
pub fn required(spec: &InstanceSpec) -> BTreeSet<Source> {
    let mut found = BTreeSet::new();
    let mut add = |source: Source, optional: Option<bool>| {
        if optional != Some(true) && !source.name().is_empty() {
            found.insert(source);
        }
    };
    if let Some(sandbox) = &spec.runtime.sandbox {
        for container in &sandbox.containers {
            for value in container.env.iter().filter_map(|variable| variable.value_from.as_ref()) {
                if let Some(key) = &value.config_map_key_ref {
                    add(Source::ConfigMap(key.name.clone()), key.optional);
                }
                if let Some(key) = &value.secret_key_ref {
                    add(Source::Secret(key.name.clone()), key.optional);
                }
            }
            for from in &container.env_from {
                if let Some(source) = &from.config_map_ref {
                    add(Source::ConfigMap(source.name.clone()), source.optional);
                }
                if let Some(source) = &from.secret_ref {
                    add(Source::Secret(source.name.clone()), source.optional);
                }
            }
        }
        for secret in &sandbox.image_pull_secrets {
            add(Source::Secret(secret.name.clone()), None);
        }
    }
    for volume in &spec.volumes {
        if let Some(source) = &volume.config_map {
            add(Source::ConfigMap(source.name.clone()), source.optional);
        }
        if let Some(source) = &volume.secret {
            add(Source::Secret(source.secret_name.clone().unwrap_or_default()), source.optional);
        }
    }
    found
}
