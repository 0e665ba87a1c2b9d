//! Which claims the ledger takes at all: what is refused when a claim is made, or changed.
//!
//! A claim has to make sense by itself, and each amount that it asks for has to be registered for its kind of consumer and for the
//! kind of thing that it is for. What it asks for never changes.

use std::collections::BTreeSet;

use compute_api::quota::{ObjectReference, ResourceClaimSpec, ResourceRegistration};

/// Why the ledger does not take a claim. No retry helps until the claim, or what is registered, is another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The claim makes no sense, whatever is registered.
    #[error("{0}")]
    Malformed(String),
    /// Nothing is registered that would fit it.
    #[error("{0}")]
    NotRegistered(String),
}

/// Whose claim it is.
///
/// # Errors
///
/// Why the claim is not taken.
pub fn check<'a>(
    claim: &'a ResourceClaimSpec,
    registrations: &[&ResourceRegistration],
) -> Result<&'a ObjectReference, Problem> {
    let malformed = |problem: String| Err(Problem::Malformed(problem));
    let Some(consumer) = &claim.consumer_ref else { return malformed("it names no consumer".to_owned()) };
    let Some(resource) = &claim.resource_ref else { return malformed("it names no resource".to_owned()) };
    if claim.requests.is_empty() {
        return malformed("it asks for nothing".to_owned());
    }
    let mut seen = BTreeSet::new();
    for request in &claim.requests {
        let name = request.resource_type.as_str();
        if !seen.insert(name) {
            return malformed(format!("it asks for {name} twice"));
        }
        if request.amount < 0 {
            return malformed(format!("it asks for less than nothing of {name}"));
        }
    }
    for name in seen {
        let mut registered = registrations.iter().filter(|one| one.spec.resource_type == name).peekable();
        if registered.peek().is_none() {
            return Err(Problem::NotRegistered(format!("{name} is not registered")));
        }
        if !registered.any(|one| is_consumer(one, consumer) && may_claim(one, resource)) {
            return Err(Problem::NotRegistered(format!(
                "{name} cannot be claimed by a {} for a {}",
                consumer.kind, resource.kind
            )));
        }
    }
    Ok(consumer)
}

/// Whether a claim may become another.
///
/// # Errors
///
/// If it asks for something else than it did.
pub fn check_update(before: &ResourceClaimSpec, after: &ResourceClaimSpec) -> Result<(), Problem> {
    match before == after {
        true => Ok(()),
        false => Err(Problem::Malformed("what a claim asks for cannot be changed".to_owned())),
    }
}

/// Whether a registration is for consumers like this one.
pub(super) fn is_consumer(registration: &ResourceRegistration, consumer: &ObjectReference) -> bool {
    let wanted = &registration.spec.consumer_type;
    wanted.kind == consumer.kind && wanted.api_group == consumer.api_group.as_deref().unwrap_or_default()
}

fn may_claim(registration: &ResourceRegistration, resource: &ObjectReference) -> bool {
    let group = |group: &Option<String>| group.clone().unwrap_or_default();
    registration
        .spec
        .claiming_resources
        .iter()
        .any(|one| one.kind == resource.kind && group(&one.api_group) == group(&resource.api_group))
}
