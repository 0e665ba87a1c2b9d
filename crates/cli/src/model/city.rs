//! One placement of a workload in one city.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions::{self as c, Status};
use compute_api::k8s::Timestamp;
use compute_api::labels;
use compute_core::{location, meta, planner, reasons, rollup, scale};
use serde::Serialize;

use crate::words;

/// What is in the way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trouble {
    /// In one word; for decisions, not for people.
    #[serde(skip)]
    pub(crate) reason: String,
    /// In a few words.
    pub(crate) what: String,
    /// In the platform's own sentence.
    pub(crate) message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// The instances that say so.
    pub(crate) instances: Vec<String>,
    /// Whether it is certain that it stays so until somebody does something, and is about what is wanted now.
    pub(crate) is_certain: bool,
}

/// What a city waits for that passes by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait {
    /// In one word; for decisions, not for people.
    #[serde(skip)]
    pub(crate) reason: String,
    /// In a few words.
    pub(crate) what: String,
    /// In the platform's own sentence.
    pub(crate) message: String,
}

/// How far a city is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Phase {
    /// It has not taken up what is wanted.
    Waiting,
    /// Instances are being made or replaced.
    Updating,
    /// It is not getting on.
    Blocked,
    /// Instances stay as they are until the rollout is resumed.
    Paused,
    /// Everything is as wanted.
    Done,
    /// It is not wanted any more.
    Leaving,
}

impl Phase {
    /// In a word.
    pub(crate) fn say(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Updating => "updating",
            Self::Blocked => "blocked",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Leaving => "leaving",
        }
    }
}

/// One placement of a workload in one city.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CityView {
    /// The placement.
    pub(crate) placement: String,
    /// The city.
    pub(crate) city: String,
    /// Instances that are ready.
    pub(crate) ready: i64,
    /// Instances that are on what is wanted now.
    pub(crate) updated: i64,
    /// Instances that are wanted.
    pub(crate) desired: i64,
    /// Instances that there are.
    pub(crate) replicas: i64,
    /// The fewest and the most that may run.
    pub(crate) min: i64,
    /// The most that may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<i64>,
    /// How far it is.
    pub(crate) phase: Phase,
    /// What is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<Trouble>,
    /// What it waits for, if nothing is in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<Wait>,
}

impl CityView {
    /// How it is, in the words that instances have.
    pub(crate) fn status(&self) -> String {
        match (&self.trouble, self.phase) {
            (Some(trouble), _) if self.ready > 0 => format!("Degraded ({})", trouble.what),
            (Some(trouble), _) => format!("Unavailable ({})", trouble.what),
            (None, Phase::Leaving) => "Being removed".to_owned(),
            (None, Phase::Paused) => "Paused".to_owned(),
            (None, Phase::Waiting) => "Waiting".to_owned(),
            (None, Phase::Updating) if self.ready > 0 => "Updating".to_owned(),
            (None, Phase::Updating) => match &self.waits {
                Some(wait) => format!("Pending ({})", wait.what),
                None => "Starting".to_owned(),
            },
            (None, _) if self.desired == 0 => "Scaled to zero".to_owned(),
            (None, _) => "Available".to_owned(),
        }
    }
}

/// The cities of a workload, in the order of its placements; those that are leaving come last.
pub(crate) fn views(
    workload: &Workload,
    deployments: &[WorkloadDeployment],
    instances: &[Instance],
) -> Vec<CityView> {
    let uid = meta::uid(&workload.metadata);
    let ours: Vec<_> = deployments
        .iter()
        .filter(|deployment| {
            meta::is_controlled_by(&deployment.metadata, uid) || deployment.spec.workload_ref.uid == uid
        })
        .collect();
    let mut views = Vec::new();
    for placement in &workload.spec.placements {
        for city in &placement.city_codes {
            let found = ours.iter().find(|deployment| {
                deployment.spec.placement_name == placement.name
                    && location::same_city(&deployment.spec.city_code, city)
                    && !meta::is_being_deleted(&deployment.metadata)
            });
            views.push(match found {
                Some(deployment) => deployed(deployment, instances, workload),
                None => missing(workload, &placement.name, city),
            });
        }
    }
    let leaving = ours.iter().filter(|deployment| {
        let wanted = workload.spec.placements.iter().any(|placement| {
            placement.name == deployment.spec.placement_name
                && placement
                    .city_codes
                    .iter()
                    .any(|city| location::same_city(city, &deployment.spec.city_code))
        });
        !wanted || meta::is_being_deleted(&deployment.metadata)
    });
    views.extend(leaving.map(|deployment| {
        let view = deployed(deployment, &[], workload);
        CityView { phase: Phase::Leaving, trouble: None, waits: None, desired: 0, updated: 0, ..view }
    }));
    views
}

