//! Rules for what runs: a sandbox of containers or a virtual machine, its size and its ports.

use std::collections::{BTreeMap, BTreeSet};

use compute_api::{
    compute::{
        InstanceResources, InstanceRuntime, NamedPort, Sandbox, SandboxContainer, VirtualMachine, Volume,
        VolumeAttachment,
    },
    quantity::{Amount, Quantity},
};

use super::{env, error::Errors, path::Path, syntax};
use crate::quota::size;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

pub(super) fn check_runtime(runtime: &InstanceRuntime, volumes: &[Volume], path: &Path, errors: &mut Errors) {
    check_size(&runtime.resources, &path.child("resources"), errors);
    match (&runtime.sandbox, &runtime.virtual_machine) {
        (None, None) => errors.required(path, "one of sandbox and virtualMachine is needed"),
        (Some(_), Some(_)) => {
            let why = "sandbox is set, too; exactly one of sandbox and virtualMachine may be";
            errors.forbidden(&path.child("virtualMachine"), why);
        }
        _ => {}
    }
    if let Some(sandbox) = &runtime.sandbox {
        check_sandbox(sandbox, volumes, &path.child("sandbox"), errors);
    }
    if let Some(machine) = &runtime.virtual_machine {
        check_machine(machine, volumes, &path.child("virtualMachine"), errors);
    }
}

fn check_size(resources: &InstanceResources, path: &Path, errors: &mut Errors) {
    let known = size::CATALOG.map(|one| one.name);
    let (named, field) = (resources.instance_type.as_str(), path.child("instanceType"));
    if named.is_empty() {
        errors.required(&field, format!("name an instance type, such as {:?}", known[0]));
    } else if !known.contains(&named) {
        errors.unsupported(&field, named, &known);
    }
    check_amounts(&resources.requests, &path.child("requests"), errors);
}

fn check_amounts(amounts: &BTreeMap<String, Quantity>, path: &Path, errors: &mut Errors) {
    for (resource, quantity) in amounts {
        check_amount(quantity, &path.key(resource), errors);
    }
}

/// An amount of something: what it stands for, if it is one and not negative.
pub(super) fn check_amount(quantity: &Quantity, path: &Path, errors: &mut Errors) -> Option<Amount> {
    match quantity.amount() {
        Ok(amount) if amount >= Amount::ZERO => return Some(amount),
        Ok(_) => errors.invalid(path, quantity.to_string(), "must not be negative"),
        Err(error) => errors.invalid(path, quantity.to_string(), error.to_string()),
    }
    None
}

fn check_sandbox(sandbox: &Sandbox, volumes: &[Volume], path: &Path, errors: &mut Errors) {
    let containers = path.child("containers");
    if sandbox.containers.is_empty() {
        errors.required(&containers, "at least one container is needed");
    }
    let mut names = BTreeSet::new();
    for (at, container) in sandbox.containers.iter().enumerate() {
        let path = containers.index(at);
        if syntax::check_dns_label(&container.name, &path.child("name"), "a container needs a name", errors)
            && !names.insert(&container.name)
        {
            errors.duplicate(
                &path.child("name"),
                container.name.as_str(),
                "each container needs a name of its own",
            );
        }
        check_container(container, volumes, &path, errors);
    }
    for (at, secret) in sandbox.image_pull_secrets.iter().enumerate() {
        let path = path.child("imagePullSecrets").index(at).child("name");
        syntax::check_object_name(&secret.name, &path, "name the Secret", errors);
    }
}

fn check_container(container: &SandboxContainer, volumes: &[Volume], path: &Path, errors: &mut Errors) {
    if container.image.trim().is_empty() {
        errors.required(&path.child("image"), "a container needs an image");
    }
    env::check(container, path, errors);
    check_ports(&container.ports, &path.child("ports"), errors);
    if let Some(resources) = &container.resources {
        check_amounts(&resources.limits, &path.child("resources").child("limits"), errors);
        check_amounts(&resources.requests, &path.child("resources").child("requests"), errors);
    }
    check_attachments(&container.volume_attachments, volumes, &path.child("volumeAttachments"), errors);
}

fn check_machine(machine: &VirtualMachine, volumes: &[Volume], path: &Path, errors: &mut Errors) {
    let attachments = path.child("volumeAttachments");
    match machine.volume_attachments.first() {
        None => errors.required(&attachments, "a virtual machine boots from its first volume; attach one"),
        Some(first) => {
            let named = volumes.iter().find(|volume| volume.name == first.name && !first.name.is_empty());
            if named.is_some_and(|volume| !is_bootable(volume)) {
                let rule = "a virtual machine boots from its first volume, so this must be a disk with disk.template.spec.populator.image";
                errors.invalid(&attachments.index(0).child("name"), first.name.as_str(), rule);
            }
        }
    }
    check_attachments(&machine.volume_attachments, volumes, &attachments, errors);
    check_ports(&machine.ports, &path.child("ports"), errors);
}

fn is_bootable(volume: &Volume) -> bool {
    let populator = volume.disk.as_ref().and_then(|disk| disk.template.spec.populator.as_ref());
    populator.is_some_and(|populator| populator.image.is_some())
}

fn check_ports(ports: &[NamedPort], path: &Path, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        if syntax::check_dns_label(&port.name, &path.child("name"), "a port needs a name", errors)
            && !names.insert(&port.name)
        {
            errors.duplicate(&path.child("name"), port.name.as_str(), "each port needs a name of its own");
        }
        if !(1..=65535).contains(&port.port) {
            errors.invalid(&path.child("port"), port.port, "must be between 1 and 65535");
        }
        if let Some(protocol) = &port.protocol
            && !PROTOCOLS.contains(&protocol.as_str())
        {
            errors.unsupported(&path.child("protocol"), protocol.as_str(), &PROTOCOLS);
        }
    }
}

fn check_attachments(attachments: &[VolumeAttachment], volumes: &[Volume], path: &Path, errors: &mut Errors) {
    let mut mounts = BTreeSet::new();
    for (at, attachment) in attachments.iter().enumerate() {
        let (path, name) = (path.index(at), attachment.name.as_str());
        if name.is_empty() {
            errors.required(&path.child("name"), "name the volume");
        } else if !volumes.iter().any(|volume| volume.name == name) {
            errors.not_found(
                &path.child("name"),
                name,
                "no volume of this name is in spec.template.spec.volumes",
            );
        }
        let Some(mount) = &attachment.mount_path else { continue };
        let field = path.child("mountPath");
        if !mount.starts_with('/') {
            errors.invalid(&field, mount.as_str(), "must be an absolute path, such as /data");
        } else if mount.split('/').any(|part| part == "..") {
            errors.invalid(&field, mount.as_str(), "must not contain '..'");
        } else if !mounts.insert(parts(mount)) {
            errors.duplicate(&field, mount.as_str(), "only one volume can be mounted at a path");
        }
    }
}

/// A path without what makes no difference to it.
fn parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}
