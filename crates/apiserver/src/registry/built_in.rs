//! The built-in kinds: their names, scope and fields, with schemas taken from the published Kubernetes types.
//!
//! Everything is made once per process. All kinds share one map of OpenAPI components, which also holds what
//! custom resources refer to (`ObjectMeta`, `ListMeta`, `Status`, `DeleteOptions`, `Patch`, `Scale`).

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview};
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::events::v1::Event as EventsEvent;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ListMeta, ObjectMeta, Patch, Status};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

use super::definition::{Columns, Definition, GroupVersion, Names};
use crate::openapi;
use crate::schema;

/// What code says of a built-in kind; the rest is in its schema.
struct Kind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    status: bool,
    kept: bool,
    selectable_fields: &'static [&'static str],
    register: fn(&mut SchemaGenerator),
}

/// A namespaced kind without status, short names or selectable fields.
const fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    register: fn(&mut SchemaGenerator),
) -> Kind {
    Kind {
        group,
        kind,
        plural,
        short_names: &[],
        categories: &[],
        namespaced: true,
        status: false,
        kept: true,
        selectable_fields: &[],
        register,
    }
}

/// A kind of the whole plane.
const fn cluster_kind(
    group: &'static str,
    name: &'static str,
    plural: &'static str,
    register: fn(&mut SchemaGenerator),
) -> Kind {
    Kind { namespaced: false, ..kind(group, name, plural, register) }
}

/// A question about the whole plane, which is answered and not kept.
const fn review(
    group: &'static str,
    name: &'static str,
    plural: &'static str,
    register: fn(&mut SchemaGenerator),
) -> Kind {
    Kind { kept: false, ..cluster_kind(group, name, plural, register) }
}

const RBAC: &str = crate::authz::RBAC;
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// All are served as `v1`.
const VERSION: &str = "v1";

