//! What one served resource is: names, scope, schema, columns and subresources of one kind in one
//! version. Compiled once, immutable, shared by every plane that serves it.

use std::sync::Arc;

use serde_json::Value;

use crate::schema::Schema;

/// A group and version, such as `apps/v1` or (core) `v1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
}

impl std::fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// The names under which a resource is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// `Workload`.
    pub kind: String,
    /// `WorkloadList`.
    pub list_kind: String,
    /// `workloads`.
    pub plural: String,
    /// `workload`.
    pub singular: String,
    /// `wl`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
}

/// Where `scale` reads and writes, as JSON paths of plain fields (`.spec.replicas`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the wanted count, under `.spec`.
    pub spec_replicas: Vec<String>,
    /// Path of the actual count, under `.status`.
    pub status_replicas: Vec<String>,
    /// Path of the selector text, under `.status`.
    pub selector: Option<Vec<String>>,
}

/// One printer column of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// OpenAPI format; may be empty.
    pub format: String,
    /// What it means; may be empty.
    pub description: String,
    /// 0 is shown always, more only with `-o wide`.
    pub priority: i32,
    /// Where the value is, such as `.status.conditions[?(@.type=="Ready")].status`.
    pub json_path: String,
}

/// Which rows `kubectl get` shows for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// A kind of ours whose columns are code, chosen by group and kind.
    BuiltIn,
    /// A custom resource's columns, after `Name`; none means `Age` alone.
    Custom(Vec<PrinterColumn>),
}

/// One resource in one version.
#[derive(Debug)]
pub struct Definition {
    /// Group and version.
    pub gv: GroupVersion,
    /// Names.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What its objects may look like.
    pub schema: Arc<Schema>,
    /// The OpenAPI v3 JSON schema with descriptions, for `/openapi/v3` and `kubectl explain`. References
    /// between schemas are `#/components/schemas/<name>`, resolved in [`Definition::openapi_components`].
    pub openapi: Value,
    /// Further schemas that `openapi` refers to, by component name.
    pub openapi_components: Arc<serde_json::Map<String, Value>>,
    /// Rows for `kubectl get`.
    pub columns: Columns,
    /// Whether it has a `status` subresource.
    pub status: bool,
    /// Whether its objects are kept. Those of reviews are answered and forgotten: they can be created, and nothing else.
    pub kept: bool,
    /// Whether it has a `scale` subresource, and where that reads and writes.
    pub scale: Option<ScalePaths>,
    /// JSON paths of plain fields that field selectors may name beside `metadata.name` and `.namespace`.
    pub selectable_fields: Vec<String>,
    /// Whether strategic merge patch is allowed (built-in kinds).
    pub built_in: bool,
    /// Deprecation warning of this version, if it is deprecated.
    pub warning: Option<String>,
}
