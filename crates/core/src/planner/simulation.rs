//! Many steps: plans are applied, a provider starts, fails, is slow, and templates change meanwhile.

use std::collections::BTreeSet;

use compute_api::compute::POLICY_PARALLEL;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{deployment, instance, leaving, not_ready, options, ready, template};

/// An instance that starts with this image never gets ready.
const BAD_IMAGE: &str = "bad";
/// More than the slowest world of the strategies below needs.
const ENOUGH_ROUNDS: usize = 400;

/// How an instance is found at first.
#[derive(Clone, Debug)]
struct Found {
    ordinal: u32,
    image: usize,
    ready: bool,
    leaving: bool,
    labelled: bool,
}

/// What a person does, and how long until the next thing.
#[derive(Clone, Debug)]
struct Change {
    image: usize,
    replicas: i64,
    paused: bool,
    rounds: usize,
}

/// Rounds that things take, drawn once for a world.
#[derive(Clone, Debug)]
struct Pace {
    start: Vec<usize>,
    stop: Vec<usize>,
}

const IMAGES: [&str; 4] = ["app:1", "app:2", BAD_IMAGE, "app:3"];

#[derive(Clone)]
struct Member {
    instance: Instance,
    image: String,
    age: usize,
    leaving_for: usize,
}

struct World {
    deployment: WorkloadDeployment,
    members: Vec<Member>,
    pace: Pace,
    made: usize,
    /// Rotates the order in which instances are handed to the planner.
    turn: usize,
}

impl World {
    fn new(found: &[Found], pace: Pace, parallel: bool, replicas: i64) -> Self {
        let mut deployment = deployment(replicas);
        if parallel {
            deployment.spec.scale_settings.instance_management_policy = POLICY_PARALLEL.to_owned();
        }
        let mut members: Vec<Member> = Vec::new();
        for one in found {
            if members.iter().any(|member| ordinal_of(&member.instance) == one.ordinal) {
                continue;
            }
            let mut from = deployment.clone();
            from.spec.template = template(IMAGES[one.image]);
            let mut made = instance(&from, one.ordinal);
            if one.ready {
                made = ready(made);
            }
            if one.leaving {
                made = leaving(made);
            }
            if !one.labelled {
                made.metadata.labels = None;
            }
            members.push(Member {
                instance: made,
                image: IMAGES[one.image].to_owned(),
                age: 0,
                leaving_for: 0,
            });
        }
        Self { deployment, members, pace, made: 0, turn: 0 }
    }

    fn change(&mut self, change: &Change) {
        self.deployment.spec.template = template(IMAGES[change.image]);
        self.deployment.spec.replicas = Some(change.replicas);
        self.deployment.spec.scale_settings.min_replicas = 0;
        self.deployment.spec.paused = Some(change.paused);
    }

    fn instances(&self) -> Vec<&Instance> {
        self.members.iter().map(|member| &member.instance).collect()
    }

    fn plan(&mut self) -> Vec<Action> {
        let mut instances = self.instances();
        let actions = plan(&self.deployment, instances.iter().copied(), &options());
        let half = self.turn % instances.len().max(1);
        instances.rotate_left(half);
        instances.reverse();
        assert_eq!(actions, plan(&self.deployment, instances, &options()), "order of input matters");
        self.turn += 1;
        actions
    }

    /// Checks the invariants of one plan and applies it. Says whether that changed anything.
    fn step(&mut self) -> bool {
        let actions = self.plan();
        self.check(&actions);
        let changes: Vec<_> = actions.into_iter().filter(Action::is_change).collect();
        for action in &changes {
            self.apply(action);
        }
        self.tick();
        !changes.is_empty()
    }

