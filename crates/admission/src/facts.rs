//! What a project knows: looked up live, on behalf of the caller, with the caller's whole identity.
//!
//! # Guarantees
//!
//! Each thing is asked about once, several at a time, each within a time limit and all within another. The first question that gets no
//! answer ends it: "no" is a fact, an error is not. Who may not use a network does not learn whether it exists.

use std::time::Duration;

use compute_api::k8s::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, UserInfo};
use compute_api::networking::{self, LocationBinding, Network};
use compute_core::admission::{Facts, Needs, NetworkFact};
use compute_core::location::Offered;
use compute_core::referenced_data::Source;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Resource as _};
use serde::Deserialize;
use serde_json::Value;

use crate::review::Request;

/// What looking things up may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For one question.
    pub one: Duration,
    /// For all questions of one write. API servers wait 10 s for a webhook unless told otherwise.
    pub all: Duration,
    /// How many questions are open at once.
    pub at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { one: Duration::from_secs(3), all: Duration::from_secs(8), at_once: 8 }
    }
}

/// When to ask again what a plane had no place for.
const AGAIN: Duration = Duration::from_millis(100);

/// Why something could not be looked up. The caller may try again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// The project did not answer in time.
    #[error("{0} could not be checked in time")]
    Late(String),
    /// The project answered with an error, or not at all.
    #[error("{what} could not be checked")]
    Failed {
        /// What was asked.
        what: String,
        /// What came instead of an answer.
        #[source]
        source: kube::Error,
    },
    /// The access review came to no decision.
    #[error("{what} could not be checked")]
    Undecided {
        /// What was asked.
        what: String,
        /// Why there is no decision.
        #[source]
        source: EvaluationError,
    },
}

/// What an authorizer says went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EvaluationError(String);

enum Question {
    Network(String),
    Source(Source),
    Cities,
}

enum Found {
    Network(String, NetworkFact),
    Source(Source, bool),
    Offered(Offered),
}

/// Looks up what is needed to judge a write, in the plane of its project.
///
/// # Errors
///
/// If one of the questions gets no answer.
pub async fn look_up(
    client: &Client,
    request: &Request,
    needs: &Needs,
    limits: &Limits,
) -> Result<Facts, Unanswered> {
    let asker = Asker { client, request };
    let networks = needs.networks.iter().cloned().map(Question::Network);
    let sources = needs.sources.iter().cloned().map(Question::Source);
    let questions: Vec<Question> =
        networks.chain(sources).chain(needs.cities.then_some(Question::Cities)).collect();
    let asked: Vec<BoxFuture<'_, _>> =
        questions.into_iter().map(|question| asker.ask(question, limits.one).boxed()).collect();
    let answers = stream::iter(asked).buffer_unordered(limits.at_once.max(1));
    let gathered = answers.try_fold(Facts::default(), |mut facts, found| async move {
        match found {
            Found::Network(name, fact) => drop(facts.networks.insert(name, fact)),
            Found::Source(source, may) => drop(facts.sources.insert(source, may)),
            Found::Offered(offered) => facts.offered = Some(offered),
        }
        Ok(facts)
    });
    match tokio::time::timeout(limits.all, gathered).await {
        Ok(facts) => facts,
        Err(_) => Err(Unanswered::Late("what the workload refers to".to_owned())),
    }
}

/// A list of anything.
#[derive(Deserialize)]
struct Items {
    items: Vec<Value>,
}

struct Asker<'a> {
    client: &'a Client,
    request: &'a Request,
}

impl Asker<'_> {
    async fn ask(&self, question: Question, within: Duration) -> Result<Found, Unanswered> {
        let what = match &question {
            Question::Network(name) => format!("whether you may use network {name:?}"),
            Question::Source(source) => format!("whether you may read {} {:?}", source.kind(), source.name()),
            Question::Cities => "which cities are offered to this project".to_owned(),
        };
        let answered = async {
            loop {
                match self.answer(&question, &what).await {
                    // A burst of writes asks more at once than a plane answers to one caller.
                    Err(Unanswered::Failed { source, .. }) if is_too_many(&source) => {
                        tokio::time::sleep(AGAIN).await;
                    }
                    other => return other,
                }
            }
        };
        match tokio::time::timeout(within, answered).await {
            Ok(found) => found,
            Err(_) => Err(Unanswered::Late(what)),
        }
    }

    async fn answer(&self, question: &Question, what: &str) -> Result<Found, Unanswered> {
        match question {
            Question::Network(name) => {
                let fact = self.network(name, what).await?;
                Ok(Found::Network(name.clone(), fact))
            }
            Question::Source(source) => {
                let resource = match source {
                    Source::ConfigMap(_) => "configmaps",
                    Source::Secret(_) => "secrets",
                };
                let may = self.may("get", "", resource, source.name(), what).await?;
                Ok(Found::Source(source.clone(), may))
            }
            Question::Cities => {
                let offered = self.offered().await.map_err(failed(what))?;
                Ok(Found::Offered(offered))
            }
        }
    }

    async fn network(&self, name: &str, what: &str) -> Result<NetworkFact, Unanswered> {
        let networks: Api<Network> = Api::namespaced(self.client.clone(), &self.request.namespace);
        let (may, there) = tokio::join!(
            self.may("use", networking::GROUP, "networks", name, what),
            // Its content does not matter, and may be of a form that is not known here.
            networks.get_metadata_opt(name),
        );
        if !may? {
            return Ok(NetworkFact::NotAllowed);
        }
        let there = there.map_err(failed(what))?;
        Ok(if there.is_some() { NetworkFact::Usable } else { NetworkFact::Missing })
    }

    /// The cities that the project is offered. An offer that cannot be read is none.
    async fn offered(&self) -> Result<Offered, kube::Error> {
        let request = kube::core::Request::new(LocationBinding::url_path(&(), None))
            .list(&ListParams::default())
            .map_err(kube::Error::BuildRequest)?;
        let list: Items = self.client.request(request).await?;
        let bindings: Vec<LocationBinding> =
            list.items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect();
        Ok(Offered::of(&bindings))
    }

    /// Whether the caller may do something with an object in the namespace of the write.
    async fn may(
        &self,
        verb: &str,
        group: &str,
        resource: &str,
        name: &str,
        what: &str,
    ) -> Result<bool, Unanswered> {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            version: None,
            resource: Some(resource.to_owned()),
            name: Some(name.to_owned()),
            namespace: Some(self.request.namespace.clone()),
            ..ResourceAttributes::default()
        };
        let review = review(&self.request.user_info, attributes);
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await.map_err(failed(what))?;
        let undecided = |why| Unanswered::Undecided { what: what.to_owned(), source: EvaluationError(why) };
        let status = answer.status.ok_or_else(|| undecided("the review has no status".to_owned()))?;
        let may = status.allowed && status.denied != Some(true);
        match status.evaluation_error.filter(|error| !error.is_empty()) {
            Some(error) if !may && status.denied != Some(true) => Err(undecided(error)),
            _ => Ok(may),
        }
    }
}

fn is_too_many(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 429)
}

fn failed(what: &str) -> impl FnOnce(kube::Error) -> Unanswered {
    let what = what.to_owned();
    move |source| Unanswered::Failed { what, source }
}

/// A question about a caller, with everything that is known of it: the project travels in `extra`.
fn review(user: &UserInfo, attributes: ResourceAttributes) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username.clone(),
            groups: user.groups.clone(),
            uid: user.uid.clone(),
            extra: user.extra.clone(),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}
