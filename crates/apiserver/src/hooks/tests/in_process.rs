//! Hooks in this process, alone and beside webhooks, and what is kept of their words.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, pending, ready};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::server::patch;
use super::*;

type Mutate = dyn Fn(&AdmissionRequest) -> Result<MutationOutcome, HookError> + Send + Sync;

/// A hook that does as a test says.
struct Scripted {
    name: &'static str,
    rules: Rules,
    policy: Policy,
    hangs: bool,
    validated: Mutex<Vec<Value>>,
    mutate: Box<Mutate>,
}

impl Scripted {
    fn new(
        name: &'static str,
        mutate: impl Fn(&AdmissionRequest) -> Result<MutationOutcome, HookError> + Send + Sync + 'static,
    ) -> Self {
        let rules = Rules(vec![Rule::new(&[Operation::Create], "example.com", &["widgets"])]);
        let (policy, validated) = (Policy::default(), Mutex::default());
        Self { name, rules, policy, hangs: false, validated, mutate: Box::new(mutate) }
    }

    fn quiet(name: &'static str) -> Self {
        Self::new(name, |_| Ok(MutationOutcome::default()))
    }

    fn policy(mut self, change: impl Fn(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }
}

impl Hook for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn mutate<'a>(
        &'a self,
        request: &'a AdmissionRequest,
    ) -> BoxFuture<'a, Result<MutationOutcome, HookError>> {
        if self.hangs { pending().boxed() } else { ready((self.mutate)(request)).boxed() }
    }

    fn validate<'a>(&'a self, request: &'a AdmissionRequest) -> BoxFuture<'a, Result<Outcome, HookError>> {
        self.validated.lock().push(request.object.clone().unwrap());
        ready(Ok(Outcome::allow())).boxed()
    }
}

fn only(hook: Scripted) -> Chain {
    Chain::compile(&[], &[], &[Arc::new(hook)]).unwrap()
}

#[tokio::test]
async fn a_chain_without_hooks_is_empty() {
    let chain = Chain::compile(&[], &[configuration("none", &[])], &[]).unwrap();
    assert!(chain.is_empty() && Chain::default().is_empty());
    let admitted = World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(admitted.object, Some(widget()));
    assert!(!only(Scripted::quiet("a.example.com")).is_empty());
}

#[tokio::test]
async fn hooks_come_before_webhooks_and_validate_the_result() {
    let server = Server::start(|review| {
        patch(review, &json!([{"op": "add", "path": "/spec/list/-", "value": "webhook"}]))
    })
    .await;
    let first = Scripted::new("first.example.com", |request| {
        let mut object = request.object.clone().unwrap();
        let list = object["spec"]["list"].as_array_mut().unwrap();
        list.push(json!("object"));
        Ok(Change::Object(object).into())
    });
    let second = Scripted::new("second.example.com", |_| {
        Ok(Change::patch(&json!([{"op": "add", "path": "/spec/list/-", "value": "patch"}])).into())
    });
    let (first, second) = (Arc::new(first), Arc::new(second));
    let configurations = [configuration("0", &[webhook("0.example.com", &server)])];
    let chain = Chain::compile(&configurations, &[], &[first.clone(), second]).unwrap();
    let object = World::new().admit(&chain, create(widget())).await.unwrap().object.unwrap();
    assert_eq!(object["spec"]["list"], json!(["object", "patch", "webhook"]));
    assert_eq!(object["spec"]["defaulted"], json!(true));
    assert_eq!(*first.validated.lock(), [object]);
}

#[tokio::test]
async fn a_hook_is_asked_again_after_a_webhook_if_it_asks_for_it() {
    let server =
        Server::start(|review| patch(review, &json!([{"op": "replace", "path": "/spec/size", "value": 5}])))
            .await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let hook = Scripted::new("a.example.com", move |request| {
        log.lock().push(request.object.as_ref().unwrap()["spec"]["size"].clone());
        Ok(MutationOutcome::default())
    });
    let hook = hook.policy(|policy| policy.reinvocation = Reinvocation::IfNeeded);
    let configurations = [configuration("0", &[webhook("0.example.com", &server)])];
    let chain = Chain::compile(&configurations, &[], &[Arc::new(hook)]).unwrap();
    World::new().admit(&chain, create(widget())).await.unwrap();
    assert_eq!(*seen.lock(), [1, 5]);
}

