//! ConfigMaps and Secrets that a template names: which they are, and whether their companions are there.
//!
//! [`required`] reads a template. The resolver records the companions that it expects on the deployment
//! ([`Expected`]), and a cell compares that with what has arrived ([`condition`]).

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{
    annotations::{EXPECTED_REFERENCED_DATA, REFERENCED_DATA_ERROR},
    compute::{InstanceSpec, WorkloadDeployment},
    conditions::{self as c, Status, Update},
    names,
};
use serde_json::{Value, json};

use crate::{meta, rollup::deployment::observed_generation};

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

/// What the resolver records on a deployment: the companions that the cell must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The generation of the project's object that this was worked out for.
    pub generation: i64,
    /// Names of the companions.
    pub companions: BTreeSet<String>,
}

impl Expected {
    /// What a template of that generation needs.
    pub fn of(spec: &InstanceSpec, generation: i64) -> Self {
        Self { generation, companions: required(spec).iter().map(Source::companion_name).collect() }
    }

    /// The value of the annotation.
    pub fn to_annotation(&self) -> String {
        json!({ "generation": self.generation, "companions": self.companions }).to_string()
    }

    /// Reads the value of the annotation. `None` if it cannot be read, which is as good as not being there.
    pub fn parse(annotation: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(annotation).ok()?;
        let companions = value.get("companions")?.as_array()?;
        let companions = companions.iter().map(|name| name.as_str().map(str::to_owned));
        Some(Self {
            generation: value.get("generation")?.as_i64()?,
            companions: companions.collect::<Option<_>>()?,
        })
    }
}

/// Why the resolver cannot provide what a template names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The generation of the project's object that this was worked out for.
    pub generation: i64,
    /// Which of the reasons for it.
    pub reason: Problem,
    /// What is wrong, without any value.
    pub message: String,
}

/// What can be wrong with a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It does not exist.
    NotFound,
    /// It may not be read.
    Unauthorized,
    /// It, or all of them together, is too large.
    TooLarge,
}

impl Problem {
    /// The reason of the condition.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => c::SOURCE_NOT_FOUND,
            Self::Unauthorized => c::SOURCE_UNAUTHORIZED,
            Self::TooLarge => c::SOURCE_TOO_LARGE,
        }
    }
}

impl Unresolved {
    /// The value of the annotation.
    pub fn to_annotation(&self) -> String {
        json!({ "generation": self.generation, "reason": self.reason.reason(), "message": self.message })
            .to_string()
    }

    /// Reads the value of the annotation. `None` if it cannot be read.
    pub fn parse(annotation: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(annotation).ok()?;
        let reason = value.get("reason")?.as_str()?;
        let problems = [Problem::NotFound, Problem::Unauthorized, Problem::TooLarge];
        let reason = problems.into_iter().find(|problem| problem.reason() == reason)?;
        let message = value.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { generation: value.get("generation")?.as_i64()?, reason, message })
    }
}

/// The most bytes of one source.
pub const MAX_SOURCE_BYTES: usize = 512 * 1024;
/// The most bytes of all sources of a deployment.
pub const MAX_DEPLOYMENT_BYTES: usize = 1024 * 1024;

/// The first source that is too large, or the message that all are together.
pub fn too_large<'a>(sizes: impl IntoIterator<Item = (&'a Source, usize)>) -> Option<String> {
    let sizes: BTreeMap<_, _> = sizes.into_iter().collect();
    if let Some((source, size)) = sizes.iter().find(|(_, size)| **size > MAX_SOURCE_BYTES) {
        let (kind, name) = (source.kind(), source.name());
        return Some(format!("{kind} {name} has {size} bytes, {MAX_SOURCE_BYTES} are allowed"));
    }
    let total: usize = sizes.values().sum();
    (total > MAX_DEPLOYMENT_BYTES).then(|| {
        format!("The ConfigMaps and Secrets have {total} bytes together, {MAX_DEPLOYMENT_BYTES} are allowed")
    })
}

/// What to say as `ReferencedDataReady` of an instance; `None` if it names no data. `is_there` says whether the
/// instance's namespace has the companion of a name.
pub fn condition(
    instance: &InstanceSpec,
    deployment: &WorkloadDeployment,
    is_there: impl Fn(&str) -> bool,
) -> Option<Update> {
    let needed: BTreeSet<_> = required(instance).iter().map(Source::companion_name).collect();
    if needed.is_empty() {
        return None;
    }
    let say = |status, reason: &str, message: String| {
        Some(Update::new(c::REFERENCED_DATA_READY, status, reason, message))
    };
    let generation = observed_generation(deployment);
    let noted = |key| meta::annotation(&deployment.metadata, key);
    let unresolved = noted(REFERENCED_DATA_ERROR).and_then(Unresolved::parse);
    if let Some(wrong) = unresolved.filter(|wrong| Some(wrong.generation) == generation) {
        return say(Status::False, wrong.reason.reason(), wrong.message);
    }
    let expected = noted(EXPECTED_REFERENCED_DATA).and_then(Expected::parse);
    let Some(expected) = expected.filter(|expected| Some(expected.generation) == generation) else {
        let message = "It is being worked out which ConfigMaps and Secrets are needed".to_owned();
        return say(Status::False, c::RESOLVING, message);
    };
    // What the resolver knows of may be more than the instance names, if that is of an earlier template.
    let missing: Vec<_> =
        needed.union(&expected.companions).filter(|name| !is_there(name)).map(String::as_str).collect();
    if missing.is_empty() {
        return say(Status::True, c::DATA_READY, "Every ConfigMap and Secret is there".to_owned());
    }
    say(Status::False, c::AWAITING_PROPAGATION, format!("On their way to the cell: {}", missing.join(", ")))
}

#[cfg(test)]
mod tests;
