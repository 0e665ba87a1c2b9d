//! Reasons in plain words: what a reason means, whose move it is, and what there is to do.
//!
//! Guarantees: every reason of ours has words, and no words have a reason's own spelling in them.

pub(crate) mod time;

use compute_api::conditions::{self as c, platform};

/// Who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Mover {
    /// Whoever uses the workload.
    You,
    /// Nobody: it goes on by itself.
    Platform,
    /// Whoever runs the platform, or the city.
    Operators,
    /// Whoever grants quota.
    Granters,
}

impl Mover {
    /// Whose move it is, in words.
    pub(crate) fn say(self) -> &'static str {
        match self {
            Self::You => "For you to fix",
            Self::Platform => "The platform is working on it; nothing to do",
            Self::Operators => "For the platform's operators",
            Self::Granters => "For whoever grants this project's quota",
        }
    }
}

/// What a reason means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// In two or three words, in lower case.
    pub(crate) short: String,
    /// Whose move it is.
    pub(crate) mover: Mover,
    /// What to do, or what happens next.
    pub(crate) advice: &'static str,
}

/// What a reason means.
pub(crate) fn of(reason: &str) -> Words {
    use Mover::{Granters, Operators, Platform, You};
    let (short, mover, advice) = match reason {
        c::IMAGE_UNAVAILABLE => {
            ("image unavailable", You, "Fix the image name, push the image, or add registry credentials.")
        }
        c::INSTANCE_CRASHING => (
            "crashing",
            You,
            "Its process keeps exiting: fix the image, its arguments or its environment variables.",
        ),
        c::CONFIGURATION_ERROR => ("configuration error", You, "Change the setting that the message names."),
        c::SOURCE_NOT_FOUND => {
            ("config not found", You, "Create the missing config or secret, or stop naming it.")
        }
        c::SOURCE_TOO_LARGE => {
            ("config too large", You, "Make the config or secret smaller, or put the data into the image.")
        }
        c::SOURCE_UNAUTHORIZED => (
            "config not readable",
            Operators,
            "The platform needs to be allowed to read the config or secret.",
        ),
        c::RESOLVING | c::AWAITING_PROPAGATION => {
            ("waiting for config", Platform, "Its config and secrets are on their way to the city.")
        }
        c::REFERENCED_DATA_NOT_READY => {
            ("waiting for config", You, "Check that each config and secret that it names exists.")
        }
        c::QUOTA_EXCEEDED => (
            "quota exceeded",
            You,
            "Scale something down, or ask for more quota. It is retried automatically.",
        ),
        c::QUOTA_NO_BUDGET => {
            ("no quota budget", Granters, "The project needs quota for what the instance takes.")
        }
        c::PENDING_QUOTA | c::PENDING_EVALUATION => {
            ("waiting for quota", Platform, "Quota is being asked for.")
        }
        c::QUOTA_NOT_GRANTED => ("waiting for quota", You, "See what is used and what is missing."),
        c::QUOTA_BACKEND_UNAVAILABLE => (
            "quota unavailable",
            Operators,
            "The quota service does not answer; it is retried automatically.",
        ),
        c::QUOTA_MISCONFIGURED | c::VALIDATION_FAILED | c::QUOTA_PROJECT_ID_UNRESOLVABLE => {
            ("quota unavailable", Operators, "The quota service is not set up for this project.")
        }
        c::QUOTA_NAMESPACE_NOT_FOUND | c::QUOTA_PROJECT_NOT_FOUND => {
            ("quota unavailable", Operators, "The quota service does not know the project.")
        }
        c::QUOTA_AVAILABLE => ("quota granted", Platform, "Nothing to do."),
        c::QUOTA_DISABLED => ("no quota here", Platform, "Nothing to do."),
        c::NETWORK_PROVISIONING => {
            ("network provisioning", Platform, "Its networks are being set up in the city.")
        }
        c::NETWORK_FAILED_TO_CREATE => (
            "network failed",
            Operators,
            "Its network cannot be set up in the city; it is retried automatically.",
        ),
        c::NETWORK_NOT_FOUND => {
            ("network not found", You, "Create the network, or name another in the workload.")
        }
        c::LOCATION_UNAVAILABLE => ("not offered", You, "Choose a city that is offered to the project."),
        c::NO_MATCHING_LOCATION => (
            "no capacity in the city",
            Operators,
            "Nothing serves the city at the moment; you can take it out of the workload.",
        ),
        c::CELL_NOT_READY => (
            "city not reachable",
            Operators,
            "The city does not answer; the counts are the last that it reported. If you cannot wait, add another city.",
        ),
        c::NO_AVAILABLE_PLACEMENTS | c::NO_AVAILABLE_DEPLOYMENTS => {
            ("nothing reported yet", Platform, "The cities have not reported yet.")
        }
        c::INSTANCES_PROVISIONING => {
            ("instances being set up", Platform, "Instances are being created and started.")
        }
        c::PENDING_PROGRAMMING => ("waiting to be set up", Platform, "The city is about to set it up."),
        c::PROGRAMMING_IN_PROGRESS => ("being set up", Platform, "The city is setting it up."),
        c::PROVISIONING => (
            "provisioning",
            Platform,
            "The city is working on it. If it stays so, tell whoever runs the platform.",
        ),
        c::STARTING => ("starting", Platform, "It is set up and about to serve."),
        c::STOPPING => ("stopping", Platform, "It is being stopped."),
        c::STOPPED => {
            ("stopped", You, "It has ended by itself and stays so: fix it, and restart the workload.")
        }
        c::SCHEDULING_GATES_PRESENT => {
            ("held back", Operators, "Something holds it back; the message names it.")
        }
        c::STABLE_INSTANCE_FOUND => ("available", Platform, "Nothing to do."),
        c::SCALED_TO_ZERO => ("scaled to zero", You, "No instance is wanted."),
        c::INSTANCE_PROGRAMMED => ("set up", Platform, "Nothing to do."),
        c::INSTANCE_AVAILABLE => ("available", Platform, "Nothing to do."),
        c::DATA_READY => ("ready", Platform, "Nothing to do."),
        c::PENDING => ("not processed yet", Platform, "It has just been created."),
        platform::NOT_ENTITLED => ("service not enabled", You, "Ask for access to the service."),
        platform::LOCATION_CLASS_NOT_SUPPORTED => ("not supported here", You, "Choose another city."),
        platform::LOCATION_TERMINATING => ("city is going away", You, "Move to another city."),
        platform::LOCATION_NOT_READY => ("city not ready", Operators, "The city is not ready."),
        other => return Words { short: spelled(other), mover: Platform, advice: "See its message." },
    };
    Words { short: short.to_owned(), mover, advice }
}

