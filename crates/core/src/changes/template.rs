//! What differs between two templates.

use std::collections::BTreeMap;

use compute_api::{
    annotations::{RESTARTED_AT, SSH_KEYS},
    compute::{InstanceSpec, InstanceTemplate, SandboxContainer},
    quantity::Quantity,
    template_hash,
};
use serde::Serialize;

use super::{Change, How};

pub(super) fn between(from: &InstanceTemplate, to: &InstanceTemplate) -> Vec<Change> {
    let mut found = Vec::new();
    runtime(&from.spec, &to.spec, &mut found);
    let (old, new) = (&from.spec, &to.spec);
    let networks = |spec: &InstanceSpec| {
        let names: Vec<_> = spec.network_interfaces.iter().map(|one| one.network.name.clone()).collect();
        names.join(", ")
    };
    if networks(old) != networks(new) {
        found.push(Change::new("network", networks(old), networks(new)));
    } else if differs(&old.network_interfaces, &new.network_interfaces) {
        found.push(Change::said("network rules changed"));
    }
    named(
        "volume",
        &by_name(&old.volumes, |one| &one.name),
        &by_name(&new.volumes, |one| &one.name),
        &mut found,
    );
    metadata(from, to, &mut found);
    found
}

fn differs<T: Serialize>(a: &T, b: &T) -> bool {
    !template_hash::same_content(a, b)
}

fn by_name<'a, T>(list: &'a [T], name: impl Fn(&'a T) -> &'a str) -> BTreeMap<&'a str, &'a T> {
    list.iter().map(|one| (name(one), one)).collect()
}

/// Things with a name: which came, went and changed.
fn named<T: Serialize>(
    what: &str,
    from: &BTreeMap<&str, &T>,
    to: &BTreeMap<&str, &T>,
    found: &mut Vec<Change>,
) {
    for (name, new) in to {
        match from.get(name) {
            None => found.push(Change { what: format!("{what} {name}"), how: How::Added(None) }),
            Some(old) if differs(old, new) => found.push(Change::said(format!("{what} {name} changed"))),
            Some(_) => {}
        }
    }
    let gone = from.keys().filter(|name| !to.contains_key(*name));
    found.extend(gone.map(|name| Change { what: format!("{what} {name}"), how: How::Removed }));
}