    fn check(&self, actions: &[Action]) {
        let is_ready_member = |name: &str| {
            self.members
                .iter()
                .any(|member| meta::name(&member.instance.metadata) == name && is_ready(&member.instance))
        };
        let taken_down: Vec<_> = actions
            .iter()
            .filter(|action| action.is_change() && action.why == Why::Outdated)
            .map(|action| action.instance.as_str())
            .collect();
        assert!(taken_down.len() <= 1, "{taken_down:?} go down together");
        if let [only] = taken_down[..] {
            assert!(!self.paused());
            for ordinal in 0..scale::desired_replicas(&self.deployment.spec) {
                let name = names::instance_name("web-main-dfw", ordinal);
                assert!(is_ready_member(&name), "{only} goes down while {name} is");
            }
        }
        for action in actions.iter().filter(|action| action.is_change()) {
            match action.why {
                Why::Stuck => assert!(!self.paused() && !is_ready_member(&action.instance)),
                Why::Surplus => {
                    assert!(ordinal_in(&action.instance) >= scale::desired_replicas(&self.deployment.spec))
                }
                _ => {}
            }
            if let Step::PatchLabels { .. } = action.step {
                let member = self.member(&action.instance).expect("a patch is for what is there");
                assert!(!meta::is_being_deleted(&member.instance.metadata));
            }
        }
        let touched: Vec<_> =
            actions.iter().filter(|action| action.is_change()).map(|action| &action.instance).collect();
        let distinct: BTreeSet<_> = touched.iter().collect();
        assert_eq!(touched.len(), distinct.len(), "two changes for one instance");
    }

    fn paused(&self) -> bool {
        self.deployment.spec.paused == Some(true)
    }

    fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| meta::name(&member.instance.metadata) == name)
    }

    fn apply(&mut self, action: &Action) {
        let position =
            self.members.iter().position(|member| meta::name(&member.instance.metadata) == action.instance);
        match &action.step {
            Step::Create(new) => {
                assert_eq!(position, None, "{} is already there", action.instance);
                self.made += 1;
                let mut instance = (**new).clone();
                instance.metadata.uid = Some(format!("made-{}", self.made));
                let image = instance.spec.runtime.sandbox.as_ref().unwrap().containers[0].image.clone();
                self.members.push(Member { instance, image, age: 0, leaving_for: 0 });
            }
            Step::Delete { uid, .. } => {
                let member = &mut self.members[position.expect("what is deleted is there")];
                assert_eq!(member.instance.metadata.uid.as_ref(), Some(uid));
                member.instance = leaving(member.instance.clone());
            }
            Step::PatchLabels { labels, .. } => {
                let member = &mut self.members[position.expect("what is labelled is there")];
                member.instance.metadata.labels.get_or_insert_default().extend(labels.clone());
            }
            Step::Wait => {}
        }
    }

    /// The provider goes on: instances start, or do not, and those that leave are gone after a while.
    fn tick(&mut self) {
        let Pace { start, stop } = &self.pace;
        for member in &mut self.members {
            let ordinal = ordinal_of(&member.instance) as usize;
            if meta::is_being_deleted(&member.instance.metadata) {
                member.leaving_for += 1;
                continue;
            }
            member.age += 1;
            if member.image != BAD_IMAGE && member.age > start[ordinal % start.len()] {
                member.instance = ready(member.instance.clone());
            } else if member.image == BAD_IMAGE {
                member.instance = not_ready(member.instance.clone(), "ImageUnavailable", "no such image");
            }
        }
        self.members
            .retain(|member| member.leaving_for <= stop[ordinal_of(&member.instance) as usize % stop.len()]);
    }
}

fn ordinal_in(name: &str) -> u32 {
    names::split_instance_name(name).unwrap().1
}

fn ordinal_of(instance: &Instance) -> u32 {
    ordinal_in(meta::name(&instance.metadata))
}

fn any_found() -> impl Strategy<Value = Vec<Found>> {
    let one = (0..7_u32, 0..IMAGES.len(), any::<bool>(), prop::bool::weighted(0.2), any::<bool>()).prop_map(
        |(ordinal, image, ready, leaving, labelled)| Found { ordinal, image, ready, leaving, labelled },
    );
    prop::collection::vec(one, 0..7)
}

