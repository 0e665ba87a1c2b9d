//! Definitions of the kinds, as API servers take them and as `config/base/crd` has them.
//!
//! [`ours`] is what the product installs. [`foreign`] stands in for the definitions that others install; the
//! local platform uses it, a real one never does. Always take definitions from here: `K::crd()` alone has no
//! schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation, JSONSchemaProps,
};
use kube::{
    CustomResourceExt,
    core::object::{HasSpec, HasStatus},
};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{annotations, compute, karmada, milo, networking, quota, schema};

mod yaml;

/// First line of every generated file.
const HEADER: &str = "# Generated from the types in crates/api. Do not edit.\n";

/// The definitions of our kinds.
pub fn ours() -> Vec<CustomResourceDefinition> {
    let project = |definition: Definition| definition.contexts("Project").build();
    vec![
        project(
            Definition::with_status::<compute::Instance>()
                .about("One running copy of a workload's template. Read-only in a project."),
        ),
        project(
            Definition::with_status::<compute::WorkloadDeployment>()
                .about("One placement of a workload in one city."),
        ),
        project(
            Definition::with_status::<compute::Workload>()
                .about("A container or virtual machine that runs in many cities at once.")
                .spec_required(),
        ),
    ]
}

/// Stand-ins for the definitions of the kinds of others that we use.
pub fn foreign() -> Vec<CustomResourceDefinition> {
    use networking::{
        Location, LocationBinding, Network, NetworkBinding, NetworkContext, Subnet, SubnetClaim,
    };

    const SHARED: &str = "Organization,Project";
    let immutable = |field: &str| {
        json!({
            "message": format!("spec.{field} is immutable"),
            "rule": format!("!has(oldSelf.spec.{field}) || self.spec.{field} == oldSelf.spec.{field}"),
        })
    };
    vec![
        Definition::with_status::<Location>().build(),
        Definition::with_status::<LocationBinding>().build(),
        Definition::with_status::<Network>().spec_required().build(),
        Definition::with_status::<NetworkBinding>().spec_required().build(),
        Definition::with_status::<NetworkContext>().build(),
        Definition::with_status::<SubnetClaim>().build(),
        Definition::with_status::<Subnet>().build(),
        Definition::with_status::<quota::ResourceClaim>().spec_required().contexts(SHARED).build(),
        Definition::with_status::<quota::ResourceGrant>().spec_required().contexts(SHARED).build(),
        Definition::with_status::<quota::AllowanceBucket>().spec_required().contexts(SHARED).build(),
        Definition::with_status::<quota::ResourceRegistration>()
            .spec_required()
            .contexts("Platform")
            .rules(["resourceType", "consumerType", "type"].map(immutable))
            .build(),
        Definition::with_status::<milo::Project>().spec_required().contexts("Organization").build(),
        Definition::with_status::<milo::ProjectControlPlane>().spec_required().contexts("Platform").build(),
        Definition::with_status::<milo::ServiceEntitlement>().spec_required().contexts("Project").build(),
        Definition::of::<milo::ServiceConfiguration>().spec_required().contexts("Platform").build(),
        Definition::of::<karmada::PropagationPolicy>().spec_required().build(),
        Definition::with_status::<karmada::Cluster>().build(),
        Definition::of::<karmada::ResourceInterpreterCustomization>().spec_required().build(),
    ]
}

/// The definition as YAML: keys sorted, nothing folded, the same text every time.
pub fn render(definition: &CustomResourceDefinition) -> String {
    let value =
        serde_json::to_value(definition).expect("a definition has string keys and no failing serialiser");
    format!("{HEADER}{}", yaml::render(&value))
}

/// Name and content of every generated file of `config/base/crd`.
pub fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> =
        ours().iter().map(|definition| (file_name(definition), render(definition))).collect();
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": files.iter().map(|(name, _)| name).collect::<Vec<_>>(),
    });
    files.push(("kustomization.yaml".to_owned(), format!("{HEADER}{}", yaml::render(&kustomization))));
    files
}

fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}

/// A definition under construction: what the type says, and what only a definition can say.
struct Definition {
    definition: CustomResourceDefinition,
    spec: Value,
    status: Option<Value>,
    spec_required: bool,
    rules: Vec<Value>,
    about: Option<&'static str>,
}

impl Definition {
    fn of<K>() -> Self
    where
        K: CustomResourceExt + HasSpec,
        K::Spec: JsonSchema,
    {
        Self {
            definition: K::crd(),
            spec: schema::of::<K::Spec>(),
            status: None,
            spec_required: false,
            rules: Vec::new(),
            about: None,
        }
    }

    fn with_status<K>() -> Self
    where
        K: CustomResourceExt + HasSpec + HasStatus,
        K::Spec: JsonSchema,
        K::Status: JsonSchema,
    {
        Self { status: Some(schema::of::<K::Status>()), ..Self::of::<K>() }
    }

    fn about(mut self, about: &'static str) -> Self {
        self.about = Some(about);
        self
    }

    fn spec_required(mut self) -> Self {
        self.spec_required = true;
        self
    }

    fn contexts(mut self, contexts: &str) -> Self {
        let annotations = self.definition.metadata.annotations.get_or_insert_default();
        annotations.insert(annotations::PARENT_CONTEXTS.to_owned(), contexts.to_owned());
        self
    }

    fn rules(mut self, rules: impl IntoIterator<Item = Value>) -> Self {
        self.rules.extend(rules);
        self
    }

    fn build(self) -> CustomResourceDefinition {
        let Self { mut definition, spec, status, spec_required, rules, about } = self;
        let mut root = json!({
            "type": "object",
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": { "type": "object" },
                "spec": spec,
            },
        });
        if let Some(about) = about {
            root["description"] = about.into();
        }
        if let Some(status) = status {
            root["properties"]["status"] = status;
        }
        if spec_required {
            root["required"] = json!(["spec"]);
        }
        if !rules.is_empty() {
            root["x-kubernetes-validations"] = Value::Array(rules);
        }
        let props: JSONSchemaProps =
            serde_json::from_value(root).expect("what the schema module makes is a structural schema");
        definition.spec.names.list_kind = Some(format!("{}List", definition.spec.names.kind));
        for version in &mut definition.spec.versions {
            version.schema = Some(CustomResourceValidation { open_api_v3_schema: Some(props.clone()) });
        }
        definition
    }
}

#[cfg(test)]
mod tests;
