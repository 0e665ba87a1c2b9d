//! How it comes to that: from the workload through its placements and cities to the instance that says why.

use compute_api::compute::{Instance, Workload, WorkloadDeployment};
use compute_api::conditions::{self as c, Status};
use compute_api::k8s::{Condition, Timestamp};
use compute_api::{compute::gates, labels};
use compute_core::{location, meta, reasons};
use serde::Serialize;

use super::workload::{self, WorkloadView};
use crate::words::{self, Mover};

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Link {
    /// How deep it is.
    pub(crate) depth: usize,
    /// What it is, such as `City DFW`.
    pub(crate) what: String,
    /// What it says, in a few words.
    pub(crate) says: String,
    /// Whether that is well.
    pub(crate) is_well: bool,
    /// Its own sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// The one cause at the end of a chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    /// Where: an instance, a city, or the workload.
    pub(crate) place: String,
    /// What, in a few words.
    pub(crate) what: String,
    /// The platform's own sentence.
    pub(crate) message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// Whose move it is.
    pub(crate) mover: Mover,
    /// What to do.
    pub(crate) advice: String,
}

/// The chain of a workload, and its cause if something is wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chain {
    /// The workload.
    pub(crate) workload: WorkloadView,
    /// The links, from the workload down.
    pub(crate) links: Vec<Link>,
    /// The one cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Cause>,
}

/// How it comes to what a workload says.
pub(crate) fn explain(
    workload: &Workload,
    deployments: &[WorkloadDeployment],
    instances: &[Instance],
) -> Chain {
    let view = workload::view(workload, deployments, instances);
    let mut links = vec![Link {
        depth: 0,
        what: format!("Workload {}", view.name),
        says: view.health_line(),
        is_well: view.health == workload::Health::Available,
        message: trouble_sentence(workload),
        since: since(workload.status.as_ref().map_or(&[][..], |status| &status.conditions), c::AVAILABLE),
    }];
    // Where it is worst comes first, and only that is followed down to its instances.
    let worst =
        view.cities.iter().enumerate().filter(|(_, city)| city.trouble.is_some()).max_by_key(|(at, city)| {
            let reason = city.trouble.as_ref().map_or("", |trouble| trouble.reason.as_str());
            (city.desired - city.ready, reasons::of_instance(reason), std::cmp::Reverse(*at))
        });
    let worst = worst.map(|(at, _)| at);
    let mut cause = None;
    for (at, city) in view.cities.iter().enumerate() {
        let deployment = deployments.iter().find(|one| {
            one.spec.placement_name == city.placement
                && location::same_city(&one.spec.city_code, &city.city)
                && one.spec.workload_ref.name == view.name
                && !meta::is_being_deleted(&one.metadata)
        });
        let conditions =
            deployment.and_then(|one| one.status.as_ref()).map_or(&[][..], |status| &status.conditions);
        let message = city.trouble.as_ref().map(|trouble| trouble.message.clone());
        links.push(Link {
            depth: 1,
            what: format!("City {} of placement {}", city.city, city.placement),
            says: format!("{}, {} of {} ready", city.status(), city.ready, city.desired),
            is_well: city.trouble.is_none() && city.ready >= city.desired,
            message: message.or_else(|| sentence(conditions, c::AVAILABLE)).filter(|text| !text.is_empty()),
            since: city
                .trouble
                .as_ref()
                .and_then(|trouble| trouble.since)
                .or_else(|| since(conditions, c::AVAILABLE)),
        });
        if Some(at) != worst {
            continue;
        }
        if let Some(network) = c::find(conditions, c::NETWORK_READY) {
            links.push(of_condition(2, "Network of the city", network));
        }
        let bad = city.trouble.as_ref().and_then(|trouble| trouble.instances.first());
        let instance =
            instances.iter().find(|one| Some(meta::name(&one.metadata)) == bad.map(String::as_str));
        if let Some(instance) = instance {
            links.extend(of_instance(instance));
        }
        cause = city.trouble.as_ref().map(|trouble| {
            let meaning = words::of(&trouble.reason);
            Cause {
                place: bad
                    .map_or_else(|| city.city.clone(), |one| format!("instance {one} in {}", city.city)),
                what: trouble.what.clone(),
                message: trouble.message.clone(),
                since: trouble.since,
                mover: meaning.mover,
                advice: meaning.advice.to_owned(),
            }
        });
    }
    Chain { workload: view, links, cause }
}

/// What a workload says of being unavailable. That it is available says nothing about what is wrong.
fn trouble_sentence(workload: &Workload) -> Option<String> {
    let conditions = workload.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let said = c::find(conditions, c::AVAILABLE).filter(|said| Status::of(said) != Status::True)?;
    Some(said.message.clone()).filter(|text| !text.is_empty())
}

fn sentence(conditions: &[Condition], type_: &str) -> Option<String> {
    c::find(conditions, type_).map(|said| said.message.clone()).filter(|text| !text.is_empty())
}

fn since(conditions: &[Condition], type_: &str) -> Option<Timestamp> {
    c::find(conditions, type_).map(|said| said.last_transition_time.0)
}

fn of_condition(depth: usize, what: &str, said: &Condition) -> Link {
    Link {
        depth,
        what: what.to_owned(),
        says: words::of(&said.reason).short,
        is_well: Status::of(said) == Status::True,
        message: Some(said.message.clone()).filter(|text| !text.is_empty()),
        since: Some(said.last_transition_time.0),
    }
}

/// An instance, and under it each thing that it needs, in the order in which it needs them.
fn of_instance(instance: &Instance) -> Vec<Link> {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let view = super::instance::view(instance);
    let mut links = vec![Link {
        depth: 2,
        what: format!("Instance {}", view.name),
        says: view.detail.clone(),
        is_well: view.reason.is_empty(),
        message: None,
        since: view.since,
    }];
    let network_held = instance.spec.has_gate(gates::NETWORK);
    links.push(Link {
        depth: 3,
        what: "Network".to_owned(),
        says: if network_held { "waiting" } else { "connected" }.to_owned(),
        is_well: !network_held,
        message: None,
        since: None,
    });
    for (what, type_) in [
        ("Quota", c::QUOTA_GRANTED),
        ("Config and secrets", c::REFERENCED_DATA_READY),
        ("Set up", c::PROGRAMMED),
        ("Serving", c::AVAILABLE),
    ] {
        match c::find(conditions, type_) {
            // What comes before it is not done.
            Some(said) if said.reason == c::PENDING => links.push(Link {
                says: "not begun".to_owned(),
                message: None,
                since: None,
                ..of_condition(3, what, said)
            }),
            Some(said) => links.push(of_condition(3, what, said)),
            None => {}
        }
    }
    links
}

/// The workload of an instance, as it says itself.
pub(crate) fn workload_of(instance: &Instance) -> Option<&str> {
    meta::label(&instance.metadata, labels::WORKLOAD_NAME)
}
