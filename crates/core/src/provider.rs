//! What a provider says about an instance: from what its engine sees to `Programmed`, `Available`, addresses and the observed template
//! hash.
//!
//! # Guarantees
//!
//! Every message is ours: what an engine says in its own words is in [`Trouble::Provisioning`] only, for operators, and no status has it.
//! What does not change is not written: the same observation of an unchanged instance differs in nothing.

use std::collections::BTreeSet;

use compute_api::{
    compute::{
        Instance, InstanceControlStatus, InstanceInterfaceStatus, InstanceStatus, InterfaceAssignments,
    },
    conditions::{self as c, Status, Update},
    k8s::{Condition, Timestamp},
};

use crate::meta;

/// What an engine sees of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being set up: its image is fetched, its parts are made.
    Preparing,
    /// It is set up, and does not serve yet.
    Starting,
    /// It runs.
    Running,
    /// It is being stopped.
    Stopping,
    /// It has ended by itself, and stays so.
    Stopped,
    /// Something keeps it from running.
    Trouble(Trouble),
}

/// What keeps an instance from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An image cannot be had.
    ImageUnavailable {
        /// The image, as the instance names it.
        image: String,
        /// Why.
        why: ImageFault,
    },
    /// Its process ends again and again.
    Crashing {
        /// How it ended last, if that is known.
        exit_code: Option<i32>,
    },
    /// It has no address on a network of its own. The text is the engine's adapter's own.
    Network(String),
    /// It cannot start as it is configured. The text is the engine's adapter's own, never the runtime's.
    Configuration(String),
    /// Something else, in the runtime's own words: for operators only.
    Provisioning(String),
}

/// Why an image cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFault {
    /// Its name is none.
    Malformed,
    /// The registry does not have it, or does not show it.
    NotFound,
    /// The registry wants other credentials.
    Unauthorized,
    /// The registry does not answer.
    Unreachable,
}

/// What an engine sees of an instance, and where it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// How it is.
    pub state: State,
    /// Addresses of the interfaces, in the order of the spec; empty while there are none.
    pub addresses: Vec<InterfaceAssignments>,
}

impl Observation {
    /// An observation without addresses.
    pub fn of(state: State) -> Self {
        Self { state, addresses: Vec::new() }
    }

    /// An instance that is being stopped. It has its addresses until it is gone, and everybody can see that.
    pub fn stopping(instance: &Instance) -> Self {
        let stored = instance.status.as_ref().map_or(&[][..], |status| &status.network_interfaces);
        let addresses = stored.iter().map(|one| one.assignments.clone().unwrap_or_default()).collect();
        Self { state: State::Stopping, addresses }
    }
}

/// Which instances of a cell a provider runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Locations {
    /// All of them.
    #[default]
    All,
    /// Those of these locations, and those of none.
    Only(BTreeSet<String>),
}

/// Whether a provider runs the instance now: nothing holds it, it is not on its way out, and it is where the provider is. An instance
/// without a location belongs to the cell's provider.
pub fn may_run(instance: &Instance, locations: &Locations) -> bool {
    let is_served = match (&instance.spec.location, locations) {
        (None, _) | (_, Locations::All) => true,
        (Some(location), Locations::Only(served)) => served.contains(&location.name),
    };
    is_served && instance.spec.gates().is_empty() && !meta::is_being_deleted(&instance.metadata)
}

/// The part of an instance's status that is a provider's, whole: what is applied replaces what was. `note` is what the provider has to
/// say about itself in every status.
pub fn report(
    instance: &Instance,
    observation: &Observation,
    note: Option<&str>,
    now: Timestamp,
) -> InstanceStatus {
    let stored = instance.status.as_ref();
    let conditions = stored.map_or(&[][..], |status| &status.conditions);
    let (programmed, available) = updates(conditions, &observation.state);
    let next = |update: Update| {
        let message = match note {
            Some(note) => format!("{} ({note})", update.message),
            None => update.message.clone(),
        };
        let update = Update { message, ..update }.of_generation(instance.metadata.generation);
        c::next(c::find(conditions, &update.type_), update, now)
    };
    let programmed = match programmed {
        Said::New(update) => next(update),
        Said::Stays(condition) => condition.clone(),
    };
    let hash = instance.spec.template_hash().filter(|hash| !hash.is_empty());
    InstanceStatus {
        conditions: vec![programmed, next(available)],
        network_interfaces: interfaces(&observation.addresses),
        controller: hash.map(|hash| InstanceControlStatus { observed_template_hash: hash.to_owned() }),
    }
}

/// Whether applying the report would change what is stored.
pub fn differs(instance: &Instance, report: &InstanceStatus) -> bool {
    let Some(stored) = &instance.status else { return true };
    stored.network_interfaces != report.network_interfaces
        || stored.controller != report.controller
        || report.conditions.iter().any(|said| c::find(&stored.conditions, &said.type_) != Some(said))
}

