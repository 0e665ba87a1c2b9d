//! Quota of a project: what there is, what is used and where, and what is missing.

use std::collections::BTreeMap;

use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_api::quota::{
    ALLOCATION_GRANTED, AllowanceBucket, CONDITION_GRANTED, RESOURCE_INSTANCES, RESOURCE_MEMORY,
    RESOURCE_VCPUS, ResourceClaim,
};
use compute_api::{labels, names};
use compute_core::quota::size::{self, Size};
use compute_core::{location, meta};
use serde::Serialize;

use crate::words;

/// A resource that quota is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Resource {
    /// Instances.
    Instances,
    /// CPUs, in thousandths.
    #[serde(rename = "vcpuMillis")]
    Vcpus,
    /// Memory, in MiB.
    #[serde(rename = "memoryMib")]
    Memory,
}

impl Resource {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Instances, Self::Vcpus, Self::Memory];

    /// Its name on the wire.
    fn type_(self) -> &'static str {
        match self {
            Self::Instances => RESOURCE_INSTANCES,
            Self::Vcpus => RESOURCE_VCPUS,
            Self::Memory => RESOURCE_MEMORY,
        }
    }

    /// Its name for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Instances => "instances",
            Self::Vcpus => "vCPUs",
            Self::Memory => "memory",
        }
    }

    /// An amount for people.
    pub(crate) fn amount(self, amount: i64) -> String {
        match self {
            Self::Instances => amount.to_string(),
            Self::Vcpus => fraction(amount, 1000),
            Self::Memory => format!("{} GiB", fraction(amount, 1024)),
        }
    }

    /// What one instance of that size takes.
    fn of(self, size: Size) -> i64 {
        match self {
            Self::Instances => 1,
            Self::Vcpus => size.vcpu_millis,
            Self::Memory => size.memory_mib,
        }
    }
}

/// A number with at most two digits behind the point.
fn fraction(amount: i64, unit: i64) -> String {
    let hundredths = (i128::from(amount) * 100) / i128::from(unit);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What there is of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Usage {
    /// The resource.
    pub(crate) resource: Resource,
    /// How much the project may use; unknown if nothing says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<i64>,
    /// How much it uses.
    pub(crate) used: i64,
    /// How much of that in which city.
    pub(crate) by_city: BTreeMap<String, i64>,
    /// How much instances wait for, beyond what is left.
    pub(crate) missing: i64,
}

/// An instance that waits for quota.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Waiting {
    /// Its name.
    pub(crate) instance: String,
    /// Its city.
    pub(crate) city: String,
    /// What it waits for, in a few words.
    pub(crate) what: String,
    /// The ledger's own sentence.
    pub(crate) message: String,
}

/// Quota of a project.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuotaView {
    /// What there is of each resource.
    pub(crate) usage: Vec<Usage>,
    /// Who waits.
    pub(crate) waiting: Vec<Waiting>,
    /// The city that was asked about, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) city: Option<String>,
}

