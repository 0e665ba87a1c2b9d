//! A workload: its health in a line, and its cities.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions::{self as c, Status};
use compute_api::k8s::Timestamp;
use compute_core::{meta, revisions};
use serde::Serialize;

use super::city::{self, CityView, Phase, Trouble};
use crate::words;

/// How a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Health {
    /// It serves, and nothing is in the way.
    Available,
    /// It serves, but not as it should.
    Degraded,
    /// It does not serve.
    Unavailable,
}

impl Health {
    /// In a word.
    pub(crate) fn say(self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Degraded => "Degraded",
            Self::Unavailable => "Unavailable",
        }
    }
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadView {
    /// Its name.
    pub(crate) name: String,
    /// How it is.
    pub(crate) health: Health,
    /// Why, in a few words.
    pub(crate) because: String,
    /// Its images.
    pub(crate) images: Vec<String>,
    /// Its instances' type.
    pub(crate) instance_type: String,
    /// The number of its revision, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<i64>,
    /// Whether its rollout is paused.
    pub(crate) paused: bool,
    /// Whether it is being destroyed.
    pub(crate) leaving: bool,
    /// Instances that are ready.
    pub(crate) ready: i64,
    /// Instances that are on what is wanted now.
    pub(crate) updated: i64,
    /// Instances that are wanted.
    pub(crate) desired: i64,
    /// Its cities.
    pub(crate) cities: Vec<CityView>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Timestamp>,
}

impl WorkloadView {
    /// `Degraded — image unavailable in IAD`.
    pub(crate) fn health_line(&self) -> String {
        format!("{} — {}", self.health.say(), self.because)
    }

    /// Whether every city is as wanted.
    pub(crate) fn is_done(&self) -> bool {
        self.cities.iter().all(|city| city.phase == Phase::Done)
    }

    /// What is in the way, where, and the platform's own sentence about it; the same of several cities is said once.
    pub(crate) fn troubles(&self) -> Vec<(String, String, String)> {
        let mut found: Vec<(&Trouble, Vec<String>)> = Vec::new();
        for city in &self.cities {
            let Some(trouble) = &city.trouble else { continue };
            let same = |(known, _): &&mut (&Trouble, Vec<String>)| {
                known.what == trouble.what && known.message == trouble.message
            };
            match found.iter_mut().find(same) {
                Some((_, cities)) => cities.push(city.city.clone()),
                None => found.push((trouble, vec![city.city.clone()])),
            }
        }
        found
            .into_iter()
            .map(|(trouble, cities)| (trouble.what.clone(), words::list(&cities), trouble.message.clone()))
            .collect()
    }

    /// Whether it has cities in more than one placement.
    pub(crate) fn has_placements(&self) -> bool {
        let mut names = self.cities.iter().map(|city| &city.placement);
        names.next().is_some_and(|first| names.any(|other| other != first))
    }
}

/// What is known of a workload. Without instances, only what deployments say of themselves is in the way.
pub(crate) fn view(
    workload: &Workload,
    deployments: &[WorkloadDeployment],
    instances: &[Instance],
) -> WorkloadView {
    let cities = city::views(workload, deployments, instances);
    let sum = |count: fn(&CityView) -> i64| cities.iter().map(count).sum();
    let runtime = &workload.spec.template.spec.runtime;
    let containers = runtime.sandbox.as_ref().map_or(&[][..], |sandbox| &sandbox.containers);
    let mut view = WorkloadView {
        name: meta::name(&workload.metadata).to_owned(),
        health: Health::Available,
        because: String::new(),
        images: containers.iter().map(|container| container.image.clone()).collect(),
        instance_type: runtime.resources.instance_type.clone(),
        revision: revisions::current(workload),
        paused: workload.spec.paused == Some(true),
        leaving: meta::is_being_deleted(&workload.metadata),
        ready: sum(|city| city.ready),
        updated: sum(|city| city.updated),
        desired: sum(|city| city.desired),
        cities,
        created: workload.metadata.creation_timestamp.as_ref().map(|time| time.0),
    };
    (view.health, view.because) = health(workload, &view);
    view
}

fn health(workload: &Workload, view: &WorkloadView) -> (Health, String) {
    let counts = format!("{} of {} ready", view.ready, words::count(view.desired, "instance"));
    // What a city that does not answer reported last is not what is now.
    let is_old =
        |city: &CityView| city.trouble.as_ref().is_some_and(|trouble| trouble.reason == c::CELL_NOT_READY);
    let counts = if view.cities.iter().any(is_old) { format!("{counts} when last heard of") } else { counts };
    if view.leaving {
        let left = words::count(view.cities.iter().map(|city| city.replicas).sum(), "instance");
        return (Health::Unavailable, format!("being destroyed, {left} left"));
    }
    if let Some(why) = troubles(view) {
        return match view.ready {
            0 => (Health::Unavailable, why),
            _ => (Health::Degraded, format!("{counts}; {why}")),
        };
    }
    if view.desired == 0 {
        return (Health::Available, "scaled to zero".to_owned());
    }
    if view.ready == 0 {
        return (Health::Unavailable, unavailable(workload));
    }
    if view.paused && view.updated < view.desired {
        let old = view.desired - view.updated;
        return (
            Health::Available,
            format!("{counts}; rollout paused, {} not up to date", words::count(old, "instance")),
        );
    }
    if view.updated < view.desired {
        let updated = format!("updating, {} of {} up to date", view.updated, view.desired);
        return (Health::Available, format!("{counts}; {updated}"));
    }
    if view.ready < view.desired {
        return (Health::Degraded, counts);
    }
    (Health::Available, format!("all {} ready", words::count(view.desired, "instance")))
}

/// What is in the way, and where: `image unavailable in DFW and IAD`.
fn troubles(view: &WorkloadView) -> Option<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for city in &view.cities {
        let Some(trouble) = &city.trouble else { continue };
        match found.iter_mut().find(|(what, _)| *what == trouble.what) {
            Some((_, cities)) if !cities.contains(&city.city) => cities.push(city.city.clone()),
            Some(_) => {}
            None => found.push((trouble.what.clone(), vec![city.city.clone()])),
        }
    }
    let texts: Vec<_> =
        found.iter().map(|(what, cities)| format!("{what} in {}", words::list(cities))).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Why nothing is ready, as the workload says it.
fn unavailable(workload: &Workload) -> String {
    let conditions = workload.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said = c::find(conditions, c::AVAILABLE).filter(|said| Status::of(said) != Status::True);
    let reason = said.map_or(c::INSTANCES_PROVISIONING, |said| said.reason.as_str());
    words::of(reason).short
}