/// What to warn people of when this report is written: a trouble that was not there before.
pub fn warning<'a>(instance: &Instance, report: &'a InstanceStatus) -> Option<&'a Condition> {
    let said = c::find(&report.conditions, c::AVAILABLE)?;
    let stored = instance.status.as_ref().and_then(|status| c::find(&status.conditions, c::AVAILABLE));
    let is_known =
        stored.is_some_and(|stored| stored.reason == said.reason && stored.message == said.message);
    let is_trouble =
        [c::IMAGE_UNAVAILABLE, c::INSTANCE_CRASHING, c::CONFIGURATION_ERROR].contains(&said.reason.as_str());
    (is_trouble && !is_known).then_some(said)
}

/// Whether the stored status says that the instance runs.
pub fn is_running(instance: &Instance) -> bool {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    c::is_true(conditions, c::PROGRAMMED) && c::is_true(conditions, c::AVAILABLE)
}

/// What there is to say about a condition.
enum Said<'a> {
    New(Update),
    /// What was said before.
    Stays(&'a Condition),
}

fn updates<'a>(stored: &'a [Condition], state: &State) -> (Said<'a>, Update) {
    let programmed = |status, reason, message: &str| Update::new(c::PROGRAMMED, status, reason, message);
    let available = |status, reason, message: &str| Update::new(c::AVAILABLE, status, reason, message);
    let set_up = || Said::New(programmed(Status::True, c::INSTANCE_PROGRAMMED, "The instance is set up"));
    match state {
        State::Preparing => {
            let message = "The instance is being set up";
            (
                Said::New(programmed(Status::False, c::PROGRAMMING_IN_PROGRESS, message)),
                available(Status::False, c::STARTING, message),
            )
        }
        State::Starting => (set_up(), available(Status::False, c::STARTING, "The instance is starting")),
        State::Running => {
            (set_up(), available(Status::True, c::INSTANCE_AVAILABLE, "The instance is running"))
        }
        State::Stopping => {
            // An instance that was never set up does not become so by being stopped.
            let stays = c::find(stored, c::PROGRAMMED).filter(|said| said.reason != c::PENDING);
            let said = stays.map_or_else(
                || {
                    let message = "The instance was not set up";
                    Said::New(programmed(Status::False, c::PENDING_PROGRAMMING, message))
                },
                Said::Stays,
            );
            (said, available(Status::False, c::STOPPING, "The instance is stopping"))
        }
        State::Stopped => (set_up(), available(Status::False, c::STOPPED, "The instance has ended")),
        State::Trouble(trouble) => {
            let (reason, message) = trouble.words();
            let programmed = match trouble {
                Trouble::Crashing { .. } => set_up(),
                Trouble::ImageUnavailable { .. }
                | Trouble::Network(_)
                | Trouble::Configuration(_)
                | Trouble::Provisioning(_) => Said::New(programmed(Status::False, reason, &message)),
            };
            (programmed, available(Status::False, reason, &message))
        }
    }
}

impl Trouble {
    /// The reason, and a sentence for people.
    fn words(&self) -> (&'static str, String) {
        match self {
            Self::ImageUnavailable { image, why } => {
                let why = match why {
                    ImageFault::Malformed => "that is not the name of an image",
                    ImageFault::NotFound => "the registry does not have it, or does not show it to us",
                    ImageFault::Unauthorized => "the registry asks for other credentials",
                    ImageFault::Unreachable => "its registry cannot be reached",
                };
                (c::IMAGE_UNAVAILABLE, format!("Image {image:?} cannot be fetched: {why}"))
            }
            Self::Crashing { exit_code: Some(code) } => (
                c::INSTANCE_CRASHING,
                format!("The instance ends again and again, last with exit code {code}"),
            ),
            Self::Crashing { exit_code: None } => {
                (c::INSTANCE_CRASHING, "The instance ends again and again".to_owned())
            }
            Self::Network(what) => (c::NETWORK_FAILED_TO_CREATE, what.clone()),
            Self::Configuration(what) => {
                (c::CONFIGURATION_ERROR, format!("The instance cannot start as it is configured: {what}"))
            }
            Self::Provisioning(_) => (
                c::PROVISIONING,
                "The instance is not set up yet; the operators of the location can see why".to_owned(),
            ),
        }
    }
}

fn interfaces(addresses: &[InterfaceAssignments]) -> Vec<InstanceInterfaceStatus> {
    let status = |assignments: &InterfaceAssignments| InstanceInterfaceStatus {
        assignments: Some(assignments.clone()),
    };
    addresses.iter().map(status).collect()
}

#[cfg(test)]
mod tests;
