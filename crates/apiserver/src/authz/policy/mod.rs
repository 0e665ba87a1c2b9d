//! A plane's roles and bindings, compiled: who may do what.
//!
//! A policy is immutable and may stand on another one, its base. Only what differs from the base is kept: objects
//! of its own, aggregated roles of the base that gain rules from them, and bindings of the base whose role is
//! another one here. An own object takes the place of a base's object of the same name.
//!
//! Guarantee: a policy over a base answers as if all objects had been compiled together.

mod compile;
mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::attributes::{Attributes, Caller};
use super::binding::{Binding, BindingKey, RoleKind, RoleRef};
use super::role::ClusterRole;
use super::rule::Rule;
use index::{Grant, Index};

/// Rules by name of their role.
type Rules = BTreeMap<Box<str>, Arc<[Rule]>>;

/// Who may do what in a plane.
#[derive(Debug, Default)]
pub struct Policy {
    base: Option<Arc<Policy>>,
    cluster_roles: BTreeMap<Box<str>, Arc<ClusterRole>>,
    /// By namespace.
    roles: BTreeMap<Box<str>, Rules>,
    bindings: BTreeMap<Arc<BindingKey>, Arc<Binding>>,
    /// Bindings of the bases that do not hold here, because an own one has taken their place.
    hidden: BTreeSet<Arc<BindingKey>>,
    /// Finds own bindings by subject.
    index: Index,
}

/// A policy, and the objects that it could not read.
#[derive(Debug)]
pub struct Compiled {
    /// The policy without them.
    pub policy: Policy,
    /// What was left out, to be reported.
    pub skipped: Vec<Skipped>,
}

/// An object that could not be read. It grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace; may be empty.
    pub namespace: String,
    /// Its name; may be empty.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {}{slash}{}: {}", self.kind, self.namespace, self.name, self.problem)
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Decision<'p> {
    /// Whether it may be done.
    pub allowed: bool,
    grounds: Grounds<'p>,
}

#[derive(Clone, Debug)]
enum Grounds<'p> {
    Superuser,
    Granted(&'p Grant),
    /// The caller's bindings whose role does not exist.
    Refused(Vec<&'p Binding>),
}

impl Decision<'_> {
    /// Why, in Kubernetes' words. Empty if there is nothing to say. Built when asked for: most answers need none.
    pub fn reason(&self) -> String {
        match &self.grounds {
            Grounds::Superuser => String::new(),
            Grounds::Granted(grant) => format!("RBAC: allowed by {}", grant.binding.describe(grant.subject)),
            Grounds::Refused(broken) => match missing_roles(broken) {
                None => String::new(),
                Some(missing) => format!("RBAC: {missing}"),
            },
        }
    }
}

/// Says which roles do not exist, each once; `None` if all do.
fn missing_roles(broken: &[&Binding]) -> Option<String> {
    let problems: BTreeSet<String> = broken.iter().map(|binding| binding.role.not_found()).collect();
    let joined = problems.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match problems.len() {
        0 => None,
        1 => Some(joined),
        _ => Some(format!("[{joined}]")),
    }
}

impl Policy {
    /// Whether a request may be done. Allocates nothing, unless a binding's role is missing.
    pub fn allows(&self, request: &Attributes<'_>) -> Decision<'_> {
        if request.caller.is_superuser() {
            return Decision { allowed: true, grounds: Grounds::Superuser };
        }
        let mut broken = Vec::new();
        let granted = self.visit(request.caller, request.namespace(), |grant| match &grant.binding.rules {
            Some(rules) if rules.iter().any(|rule| rule.allows(request)) => ControlFlow::Break(grant),
            Some(_) => ControlFlow::Continue(()),
            None => {
                broken.push(&*grant.binding);
                ControlFlow::Continue(())
            }
        });
        match granted {
            ControlFlow::Break(grant) => Decision { allowed: true, grounds: Grounds::Granted(grant) },
            ControlFlow::Continue(()) => Decision { allowed: false, grounds: Grounds::Refused(broken) },
        }
    }

    /// All rules that hold for the caller in a namespace (empty: in the whole plane), none twice, and what kept
    /// further ones from being found.
    pub fn rules_for(&self, caller: Caller<'_>, namespace: &str) -> (Vec<Rule>, Option<String>) {
        let mut rules = Vec::new();
        let mut broken = Vec::new();
        if caller.is_superuser() {
            rules.extend(Rule::full_authority());
        }
        let mut known: BTreeSet<Rule> = rules.iter().cloned().collect();
        let _: ControlFlow<()> = self.visit(caller, namespace, |grant| {
            match &grant.binding.rules {
                Some(held) => rules.extend(held.iter().filter(|rule| known.insert((*rule).clone())).cloned()),
                None => broken.push(&*grant.binding),
            }
            ControlFlow::Continue(())
        });
        (rules, missing_roles(&broken))
    }

    /// The rules of a cluster role, or of a role in `namespace`.
    pub(super) fn role_rules(&self, role: &RoleRef, namespace: &str) -> Option<&Arc<[Rule]>> {
        self.layers().find_map(|layer| match role.kind {
            RoleKind::ClusterRole => layer.cluster_roles.get(&role.name).map(|found| &found.rules),
            RoleKind::Role => layer.roles.get(namespace)?.get(&role.name),
        })
    }

    /// The rules that ClusterRole `name` has in effect: with aggregation, those of the roles that it picks.
    pub fn cluster_role_rules(&self, name: &str) -> Option<&[Rule]> {
        self.layers().find_map(|layer| layer.cluster_roles.get(name)).map(|found| &*found.rules)
    }

    /// This policy, then its base, and so on.
    fn layers(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |layer| layer.base.as_deref())
    }

    /// Shows `look` each grant to the caller that holds in `namespace`, until it has seen enough.
    fn visit<'p, T>(
        &'p self,
        caller: Caller<'_>,
        namespace: &str,
        mut look: impl FnMut(&'p Grant) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        for layer in self.layers() {
            layer.index.visit(caller, namespace, |grant| {
                if self.hides(layer, &grant.binding.key) { ControlFlow::Continue(()) } else { look(grant) }
            })?;
        }
        ControlFlow::Continue(())
    }

    /// Whether a layer above `layer` has put something else in the place of its binding.
    fn hides(&self, layer: &Self, key: &BindingKey) -> bool {
        self.layers()
            .take_while(|upper| !std::ptr::eq(*upper, layer))
            .any(|upper| !upper.hidden.is_empty() && upper.hidden.contains(key))
    }
}
