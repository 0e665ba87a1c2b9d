//! The platform's locations in a cell: those of its city, copied.

use std::collections::BTreeMap;

use compute_api::{
    k8s::Condition,
    networking::{Location, LocationSpec},
};

use super::{
    offer::{MANAGED_BY, is_ours},
    same_city,
};
use crate::meta;
use crate::subnets::blocks::{ADDRESSES, Blocks};

/// What to do about a location in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply it.
    Apply {
        /// Its labels, with the one that says who made it.
        labels: BTreeMap<String, String>,
        /// Its annotations: the addresses that it gives out of.
        annotations: BTreeMap<String, String>,
        /// What it says.
        spec: LocationSpec,
    },
    /// Say the same of it as the platform does.
    Say {
        /// All that is said.
        conditions: Vec<Condition>,
    },
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its uid.
        uid: String,
    },
}

/// Whether a cell gets a copy of a location: it is in the cell's city, and stays.
pub fn is_wanted(city: &str, location: &Location) -> bool {
    let is_here = location.spec.city_code().is_some_and(|code| same_city(code, city));
    is_here && !meta::is_being_deleted(&location.metadata)
}

/// What to do about the copy of a location in the cell of a city. What the platform did not make is left alone. `blocks` is what the
/// location gives addresses out of; without it the copy keeps what it has.
pub fn decide(
    city: &str,
    location: Option<&Location>,
    held: Option<&Location>,
    blocks: Option<&Blocks>,
) -> Vec<Step> {
    let wanted = location.filter(|location| is_wanted(city, location));
    if held.is_some_and(|held| !is_ours(&held.metadata) || meta::is_being_deleted(&held.metadata)) {
        return Vec::new();
    }
    let Some(wanted) = wanted else {
        return held
            .map(|held| Step::Delete { uid: meta::uid(&held.metadata).to_owned() })
            .into_iter()
            .collect();
    };
    let mut labels = wanted.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    // Who applies says all that it has to say: what is left out is taken away.
    let known = held.and_then(|held| meta::annotation(&held.metadata, ADDRESSES)).map(str::to_owned);
    let addresses = blocks.map(ToString::to_string).or(known);
    let annotations = addresses.map(|blocks| (ADDRESSES.to_owned(), blocks)).into_iter().collect();
    let mut steps = Vec::new();
    let same = held.is_some_and(|held| {
        meta::covers(held.metadata.labels.as_ref(), Some(&labels))
            && meta::covers(held.metadata.annotations.as_ref(), Some(&annotations))
            && held.spec == wanted.spec
    });
    if !same {
        steps.push(Step::Apply { labels, annotations, spec: wanted.spec.clone() });
    }
    let said = |location: &Location| location.status.clone().unwrap_or_default().conditions;
    if held.map(said).unwrap_or_default() != said(wanted) {
        steps.push(Step::Say { conditions: said(wanted) });
    }
    steps
}
