//! What to do next, as commands that work when they are pasted.

use compute_api::conditions as c;

use super::city::CityView;
use super::workload::{Health, WorkloadView};
use crate::failure::Step;

/// What to do about a workload that is not as it should be. `can_undo` says whether there is a revision to go back to.
pub(crate) fn next_steps(view: &WorkloadView, can_undo: bool) -> Vec<Step> {
    let name = &view.name;
    let mut steps: Vec<Step> = Vec::new();
    let mut add = |step: Step| {
        // One command for each purpose is enough to begin with.
        if !steps.iter().any(|known| known.command == step.command || known.purpose == step.purpose) {
            steps.push(step);
        }
    };
    for city in view.cities.iter().filter(|city| city.trouble.is_some()) {
        let is_alone = !view.cities.iter().any(|other| other.placement == city.placement && other != city);
        for step in of_city(name, city, is_alone, can_undo) {
            add(step);
        }
    }
    if view.paused && view.updated < view.desired {
        add(Step::new(format!("rollout resume {name}"), "resume the rollout"));
    }
    if view.health != Health::Available {
        add(Step::new(format!("explain {name}"), "see why, step by step"));
    }
    steps
}

fn of_city(name: &str, city: &CityView, is_alone: bool, can_undo: bool) -> Vec<Step> {
    let reason = city.trouble.as_ref().map_or("", |trouble| trouble.reason.as_str());
    let undo = || Step::new(format!("rollout undo {name}"), "go back to the revision before");
    let instance = city.trouble.as_ref().and_then(|trouble| trouble.instances.first());
    let look =
        instance.map(|one| Step::new(format!("instances describe {one}"), "see what the instance says"));
    match reason {
        c::IMAGE_UNAVAILABLE
        | c::INSTANCE_CRASHING
        | c::CONFIGURATION_ERROR
        | c::SOURCE_NOT_FOUND
        | c::SOURCE_TOO_LARGE => can_undo.then(undo).into_iter().chain(look).collect(),
        c::QUOTA_EXCEEDED | c::QUOTA_NO_BUDGET | c::QUOTA_NOT_GRANTED => {
            let mut steps = vec![Step::new("quota", "see what is used and what is missing")];
            // A placement has one number for all its cities: the others would lose instances.
            if is_alone && city.ready > 0 && city.ready < city.min {
                let min = city.ready;
                let placement = &city.placement;
                steps.push(Step::new(
                    format!("scale {name} --placement {placement} --min {min}"),
                    "ask for no more than there is room for",
                ));
            }
            steps
        }
        c::LOCATION_UNAVAILABLE | c::NO_MATCHING_LOCATION | c::CELL_NOT_READY => {
            vec![Step::new("cities", "see the cities that this project can use")]
        }
        _ => look.into_iter().collect(),
    }
}