const KINDS: &[Kind] = &[
    Kind {
        short_names: &["ns"],
        namespaced: false,
        status: true,
        selectable_fields: &["status.phase"],
        ..kind("", "Namespace", "namespaces", register::<Namespace>)
    },
    Kind { short_names: &["cm"], ..kind("", "ConfigMap", "configmaps", register::<ConfigMap>) },
    Kind { selectable_fields: &["type"], ..kind("", "Secret", "secrets", register::<Secret>) },
    Kind {
        short_names: &["ev"],
        selectable_fields: &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "type",
            "source",
        ],
        ..kind("", "Event", "events", register::<Event>)
    },
    Kind {
        short_names: &["sa"],
        ..kind("", "ServiceAccount", "serviceaccounts", register::<ServiceAccount>)
    },
    Kind {
        short_names: &["po"],
        categories: &["all"],
        status: true,
        selectable_fields: &[
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
        ],
        ..kind("", "Pod", "pods", register::<Pod>)
    },
    Kind {
        short_names: &["no"],
        namespaced: false,
        status: true,
        selectable_fields: &["spec.unschedulable"],
        ..kind("", "Node", "nodes", register::<Node>)
    },
    Kind {
        short_names: &["svc"],
        categories: &["all"],
        status: true,
        selectable_fields: &["spec.clusterIP", "spec.type"],
        ..kind("", "Service", "services", register::<Service>)
    },
    Kind {
        short_names: &["ev"],
        // The same facts as in the core group, in the same order.
        selectable_fields: &[
            "regarding.apiVersion",
            "regarding.fieldPath",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.resourceVersion",
            "regarding.uid",
            "reason",
            "reportingController",
            "type",
        ],
        ..kind("events.k8s.io", "Event", "events", register::<EventsEvent>)
    },
    kind("coordination.k8s.io", "Lease", "leases", register::<Lease>),
    Kind {
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        ..kind(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            register::<CustomResourceDefinition>,
        )
    },
    kind(RBAC, "Role", "roles", register::<Role>),
    kind(RBAC, "RoleBinding", "rolebindings", register::<RoleBinding>),
    cluster_kind(RBAC, "ClusterRole", "clusterroles", register::<ClusterRole>),
    cluster_kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", register::<ClusterRoleBinding>),
    review(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews", register::<SelfSubjectReview>),
    review(AUTHENTICATION, "TokenReview", "tokenreviews", register::<TokenReview>),
    review(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews", register::<SubjectAccessReview>),
    review(
        AUTHORIZATION,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        register::<SelfSubjectAccessReview>,
    ),
    review(
        AUTHORIZATION,
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        register::<SelfSubjectRulesReview>,
    ),
    Kind {
        namespaced: true,
        ..review(
            AUTHORIZATION,
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
            register::<LocalSubjectAccessReview>,
        )
    },
    Kind {
        categories: &["api-extensions"],
        namespaced: false,
        ..kind(
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            register::<MutatingWebhookConfiguration>,
        )
    },
    Kind {
        categories: &["api-extensions"],
        namespaced: false,
        ..kind(
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            register::<ValidatingWebhookConfiguration>,
        )
    },
];

struct BuiltIn {
    definitions: Vec<Arc<Definition>>,
    components: Arc<Map<String, Value>>,
}

static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(build);

/// The definitions of all built-in kinds.
pub fn definitions() -> Vec<Arc<Definition>> {
    BUILT_IN.definitions.clone()
}

/// The kind as which events of both groups are kept.
pub fn core_events() -> Arc<Definition> {
    let found =
        BUILT_IN.definitions.iter().find(|def| def.gv.group.is_empty() && def.names.plural == "events");
    found.expect("events are among the built-in kinds").clone()
}

/// The OpenAPI components of all built-in kinds and of what custom resources refer to, by name.
pub fn components() -> Arc<Map<String, Value>> {
    Arc::clone(&BUILT_IN.components)
}

fn register<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

fn build() -> BuiltIn {
    let settings = SchemaSettings::default().with(|settings| {
        settings.definitions_path = openapi::COMPONENTS_PATH.into();
        settings.meta_schema = None;
        settings.transforms.clear();
    });
    let mut generator = settings.into_generator();
    for kind in KINDS {
        (kind.register)(&mut generator);
    }
    let shared = [register::<ObjectMeta>, register::<ListMeta>, register::<Status>];
    shared.iter().for_each(|register| register(&mut generator));
    let shared = [register::<DeleteOptions>, register::<Patch>, register::<Scale>, register::<TokenRequest>];
    shared.iter().for_each(|register| register(&mut generator));
    let published = generator.take_definitions(false);

    let mut components = openapi::presented(&published);
    let mut compiled = Vec::with_capacity(KINDS.len());
    for kind in KINDS {
        let gv = GroupVersion { group: kind.group.to_owned(), version: VERSION.to_owned() };
        let component = openapi::built_in_component(&gv, kind.kind);
        let schema = schema::built_in::compile(&published, &component);
        openapi::decorate(&mut components, &component, &schema);
        if let Some(root) = components.get_mut(&component) {
            openapi::set_group_version_kind(root, &gv, kind.kind);
        }
        compiled.push((kind, gv, component, schema));
    }

    let components = Arc::new(components);
    let definitions = compiled.into_iter().map(|(kind, gv, component, schema)| {
        Arc::new(Definition {
            gv,
            names: Names {
                kind: kind.kind.to_owned(),
                list_kind: format!("{}List", kind.kind),
                plural: kind.plural.to_owned(),
                singular: kind.kind.to_lowercase(),
                short_names: owned(kind.short_names),
                categories: owned(kind.categories),
            },
            namespaced: kind.namespaced,
            schema,
            openapi: components.get(&component).cloned().unwrap_or_default(),
            openapi_components: Arc::clone(&components),
            columns: Columns::BuiltIn,
            status: kind.status,
            kept: kind.kept,
            scale: None,
            selectable_fields: owned(kind.selectable_fields),
            built_in: true,
            warning: None,
        })
    });
    BuiltIn { definitions: definitions.collect(), components: Arc::clone(&components) }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