fn deployed(deployment: &WorkloadDeployment, instances: &[Instance], workload: &Workload) -> CityView {
    let status = deployment.status.clone().unwrap_or_default();
    let spec = &deployment.spec;
    let is_current = rollup::workload::is_current(deployment);
    let desired = i64::from(scale::desired_replicas(spec));
    let counted = |count: Option<i64>| count.unwrap_or(0).max(0);
    let mut view = CityView {
        placement: spec.placement_name.clone(),
        city: spec.city_code.clone(),
        ready: counted(status.ready_replicas),
        updated: counted(status.updated_replicas.filter(|_| is_current)),
        desired,
        replicas: counted(status.replicas),
        min: i64::from(scale::min_replicas(&spec.scale_settings)),
        max: spec.scale_settings.max_replicas,
        phase: Phase::Done,
        trouble: None,
        waits: None,
    };
    let taken_up = is_current && workload_is_taken_up(workload);
    view.trouble = trouble(deployment, instances, taken_up);
    view.phase = phase(&view, taken_up, workload.spec.paused == Some(true));
    view.waits = waits(deployment).filter(|_| view.phase == Phase::Updating);
    view
}

/// What a deployment says that it waits for; that instances are being made is nothing to wait for.
fn waits(deployment: &WorkloadDeployment) -> Option<Wait> {
    let conditions = deployment.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said = c::find(conditions, c::AVAILABLE).filter(|said| Status::of(said) != Status::True)?;
    let is_telling = matches!(
        said.reason.as_str(),
        c::NETWORK_PROVISIONING | c::REFERENCED_DATA_NOT_READY | c::QUOTA_NOT_GRANTED
    );
    // What only passes is the platform's to do.
    let reason = match said.reason.as_str() {
        c::REFERENCED_DATA_NOT_READY => c::AWAITING_PROPAGATION,
        c::QUOTA_NOT_GRANTED => c::PENDING_QUOTA,
        other => other,
    };
    is_telling.then(|| Wait {
        reason: reason.to_owned(),
        what: words::of(reason).short,
        message: said.message.clone(),
    })
}

/// Whether the deployments of a workload are what its present spec asks for.
fn workload_is_taken_up(workload: &Workload) -> bool {
    let observed = workload.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed == workload.metadata.generation
}

fn phase(view: &CityView, taken_up: bool, paused: bool) -> Phase {
    let is_done = [view.ready, view.updated, view.replicas] == [view.desired; 3];
    match () {
        () if !taken_up => Phase::Waiting,
        () if view.trouble.is_some() => Phase::Blocked,
        () if is_done => Phase::Done,
        () if paused && view.ready >= view.desired => Phase::Paused,
        () => Phase::Updating,
    }
}

