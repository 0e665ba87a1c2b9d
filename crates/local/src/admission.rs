//! Admission inside the API server's process: the hooks of every project's plane, also of those that come later.
//!
//! They decide by `compute_admission`, as its webhooks do, and look things up in the same plane, without a wire, as the management
//! controllers do: by the same identity, with the rights that it has there and no more.

use std::sync::{Arc, Weak};

use compute_admission::{Admission, Answer, Operation, Request, Resource};
use compute_api::compute::GROUP;
use compute_api::k8s::UserInfo;
use compute_apiserver::hooks::{
    self, AdmissionRequest, Change, Denial, Hook, HookError, MutationOutcome, Outcome, Rule, Rules,
};
use compute_apiserver::{ApiServer, PlaneName};
use compute_core::admission::Refusal;
use compute_core::admission::guard::{Guard, Subject};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;

use crate::planes;
use crate::workers::Worker;

/// What the hooks need of the platform. They are part of its server, so they must not keep it alive.
pub(crate) trait Host: Send + Sync {
    /// A client for a plane, without a wire.
    fn client(&self, plane: &PlaneName, worker: &Worker) -> Client;
}

/// Asks about writes to projects from now on.
pub(crate) fn install(server: &ApiServer, networking: bool, host: &Weak<dyn Host>) {
    let guard = Guard::with_defaults(Subject::User(Worker::Management.identity().user));
    let admission = Admission { networking, ..Admission::new(Some(guard)) };
    for (name, rule) in [
        (
            "workloads.compute.datumapis.com",
            Rule::new(&[hooks::Operation::Create, hooks::Operation::Update], GROUP, &["workloads"]),
        ),
        (
            "instances.compute.datumapis.com",
            Rule::new(
                &[hooks::Operation::Create, hooks::Operation::Update, hooks::Operation::Delete],
                GROUP,
                &["instances", "instances/status"],
            ),
        ),
    ] {
        server.add_hook(Arc::new(ProjectHook {
            name,
            rules: Rules(vec![rule]),
            admission: admission.clone(),
            host: host.clone(),
        }));
    }
}

struct ProjectHook {
    name: &'static str,
    rules: Rules,
    admission: Admission,
    host: Weak<dyn Host>,
}

impl Hook for ProjectHook {
    fn name(&self) -> &str {
        self.name
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn in_plane(&self, plane: &str) -> bool {
        PlaneName::new(plane).is_ok_and(|plane| planes::is_project(&plane))
    }

    fn mutate<'a>(
        &'a self,
        request: &'a AdmissionRequest,
    ) -> BoxFuture<'a, Result<MutationOutcome, HookError>> {
        async move {
            let answer = self.admission.mutate(&translate(request));
            let change =
                (!answer.patch.is_empty()).then(|| Change::patch(&Value::from(answer.patch.clone())));
            Ok(MutationOutcome { outcome: outcome(answer), change })
        }
        .boxed()
    }

    fn validate<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, Result<Outcome, HookError>> {
        async move {
            let plane = PlaneName::new(&request.plane)?;
            let project = || match self.host.upgrade() {
                Some(host) => Ok(host.client(&plane, &Worker::Management)),
                None => Err(Refusal::unanswered("the platform is stopping")),
            };
            Ok(outcome(self.admission.validate(&translate(request), project).await))
        }
        .boxed()
    }
}

fn translate(request: &AdmissionRequest) -> Request {
    let user = &request.user;
    let set = |text: &String| (!text.is_empty()).then(|| text.clone());
    Request {
        uid: request.uid.clone(),
        operation: match request.operation {
            hooks::Operation::Create => Operation::Create,
            hooks::Operation::Update => Operation::Update,
            hooks::Operation::Delete => Operation::Delete,
            hooks::Operation::Connect => Operation::Connect,
        },
        resource: Resource {
            group: request.resource.group.clone(),
            version: request.resource.version.clone(),
            resource: request.resource.resource.clone(),
        },
        sub_resource: request.subresource.clone(),
        name: request.name.clone(),
        namespace: request.namespace.clone(),
        user_info: UserInfo {
            username: set(&user.user),
            uid: set(&user.uid),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
        },
        object: request.object.clone(),
        old_object: request.old_object.clone(),
    }
}

fn outcome(answer: Answer) -> Outcome {
    match answer.refusal {
        None => Outcome::allow(),
        Some(Refusal { code, reason, message, details }) => {
            Outcome::deny(Denial { details: Some(Box::new(details)), ..Denial::new(code, reason, message) })
        }
    }
}
