//! Who works on the platform, and what each may do: an identity of its own, and in each plane no more than its controllers need.

use compute_apiserver::Identity;
use compute_controllers::{cell, management};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::api::ObjectMeta;
use serde_json::Value;

use crate::planes::Role;

/// Who works on the platform.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worker {
    /// The controllers that serve projects.
    Management,
    /// The controllers and the provider of the cell in this city.
    Cell(String),
    /// The stand-ins for the platform around: projects, locations, propagation, networks and quota. Those services own the planes, so
    /// nothing holds them back.
    Surroundings,
}

const MANAGEMENT: &str = "compute:management";
const CELLS: &str = "compute:cells";
/// People who may do everything in a project that its rules allow. They are not masters of it, so that its rules hold for them.
pub const PROJECT_ADMINS: &str = "compute:project-admins";

impl Worker {
    /// Who the worker is to a plane.
    pub fn identity(&self) -> Identity {
        match self {
            Self::Management => Identity::user("compute-manager-management").in_group(MANAGEMENT),
            Self::Cell(city) => {
                Identity::user(format!("compute-manager-cell-{}", city.to_lowercase())).in_group(CELLS)
            }
            Self::Surroundings => Identity::superuser("platform"),
        }
    }
}

/// The roles that workers have in planes of a kind, as objects of such a plane.
pub(crate) fn roles(role: Role) -> Result<Vec<Value>, serde_json::Error> {
    let granted: Vec<(&str, &str, Vec<PolicyRule>)> = match role {
        Role::Core => vec![("compute-management", MANAGEMENT, management::rbac::core())],
        Role::Hub => vec![
            ("compute-management", MANAGEMENT, management::rbac::hub()),
            ("compute-cell", CELLS, cell::rbac::hub()),
        ],
        Role::Cell => vec![
            ("compute-cell", CELLS, cell::rbac::cell()),
            ("compute-provider", CELLS, compute_providers::rbac::cell()),
        ],
        Role::Project => vec![
            ("compute-management", MANAGEMENT, management::rbac::project()),
            ("compute-admission", MANAGEMENT, compute_admission::rbac::project()),
            ("compute-quota", CELLS, cell::rbac::project()),
        ],
    };
    let mut objects = Vec::new();
    for (name, group, rules) in granted {
        objects.push(serde_json::to_value(ClusterRole {
            metadata: named(name),
            rules: Some(rules),
            ..ClusterRole::default()
        })?);
        objects.push(serde_json::to_value(binding(name, name, group))?);
    }
    if role == Role::Project {
        objects.push(serde_json::to_value(binding(
            "compute-project-admins",
            "cluster-admin",
            PROJECT_ADMINS,
        ))?);
    }
    Ok(objects)
}

/// Gives a group a role in a whole plane.
fn binding(name: &str, role: &str, group: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: named(name),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some(RBAC.to_owned()),
            kind: "Group".to_owned(),
            name: group.to_owned(),
            namespace: None,
        }]),
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