/// What is in the way: what the deployment says of itself; else, if it serves but some instance has a problem, what that says.
fn trouble(deployment: &WorkloadDeployment, instances: &[Instance], taken_up: bool) -> Option<Trouble> {
    let name = meta::name(&deployment.metadata);
    let wanted = planner::desired(deployment);
    let staying = instances.iter().filter(|instance| {
        meta::label(&instance.metadata, labels::WORKLOAD_DEPLOYMENT_NAME) == Some(name)
            && !meta::is_being_deleted(&instance.metadata)
    });
    let problems: Vec<_> = staying
        .filter_map(|instance| {
            let ready = c::find(&instance.status.as_ref()?.conditions, c::READY)?;
            (Status::of(ready) != Status::True && reasons::is_problem(&ready.reason))
                .then_some((instance, ready))
        })
        .collect();
    let worst = problems
        .iter()
        .max_by_key(|(instance, ready)| (wanted.matches(instance), reasons::of_instance(&ready.reason)));
    // Only an instance that is on what is wanted now tells whether that works.
    let is_certain = |reason: &str| taken_up && words::is_certain(reason);
    let certain =
        worst.is_some_and(|(instance, ready)| wanted.matches(instance) && is_certain(&ready.reason));
    let sayers = |reason: &str| -> Vec<String> {
        let same = problems.iter().filter(|(_, ready)| ready.reason == reason);
        same.map(|(instance, _)| meta::name(&instance.metadata).to_owned()).collect()
    };
    let conditions = deployment.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said = c::find(conditions, c::AVAILABLE).filter(|said| {
        Status::of(said) != Status::True
            && reasons::severity(&said.reason) > reasons::severity(c::NETWORK_PROVISIONING)
    });
    if let Some(said) = said {
        let instances = worst.map(|(_, ready)| sayers(&ready.reason)).unwrap_or_default();
        let of_city = matches!(said.reason.as_str(), c::NO_MATCHING_LOCATION | c::NETWORK_FAILED_TO_CREATE);
        let waits = said.reason == c::QUOTA_NOT_GRANTED || said.reason == c::REFERENCED_DATA_NOT_READY;
        if waits && worst.is_none() {
            // It passes by itself; an instance that needs somebody says so.
            return None;
        }
        // A sum's word says less than that of its worst instance.
        let reason = worst.filter(|_| waits).map_or(&said.reason, |(_, ready)| &ready.reason);
        return Some(Trouble {
            reason: reason.clone(),
            what: words::of(reason).short,
            message: said.message.clone(),
            since: Some(said.last_transition_time.0),
            instances,
            is_certain: certain || (of_city && is_certain(&said.reason)),
        });
    }
    worst.map(|(_, ready)| Trouble {
        reason: ready.reason.clone(),
        what: words::of(&ready.reason).short,
        message: ready.message.clone(),
        since: Some(ready.last_transition_time.0),
        instances: sayers(&ready.reason),
        is_certain: certain,
    })
}

/// A city that has no deployment, and what its placement says about that.
fn missing(workload: &Workload, placement: &str, city: &str) -> CityView {
    let asked = workload.spec.placements.iter().find(|one| one.name == placement);
    let settings = asked.map(|one| one.scale_settings.clone()).unwrap_or_default();
    let status = workload.status.clone().unwrap_or_default();
    let said = status.placements.iter().find(|one| one.name == placement);
    let conditions = said.map_or(&[][..], |one| &one.conditions);
    let locations =
        c::find(conditions, c::LOCATIONS_AVAILABLE).filter(|said| Status::of(said) == Status::False);
    let network = c::find(conditions, c::AVAILABLE).filter(|said| said.reason == c::NETWORK_NOT_FOUND);
    // Several cities are told of in one sentence each.
    let about = locations.and_then(|said| {
        let mut sentences = said.message.split("; ");
        let sentence = sentences.find(|one| one.split(' ').any(|word| location::same_city(word, city)))?;
        Some((said, sentence.to_owned()))
    });
    let found = about.or_else(|| network.map(|said| (said, said.message.clone())));
    let trouble = found.map(|(said, message)| Trouble {
        reason: said.reason.clone(),
        what: words::of(&said.reason).short,
        message,
        since: Some(said.last_transition_time.0),
        instances: Vec::new(),
        is_certain: said.observed_generation == workload.metadata.generation
            && words::is_certain(&said.reason),
    });
    CityView {
        placement: placement.to_owned(),
        city: city.to_owned(),
        ready: 0,
        updated: 0,
        desired: i64::from(scale::min_replicas(&settings)),
        replicas: 0,
        min: i64::from(scale::min_replicas(&settings)),
        max: settings.max_replicas,
        phase: if trouble.is_some() { Phase::Blocked } else { Phase::Waiting },
        trouble,
        waits: None,
    }
}
