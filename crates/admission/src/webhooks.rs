//! The webhooks: which paths there are, and how a call becomes an answer.

use std::time::Duration;

use compute_core::admission::Refusal;

use crate::admission::Admission;
use crate::projects::Projects;
use crate::review::{Answer, BadReview, Request};

/// Where Workloads get their defaults.
pub const MUTATE_WORKLOADS: &str = "/mutate-compute-datumapis-com-v1alpha-workload";
/// Where Workloads are judged.
pub const VALIDATE_WORKLOADS: &str = "/validate-compute-datumapis-com-v1alpha-workload";
/// Where writes to Instances are judged.
pub const VALIDATE_INSTANCES: &str = "/validate-compute-datumapis-com-v1alpha-instance";

/// The longest that an API server waits for a webhook.
const LONGEST: Duration = Duration::from_secs(30);
/// How long it waits if it does not say so.
const USUAL: Duration = Duration::from_secs(10);

/// What a call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Change the object.
    Mutating,
    /// Refuse it.
    Validating,
}

impl Phase {
    /// What is done under a path.
    pub fn of_path(path: &str) -> Option<Self> {
        match path {
            MUTATE_WORKLOADS => Some(Self::Mutating),
            VALIDATE_WORKLOADS | VALIDATE_INSTANCES => Some(Self::Validating),
            _ => None,
        }
    }
}

/// Admission for API servers elsewhere.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// What decides.
    pub admission: Admission,
    /// Where things are looked up.
    pub projects: Projects,
}

impl Webhooks {
    /// Answers a call: the body of an `AdmissionReview` for that of another. An answer comes before `within` has passed.
    ///
    /// # Errors
    ///
    /// If the call is no question.
    pub async fn review(&self, phase: Phase, body: &[u8], within: Duration) -> Result<Vec<u8>, BadReview> {
        let request = Request::read(body)?;
        let answer = match phase {
            Phase::Mutating => self.admission.mutate(&request),
            Phase::Validating => {
                let project = || self.projects.client(&request.user_info);
                // A little is left for the way back.
                let judged =
                    tokio::time::timeout(within * 9 / 10, self.admission.validate(&request, project));
                match judged.await {
                    Ok(answer) => answer,
                    Err(_) => Answer::refuse(Refusal::unanswered("the write could not be judged in time")),
                }
            }
        };
        Ok(answer.write(&request.uid))
    }
}

/// How long the caller waits, as its query says (`timeout=10s`).
pub(crate) fn patience(query: Option<&str>) -> Duration {
    let said = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("timeout="));
    said.and_then(seconds).unwrap_or(USUAL).min(LONGEST)
}

/// A duration such as `10s`, `1m0s` or `500ms`, as far as it is one of a webhook.
fn seconds(text: &str) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return millis.parse().ok().map(Duration::from_millis);
    }
    let text = text.strip_suffix('s')?;
    let (minutes, seconds) = text.split_once('m').unwrap_or(("0", text));
    let (minutes, seconds): (u64, u64) = (minutes.parse().ok()?, seconds.parse().ok()?);
    Some(Duration::from_secs(minutes.checked_mul(60)?.checked_add(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_caller_waits() {
        for (query, wanted) in [
            (None, 10),
            (Some("timeout=5s"), 5),
            (Some("a=b&timeout=25s"), 25),
            (Some("timeout=1m0s"), 30),
            (Some("timeout=nonsense"), 10),
            (Some("timeout=99999999999999999999s"), 10),
        ] {
            assert_eq!(patience(query), Duration::from_secs(wanted), "{query:?}");
        }
        assert_eq!(patience(Some("timeout=500ms")), Duration::from_millis(500));
    }
}
