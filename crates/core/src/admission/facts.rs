//! What a judgement needs to know of the project, and what was found out.

use std::collections::{BTreeMap, BTreeSet};

use crate::{location::Offered, referenced_data::Source};

/// What has to be looked up before a write can be judged: each thing once, and only what the write adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Whether these networks, in the Workload's namespace, exist and the caller may `use` them.
    pub networks: BTreeSet<String>,
    /// Whether the caller may `get` these ConfigMaps and Secrets, in the Workload's namespace.
    pub sources: BTreeSet<Source>,
    /// Which cities the project is offered.
    pub cities: bool,
}

impl Needs {
    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.sources.is_empty() && !self.cities
    }
}

/// What there is to know about a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFact {
    /// It exists, and the caller may use it.
    Usable,
    /// The caller may not use it, whether it exists or not.
    NotAllowed,
    /// The caller might use it, but it does not exist.
    Missing,
}

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Networks by name.
    pub networks: BTreeMap<String, NetworkFact>,
    /// Whether the caller may read each source.
    pub sources: BTreeMap<Source, bool>,
    /// The cities that the project is offered.
    pub offered: Option<Offered>,
}
