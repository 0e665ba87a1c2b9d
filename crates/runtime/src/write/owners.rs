//! Owner references: who an object belongs to, and goes with.

use compute_api::k8s::{ObjectMeta, OwnerReference};
use compute_api::kube::Resource;

/// Another object controls this one already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("controlled by {kind} {name:?}")]
pub struct OtherController {
    /// The controller's kind.
    pub kind: String,
    /// The controller's name.
    pub name: String,
}

/// A reference to the one owner that manages an object. The owner's foreground deletion waits for it. None if the owner
/// has never been stored.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    let reference = plain_reference(owner)?;
    Some(OwnerReference { controller: Some(true), block_owner_deletion: Some(true), ..reference })
}

/// A reference to one of possibly many owners: the object goes when all are gone. None if the owner has never
/// been stored.
pub fn plain_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone()?,
        uid: owner.meta().uid.clone()?,
        controller: None,
        block_owner_deletion: None,
    })
}

/// Whether the owner of that uid controls the object.
pub fn is_controlled_by(object: &ObjectMeta, uid: &str) -> bool {
    let owners = object.owner_references.iter().flatten();
    owners.clone().any(|owner| owner.uid == uid && owner.controller == Some(true))
}

/// Adds an owner, or brings its reference up to date. Says whether anything changed.
///
/// # Errors
/// There can be one controller only: another one is left in place.
pub fn set_owner(object: &mut ObjectMeta, owner: OwnerReference) -> Result<bool, OtherController> {
    let owners = object.owner_references.get_or_insert_default();
    if owner.controller == Some(true) {
        let other = owners.iter().find(|have| have.controller == Some(true) && have.uid != owner.uid);
        if let Some(other) = other {
            return Err(OtherController { kind: other.kind.clone(), name: other.name.clone() });
        }
    }
    match owners.iter_mut().find(|have| have.uid == owner.uid) {
        Some(have) if *have == owner => Ok(false),
        Some(have) => {
            *have = owner;
            Ok(true)
        }
        None => {
            owners.push(owner);
            Ok(true)
        }
    }
}
