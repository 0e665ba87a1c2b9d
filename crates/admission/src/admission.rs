//! What becomes of a write: defaults, judgement, and the guard of Instances.
//!
//! # Guarantees
//!
//! Nothing is looked up for a write that is accepted or refused without. A look-up that fails or takes too long refuses the write and says to
//! try again.

use compute_api::compute::GROUP;
use compute_api::labels;
use compute_core::admission::guard::{Attempt, Guard, Operation};
use compute_core::admission::{self, NetworkFact, Opened, Refusal, defaults};
use kube::Client;

use crate::facts::{self, Limits};
use crate::review::{Answer, Request};

const WORKLOADS: &str = "workloads";
const INSTANCES: &str = "instances";

/// Decides about writes to projects.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Who may write Instances; without one, everybody who has the permission.
    pub guard: Option<Guard>,
    /// Whether instances are put on networks. If not, networks need not exist.
    pub networking: bool,
    /// What looking things up may take.
    pub limits: Limits,
}

impl Admission {
    /// With networks, and a guard or none.
    pub fn new(guard: Option<Guard>) -> Self {
        Self { guard, networking: true, limits: Limits::default() }
    }

    /// Fills in what a Workload leaves out.
    pub fn mutate(&self, request: &Request) -> Answer {
        let Some(object) = request.object.as_ref().filter(|_| judges(request, WORKLOADS)) else {
            return Answer::allow();
        };
        let filled = defaults::of(object, request.old_object.as_ref());
        Answer { patch: filled.iter().map(defaults::Filled::to_operation).collect(), ..Answer::allow() }
    }

    /// Judges a write. `project` gives a client for the project's plane, or a refusal; it is asked only if something has to be
    /// looked up.
    pub async fn validate(
        &self,
        request: &Request,
        project: impl FnOnce() -> Result<Client, Refusal>,
    ) -> Answer {
        let decided = if request.resource.group != GROUP {
            Err(not_ours())
        } else {
            match request.resource.resource.as_str() {
                WORKLOADS => self.workload(request, project).await,
                INSTANCES => self.instance(request),
                _ => Err(not_ours()),
            }
        };
        decided.map_or_else(Answer::refuse, |()| Answer::allow())
    }

    fn instance(&self, request: &Request) -> Result<(), Refusal> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let object = request.old_object.as_ref().or(request.object.as_ref());
        guard.decide(&Attempt {
            user: request.user_info.username.as_deref().unwrap_or_default(),
            groups: request.user_info.groups.as_deref().unwrap_or_default(),
            group: &request.resource.group,
            resource: &request.resource.resource,
            subresource: &request.sub_resource,
            operation: request.operation,
            name: request.object_name(),
            workload: object.and_then(|object| object["metadata"]["labels"][labels::WORKLOAD_NAME].as_str()),
        })
    }

    async fn workload(
        &self,
        request: &Request,
        project: impl FnOnce() -> Result<Client, Refusal>,
    ) -> Result<(), Refusal> {
        let Some(object) = request.object.as_ref().filter(|_| judges(request, WORKLOADS)) else {
            return Ok(());
        };
        let case = match admission::open(object, request.old_object.as_ref(), &request.namespace) {
            Opened::Accepted => return Ok(()),
            Opened::Refused(errors) => return Err(admission::invalid(request.object_name(), &errors)),
            Opened::Case(case) => case,
        };
        let mut needs = case.needs();
        let unasked = if self.networking { Default::default() } else { std::mem::take(&mut needs.networks) };
        let mut known = if needs.is_empty() {
            admission::Facts::default()
        } else {
            facts::look_up(&project()?, request, &needs, &self.limits).await.map_err(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(namespace = request.namespace, workload = request.object_name(), %error, cause, "a workload cannot be judged");
                Refusal::unanswered(&error.to_string())
            })?
        };
        known.networks.extend(unasked.into_iter().map(|name| (name, NetworkFact::Usable)));
        let errors = case.judge(&known);
        if errors.is_empty() { Ok(()) } else { Err(admission::invalid(request.object_name(), &errors)) }
    }
}

/// Whether a request makes or changes an object of a resource itself, not a part of it.
fn judges(request: &Request, resource: &str) -> bool {
    request.resource.group == GROUP
        && request.resource.resource == resource
        && request.sub_resource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update)
}

fn not_ours() -> Refusal {
    Refusal::bad_request(format!(
        "only {WORKLOADS} and {INSTANCES} of {GROUP} are judged here; the webhook is configured for more"
    ))
}
