//! Hooks in the server's own process: the same semantics, and a plane's name.

use std::sync::Arc;
use std::time::Duration;

use compute_apiserver::hooks::{
    AdmissionRequest, Change, Denial, FailurePolicy, Hook, HookError, MutationOutcome, Operation, Outcome,
    Policy, Rule, Rules, SideEffects,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::common::soon;

/// What a hook does.
enum Manner {
    /// Adds an annotation with its name, and a warning.
    Marks,
    /// Gives the object a colour of so many bytes.
    Paints(usize),
    Denies,
    Fails,
    Panics,
    Hangs,
}

struct Ours {
    name: &'static str,
    manner: Manner,
    policy: Policy,
    plane: Option<&'static str>,
    rules: Rules,
    seen: Mutex<Vec<AdmissionRequest>>,
}

fn hook(name: &'static str, manner: Manner) -> Ours {
    let rule = Rule::new(&Operation::ALL, "test.example.com", &["widgets"]);
    let policy = Policy { timeout: Duration::from_millis(50), ..Policy::default() };
    Ours { name, manner, policy, plane: None, rules: Rules(vec![rule]), seen: Mutex::default() }
}

impl Ours {
    fn ignored(mut self) -> Self {
        self.policy.failure = FailurePolicy::Ignore;
        self
    }

    async fn answer(&self) -> Result<Outcome, HookError> {
        match self.manner {
            Manner::Marks => Ok(Outcome::allow().warn(format!("seen by {}", self.name))),
            Manner::Paints(_) => Ok(Outcome::allow()),
            Manner::Denies => Ok(Outcome::deny(Denial::new(418, "Teapot", "short and stout"))),
            Manner::Fails => Err("out of tea".into()),
            Manner::Panics => panic!("on purpose"),
            Manner::Hangs => futures::future::pending().await,
        }
    }
}

impl Hook for Ours {
    fn name(&self) -> &str {
        self.name
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn in_plane(&self, plane: &str) -> bool {
        self.plane.is_none_or(|only| only == plane)
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn mutate<'a>(
        &'a self,
        request: &'a AdmissionRequest,
    ) -> BoxFuture<'a, Result<MutationOutcome, HookError>> {
        async move {
            let mut object = request.object.clone();
            match (&self.manner, &mut object) {
                (Manner::Marks, Some(object)) => object["metadata"]["annotations"][self.name] = json!("yes"),
                (Manner::Paints(size), Some(object)) => object["spec"]["color"] = json!("x".repeat(*size)),
                _ => {}
            }
            Ok(MutationOutcome { change: object.map(Change::Object), ..MutationOutcome::default() })
        }
        .boxed()
    }

    fn validate<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, Result<Outcome, HookError>> {
        self.seen.lock().push(request.clone());
        self.answer().boxed()
    }
}

#[tokio::test]
async fn they_change_and_judge_in_all_planes() {
    let world = World::new().await;
    let marking = Arc::new(hook("mark.example.com", Manner::Marks));
    world.server.add_hook(marking.clone());
    world
        .server
        .add_hook(Arc::new(Ours { plane: Some("other"), ..hook("other.example.com", Manner::Marks) }));
    let other = World { plane: common::plane(&world.server, "other").await, server: world.server.clone() };
    let answer = world.post(WIDGETS, &widget("a")).await;
    assert_eq!(answer.body["metadata"]["annotations"], json!({ "mark.example.com": "yes" }));
    assert_eq!(answer.warnings, ["299 - \"seen by mark.example.com\""]);
    let made = other.made(WIDGETS, &widget("a")).await;
    let both = json!({ "mark.example.com": "yes", "other.example.com": "yes" });
    assert_eq!(made["metadata"]["annotations"], both);
    world.made(MAPS, &json!({ "metadata": { "name": "m" } })).await;
    world.delete(&one("a")).await;
    let seen = marking.seen.lock();
    let seen: Vec<_> = seen.iter().map(|r| (r.plane.as_str(), r.operation, r.user.user.as_str())).collect();
    let expected = [("test", Operation::Create), ("other", Operation::Create), ("test", Operation::Delete)];
    assert_eq!(seen, expected.map(|(plane, operation)| (plane, operation, "ann")));
}

#[tokio::test]
async fn before_the_webhooks_of_the_plane() {
    let world = World::new().await;
    let server = Server::allowing().await;
    world.mutate_by("c", &[webhook("a.example.com", &server)]).await;
    world.made(WIDGETS, &widget("before")).await;
    // The plane has webhooks of its own by now, and learns of the hook all the same.
    world.server.add_hook(Arc::new(hook("mark.example.com", Manner::Marks)));
    let made = world.made(WIDGETS, &widget("after")).await;
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    let marked = json!({ "mark.example.com": "yes" });
    assert_eq!(annotations(&made), marked);
    assert_eq!(annotations(&server.calls()[1].review["request"]["object"]), marked);
    assert_eq!(world.delete(&format!("{MUTATING}/c")).await.code, 200);
    assert_eq!(annotations(&world.made(WIDGETS, &widget("last")).await), marked);
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn those_that_refuse_or_fail() {
    for (manner, code, message) in [
        (Manner::Denies, 418, "admission webhook \"a.example.com\" denied the request: short and stout"),
        (Manner::Fails, 500, "Internal error occurred: failed calling webhook \"a.example.com\": out of tea"),
        (
            Manner::Panics,
            500,
            "Internal error occurred: failed calling webhook \"a.example.com\": the hook panicked",
        ),
        (
            Manner::Hangs,
            500,
            "Internal error occurred: failed calling webhook \"a.example.com\": context deadline exceeded",
        ),
    ] {
        let world = World::new().await;
        world.server.add_hook(Arc::new(hook("a.example.com", manner)));
        let answer = soon("an answer", world.post(WIDGETS, &widget("w"))).await;
        assert_eq!((answer.code, answer.message()), (code, message));
        assert_eq!(world.get(&one("w")).await.code, 404);
        world.made(MAPS, &json!({ "metadata": { "name": "m" } })).await;
    }
    for manner in [Manner::Fails, Manner::Panics, Manner::Hangs] {
        let world = World::new().await;
        world.server.add_hook(Arc::new(hook("a.example.com", manner).ignored()));
        soon("an answer", world.made(WIDGETS, &widget("w"))).await;
    }
}

#[tokio::test]
async fn effects_of_their_own_forbid_dry_runs() {
    let world = World::new().await;
    let mut effects = hook("a.example.com", Manner::Marks);
    effects.policy.side_effects = SideEffects::Some;
    world.server.add_hook(Arc::new(effects));
    let answer = world.post(&format!("{WIDGETS}?dryRun=All"), &widget("w")).await;
    assert_eq!((answer.code, answer.body["reason"].as_str()), (400, Some("BadRequest")));
    assert_eq!(answer.message(), "admission webhook \"a.example.com\" does not support dry run");
    world.made(WIDGETS, &widget("w")).await;
}

#[tokio::test]
async fn what_they_make_too_large_is_refused() {
    let world = World::new().await;
    world.made(WIDGETS, &widget("old")).await;
    world.server.add_hook(Arc::new(hook("a.example.com", Manner::Paints(4 << 20))));
    assert_eq!(world.post(WIDGETS, &widget("new")).await.code, 413);
    let patch = json!({ "spec": { "replicas": 2 } });
    assert_eq!(world.send("PATCH", &one("old"), MERGE, &patch).await.code, 413);
    assert_eq!(world.get(&one("old")).await.body["spec"]["replicas"], 1);
}

/// A plane can be made although a hook refuses everything, and its namespaces are there.
#[tokio::test]
async fn a_new_plane_asks_nobody() {
    let world = World::new().await;
    let rule = Rule::new(&Operation::ALL, "*", &["*/*"]);
    world
        .server
        .add_hook(Arc::new(Ours { rules: Rules(vec![rule]), ..hook("a.example.com", Manner::Denies) }));
    let other = World { plane: common::plane(&world.server, "other").await, server: world.server.clone() };
    assert_eq!(other.get("/api/v1/namespaces/default").await.code, 200);
    assert_eq!(other.post(MAPS, &json!({ "metadata": { "name": "m" } })).await.code, 418);
}