fn any_history() -> impl Strategy<Value = Vec<Change>> {
    let one = (0..IMAGES.len(), 0..6_i64, prop::bool::weighted(0.2), 0..12_usize)
        .prop_map(|(image, replicas, paused, rounds)| Change { image, replicas, paused, rounds });
    prop::collection::vec(one, 0..5)
}

fn any_pace() -> impl Strategy<Value = Pace> {
    (prop::collection::vec(0..5_usize, 1..4), prop::collection::vec(0..4_usize, 1..4))
        .prop_map(|(start, stop)| Pace { start, stop })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is found and whatever happened before, a good template at the end leads to exactly the wanted
    /// instances, all of them on it and Ready; and then there is nothing more to do or to say.
    #[test]
    fn every_history_converges(
        found in any_found(),
        history in any_history(),
        last in 0..6_i64,
        parallel in any::<bool>(),
        pace in any_pace(),
    ) {
        let mut world = World::new(&found, pace, parallel, 3);
        for change in &history {
            world.change(change);
            for _ in 0..change.rounds {
                world.step();
            }
        }
        world.change(&Change { image: 3, replicas: last, paused: false, rounds: 0 });
        let mut rounds = 0;
        while !world.plan().is_empty() {
            world.step();
            rounds += 1;
            prop_assert!(rounds < ENOUGH_ROUNDS, "wedged: {:?}", world.plan());
        }
        let wanted = planner_desired(&world);
        let mut ordinals: Vec<_> = world.instances().into_iter().map(ordinal_of).collect();
        ordinals.sort_unstable();
        prop_assert_eq!(ordinals, (0..u32::try_from(last).unwrap()).collect::<Vec<_>>());
        for member in &world.members {
            prop_assert!(is_ready(&member.instance) && wanted.matches(&member.instance));
            let ordinal = ordinal_of(&member.instance);
            let labels = build::labels(&world.deployment, ordinal);
            prop_assert!(meta::covers(member.instance.metadata.labels.as_ref(), Some(&labels)));
        }
    }

    /// With nothing happening in between, a plan that was applied is not planned again.
    #[test]
    fn what_was_applied_is_not_planned_again(
        found in any_found(),
        replicas in 0..6_i64,
        image in 0..IMAGES.len(),
        paused in any::<bool>(),
        parallel in any::<bool>(),
        pace in any_pace(),
    ) {
        let mut world = World::new(&found, pace, parallel, 3);
        world.change(&Change { image, replicas, paused, rounds: 0 });
        // Without the provider an instance is neither started nor gone: one of each step per slot at most.
        let mut applied = 0;
        loop {
            let changes: Vec<_> = world.plan().into_iter().filter(Action::is_change).collect();
            if changes.is_empty() {
                break;
            }
            for change in &changes {
                world.apply(change);
            }
            applied += changes.len();
            prop_assert!(applied <= 3 * 13, "{changes:?}");
        }
    }

    /// While paused no instance is replaced, Ready or not, and scaling goes on.
    #[test]
    fn paused_replaces_nothing(found in any_found(), replicas in 0..6_i64, parallel in any::<bool>(), pace in any_pace()) {
        let mut world = World::new(&found, pace, parallel, 3);
        world.change(&Change { image: 1, replicas, paused: true, rounds: 0 });
        let kept: BTreeSet<_> = world
            .members
            .iter()
            .filter(|member| !meta::is_being_deleted(&member.instance.metadata))
            .filter(|member| i64::from(ordinal_of(&member.instance)) < replicas)
            .map(|member| member.instance.metadata.uid.clone())
            .collect();
        for _ in 0..60 {
            world.step();
        }
        let after: BTreeSet<_> = world.members.iter().map(|member| member.instance.metadata.uid.clone()).collect();
        prop_assert!(kept.is_subset(&after));
        let bad_below = world.members.iter().any(|member| member.image == BAD_IMAGE);
        if parallel || !bad_below {
            prop_assert_eq!(i64::try_from(after.len()).unwrap(), replicas);
        }
    }
}

fn planner_desired(world: &World) -> Desired {
    desired(&world.deployment)
}
