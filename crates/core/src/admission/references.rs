//! What a Workload refers to: networks, ConfigMaps, Secrets and cities. Which of it has to be looked up, and what that means.
//!
//! Names that could not be names are left out: they are refused for that, and nobody is asked about them.

use std::collections::BTreeSet;

use compute_api::compute::{InstanceSpec, Workload};

use super::{
    error::Errors,
    facts::{Facts, Needs, NetworkFact},
    path::Path,
    placements::is_city_code,
    syntax::is_object_name,
};
use crate::referenced_data::Source;

/// A reference, and where it stands.
type Placed<T> = (Path, T);

/// What has to be looked up for a write.
pub(super) fn needs(new: &Workload, old: Option<&Workload>, namespace: &str) -> Needs {
    Needs {
        networks: added_networks(new, old, namespace).into_iter().map(|(_, name)| name.to_owned()).collect(),
        sources: added_sources(new, old).into_iter().map(|(_, source)| source).collect(),
        cities: !added_cities(new, old).is_empty(),
    }
}

/// Judges what a write adds.
pub(super) fn judge(
    new: &Workload,
    old: Option<&Workload>,
    namespace: &str,
    facts: &Facts,
    errors: &mut Errors,
) {
    for (path, name) in added_networks(new, old, namespace) {
        match facts.networks.get(name) {
            Some(NetworkFact::Usable) => {}
            Some(NetworkFact::Missing) => {
                errors.not_found(
                    &path,
                    name,
                    format!("there is no network of this name in namespace {namespace:?}"),
                );
            }
            Some(NetworkFact::NotAllowed) => {
                let why = format!("you may not use network {name:?}; ask for permission to \"use\" it");
                errors.forbidden(&path, why);
            }
            None => errors.forbidden(&path, format!("it is not known whether you may use network {name:?}")),
        }
    }
    for (path, source) in added_sources(new, old) {
        let (kind, name) = (source.kind(), source.name());
        match facts.sources.get(&source) {
            Some(true) => {}
            Some(false) => {
                let why = format!("you may not read {kind} {name:?}; ask for permission to \"get\" it");
                errors.forbidden(&path, why);
            }
            None => errors.forbidden(&path, format!("it is not known whether you may read {kind} {name:?}")),
        }
    }
    for (path, city) in added_cities(new, old) {
        let Some(offered) = &facts.offered else {
            errors
                .forbidden(&path, format!("it is not known whether city {city} is offered to this project"));
            continue;
        };
        if let Err(why) = offered.find(city) {
            let all: Vec<_> = offered.cities().collect();
            let others = match all.is_empty() {
                true => "no city is offered to it".to_owned(),
                false => format!("offered are {}", all.join(", ")),
            };
            errors.not_offered(&path, city, format!("{}; {others}", why.explain(city)));
        }
    }
}

fn added_networks<'a>(new: &'a Workload, old: Option<&Workload>, namespace: &str) -> Vec<Placed<&'a str>> {
    let known: BTreeSet<&str> = old.iter().flat_map(|old| networks(old)).map(|(_, name, _)| name).collect();
    networks(new)
        .filter(|(_, name, of)| {
            is_object_name(name) && (of.is_empty() || *of == namespace) && !known.contains(name)
        })
        .map(|(path, name, _)| (path, name))
        .collect()
}

fn networks(workload: &Workload) -> impl Iterator<Item = (Path, &str, &str)> {
    let interfaces = workload.spec.template.spec.network_interfaces.iter().enumerate();
    interfaces.map(|(at, interface)| {
        let path = template_spec().child("networkInterfaces").index(at).child("network").child("name");
        let network = &interface.network;
        (path, network.name.as_str(), network.namespace.as_deref().unwrap_or_default())
    })
}

fn added_sources(new: &Workload, old: Option<&Workload>) -> Vec<Placed<Source>> {
    let spec = |workload: &Workload| sources(&workload.spec.template.spec);
    let known: BTreeSet<Source> = old.into_iter().flat_map(spec).map(|(_, source)| source).collect();
    let all = spec(new).into_iter();
    all.filter(|(_, source)| is_object_name(source.name()) && !known.contains(source)).collect()
}

/// Every ConfigMap and Secret that an instance names, optional ones too: what is there is handed to the instance.
fn sources(spec: &InstanceSpec) -> Vec<Placed<Source>> {
    let mut found = Vec::new();
    let config_map = |name: &str| Source::ConfigMap(name.to_owned());
    let secret = |name: &str| Source::Secret(name.to_owned());
    if let Some(sandbox) = &spec.runtime.sandbox {
        let path = template_spec().child("runtime").child("sandbox");
        for (at, container) in sandbox.containers.iter().enumerate() {
            let path = path.child("containers").index(at);
            for (at, variable) in container.env.iter().enumerate() {
                let Some(from) = &variable.value_from else { continue };
                let path = path.child("env").index(at).child("valueFrom");
                if let Some(key) = &from.config_map_key_ref {
                    found.push((path.child("configMapKeyRef").child("name"), config_map(&key.name)));
                }
                if let Some(key) = &from.secret_key_ref {
                    found.push((path.child("secretKeyRef").child("name"), secret(&key.name)));
                }
            }
            for (at, from) in container.env_from.iter().enumerate() {
                let path = path.child("envFrom").index(at);
                if let Some(source) = &from.config_map_ref {
                    found.push((path.child("configMapRef").child("name"), config_map(&source.name)));
                }
                if let Some(source) = &from.secret_ref {
                    found.push((path.child("secretRef").child("name"), secret(&source.name)));
                }
            }
        }
        for (at, named) in sandbox.image_pull_secrets.iter().enumerate() {
            found.push((path.child("imagePullSecrets").index(at).child("name"), secret(&named.name)));
        }
    }
    for (at, volume) in spec.volumes.iter().enumerate() {
        let path = template_spec().child("volumes").index(at);
        if let Some(source) = &volume.config_map {
            found.push((path.child("configMap").child("name"), config_map(&source.name)));
        }
        if let Some(source) = &volume.secret {
            let name = source.secret_name.as_deref().unwrap_or_default();
            found.push((path.child("secret").child("secretName"), secret(name)));
        }
    }
    found
}

/// Cities that a placement did not have. A city that moves to another placement loses its deployment there and gets a new one, so it
/// counts as added.
fn added_cities<'a>(new: &'a Workload, old: Option<&Workload>) -> Vec<Placed<&'a str>> {
    let known: BTreeSet<(&str, String)> = old
        .iter()
        .flat_map(|old| &old.spec.placements)
        .flat_map(|placement| {
            placement.city_codes.iter().map(|city| (placement.name.as_str(), city.to_ascii_lowercase()))
        })
        .collect();
    let mut added = Vec::new();
    for (at, placement) in new.spec.placements.iter().enumerate() {
        let path = Path::new("spec").child("placements").index(at).child("cityCodes");
        for (at, city) in placement.city_codes.iter().enumerate() {
            if is_city_code(city) && !known.contains(&(placement.name.as_str(), city.to_ascii_lowercase())) {
                added.push((path.index(at), city.as_str()));
            }
        }
    }
    added
}

fn template_spec() -> Path {
    Path::new("spec").child("template").child("spec")
}
