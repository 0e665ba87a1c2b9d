//! What managers may do is what they need, and no more. To be told after all other stories: it looks back at what they took.

use std::collections::BTreeSet;

use compute_api::{compute, milo, networking};

use crate::real::RealStack;
use crate::real::audit::{Plane, Right, Role, granted};

/// A right that no story uses.
struct Unused(Role, Plane, &'static str, &'static str, &'static str);

const OWNER: &str =
    "asked by the server itself, when an object with an owner is written: no request shows it";
const ONE_CELL: &str =
    "stories run one process for each cell; it is the same code that the management role's replicas use";
const INTERNAL: &str = "only where projects are found by the objects that stand for their planes";
const EVENT_AGAIN: &str = "the answer to a new event was lost, and the event is there";

/// Rights that no story uses, each with the reason why it is there all the same.
const UNUSED: &[(Unused, &str)] = &[
    (Unused(Role::Management, Plane::Project, compute::GROUP, "workloads/finalizers", "update"), OWNER),
    (
        Unused(Role::Management, Plane::Project, compute::GROUP, "workloaddeployments/finalizers", "update"),
        OWNER,
    ),
    (Unused(Role::Cell, Plane::Hub, compute::GROUP, "workloaddeployments/finalizers", "update"), OWNER),
    (Unused(Role::Cell, Plane::Cell, compute::GROUP, "workloaddeployments/finalizers", "update"), OWNER),
    (Unused(Role::Cell, Plane::Cell, networking::GROUP, "networkcontexts/finalizers", "update"), OWNER),
    (Unused(Role::Cell, Plane::Cell, "coordination.k8s.io", "leases", "create"), ONE_CELL),
    (Unused(Role::Cell, Plane::Cell, "coordination.k8s.io", "leases", "get"), ONE_CELL),
    (Unused(Role::Cell, Plane::Cell, "coordination.k8s.io", "leases", "update"), ONE_CELL),
    (
        Unused(Role::Management, Plane::Core, milo::INFRASTRUCTURE_GROUP, "projectcontrolplanes", "list"),
        INTERNAL,
    ),
    (
        Unused(Role::Management, Plane::Core, milo::INFRASTRUCTURE_GROUP, "projectcontrolplanes", "watch"),
        INTERNAL,
    ),
    (Unused(Role::Management, Plane::Project, "", "events", "get"), EVENT_AGAIN),
    (Unused(Role::Management, Plane::Hub, "", "events", "get"), EVENT_AGAIN),
    (Unused(Role::Cell, Plane::Cell, "", "events", "get"), EVENT_AGAIN),
    (
        Unused(Role::Management, Plane::Hub, "", "events", "patch"),
        "the same trouble of the same object on the hub, once more",
    ),
    (
        Unused(Role::Management, Plane::Project, compute::GROUP, "workloaddeployments", "get"),
        "a copy on the hub whose deployment somebody removed without its finalizer",
    ),
    (
        Unused(Role::Cell, Plane::Cell, networking::GROUP, "networkbindings", "delete"),
        "an interface that a template has no more",
    ),
];

impl Unused {
    fn full(&self) -> ((Role, Plane), Right) {
        ((self.0, self.1), (self.2.to_owned(), self.3.to_owned(), self.4.to_owned()))
    }
}

/// Nothing that a manager asked for was refused for want of a right.
pub async fn nothing_is_refused(stack: &RealStack) {
    let refused = stack.asked().refused;
    assert!(refused.is_empty(), "{} refused, such as:\n{}", refused.len(), sample(&refused));
}

fn sample(refused: &[String]) -> String {
    let different: BTreeSet<&String> = refused.iter().collect();
    different.into_iter().take(40).cloned().collect::<Vec<_>>().join("\n")
}

/// Every right is used by some story, or has a reason of its own.
pub async fn every_right_is_used(stack: &RealStack) {
    if stack.foundation.running().is_none() {
        println!("the embedded stand-ins write no audit log: rights are not looked at");
        return;
    }
    let asked = stack.asked();
    let granted = granted();
    let mut idle = BTreeSet::new();
    for (of, rights) in &granted {
        let used = asked.used.get(of);
        let unused = rights.iter().filter(|right| !used.is_some_and(|used| used.contains(*right)));
        idle.extend(unused.map(|right| (*of, right.clone())));
    }
    for (right, why) in UNUSED {
        let (of, right) = right.full();
        assert!(granted[&of].contains(&right), "explained, and granted to nobody: {of:?} {right:?}: {why}");
        idle.remove(&(of, right));
    }
    let idle: Vec<_> = idle.iter().map(|right| format!("{right:?}")).collect();
    assert!(idle.is_empty(), "never used:\n{}", idle.join("\n"));
}
