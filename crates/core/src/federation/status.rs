//! The status of a project's deployment: that of its hub copy, under what is known of the cell.
//!
//! # Guarantees
//!
//! Only a status that speaks of this very object is believed. A cell that does not answer takes nothing away
//! from what it reported last but the claim that it is so now.

use compute_api::{
    compute::{WorkloadDeployment, WorkloadDeploymentStatus},
    conditions::{self as c, Status, Update},
    k8s::{Condition, Timestamp},
    karmada::{self, Cluster},
    labels,
};

use super::copy;
use crate::{meta, rollup};

/// What is known of the cell that serves a city.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// It answers.
    Ready,
    /// It does not answer.
    NotReady {
        /// Since when; unset if nobody knows.
        since: Option<Timestamp>,
    },
    /// No cell serves the city.
    Absent,
    /// Nobody can tell now: what was said of it last stays.
    Unknown,
}

/// What is known of the cell that serves a city. The label is compared exactly, as the hub does.
pub fn cell<'a>(city: &str, clusters: impl IntoIterator<Item = &'a Cluster>) -> Cell {
    let mut found = Cell::Absent;
    for cluster in clusters {
        if meta::label(&cluster.metadata, labels::TOPOLOGY_CITY_CODE) != Some(city) {
            continue;
        }
        let conditions = cluster.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let ready = c::find(conditions, karmada::CONDITION_READY);
        if ready.is_some_and(|ready| Status::of(ready) == Status::True) {
            return Cell::Ready;
        }
        let since = ready.map(|ready| ready.last_transition_time.0);
        found = match found {
            // Of several that do not answer the one that was there last counts.
            Cell::NotReady { since: other } => Cell::NotReady { since: since.max(other) },
            Cell::Ready | Cell::Absent | Cell::Unknown => Cell::NotReady { since },
        };
    }
    found
}

/// Whether the status of a hub copy speaks of this project object, and says anything.
pub fn is_believed(project: &WorkloadDeployment, hub: &WorkloadDeployment) -> bool {
    let observed = hub.status.as_ref().and_then(|status| status.observed_generation);
    !meta::is_being_deleted(&hub.metadata)
        && !copy::is_of_predecessor(project, hub)
        && observed.is_some_and(|observed| Some(observed) <= project.metadata.generation)
}

/// The status of a project's deployment. Where nothing on the hub is believed, what was said last stays.
pub fn mirror(
    project: &WorkloadDeployment,
    hub: Option<&WorkloadDeployment>,
    cell: &Cell,
    now: Timestamp,
) -> WorkloadDeploymentStatus {
    let stored = project.status.clone().unwrap_or_default();
    let before = c::find(&stored.conditions, c::AVAILABLE).cloned();
    let believed = hub.filter(|hub| is_believed(project, hub)).and_then(|hub| hub.status.clone());
    let reports = believed.is_some();
    let mut status = believed.unwrap_or(stored);
    if let (Cell::Unknown, Some(said)) = (cell, before.as_ref().filter(|said| is_overlay(&said.reason))) {
        replace(&mut status.conditions, said.clone());
        return status;
    }
    let overlay = overlay(&project.spec.city_code, cell, &status).or_else(|| {
        let retold = before.as_ref().is_some_and(|said| is_overlay(&said.reason));
        (!reports && retold)
            .then(|| Update::new(c::AVAILABLE, Status::Unknown, c::PENDING, "Waiting for the cell to report"))
    });
    if let Some(update) = overlay {
        let update = update.of_generation(status.observed_generation);
        replace(&mut status.conditions, c::next(before.as_ref(), update, now));
    } else if let Some(said) = c::find(&status.conditions, c::AVAILABLE) {
        let told = retimed(before.as_ref(), said, now);
        replace(&mut status.conditions, told);
    }
    status
}

/// Whether applying `wanted` would change what is stored. A count that one side leaves out is the 0 that the other's schema fills in.
pub fn differs(stored: Option<&WorkloadDeploymentStatus>, wanted: &WorkloadDeploymentStatus) -> bool {
    let counted = |status: &WorkloadDeploymentStatus| {
        let WorkloadDeploymentStatus {
            replicas,
            current_replicas,
            updated_replicas,
            desired_replicas,
            ready_replicas,
            ..
        } = status;
        WorkloadDeploymentStatus {
            replicas: replicas.or(Some(0)),
            current_replicas: current_replicas.or(Some(0)),
            updated_replicas: updated_replicas.or(Some(0)),
            desired_replicas: desired_replicas.or(Some(0)),
            ready_replicas: ready_replicas.or(Some(0)),
            ..status.clone()
        }
    };
    rollup::deployment::differs(
        Some(&counted(stored.unwrap_or(&WorkloadDeploymentStatus::default()))),
        &counted(wanted),
    )
}

fn is_overlay(reason: &str) -> bool {
    matches!(reason, c::CELL_NOT_READY | c::NO_MATCHING_LOCATION)
}

fn overlay(city: &str, cell: &Cell, status: &WorkloadDeploymentStatus) -> Option<Update> {
    match cell {
        Cell::Ready | Cell::Unknown => None,
        Cell::Absent => {
            let message = format!(
                "No cell serves city {city}; choose another city, or ask the operators of the platform for this one"
            );
            Some(Update::new(c::AVAILABLE, Status::False, c::NO_MATCHING_LOCATION, message))
        }
        Cell::NotReady { since } => {
            let mut message = format!("The cell that serves city {city} does not answer");
            if let Some(since) = since {
                message.push_str(&format!(" since {since}"));
            }
            if status.observed_generation.is_some() {
                message.push_str("; the counts are those it reported last");
            }
            message.push_str("; its operators have to look at it, and what ran there most likely runs on");
            Some(Update::new(c::AVAILABLE, Status::Unknown, c::CELL_NOT_READY, message))
        }
    }
}

/// A condition of the hub as the project sees it: its time moves when the status that the project has seen
/// does, which may be later than in the cell if an overlay was in between.
fn retimed(before: Option<&Condition>, said: &Condition, now: Timestamp) -> Condition {
    let mut told = said.clone();
    if let Some(before) = before {
        if before.status == said.status {
            told.last_transition_time = before.last_transition_time.clone();
        } else if said.last_transition_time.0 <= before.last_transition_time.0 {
            told.last_transition_time.0 = now;
        }
    }
    told
}

fn replace(conditions: &mut Vec<Condition>, condition: Condition) {
    match conditions.iter_mut().find(|held| held.type_ == condition.type_) {
        Some(held) => *held = condition,
        None => conditions.push(condition),
    }
}