/// Quota of a project, over all cities or in one.
pub(crate) fn view(
    buckets: &[AllowanceBucket],
    claims: &[ResourceClaim],
    instances: &[Instance],
    city: Option<&str>,
) -> QuotaView {
    let cities: BTreeMap<&str, &str> = instances
        .iter()
        .filter_map(|one| Some((meta::name(&one.metadata), meta::label(&one.metadata, labels::CITY_CODE)?)))
        .collect();
    let city_of = |claim: &ResourceClaim| -> String {
        let instance = names::instance_of_claim(meta::name(&claim.metadata));
        let known = instance.and_then(|instance| cities.get(instance)).map(|city| (*city).to_owned());
        // The cell that made it, where its instance is not shown any more.
        let cell = meta::label(&claim.metadata, labels::SOURCE_CLUSTER).unwrap_or("elsewhere");
        known.unwrap_or_else(|| cell.strip_prefix("cell-").unwrap_or(cell).to_uppercase())
    };
    let in_city = |code: &str| city.is_none_or(|wanted| location::same_city(wanted, code));
    let waiting: Vec<(&Instance, Waiting)> = instances
        .iter()
        .filter_map(|instance| Some((instance, waits(instance)?)))
        .filter(|(_, waiting)| in_city(&waiting.city))
        .collect();
    let usage = Resource::ALL
        .into_iter()
        .map(|resource| {
            let bucket = buckets.iter().find(|bucket| bucket.spec.resource_type == resource.type_());
            let status = bucket.and_then(|bucket| bucket.status.as_ref());
            let mut by_city: BTreeMap<String, i64> = BTreeMap::new();
            for claim in claims {
                let amount = granted(claim, resource);
                if amount > 0 {
                    *by_city.entry(city_of(claim)).or_default() += amount;
                }
            }
            by_city.retain(|code, _| in_city(code));
            let needed: i64 = waiting
                .iter()
                .filter_map(|(instance, _)| Some(resource.of(size::of(&instance.spec).ok()?)))
                .sum();
            let left = status.map_or(0, |status| status.available);
            Usage {
                resource,
                limit: status.map(|status| status.limit),
                used: status.map_or_else(|| by_city.values().sum(), |status| status.allocated),
                by_city,
                missing: (needed - left).max(0),
            }
        })
        .collect();
    QuotaView {
        usage,
        waiting: waiting.into_iter().map(|(_, waiting)| waiting).collect(),
        city: city.map(str::to_owned),
    }
}

/// How much of a resource a claim holds.
fn granted(claim: &ResourceClaim, resource: Resource) -> i64 {
    let Some(status) = &claim.status else { return 0 };
    let asked = claim.spec.requests.iter().find(|request| request.resource_type == resource.type_());
    let asked = asked.map_or(0, |request| request.amount);
    if status.allocations.is_empty() {
        return if c::is_true(&status.conditions, CONDITION_GRANTED) { asked } else { 0 };
    }
    let held = status.allocations.iter().find(|one| one.resource_type == resource.type_());
    let held = held.filter(|one| one.status == ALLOCATION_GRANTED);
    held.map_or(0, |one| one.allocated_amount.unwrap_or(asked))
}

fn waits(instance: &Instance) -> Option<Waiting> {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said = c::find(conditions, c::QUOTA_GRANTED).filter(|said| said.status != "True")?;
    Some(Waiting {
        instance: meta::name(&instance.metadata).to_owned(),
        city: meta::label(&instance.metadata, labels::CITY_CODE).unwrap_or_default().to_owned(),
        what: words::of(&said.reason).short,
        message: said.message.clone(),
    })
}

/// What a change takes of a resource, and what is left of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Need {
    /// The resource.
    pub(crate) resource: Resource,
    /// How much more than now.
    pub(crate) takes: i64,
    /// How much is left; unknown if nothing says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<i64>,
}

impl Need {
    /// Whether there is enough, as far as it is known.
    pub(crate) fn fits(&self) -> bool {
        self.left.is_none_or(|left| self.takes <= left)
    }
}

/// What it takes to get from so many instances of a size to so many of another.
pub(crate) fn needs(
    buckets: &[AllowanceBucket],
    from: (Option<Size>, i64),
    to: (Option<Size>, i64),
) -> Vec<Need> {
    let total = |resource: Resource, (size, count): (Option<Size>, i64)| {
        size.map_or(0, |size| resource.of(size).saturating_mul(count.max(0)))
    };
    let need = |resource: Resource| {
        let bucket = buckets.iter().find(|bucket| bucket.spec.resource_type == resource.type_());
        let left = bucket.and_then(|bucket| bucket.status.as_ref()).map(|status| status.available);
        Need { resource, takes: total(resource, to) - total(resource, from), left }
    };
    Resource::ALL.into_iter().map(need).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_for_people() {
        assert_eq!(Resource::Vcpus.amount(1500), "1.5");
        assert_eq!(Resource::Vcpus.amount(2000), "2");
        assert_eq!(Resource::Memory.amount(2048), "2 GiB");
        assert_eq!(Resource::Memory.amount(100), "0.09 GiB");
        assert_eq!(Resource::Instances.amount(7), "7");
    }
}
