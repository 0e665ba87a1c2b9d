//! What a command works with: the project, how it looks, and whether the service is enabled there.

use compute_api::conditions as c;
use compute_api::k8s::{ObjectMeta, Timestamp};
use compute_api::milo::{
    COMPUTE_ENTITLEMENT, CONDITION_READY, ServiceEntitlement, ServiceEntitlementSpec, ServiceReference,
};
use kube::Api;
use kube::api::{ListParams, PostParams};

use crate::args::{Output, Way};
use crate::clock;
use crate::connect::{self, Connection};
use crate::failure::{Exit, Failure, Result, from_kube};
use crate::invocation::Invocation;
use crate::io::Io;
use crate::render::Look;
use crate::render::text::{flow, wrap};

/// What a command works with.
pub(crate) struct Session {
    /// Speaks to the project.
    pub(crate) client: kube::Client,
    /// The project's name, if it is known.
    pub(crate) project: Option<String>,
    /// The namespace to work in.
    pub(crate) namespace: String,
    /// How to call this program again.
    pub(crate) invocation: Invocation,
    /// Where text goes.
    pub(crate) io: Io,
    /// Output format.
    pub(crate) output: Output,
    /// When the command began.
    pub(crate) now: Timestamp,
}

/// Whether the service is enabled in the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nobody has asked for it.
    NotRequested,
    /// It is being activated; with what is said about it.
    Activating(String),
    /// It can be used.
    Active,
    /// This platform has no such gate.
    NotGated,
}

impl Session {
    /// Connects to the project.
    pub(crate) async fn open(way: &Way, io: Io, invocation: Invocation) -> Result<Self> {
        let Connection { client, project, namespace } = connect::connect(&way.wish()).await?;
        Ok(Self { client, project, namespace, invocation, io, output: way.output, now: clock::now() })
    }

    /// Objects of a kind in the namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of a kind that are in no namespace.
    pub(crate) fn cluster_api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>,
    {
        Api::all(self.client.clone())
    }

    /// Prints a result that only people read.
    pub(crate) fn tell(&self, text: &str) {
        if matches!(self.output, Output::Table | Output::Wide) {
            self.io.print(&flow(text, self.io.out));
        }
    }

    /// Says something that is no result.
    pub(crate) fn say(&self, text: &str) {
        self.io.say(&flow(text, self.io.err));
    }

    /// Where this is, for people.
    pub(crate) fn place(&self) -> String {
        place(self.project.as_deref(), &self.namespace)
    }

    /// Whether the service is enabled.
    pub(crate) async fn access(&self) -> Result<Access> {
        let requests: Api<ServiceEntitlement> = self.cluster_api();
        match requests.list(&ListParams::default()).await {
            Ok(found) => Ok(access_of(&found.items)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Access::NotGated),
            Err(error) => Err(from_kube("cannot see whether the service is enabled", &error)),
        }
    }

    /// Asks for access. Asking again is no harm.
    pub(crate) async fn request_access(&self) -> Result<()> {
        let request = ServiceEntitlement {
            metadata: ObjectMeta { name: Some(COMPUTE_ENTITLEMENT.to_owned()), ..ObjectMeta::default() },
            spec: ServiceEntitlementSpec {
                service_ref: ServiceReference { name: COMPUTE_ENTITLEMENT.to_owned() },
            },
            status: None,
        };
        let requests: Api<ServiceEntitlement> = self.cluster_api();
        match requests.create(&PostParams::default(), &request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(from_kube("cannot ask for access to the service", &error)),
        }
    }

    /// Does something while it is looked whether the service is enabled; if it is not, that is what counts.
    pub(crate) async fn gated<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let (access, done) = tokio::join!(self.access(), work);
        let access = match access {
            Ok(access) => access,
            // The same trouble, and the work says better what it is in the way of.
            Err(_) if done.is_err() => return done,
            // Who may not look is not stopped.
            Err(failure) if failure.exit == Exit::NotAllowed => return done,
            Err(failure) => return Err(failure),
        };
        match access {
            Access::Active | Access::NotGated => done,
            Access::Activating(said) => Err(self.activating(&said)),
            Access::NotRequested => Err(self.offer().await?),
        }
    }

    /// Goes on only if the service is enabled.
    pub(crate) async fn enabled(&self) -> Result<()> {
        self.gated(async { Ok(()) }).await
    }

    /// Says calmly that it takes a moment, which is no error.
    fn activating(&self, said: &str) -> Failure {
        self.io.say(&activating_text(&self.place(), said, &self.invocation, self.io.err));
        Failure::silent(Exit::NotAllowed)
    }

    /// Offers to ask for access, if there is somebody to offer it to.
    async fn offer(&self) -> Result<Failure> {
        let failure = not_requested();
        if !self.io.can_ask {
            return Ok(failure);
        }
        let question = format!("The compute service is not enabled in {}. Ask for access now?", self.place());
        if !crate::commands::ask::confirm(&question, true)? {
            return Ok(failure);
        }
        self.request_access().await?;
        Ok(self.activating(""))
    }
}

/// The failure when nobody has asked for access.
pub(crate) fn not_requested() -> Failure {
    Failure::new(
        "cannot use the compute service",
        "it is not enabled in this project, and nobody has asked for it",
    )
    .exit(Exit::NotAllowed)
    .next("access request", "ask for access")
}

/// What is said while access is being activated.
pub(crate) fn activating_text(place: &str, said: &str, invocation: &Invocation, look: Look) -> String {
    let said = if said.is_empty() { String::new() } else { format!(" {}.", said.trim_end_matches('.')) };
    let text =
        format!("Access to the compute service in {place} has been asked for and is being activated.{said}");
    format!("{}See how it goes:\n  {}\n", wrap(&text, "", look), invocation.command("access"))
}

/// Where something is, for people.
pub(crate) fn place(project: Option<&str>, namespace: &str) -> String {
    let project = project.map_or_else(|| "this project".to_owned(), |project| format!("project {project}"));
    if namespace == "default" { project } else { format!("{project}, namespace {namespace}") }
}

fn access_of(requests: &[ServiceEntitlement]) -> Access {
    let ours = requests.iter().filter(|request| {
        request.spec.service_ref.name == COMPUTE_ENTITLEMENT
            || request.metadata.name.as_deref() == Some(COMPUTE_ENTITLEMENT)
    });
    let mut best = Access::NotRequested;
    for request in ours {
        if compute_core::location::offer::is_entitled(Some(request)) {
            return Access::Active;
        }
        let conditions = request.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let said = c::find(conditions, CONDITION_READY).map(|said| said.message.clone()).unwrap_or_default();
        best = Access::Activating(said);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(status: Option<(&str, &str)>) -> ServiceEntitlement {
        let conditions = status.map(|(status, message)| {
            serde_json::json!([{ "type": "Ready", "status": status, "reason": "X", "message": message,
                "lastTransitionTime": "2026-05-01T11:00:00Z" }])
        });
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": "compute" }, "spec": { "serviceRef": { "name": "compute" } },
            "status": { "conditions": conditions.unwrap_or_else(|| serde_json::json!([])) },
        }))
        .unwrap()
    }

    #[test]
    fn three_states() {
        assert_eq!(access_of(&[]), Access::NotRequested);
        assert_eq!(access_of(&[request(None)]), Access::Activating(String::new()));
        assert_eq!(access_of(&[request(Some(("Unknown", "soon")))]), Access::Activating("soon".to_owned()));
        assert_eq!(access_of(&[request(Some(("True", "")))]), Access::Active);
    }
}
