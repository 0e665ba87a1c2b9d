//! Names of what we make, and the two forms in which a project travels between planes.
//!
//! Everything here is a pure function, so that each plane arrives at the same name by itself. Identity is
//! never read back from a name, with one exception: [`split_instance_name`] serves instances that have lost
//! their labels.

use sha2::{Digest, Sha256};

/// The longest name of a deployment. An instance adds `-` and at most four digits and stays a DNS label.
pub const MAX_DEPLOYMENT_NAME: usize = 58;
/// The longest value of a label.
pub const MAX_LABEL_VALUE: usize = 63;
/// The longest name of an object.
const MAX_NAME: usize = 253;
/// Digits of the hash in a shortened name: 32 bits, for the few deployments that one namespace holds.
const HASH_DIGITS: usize = 8;

const HUB_NAMESPACE_PREFIX: &str = "ns-";
const UPSTREAM_CLUSTER_PREFIX: &str = "cluster-";
const CLAIM_PREFIX: &str = "instance-";

/// The name of a new deployment: `<workload>-<placement>-<city>`, with a hash in place of its end if that is
/// too long.
pub fn deployment_name(workload: &str, placement: &str, city: &str) -> String {
    let plain = plain_deployment_name(workload, placement, city);
    if plain.len() <= MAX_DEPLOYMENT_NAME {
        return plain;
    }
    with_hash(&plain, &[workload, placement, city])
}

/// The name of a new deployment whose [`deployment_name`] is held by something of another identity. The hash
/// is over the identity, so the two can never meet again.
pub fn deployment_name_on_collision(
    workload: &str,
    workload_uid: &str,
    placement: &str,
    city: &str,
) -> String {
    with_hash(&plain_deployment_name(workload, placement, city), &[workload_uid, placement, city])
}

fn plain_deployment_name(workload: &str, placement: &str, city: &str) -> String {
    format!("{workload}-{placement}-{}", city.to_ascii_lowercase())
}

/// As much of `name` as fits, and a hash over `identity`.
fn with_hash(name: &str, identity: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in identity {
        // The length in front keeps `a`, `bc` and `ab`, `c` apart.
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let hash: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let cut = name.floor_char_boundary(MAX_DEPLOYMENT_NAME - 1 - HASH_DIGITS);
    // A part of a DNS name ends with a letter or digit.
    let head = name[..cut].trim_end_matches(['-', '.']);
    format!("{head}-{}", &hash[..HASH_DIGITS])
}

/// The name of an instance.
pub fn instance_name(deployment: &str, ordinal: u32) -> String {
    format!("{deployment}-{ordinal}")
}

/// The deployment and the ordinal in an instance's name. `None` if it is not a name that
/// [`instance_name`] gives.
pub fn split_instance_name(name: &str) -> Option<(&str, u32)> {
    let (deployment, digits) = name.rsplit_once('-')?;
    let canonical = digits == "0" || !digits.starts_with('0');
    if deployment.is_empty() || !canonical || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((deployment, digits.parse().ok()?))
}

/// The namespace on the hub and in cells that stands for a project's namespace, named by its uid.
pub fn hub_namespace(project_namespace_uid: &str) -> String {
    format!("{HUB_NAMESPACE_PREFIX}{project_namespace_uid}")
}

/// The uid of the project's namespace that a hub or cell namespace stands for.
pub fn project_namespace_uid(hub_namespace: &str) -> Option<&str> {
    hub_namespace.strip_prefix(HUB_NAMESPACE_PREFIX).filter(|uid| !uid.is_empty())
}

/// Why a project cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectNameError {
    /// The label that carries the project would be too long. No retry helps.
    #[error(
        "project {project:?} cannot be served: its label value would have {length} characters, {MAX_LABEL_VALUE} are allowed"
    )]
    TooLong {
        /// The project.
        project: String,
        /// Characters of the label value.
        length: usize,
    },
    /// The label that carries the project would not be a valid one. No retry helps.
    #[error("project {0:?} cannot be served: its name does not fit into a label value")]
    Malformed(String),
}

/// The value of the label `meta.datumapis.com/upstream-cluster-name` for a project.
///
/// # Errors
///
/// If that is not a valid label value: such a project is refused.
pub fn upstream_cluster_name(project: &str) -> Result<String, ProjectNameError> {
    let value = format!("{UPSTREAM_CLUSTER_PREFIX}{}", project.replace('/', "_"));
    if value.len() > MAX_LABEL_VALUE {
        return Err(ProjectNameError::TooLong { project: project.to_owned(), length: value.len() });
    }
    let ends_well = project.ends_with(|c: char| c.is_ascii_alphanumeric());
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/');
    if !ends_well || !project.chars().all(allowed) {
        return Err(ProjectNameError::Malformed(project.to_owned()));
    }
    Ok(value)
}

/// The project in a value of the label `meta.datumapis.com/upstream-cluster-name`, with its path if it has
/// one. `None` if the value has another form.
pub fn project_of_upstream(label_value: &str) -> Option<String> {
    let encoded = label_value.strip_prefix(UPSTREAM_CLUSTER_PREFIX)?;
    let project = encoded.replace('_', "/");
    (!bare_project_name(&project).is_empty()).then_some(project)
}

/// The name of a project without its path: the last segment.
pub fn bare_project_name(project: &str) -> &str {
    project.rsplit_once('/').map_or(project, |(_, name)| name)
}

/// The name of an instance's quota claim.
pub fn claim_name(instance: &str) -> String {
    format!("{CLAIM_PREFIX}{instance}")
}

/// The instance that a claim of that name is for.
pub fn instance_of_claim(claim: &str) -> Option<&str> {
    claim.strip_prefix(CLAIM_PREFIX).filter(|instance| !instance.is_empty())
}

/// The name of the binding for one network interface of a deployment.
pub fn network_binding_name(deployment: &str, interface: usize) -> String {
    format!("{deployment}-net-{interface}")
}

/// The name of a network in a location: `<network>-<location>`, with a hash in place of its end if that is too long.
pub fn network_context_name(network: &str, location: &str) -> String {
    let plain = format!("{network}-{location}");
    if plain.len() <= MAX_LABEL_VALUE { plain } else { with_hash(&plain, &[network, location]) }
}

/// The name of a network in a location whose [`network_context_name`] is held by another one: `a-b` in `c` and `a` in
/// `b-c` meet.
pub fn network_context_name_on_collision(network: &str, location: &str) -> String {
    with_hash(&format!("{network}-{location}"), &[network, location])
}

/// The name of the one subnet claim of a network context.
pub fn subnet_claim_name(context: &str) -> String {
    format!("{context}-0")
}

/// The name of the bucket of a consumer's budget for a resource, with a hash in place of its end if that is too long.
pub fn bucket_name(kind: &str, consumer: &str, resource_type: &str) -> String {
    let plain = format!("{kind}-{consumer}-{}", resource_type.replace('/', "-")).to_ascii_lowercase();
    if plain.len() <= MAX_NAME { plain } else { with_hash(&plain, &[kind, consumer, resource_type]) }
}

/// The name of the companion of a project's ConfigMap.
pub fn config_map_companion_name(config_map: &str) -> String {
    format!("configmap.{config_map}")
}

/// The name of the companion of a project's Secret.
pub fn secret_companion_name(secret: &str) -> String {
    format!("secret.{secret}")
}

/// The name of the ConfigMap that keeps the revisions of a workload.
pub fn revision_history_name(workload: &str) -> String {
    format!("compute.datumapis.com-revision-history.{workload}")
}

#[cfg(test)]
mod tests;
