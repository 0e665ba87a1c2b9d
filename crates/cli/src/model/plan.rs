//! What a change of a workload comes to, before anything is written: where, how many, and whether quota covers it.

use compute_api::compute::{Workload, WorkloadDeployment, WorkloadDeploymentSpec, WorkloadSpec};
use compute_api::networking::LocationBinding;
use compute_api::quota::AllowanceBucket;
use compute_core::quota::size;
use compute_core::{changes, location, meta, scale};
use serde::Serialize;

use super::quota::{self, Need};

/// What becomes of a city.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedCity {
    /// The placement.
    pub(crate) placement: String,
    /// The city.
    pub(crate) city: String,
    /// Instances now.
    pub(crate) now: i64,
    /// Instances then.
    pub(crate) then: i64,
    /// Why it cannot be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) obstacle: Option<String>,
}

/// What a change comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// The workload.
    pub(crate) name: String,
    /// Whether it is made by this.
    pub(crate) is_new: bool,
    /// Whether it is like that already, to the last label.
    #[serde(skip)]
    pub(crate) is_same: bool,
    /// What changes, in words.
    pub(crate) changes: Vec<String>,
    /// Whether instances are replaced.
    pub(crate) replaces: bool,
    /// Its cities.
    pub(crate) cities: Vec<PlannedCity>,
    /// What it takes of the project's quota.
    pub(crate) needs: Vec<Need>,
}

impl Plan {
    /// Whether nothing is in the way, as far as it is known.
    pub(crate) fn can_be(&self) -> bool {
        self.needs.iter().all(Need::fits) && self.cities.iter().all(|city| city.obstacle.is_none())
    }
}

/// The cities that a workload leaves if it gets this spec.
pub(crate) fn left_cities(stored: &WorkloadSpec, wanted: &serde_json::Value) -> Vec<String> {
    let Ok(wanted) = serde_json::from_value::<WorkloadSpec>(wanted.clone()) else { return Vec::new() };
    let stays = |city: &String| {
        let mut cities = wanted.placements.iter().flat_map(|one| &one.city_codes);
        cities.any(|other| location::same_city(other, city))
    };
    let cities = stored.placements.iter().flat_map(|one| &one.city_codes);
    cities.filter(|city| !stays(city)).cloned().collect()
}

/// What is known of the project when a change is planned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    /// Deployments of the workload.
    pub(crate) deployments: &'a [WorkloadDeployment],
    /// What offers cities; `None` if that is not known.
    pub(crate) bindings: Option<&'a [LocationBinding]>,
    /// What there is of quota.
    pub(crate) buckets: &'a [AllowanceBucket],
}

/// What it comes to if a workload gets this spec. `stored` is what it is now.
pub(crate) fn plan(name: &str, stored: Option<&Workload>, wanted: &WorkloadSpec, known: Known<'_>) -> Plan {
    let empty = WorkloadSpec::default();
    let before = stored.map_or(&empty, |stored| &stored.spec);
    let replicas = |placement: &str, city: &str| {
        let found = known.deployments.iter().find(|one| {
            one.spec.placement_name == placement
                && location::same_city(&one.spec.city_code, city)
                && !meta::is_being_deleted(&one.metadata)
        });
        found.and_then(|one| one.spec.replicas)
    };
    let counts = |spec: &WorkloadSpec| -> Vec<(String, String, i64)> {
        let pairs = spec.placements.iter().flat_map(|one| one.city_codes.iter().map(move |city| (one, city)));
        pairs
            .map(|(placement, city)| {
                let spec = WorkloadDeploymentSpec {
                    replicas: replicas(&placement.name, city),
                    scale_settings: placement.scale_settings.clone(),
                    ..WorkloadDeploymentSpec::default()
                };
                (placement.name.clone(), city.clone(), i64::from(scale::desired_replicas(&spec)))
            })
            .collect()
    };
    let (old, new) = (counts(before), counts(wanted));
    let count_of = |list: &[(String, String, i64)], placement: &str, city: &str| {
        let found = list.iter().find(|(p, c, _)| p == placement && location::same_city(c, city));
        found.map(|(_, _, count)| *count)
    };
    let offered = known.bindings.map(location::Offered::of);
    let mut cities: Vec<PlannedCity> = new
        .iter()
        .map(|(placement, city, then)| {
            let is_old = count_of(&old, placement, city).is_some();
            let why = offered.as_ref().filter(|_| !is_old).and_then(|offered| offered.find(city).err());
            PlannedCity {
                placement: placement.clone(),
                city: city.clone(),
                now: count_of(&old, placement, city).unwrap_or(0),
                then: *then,
                obstacle: why.map(|why| why.explain(city)),
            }
        })
        .collect();
    let gone = old.iter().filter(|(placement, city, _)| count_of(&new, placement, city).is_none());
    cities.extend(gone.map(|(placement, city, now)| PlannedCity {
        placement: placement.clone(),
        city: city.clone(),
        now: *now,
        then: 0,
        obstacle: None,
    }));
    let total = |list: &[(String, String, i64)]| list.iter().map(|(_, _, count)| count).sum();
    let size = |spec: &WorkloadSpec| size::of(&spec.template.spec).ok();
    Plan {
        name: name.to_owned(),
        is_new: stored.is_none(),
        is_same: stored.is_some_and(|stored| changes::same(&stored.spec, wanted)),
        changes: match stored {
            Some(stored) => changes::between(&stored.spec, wanted).iter().map(ToString::to_string).collect(),
            None => Vec::new(),
        },
        replaces: stored.is_some_and(|stored| {
            !compute_api::template_hash::same_content(&stored.spec.template, &wanted.template)
        }),
        cities,
        needs: quota::needs(known.buckets, (size(before), total(&old)), (size(wanted), total(&new))),
    }
}
