//! A new instance, whole: everything about it is known when it is created.

use std::collections::BTreeMap;

use compute_api::{
    annotations::ALLOWED_IN_TEMPLATES,
    compute::{
        Instance, InstanceControl, InstanceSpec, InstanceTemplate, SchedulingGate, TemplateMetadata,
        WorkloadDeployment, gates,
    },
    finalizers,
    k8s::ObjectMeta,
    labels, names,
};

use super::{Desired, Options};
use crate::{meta, referenced_data};

/// What keys that mean something to us start with. A template may not carry them.
const OUR_PREFIXES: [&str; 3] = [labels::PREFIX, "meta.datumapis.com/", "topology.datum.net/"];

/// The instance of a deployment at an ordinal.
pub fn instance(
    deployment: &WorkloadDeployment,
    desired: &Desired,
    ordinal: u32,
    options: &Options,
) -> Instance {
    let template = template_metadata(&desired.template);
    let mut all_labels = template.labels;
    all_labels.extend(labels(deployment, ordinal));
    let control = InstanceControl {
        template_hash: desired.hash.clone(),
        scheduling_gates: gates_of(&desired.template.spec, options),
    };
    Instance {
        metadata: ObjectMeta {
            name: Some(names::instance_name(meta::name(&deployment.metadata), ordinal)),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(all_labels),
            annotations: (!template.annotations.is_empty()).then_some(template.annotations),
            owner_references: Some(vec![meta::controlled_by(deployment)]),
            finalizers: Some(vec![finalizers::INSTANCE.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: InstanceSpec {
            location: options.location.clone(),
            controller: Some(control),
            ..desired.template.spec.clone()
        },
        status: None,
    }
}

/// The labels of ours on the instance at an ordinal. Where the deployment says which project it comes from,
/// so does the instance.
pub fn labels(deployment: &WorkloadDeployment, ordinal: u32) -> BTreeMap<String, String> {
    let spec = &deployment.spec;
    let ordinal = ordinal.to_string();
    let mut all = meta::map([
        (labels::WORKLOAD_UID, &spec.workload_ref.uid),
        (labels::WORKLOAD_NAME, &spec.workload_ref.name),
        (labels::WORKLOAD_DEPLOYMENT_UID, meta::uid(&deployment.metadata)),
        (labels::WORKLOAD_DEPLOYMENT_NAME, meta::name(&deployment.metadata)),
        (labels::PLACEMENT_NAME, &spec.placement_name),
        (labels::CITY_CODE, &spec.city_code),
        (labels::INSTANCE_INDEX, &ordinal),
    ]);
    for key in [labels::UPSTREAM_CLUSTER_NAME, labels::UPSTREAM_NAMESPACE] {
        if let Some(value) = meta::label(&deployment.metadata, key) {
            all.insert(key.to_owned(), value.to_owned());
        }
    }
    all
}

/// The prefix of a key that means something to us.
pub(crate) fn our_prefix(key: &str) -> Option<&'static str> {
    OUR_PREFIXES.into_iter().find(|prefix| key.starts_with(prefix))
}

/// What an instance takes over from the metadata of its template. Admission refuses the rest; what comes
/// anyway is dropped here.
pub(super) fn template_metadata(template: &InstanceTemplate) -> TemplateMetadata {
    let Some(metadata) = &template.metadata else { return TemplateMetadata::default() };
    let is_ours = |key: &str| our_prefix(key).is_some();
    let copy = |from: &BTreeMap<String, String>, may: &dyn Fn(&str) -> bool| -> BTreeMap<String, String> {
        from.iter().filter(|(key, _)| may(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    TemplateMetadata {
        labels: copy(&metadata.labels, &|key| !is_ours(key)),
        annotations: copy(&metadata.annotations, &|key| !is_ours(key) || ALLOWED_IN_TEMPLATES.contains(&key)),
        ..TemplateMetadata::default()
    }
}

fn gates_of(spec: &InstanceSpec, options: &Options) -> Vec<SchedulingGate> {
    let names_data = !referenced_data::required(spec).is_empty();
    [(gates::NETWORK, options.network_gate), (gates::QUOTA, true), (gates::REFERENCED_DATA, names_data)]
        .into_iter()
        .filter(|(_, held)| *held)
        .map(|(name, _)| SchedulingGate { name: name.to_owned() })
        .collect()
}
