//! Which locations are offered to a project, as the platform's service catalog does it.
//!
//! A location is offered if the project is entitled to the service, the service supports the location's class,
//! and the location is Ready.
//!
//! # Guarantees
//!
//! What was never offered leaves no trace. An offer that has been made says why it does not stand any more,
//! and goes only with its location. Only what carries [`MANAGED_BY`] is touched.

use std::{collections::BTreeMap, time::Duration};

use compute_api::{
    conditions::{self, Status, Update, platform},
    k8s::{Condition, ObjectMeta, Timestamp},
    milo::{self, ServiceEntitlement},
    networking::{
        CONDITION_AVAILABLE, CONDITION_READY, LocalLocationReference, Location, LocationBinding,
        LocationBindingSpec,
    },
};

use crate::meta;

/// The class of the locations that the platform itself runs.
pub const DATUM_MANAGED: &str = "datum-managed";

/// On what the platform makes for locations: that it does.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "compute-platform");

/// Whether the platform made an object.
pub(super) fn is_ours(object: &ObjectMeta) -> bool {
    meta::label(object, MANAGED_BY.0) == Some(MANAGED_BY.1)
}

/// What to do about a request for access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What to say of `Ready`, if that is not what is said.
    pub say: Option<Update>,
    /// How long until there is more to say, if nothing happens before.
    pub again: Option<Duration>,
}

/// What to do about a request for access to a service, which is granted some time after it was made. `offered` says whether the catalog
/// has the service. What somebody has decided stands.
pub fn progress(request: &ServiceEntitlement, offered: bool, after: Duration, now: Timestamp) -> Progress {
    let conditions = request.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let decided = conditions::status_of(conditions, milo::CONDITION_READY) != Status::Unknown;
    if decided || meta::is_being_deleted(&request.metadata) {
        return Progress::default();
    }
    let age = now.duration_since(meta::created(&request.metadata));
    let left = after.saturating_sub(Duration::try_from(age).unwrap_or_default());
    let say =
        |status, reason: &str, message: &str| Update::new(milo::CONDITION_READY, status, reason, message);
    let (update, again) = if !offered {
        let service = &request.spec.service_ref.name;
        (say(Status::Unknown, platform::SERVICE_NOT_FOUND, &format!("There is no service {service:?}")), None)
    } else if left.is_zero() {
        (say(Status::True, "Ready", "The service can be used"), None)
    } else {
        (say(Status::Unknown, platform::ACTIVATING, "The service is being activated"), Some(left))
    };
    let stored = conditions::find(conditions, milo::CONDITION_READY);
    Progress { say: Some(update).filter(|update| !stored.is_some_and(|stored| says(stored, update))), again }
}

/// Whether a project with this request for access has it.
pub fn is_entitled(request: Option<&ServiceEntitlement>) -> bool {
    request.is_some_and(|request| {
        let conditions = request.status.as_ref().map_or(&[][..], |status| &status.conditions);
        !meta::is_being_deleted(&request.metadata) && conditions::is_true(conditions, milo::CONDITION_READY)
    })
}

/// What to do about a project's bindings.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Apply a binding.
    Apply {
        /// Its name.
        name: String,
        /// What it says.
        spec: LocationBindingSpec,
    },
    /// Say whether it stands.
    Say {
        /// Its name.
        name: String,
        /// What is said of `Available`.
        update: Update,
    },
    /// Delete it, on condition that it is still the one that was looked at.
    Delete {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
}

/// What to do about a project's bindings, in that order.
pub fn decide<'a>(
    entitled: bool,
    supported_classes: &[String],
    locations: impl IntoIterator<Item = &'a Location>,
    held: impl IntoIterator<Item = &'a LocationBinding>,
) -> Vec<Step> {
    let locations: BTreeMap<&str, &Location> =
        locations.into_iter().map(|location| (meta::name(&location.metadata), location)).collect();
    let held: BTreeMap<&str, &LocationBinding> =
        held.into_iter().map(|binding| (meta::name(&binding.metadata), binding)).collect();
    let mut steps = Vec::new();
    for (name, location) in &locations {
        let supported = supported_classes.contains(&location.spec.location_class_name);
        one(Rights { entitled, supported }, name, location, held.get(name).copied(), &mut steps);
    }
    for (name, binding) in held {
        let going = meta::is_being_deleted(&binding.metadata);
        if !locations.contains_key(name) && is_ours(&binding.metadata) && !going {
            let uid = meta::uid(&binding.metadata).to_owned();
            steps.push(Step::Delete { name: name.to_owned(), uid });
        }
    }
    steps
}

/// What a project may have of a location, whatever the location's own state.
#[derive(Clone, Copy)]
struct Rights {
    entitled: bool,
    supported: bool,
}

fn one(
    rights: Rights,
    name: &str,
    location: &Location,
    held: Option<&LocationBinding>,
    steps: &mut Vec<Step>,
) {
    let in_the_way = held.is_some_and(|held| {
        // One that is on its way out is made again when it is gone.
        !is_ours(&held.metadata) || meta::is_being_deleted(&held.metadata)
    });
    if in_the_way || (held.is_none() && !(rights.entitled && rights.supported)) {
        return;
    }
    let spec = LocationBindingSpec {
        location_ref: LocalLocationReference { name: name.to_owned() },
        display_name: None,
        location_class_name: Some(location.spec.location_class_name.clone()),
        topology: location.spec.topology.clone(),
    };
    let same =
        |held: &LocationBinding| LocationBindingSpec { display_name: None, ..held.spec.clone() } == spec;
    if !held.is_some_and(same) {
        steps.push(Step::Apply { name: name.to_owned(), spec });
    }
    let update = availability(rights, name, location);
    let conditions = held.and_then(|held| held.status.as_ref()).map_or(&[][..], |status| &status.conditions);
    if !conditions::find(conditions, CONDITION_AVAILABLE).is_some_and(|condition| says(condition, &update)) {
        steps.push(Step::Say { name: name.to_owned(), update });
    }
}

fn says(condition: &Condition, update: &Update) -> bool {
    condition.status == update.status.as_str()
        && condition.reason == update.reason
        && condition.message == update.message
}

fn availability(rights: Rights, name: &str, location: &Location) -> Update {
    let say =
        |status, reason: &str, message: String| Update::new(CONDITION_AVAILABLE, status, reason, message);
    if !rights.entitled {
        let message = "The project is not entitled to the compute service; ask for access to it".to_owned();
        return say(Status::False, platform::NOT_ENTITLED, message);
    }
    if !rights.supported {
        let class = &location.spec.location_class_name;
        let message = format!("The compute service does not support locations of class {class:?}");
        return say(Status::False, platform::LOCATION_CLASS_NOT_SUPPORTED, message);
    }
    if meta::is_being_deleted(&location.metadata) {
        return say(
            Status::False,
            platform::LOCATION_TERMINATING,
            format!("Location {name} is being removed"),
        );
    }
    let conditions = location.status.as_ref().map_or(&[][..], |status| &status.conditions);
    if conditions::is_true(conditions, CONDITION_READY) {
        return say(
            Status::True,
            conditions::INSTANCE_AVAILABLE,
            format!("Location {name} is available to this project"),
        );
    }
    let said = conditions::find(conditions, CONDITION_READY).map_or("", |ready| &ready.message);
    let message = if said.is_empty() {
        format!("Location {name} is not ready")
    } else {
        format!("Location {name} is not ready: {said}")
    };
    say(Status::False, platform::LOCATION_NOT_READY, message)
}
