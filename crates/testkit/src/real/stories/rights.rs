//! What managers may do is what they need, and no more. To be told after all other stories: it looks back at what they took.

use std::collections::BTreeSet;

use crate::real::RealStack;
use crate::real::audit::{Plane, Right, Role, granted};

/// Rights that no story uses, each with the reason why it is there all the same.
const UNUSED: &[(Role, Plane, &str, &str, &str, &str)] = &[];

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
        return;
    }
    let asked = stack.asked();
    let mut idle = Vec::new();
    for (of, rights) in granted() {
        let nothing = BTreeSet::new();
        let used = asked.used.get(&of).unwrap_or(&nothing);
        idle.extend(rights.difference(used).map(|right| (of, right.clone())));
    }
    let is_known = |((role, plane), (group, resource, verb)): &((Role, Plane), Right)| {
        UNUSED.iter().any(|known| {
            (known.0, known.1) == (*role, *plane) && (known.2, known.3, known.4) == (group, resource, verb)
        })
    };
    let unexplained: Vec<_> = idle.iter().filter(|right| !is_known(right)).map(|right| format!("{right:?}")).collect();
    assert!(unexplained.is_empty(), "never used:\n{}", unexplained.join("\n"));
    let used_all_the_same = UNUSED.iter().filter(|known| {
        let right: Right = (known.2.to_owned(), known.3.to_owned(), known.4.to_owned());
        !idle.contains(&((known.0, known.1), right))
    });
    let stale: Vec<_> = used_all_the_same.map(|known| format!("{known:?}")).collect();
    assert!(stale.is_empty(), "said to be unused, and used:\n{}", stale.join("\n"));
}
