//! Every object of a plane, by kind and name.
//!
//! Events are left out: they tell what happened, belong to nobody, and expire by themselves.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use kube::api::{ApiResource, ListParams};
use kube::core::PartialObjectMeta;
use kube::discovery::{Discovery, verbs};
use kube::{Api, Client};

/// Objects by kind and its API group, each as `namespace/name`, or `name` if the kind has no namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census(pub BTreeMap<String, BTreeSet<String>>);

impl Census {
    /// How many objects there are.
    pub fn total(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    /// What is in this one and not in the other.
    pub fn beyond(&self, other: &Self) -> Self {
        let more = self.0.iter().map(|(kind, names)| {
            let known = other.0.get(kind);
            let names = names.iter().filter(|name| !known.is_some_and(|known| known.contains(*name)));
            (kind.clone(), names.cloned().collect::<BTreeSet<_>>())
        });
        Self(more.filter(|(_, names)| !names.is_empty()).collect())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeSet::is_empty)
    }
}

impl std::fmt::Display for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        for (kind, names) in &self.0 {
            let kind = kind.split('.').next().unwrap_or_default();
            for name in names {
                if !std::mem::take(&mut first) {
                    f.write_str(", ")?;
                }
                write!(f, "{kind} {name}")?;
            }
        }
        Ok(())
    }
}

/// The full name of a kind: kinds of several groups may have the same.
pub fn kind(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => resource.kind.clone(),
        group => format!("{}.{group}", resource.kind),
    }
}

/// Looks at everything that a plane serves.
///
/// # Errors
///
/// If the plane does not answer one of the questions.
pub async fn take(client: &Client) -> Result<Census> {
    let discovery =
        Discovery::new(client.clone()).run().await.context("cannot find out what the plane serves")?;
    let mut census = Census::default();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST) || resource.kind == "Event" {
                continue;
            }
            let api: Api<PartialObjectMeta> = Api::all_with(client.clone(), &resource);
            let found = api
                .list_metadata(&ListParams::default())
                .await
                .with_context(|| format!("cannot list {}", resource.plural))?;
            let names = found.items.into_iter().map(|object| {
                let name = object.metadata.name.unwrap_or_default();
                match object.metadata.namespace {
                    Some(namespace) => format!("{namespace}/{name}"),
                    None => name,
                }
            });
            let names: BTreeSet<String> = names.collect();
            if !names.is_empty() {
                census.0.insert(kind(&resource), names);
            }
        }
    }
    Ok(census)
}
