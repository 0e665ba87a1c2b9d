//! How much of each resource an instance takes.

use std::collections::BTreeMap;

use compute_api::{
    compute::InstanceSpec,
    quantity::{Amount, ParseQuantityError, Quantity},
};

const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// A named size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name.
    pub name: &'static str,
    /// Thousandths of a CPU.
    pub vcpu_millis: i64,
    /// MiB of memory.
    pub memory_mib: i64,
}

/// Every named size.
pub const CATALOG: [InstanceType; 1] =
    [InstanceType { name: "datumcloud/d1-standard-2", vcpu_millis: 1000, memory_mib: 2048 }];

/// How much an instance takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Thousandths of a CPU.
    pub vcpu_millis: i64,
    /// MiB of memory.
    pub memory_mib: i64,
}

/// Why the size of an instance cannot be told. No retry helps.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// A quantity is none.
    #[error("{resource}: {source}")]
    Quantity {
        /// The resource.
        resource: &'static str,
        /// What is wrong with it.
        source: ParseQuantityError,
    },
    /// The amount is below zero or larger than can be counted.
    #[error("{0}: the amount is out of range")]
    OutOfRange(&'static str),
    /// Nothing says how much it takes.
    #[error("instance type {0:?} is not known")]
    UnknownType(String),
}

/// How much an instance takes, for each resource by itself: the sum of its containers' limits if each has one,
/// else what the instance requests, else what its type has; rounded up.
///
/// # Errors
///
/// If that cannot be told.
pub fn of(spec: &InstanceSpec) -> Result<Size, SizeError> {
    let resources = &spec.runtime.resources;
    let named = CATALOG.iter().find(|one| one.name == resources.instance_type);
    let unknown = || SizeError::UnknownType(resources.instance_type.clone());
    let measure =
        |resource, round: fn(Amount) -> Option<i64>, typed: Option<i64>| match asked(spec, resource)? {
            Some(amount) => round(amount).filter(|n| *n >= 0).ok_or(SizeError::OutOfRange(resource)),
            None => typed.ok_or_else(unknown),
        };
    Ok(Size {
        vcpu_millis: measure(CPU, Amount::millis_ceil, named.map(|one| one.vcpu_millis))?,
        memory_mib: measure(MEMORY, Amount::mebi_ceil, named.map(|one| one.memory_mib))?,
    })
}

/// What the instance itself says about a resource.
fn asked(spec: &InstanceSpec, resource: &'static str) -> Result<Option<Amount>, SizeError> {
    let read = |amounts: &BTreeMap<String, Quantity>| {
        let amount = amounts.get(resource).map(Quantity::amount).transpose();
        amount.map_err(|source| SizeError::Quantity { resource, source })
    };
    let containers = spec.runtime.sandbox.as_ref().map_or(&[][..], |sandbox| &sandbox.containers);
    let mut sum = (!containers.is_empty()).then_some(Amount::ZERO);
    for container in containers {
        let limit = container.resources.as_ref().map(|one| read(&one.limits)).transpose()?.flatten();
        sum = match (sum, limit) {
            (Some(sum), Some(limit)) => Some(sum.checked_add(limit).ok_or(SizeError::OutOfRange(resource))?),
            _ => None,
        };
    }
    match sum {
        Some(sum) => Ok(Some(sum)),
        None => read(&spec.runtime.resources.requests),
    }
}