/// A reason that is not ours, as words.
fn spelled(reason: &str) -> String {
    let mut words = String::new();
    let mut after_lower = false;
    for letter in reason.chars() {
        if letter.is_uppercase() && after_lower {
            words.push(' ');
        }
        after_lower = letter.is_lowercase() || letter.is_ascii_digit();
        words.extend(letter.to_lowercase());
    }
    if words.is_empty() { "no reason given".to_owned() } else { words }
}

/// Whether it is certain that a rollout does not get on with this reason until somebody does something. The platform goes on trying.
pub(crate) fn is_certain(reason: &str) -> bool {
    matches!(
        reason,
        c::IMAGE_UNAVAILABLE
            | c::INSTANCE_CRASHING
            | c::CONFIGURATION_ERROR
            | c::SOURCE_NOT_FOUND
            | c::SOURCE_TOO_LARGE
            | c::SOURCE_UNAUTHORIZED
            | c::QUOTA_EXCEEDED
            | c::QUOTA_NO_BUDGET
            | c::QUOTA_MISCONFIGURED
            | c::VALIDATION_FAILED
            | c::NETWORK_FAILED_TO_CREATE
            | c::NETWORK_NOT_FOUND
            | c::LOCATION_UNAVAILABLE
            | c::NO_MATCHING_LOCATION
    )
}

/// A number of things: `1 instance`, `2 instances`.
pub(crate) fn count(number: i64, one: &str) -> String {
    if number == 1 {
        return format!("1 {one}");
    }
    match one.strip_suffix('y') {
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {one}s"),
    }
}

/// A list for people: `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_ours_has_words_and_no_spelling_of_its_own() {
        for reason in c::ALL_REASONS {
            let words = of(reason);
            assert_ne!(words.advice, "See its message.", "{reason}");
            assert!(words.short.chars().all(|c| !c.is_uppercase()), "{reason}");
            for other in
                c::ALL_REASONS.iter().filter(|other| other.chars().filter(|c| c.is_uppercase()).count() > 1)
            {
                assert!(!words.advice.contains(other), "{reason}");
            }
        }
    }

    #[test]
    fn other_reasons_are_spelled_out() {
        assert_eq!(of("DiskIsFull").short, "disk is full");
        assert_eq!(of("").short, "no reason given");
    }

    #[test]
    fn numbers_and_lists() {
        assert_eq!(
            (count(1, "city"), count(2, "city"), count(0, "instance")),
            ("1 city".into(), "2 cities".into(), "0 instances".into())
        );
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