fn runtime(from: &InstanceSpec, to: &InstanceSpec, found: &mut Vec<Change>) {
    let (old, new) = (&from.runtime, &to.runtime);
    let kind = |spec: &InstanceSpec| match spec.runtime.virtual_machine {
        Some(_) => "virtual machine",
        None => "containers",
    };
    if kind(from) != kind(to) {
        found.push(Change::new("runtime", kind(from), kind(to)));
    }
    let containers = |spec: &InstanceSpec| -> Vec<SandboxContainer> {
        spec.runtime.sandbox.clone().unwrap_or_default().containers
    };
    let (before, after) = (containers(from), containers(to));
    let (before, after) = (by_name(&before, |one| &one.name), by_name(&after, |one| &one.name));
    let several = before.len() > 1 || after.len() > 1;
    for (name, container) in &after {
        let prefix = if several { format!("{name} ") } else { String::new() };
        match before.get(name) {
            None => found.push(Change {
                what: format!("container {name}"),
                how: How::Added(Some(container.image.clone())),
            }),
            Some(old) => of_container(&prefix, old, container, found),
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    found.extend(gone.map(|name| Change { what: format!("container {name}"), how: How::Removed }));
    let secrets = |spec: &InstanceSpec| spec.runtime.sandbox.clone().unwrap_or_default().image_pull_secrets;
    if secrets(from) != secrets(to) {
        found.push(Change::said("image pull secrets changed"));
    }
    if differs(&old.virtual_machine, &new.virtual_machine) && kind(from) == kind(to) {
        found.push(Change::said("virtual machine changed"));
    }
    if old.resources.instance_type != new.resources.instance_type {
        let (from, to) = (old.resources.instance_type.as_str(), new.resources.instance_type.as_str());
        found.push(Change::new("instance type", from, to));
    }
    amounts("", &old.resources.requests, &new.resources.requests, found);
}

fn of_container(prefix: &str, from: &SandboxContainer, to: &SandboxContainer, found: &mut Vec<Change>) {
    if from.image != to.image {
        let (old, new) = images(&from.image, &to.image);
        found.push(Change::new(format!("{prefix}image"), old, new));
    }
    for (what, old, new) in [("command", &from.command, &to.command), ("arguments", &from.args, &to.args)] {
        let text = |words: &[String]| match words {
            [] => "the image's".to_owned(),
            words => words.join(" "),
        };
        if old != new {
            found.push(Change::new(format!("{prefix}{what}"), text(old), text(new)));
        }
    }
    let env = |one: &SandboxContainer| one.env.clone();
    let (old, new) = (env(from), env(to));
    named(&format!("{prefix}env"), &by_name(&old, |one| &one.name), &by_name(&new, |one| &one.name), found);
    if differs(&from.env_from, &to.env_from) {
        found.push(Change::said(format!("{prefix}sources of variables changed")));
    }
    ports(prefix, from, to, found);
    let limits = |one: &SandboxContainer| one.resources.clone().unwrap_or_default();
    amounts(&format!("{prefix}limit "), &limits(from).limits, &limits(to).limits, found);
    amounts(&format!("{prefix}request "), &limits(from).requests, &limits(to).requests, found);
    if from.volume_attachments != to.volume_attachments {
        found.push(Change::said(format!("{prefix}mounts changed")));
    }
}

fn ports(prefix: &str, from: &SandboxContainer, to: &SandboxContainer, found: &mut Vec<Change>) {
    let (before, after) = (by_name(&from.ports, |one| &one.name), by_name(&to.ports, |one| &one.name));
    let text = |port: &compute_api::compute::NamedPort| match port.protocol.as_deref() {
        None | Some("TCP") => port.port.to_string(),
        Some(protocol) => format!("{}/{protocol}", port.port),
    };
    for (name, port) in &after {
        let what = format!("{prefix}port {name}");
        match before.get(name) {
            None => found.push(Change { what, how: How::Added(Some(text(port))) }),
            Some(old) if text(old) != text(port) => found.push(Change::new(what, text(old), text(port))),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    found.extend(gone.map(|name| Change { what: format!("{prefix}port {name}"), how: How::Removed }));
}

fn amounts(
    prefix: &str,
    from: &BTreeMap<String, Quantity>,
    to: &BTreeMap<String, Quantity>,
    found: &mut Vec<Change>,
) {
    let text = |amounts: &BTreeMap<String, Quantity>, name: &str| {
        let amount = amounts.get(name).map(|amount| serde_json::to_value(amount).unwrap_or_default());
        amount.map_or_else(|| "none".to_owned(), |value| value.to_string().trim_matches('"').to_owned())
    };
    let names: std::collections::BTreeSet<_> = from.keys().chain(to.keys()).collect();
    for name in names {
        let (old, new) = (text(from, name), text(to, name));
        if old != new {
            found.push(Change::new(format!("{prefix}{name}"), old, new));
        }
    }
}

fn metadata(from: &InstanceTemplate, to: &InstanceTemplate, found: &mut Vec<Change>) {
    let none = Default::default();
    let (old, new) = (from.metadata.as_ref().unwrap_or(&none), to.metadata.as_ref().unwrap_or(&none));
    let names = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| -> Vec<String> {
        a.keys().chain(b.keys()).cloned().collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    for (what, old, new) in
        [("label", &old.labels, &new.labels), ("annotation", &old.annotations, &new.annotations)]
    {
        for key in names(old, new) {
            match (old.get(&key), new.get(&key)) {
                (a, b) if a == b => {}
                (_, Some(_)) if key == RESTARTED_AT => found.push(Change::said("restart")),
                (Some(_), None) if key == RESTARTED_AT => {}
                _ if key == SSH_KEYS => found.push(Change::said("ssh keys changed")),
                (None, Some(_)) => {
                    found.push(Change { what: format!("{what} {key}"), how: How::Added(None) })
                }
                (Some(_), None) => found.push(Change { what: format!("{what} {key}"), how: How::Removed }),
                (Some(a), Some(b)) if what == "label" => {
                    found.push(Change::new(format!("{what} {key}"), a.as_str(), b.as_str()));
                }
                _ => found.push(Change::said(format!("{what} {key} changed"))),
            }
        }
    }
}

/// Two images in as few words as tell them apart: their tags, if they are of one repository.
fn images(from: &str, to: &str) -> (String, String) {
    let split = |image: &str| -> Option<(String, String)> {
        let slash = image.rfind('/').map_or(0, |at| at + 1);
        let at = image[slash..].find(['@', ':'])? + slash;
        Some((image[..at].to_owned(), image[at + 1..].to_owned()))
    };
    match (split(from), split(to)) {
        (Some((a, old)), Some((b, new))) if a == b => (old, new),
        _ => (from.to_owned(), to.to_owned()),
    }
}
