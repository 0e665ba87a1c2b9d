//! Volumes and what uses them.

use super::{containers::leak, *};

const LABEL: &str =
    "must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends";

#[test]
fn sources() {
    let one = "one of disk, configMap and secret";
    each(
        &good(),
        &[
            (
                "$/volumes/1/configMap",
                Value::Null,
                "$.volumes[1]",
                leak(format!("Required value: {one} is needed")),
            ),
            (
                "$/volumes/1/secret",
                json!({ "secretName": "keys" }),
                "$.volumes[1]",
                leak(format!("Forbidden: only {one} may be set")),
            ),
            (
                "$/volumes/1/configMap/name",
                json!(""),
                "$.volumes[1].configMap.name",
                "Required value: name the ConfigMap",
            ),
            (
                "$/volumes/1/configMap/name",
                json!("hidden"),
                "$.volumes[1].configMap.name",
                "Forbidden: you may not read ConfigMap \"hidden\"; ask for permission to \"get\" it",
            ),
            (
                "$/volumes/2/secret/secretName",
                Value::Null,
                "$.volumes[2].secret.secretName",
                "Required value: name the Secret",
            ),
            (
                "$/volumes/2/secret/secretName",
                json!("hidden"),
                "$.volumes[2].secret.secretName",
                "Forbidden: you may not read Secret \"hidden\"; ask for permission to \"get\" it",
            ),
            (
                "$/volumes/1/configMap/defaultMode",
                json!(512),
                "$.volumes[1].configMap.defaultMode",
                "Invalid value: 512: must be between 0 and 0777 (octal), that is 511",
            ),
            (
                "$/volumes/1/configMap/items/0/mode",
                json!(-1),
                "$.volumes[1].configMap.items[0].mode",
                "Invalid value: -1: must be between 0 and 0777 (octal), that is 511",
            ),
            (
                "$/volumes/1/configMap/items/0/key",
                json!(""),
                "$.volumes[1].configMap.items[0].key",
                "Required value: name the key",
            ),
            (
                "$/volumes/1/configMap/items/0/path",
                json!(""),
                "$.volumes[1].configMap.items[0].path",
                "Required value: say which file the key becomes",
            ),
            (
                "$/volumes/1/configMap/items/0/path",
                json!("../etc/passwd"),
                "$.volumes[1].configMap.items[0].path",
                "Invalid value: \"../etc/passwd\": must be a path within the volume, without '..'",
            ),
            (
                "$/volumes/2/secret/items",
                json!([{ "key": "k", "path": "/etc" }]),
                "$.volumes[2].secret.items[0].path",
                "Invalid value: \"/etc\": must be a path within the volume, without '..'",
            ),
        ],
    );
}

#[test]
fn names_and_use() {
    each(
        &good(),
        &[
            (
                "$/volumes/-",
                json!({ "name": "", "configMap": { "name": "settings" } }),
                "$.volumes[3].name",
                "Required value: a volume needs a name",
            ),
            (
                "$/volumes/-",
                json!({ "name": "A_B", "configMap": { "name": "settings" } }),
                "$.volumes[3].name",
                leak(format!("Invalid value: \"A_B\": {LABEL}")),
            ),
            (
                "$/volumes/-",
                json!({ "name": "data", "configMap": { "name": "settings" } }),
                "$.volumes[3].name",
                "Duplicate value: \"data\": each volume needs a name of its own",
            ),
            (
                "$/volumes/-",
                json!({ "name": "idle", "configMap": { "name": "settings" } }),
                "$.volumes[3].name",
                "Invalid value: \"idle\": nothing uses this volume; name it in volumeAttachments, or leave it out",
            ),
            (
                "$/runtime/sandbox/containers/0/volumeAttachments/0",
                Value::Null,
                "$.volumes[0].name",
                "Invalid value: \"data\": nothing uses this volume; name it in volumeAttachments, or leave it out",
            ),
        ],
    );
}

#[test]
fn attachments() {
    let path = |rest: &str| leak(format!("$.runtime.sandbox.containers[1].volumeAttachments[0]{rest}"));
    let attach = |name: &str, at: &str| json!([{ "name": name, "mountPath": at }]);
    let pointer = "$/runtime/sandbox/containers/1/volumeAttachments";
    each(
        &good(),
        &[
            (pointer, attach("", "/x"), path(".name"), "Required value: name the volume"),
            (
                pointer,
                attach("nope", "/x"),
                path(".name"),
                "Not found: \"nope\": no volume of this name is in spec.template.spec.volumes",
            ),
            (
                pointer,
                attach("data", ""),
                path(".mountPath"),
                "Invalid value: \"\": must be an absolute path, such as /data",
            ),
            (
                pointer,
                attach("data", "data"),
                path(".mountPath"),
                "Invalid value: \"data\": must be an absolute path, such as /data",
            ),
            (
                pointer,
                attach("data", "/a/../b"),
                path(".mountPath"),
                "Invalid value: \"/a/../b\": must not contain '..'",
            ),
        ],
    );
    let second = "$.runtime.sandbox.containers[0].volumeAttachments[1].mountPath";
    for twin in ["/data", "/data/", "//data", "/./data"] {
        let message = leak(format!("Duplicate value: {twin:?}: only one volume can be mounted at a path"));
        each(
            &good(),
            &[("$/runtime/sandbox/containers/0/volumeAttachments/1/mountPath", json!(twin), second, message)],
        );
    }
    // Each container has paths of its own.
    assert_eq!(faults(&with(good(), pointer, &attach("data", "/data")), None), []);
}

#[test]
fn disks() {
    let size = "$/volumes/0/disk/template/spec/resources/requests/storage";
    let path = "$.volumes[0].disk.template.spec.resources.requests[storage]";
    for bad in ["9Gi", "101Gi", "10.5Gi", "10G", "0", "100000000000"] {
        let message =
            leak(format!("Invalid value: {bad:?}: must be between 10Gi and 100Gi, in steps of 1Gi"));
        each(&good(), &[(size, json!(bad), path, message)]);
    }
    each(
        &good(),
        &[
            (
                size,
                json!("big"),
                path,
                "Invalid value: \"big\": \"big\" is not a quantity such as 2, 500m or 2Gi",
            ),
            (size, json!("-10Gi"), path, "Invalid value: \"-10Gi\": must not be negative"),
            (size, Value::Null, path, "Required value: say how large the disk is, between 10Gi and 100Gi"),
            (
                "$/volumes/0/disk/template/spec/resources",
                Value::Null,
                path,
                "Required value: say how large the disk is, between 10Gi and 100Gi",
            ),
            (
                "$/volumes/0/disk/template/spec/populator",
                json!({}),
                "$.volumes[0].disk.template.spec.populator",
                "Required value: one of image and filesystem is needed",
            ),
            (
                "$/volumes/0/disk/template/spec/populator/image",
                json!({ "name": "debian-13" }),
                "$.volumes[0].disk.template.spec.populator",
                "Forbidden: only one of image and filesystem may be set",
            ),
            (
                "$/volumes/0/disk/template/spec/populator/filesystem/type",
                json!("fat"),
                "$.volumes[0].disk.template.spec.populator.filesystem.type",
                "Unsupported value: \"fat\": supported values: \"ext4\"",
            ),
        ],
    );
}