#[tokio::test]
async fn denials_and_failures_read_like_those_of_webhooks() {
    let world = World::new();
    let denying = Scripted::new("a.example.com", |_| {
        Ok(Outcome::deny(Denial::new(422, "Invalid", "spec.size: too big")).warn("careful").into())
    });
    let rejection = world.admit(&only(denying), create(widget())).await.unwrap_err();
    assert_eq!(
        rejection.to_string(),
        "admission webhook \"a.example.com\" denied the request: spec.size: too big"
    );
    assert_eq!((rejection.denial.code, rejection.notes.warnings), (422, vec!["careful".to_owned()]));

    let failing = || Scripted::new("a.example.com", |_| Err("no database".into()));
    let denial = world.refusal(&only(failing()), create(widget())).await;
    let expected = "Internal error occurred: failed calling webhook \"a.example.com\": no database";
    assert_eq!((denial.code, denial.message.as_str()), (500, expected));
    let ignored = failing().policy(|policy| policy.failure = FailurePolicy::Ignore);
    world.admit(&only(ignored), create(widget())).await.unwrap();

    let panicking = Scripted::new("a.example.com", |_| panic!("on purpose"));
    let denial = world.refusal(&only(panicking), create(widget())).await;
    assert!(denial.message.ends_with("the hook panicked"), "{}", denial.message);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_hangs_costs_its_timeout() {
    let hanging = || Scripted { hangs: true, ..Scripted::quiet("a.example.com") };
    let world = World::new();
    let start = Instant::now();
    let denial = world.refusal(&only(hanging()), create(widget())).await;
    let expected =
        "Internal error occurred: failed calling webhook \"a.example.com\": context deadline exceeded";
    assert_eq!(denial.message, expected);
    assert_eq!(start.elapsed().as_secs(), 10);

    let start = Instant::now();
    let brief = hanging().policy(|policy| {
        policy.timeout = Duration::from_secs(2);
        policy.failure = FailurePolicy::Ignore;
    });
    world.admit(&only(brief), create(widget())).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2);

    // Twenty that are ignored together take no longer than the request may.
    let open = || hanging().policy(|policy| policy.failure = FailurePolicy::Ignore);
    let hooks: Vec<Arc<dyn Hook>> = (0..20).map(|_| Arc::new(open()) as Arc<dyn Hook>).collect();
    let start = Instant::now();
    let denial = world.refusal(&Chain::compile(&[], &[], &hooks).unwrap(), create(widget())).await;
    assert_eq!((denial.code, start.elapsed().as_secs()), (504, 30));
}

#[tokio::test]
async fn a_dry_run_does_not_reach_hooks_with_effects() {
    let world = World::new();
    let dry = || AdmissionRequest { dry_run: true, ..create(widget()) };
    for (side_effects, allowed) in
        [(SideEffects::None, true), (SideEffects::NoneOnDryRun, true), (SideEffects::Some, false)]
    {
        let hook = || {
            let hook = Scripted::quiet("a.example.com");
            hook.policy(|policy| {
                policy.side_effects = side_effects;
                policy.failure = FailurePolicy::Ignore;
            })
        };
        world.admit(&only(hook()), create(widget())).await.unwrap();
        let answer = world.admit(&only(hook()), dry()).await;
        assert_eq!(answer.is_ok(), allowed);
        if let Err(rejection) = answer {
            assert_eq!((rejection.denial.code, rejection.denial.reason.as_str()), (400, "BadRequest"));
            assert_eq!(rejection.to_string(), "admission webhook \"a.example.com\" does not support dry run");
        }
    }
    let server = Server::allowing().await;
    let hook = with(webhook("a.example.com", &server), json!({"sideEffects": "NoneOnDryRun"}));
    world.admit(&validating(&[hook]), dry()).await.unwrap();
    assert_eq!(server.calls()[0].review["request"]["dryRun"], json!(true));
}

#[tokio::test]
async fn unchanged_configurations_are_kept_when_others_change() {
    let server = Server::allowing().await;
    let stored = |name: &str, version: &str| {
        let metadata = json!({"name": name, "uid": name, "resourceVersion": version});
        with(configuration(name, &[webhook("a.example.com", &server)]), json!({"metadata": metadata}))
    };
    let before = Chain::compile(&[stored("a", "1"), stored("b", "2")], &[], &[]).unwrap();
    let after = before.recompile(&[stored("b", "3"), stored("a", "1")], &[stored("a", "1")]).unwrap();
    let webhooks = |chain: &Chain, phase| -> Vec<*const Webhook> {
        let steps = chain.steps(phase).iter();
        steps
            .map(|step| match step {
                super::super::chain::Step::Webhook(webhook) => Arc::as_ptr(webhook),
                super::super::chain::Step::Hook(_) => panic!("no hooks here"),
            })
            .collect()
    };
    use super::super::admit::Phase::{Mutating, Validating};
    let (old, new) = (webhooks(&before, Mutating), webhooks(&after, Mutating));
    assert_eq!(old[0], new[0]);
    assert_ne!(old[1], new[1]);
    assert_ne!(webhooks(&after, Validating)[0], old[0], "the other kind is another object");
    let bad = before.recompile(&[json!({"metadata": {"name": "x"}, "webhooks": 1})], &[]).unwrap_err();
    assert_eq!(bad.name, "x");
    assert!(bad.to_string().starts_with("webhook configuration \"x\" is invalid: webhooks: "), "{bad}");
}

proptest! {
    #[test]
    fn what_hooks_say_is_bounded(warnings in prop::collection::vec(".{0,900}", 0..40), long in 0usize..200_000) {
        let mut notes = Notes::default();
        let annotations = [("k".to_owned(), "v".repeat(long)), ("l".to_owned(), "v".to_owned())].into();
        let mut outcome = Outcome { warnings, audit_annotations: annotations, ..Outcome::default() };
        notes.add("a", &mut outcome);
        prop_assert!(notes.warnings.iter().map(|warning| warning.chars().count()).sum::<usize>() <= 4096);
        prop_assert!(notes.annotations.values().map(String::len).sum::<usize>() <= 64 << 10);
        prop_assert!(notes.annotations.contains_key("a/l"));
        let denial = Denial::new(403, "", "é".repeat(long)).by("a");
        prop_assert!(denial.message.len() < 70_000);
    }
}
