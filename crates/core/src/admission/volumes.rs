//! Rules for volumes: what they are made of, and that something uses them.

use std::collections::BTreeSet;

use compute_api::{
    compute::{DiskSpec, InstanceSpec, KeyToPath, Volume},
    quantity::Amount,
};

use super::{containers::check_amount, env::exactly_one, error::Errors, path::Path, syntax};

const GIB: i64 = 1 << 30;
const SMALLEST_DISK: Amount = Amount::from_units(10 * GIB);
const LARGEST_DISK: Amount = Amount::from_units(100 * GIB);
const DISK_STEP: Amount = Amount::from_units(GIB);
/// The resource that is the size of a disk.
const STORAGE: &str = "storage";
const FILE_SYSTEMS: [&str; 1] = ["ext4"];
/// The largest permissions of a file.
const MAX_MODE: i64 = 0o777;

pub(super) fn check(spec: &InstanceSpec, path: &Path, errors: &mut Errors) {
    let attached = attached(spec);
    let mut names = BTreeSet::new();
    for (at, volume) in spec.volumes.iter().enumerate() {
        let path = path.child("volumes").index(at);
        let name = path.child("name");
        if syntax::check_dns_label(&volume.name, &name, "a volume needs a name", errors) {
            if !names.insert(volume.name.as_str()) {
                errors.duplicate(&name, volume.name.as_str(), "each volume needs a name of its own");
            } else if !attached.contains(volume.name.as_str()) {
                let rule = "nothing uses this volume; name it in volumeAttachments, or leave it out";
                errors.invalid(&name, volume.name.as_str(), rule);
            }
        }
        check_source(volume, &path, errors);
    }
}

fn attached(spec: &InstanceSpec) -> BTreeSet<&str> {
    let sandbox = spec.runtime.sandbox.iter().flat_map(|sandbox| &sandbox.containers);
    let by_containers = sandbox.flat_map(|container| &container.volume_attachments);
    let by_machine = spec.runtime.virtual_machine.iter().flat_map(|machine| &machine.volume_attachments);
    by_containers.chain(by_machine).map(|attachment| attachment.name.as_str()).collect()
}

fn check_source(volume: &Volume, path: &Path, errors: &mut Errors) {
    let sources = [volume.disk.is_some(), volume.config_map.is_some(), volume.secret.is_some()];
    exactly_one(&sources, "disk, configMap and secret", path, errors);
    if let Some(disk) = &volume.disk {
        check_disk(&disk.template.spec, &path.child("disk").child("template").child("spec"), errors);
    }
    if let Some(source) = &volume.config_map {
        let path = path.child("configMap");
        syntax::check_object_name(&source.name, &path.child("name"), "name the ConfigMap", errors);
        check_files(source.default_mode, &source.items, &path, errors);
    }
    if let Some(source) = &volume.secret {
        let path = path.child("secret");
        let name = source.secret_name.as_deref().unwrap_or_default();
        syntax::check_object_name(name, &path.child("secretName"), "name the Secret", errors);
        check_files(source.default_mode, &source.items, &path, errors);
    }
}

fn check_disk(disk: &DiskSpec, path: &Path, errors: &mut Errors) {
    let size = disk.resources.as_ref().and_then(|resources| resources.requests.get(STORAGE));
    let field = path.child("resources").child("requests").key(STORAGE);
    let image = disk.populator.as_ref().and_then(|populator| populator.image.as_ref());
    match size {
        Some(size) => {
            if let Some(amount) = check_amount(size, &field, errors)
                && !(amount >= SMALLEST_DISK && amount <= LARGEST_DISK && amount.is_multiple_of(DISK_STEP))
            {
                errors.invalid(&field, size.to_string(), "must be between 10Gi and 100Gi, in steps of 1Gi");
            }
        }
        // An image brings its own size along.
        None if image.is_none() => {
            errors.required(&field, "say how large the disk is, between 10Gi and 100Gi")
        }
        None => {}
    }
    let Some(populator) = &disk.populator else { return };
    let path = path.child("populator");
    exactly_one(&[image.is_some(), populator.filesystem.is_some()], "image and filesystem", &path, errors);
    if image.is_some_and(|image| image.name.is_empty()) {
        errors.required(&path.child("image").child("name"), "name the image");
    }
    if let Some(filesystem) = &populator.filesystem
        && !FILE_SYSTEMS.contains(&filesystem.type_.as_str())
    {
        let path = path.child("filesystem").child("type");
        errors.unsupported(&path, filesystem.type_.as_str(), &FILE_SYSTEMS);
    }
}

fn check_files(mode: Option<i64>, items: &[KeyToPath], path: &Path, errors: &mut Errors) {
    let check_mode = |mode: Option<i64>, path: &Path, errors: &mut Errors| {
        if let Some(mode) = mode.filter(|mode| !(0..=MAX_MODE).contains(mode)) {
            errors.invalid(path, mode, "must be between 0 and 0777 (octal), that is 511");
        }
    };
    check_mode(mode, &path.child("defaultMode"), errors);
    for (at, item) in items.iter().enumerate() {
        let path = path.child("items").index(at);
        syntax::check_data_key(&item.key, &path.child("key"), errors);
        check_mode(item.mode, &path.child("mode"), errors);
        let field = path.child("path");
        if item.path.is_empty() {
            errors.required(&field, "say which file the key becomes");
        } else if item.path.starts_with('/') || item.path.split('/').any(|part| part == "..") {
            errors.invalid(&field, item.path.as_str(), "must be a path within the volume, without '..'");
        }
    }
}
