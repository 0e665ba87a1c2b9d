//! Finds the bindings that name a caller, by user name and by group.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::authz::attributes::{Caller, names, service_account};
use crate::authz::binding::{Binding, SubjectName};

/// One binding as seen from one of its subjects.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) binding: Arc<Binding>,
    /// Which of the binding's subjects.
    pub(super) subject: usize,
}

/// What one subject is given.
#[derive(Debug, Default)]
struct Grants {
    everywhere: Vec<Grant>,
    /// By namespace.
    within: BTreeMap<Box<str>, Vec<Grant>>,
}

/// Bindings by subject.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Service accounts stand here under the user names that stand for them.
    users: BTreeMap<Box<str>, Grants>,
    groups: BTreeMap<Box<str>, Grants>,
    /// The groups `system:serviceaccounts:<namespace>`, by namespace: so that no group name has to be put together
    /// to look up what a service account's name implies.
    service_accounts_of: BTreeMap<Box<str>, Grants>,
}

/// The namespace of a group `system:serviceaccounts:<namespace>`.
fn namespace_of_group(group: &str) -> Option<&str> {
    group.strip_prefix(names::SERVICE_ACCOUNTS)?.strip_prefix(':')
}

impl Index {
    pub(super) fn new<'a>(bindings: impl IntoIterator<Item = &'a Arc<Binding>>) -> Self {
        let mut index = Self::default();
        for binding in bindings {
            index.add(binding);
        }
        index
    }

    fn add(&mut self, binding: &Arc<Binding>) {
        let namespace = &binding.key.namespace;
        for (subject, named) in binding.subjects.iter().enumerate() {
            let grants = match named.resolve(namespace) {
                None => continue,
                Some(SubjectName::User(name)) => self.users.entry(name).or_default(),
                Some(SubjectName::Group(name)) => match namespace_of_group(&name) {
                    Some(of) => self.service_accounts_of.entry(of.into()).or_default(),
                    None => self.groups.entry(name).or_default(),
                },
            };
            let grant = Grant { binding: Arc::clone(binding), subject };
            match &**namespace {
                "" => grants.everywhere.push(grant),
                _ => grants.within.entry(namespace.clone()).or_default().push(grant),
            }
        }
    }

    /// Shows `look` each grant to the caller that holds in `namespace`, until it has seen enough.
    pub(super) fn visit<'p, T>(
        &'p self,
        caller: Caller<'_>,
        namespace: &str,
        mut look: impl FnMut(&'p Grant) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        let mut subject = |grants: Option<&'p Grants>| -> ControlFlow<T> {
            let Some(grants) = grants else { return ControlFlow::Continue(()) };
            grants.everywhere.iter().try_for_each(&mut look)?;
            match namespace {
                "" => ControlFlow::Continue(()),
                _ => grants.within.get(namespace).into_iter().flatten().try_for_each(&mut look),
            }
        };
        subject(self.users.get(caller.user))?;
        for group in caller.groups {
            subject(match namespace_of_group(group) {
                Some(of) => self.service_accounts_of.get(of),
                None => self.groups.get(group.as_str()),
            })?;
        }
        if let Some((of, _)) = service_account(caller.user) {
            if !caller.has_group(names::SERVICE_ACCOUNTS) {
                subject(self.groups.get(names::SERVICE_ACCOUNTS))?;
            }
            if !caller.groups.iter().any(|group| namespace_of_group(group) == Some(of)) {
                subject(self.service_accounts_of.get(of))?;
            }
        }
        ControlFlow::Continue(())
    }
}
