//! Volumes of an instance: disks, ConfigMaps and Secrets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TemplateMetadata;
use crate::quantity::Quantity;

/// A volume. Exactly one source is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// Name of the volume, unique within the instance.
    pub name: String,
    /// A disk that is made with the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskVolume>,
    /// The keys of a ConfigMap as files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapVolume>,
    /// The keys of a Secret as files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretVolume>,
}

/// A disk that is made with the instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiskVolume {
    /// The disk to make.
    pub template: DiskTemplate,
    /// Name of the device inside the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
}

/// The disk to make, with its labels and annotations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiskTemplate {
    /// Labels and annotations of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// What the disk is like.
    pub spec: DiskSpec,
}

/// What a disk is like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiskSpec {
    /// Kind of disk.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "pd-standard"))]
    pub type_: Option<String>,
    /// How large the disk is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<DiskResources>,
    /// What the disk holds at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub populator: Option<DiskPopulator>,
}

/// How large a disk is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiskResources {
    /// Amounts; `storage` is the size.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Quantity>,
}

/// What a disk holds at first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiskPopulator {
    /// A bootable image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImagePopulator>,
    /// An empty file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FilesystemPopulator>,
}

/// A bootable image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePopulator {
    /// Name of the image.
    pub name: String,
}

/// An empty file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesystemPopulator {
    /// Type of the file system.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["ext4"]))]
    pub type_: String,
}

/// The keys of a ConfigMap as files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = [], "x-kubernetes-map-type" = "atomic"))]
pub struct ConfigMapVolume {
    /// Name of the ConfigMap.
    #[schemars(extend("x-default" = ""))]
    pub name: String,
    /// Permissions of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub default_mode: Option<i64>,
    /// The keys to show. Empty: all of them, each under its own name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Vec<KeyToPath>,
    /// Whether the ConfigMap or its keys may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// The keys of a Secret as files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretVolume {
    /// Name of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Permissions of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub default_mode: Option<i64>,
    /// The keys to show. Empty: all of them, each under its own name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub items: Vec<KeyToPath>,
    /// Whether the Secret or its keys may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Which file a key becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyToPath {
    /// The key.
    pub key: String,
    /// Permissions of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<i32>")]
    pub mode: Option<i64>,
    /// Path of the file, relative to the mount path.
    pub path: String,
}
