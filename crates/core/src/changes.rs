//! What differs between two Workloads, as people say it: `image 1.4.1 → 1.4.2`, `DFW, IAD min 2 → 3`.
//!
//! # Guarantees
//!
//! Specs that mean the same have no change between them, and specs that do not have at least one. Values of variables are never
//! said, only that they changed: they may be secrets.

use std::{collections::BTreeMap, fmt};

use compute_api::{
    compute::{InstanceTemplate, POLICY_PARALLEL, ScaleSettings, WorkloadSpec},
    template_hash,
};

mod template;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// What differs, such as `image` or `DFW min`.
    pub what: String,
    /// How.
    pub how: How,
}

/// How something differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// From one value to another.
    Changed {
        /// What it was.
        from: String,
        /// What it is.
        to: String,
    },
    /// It was not there; with its value, where that is short.
    Added(Option<String>),
    /// It is not there any more.
    Removed,
    /// The subject says it all, such as `env MODE changed`.
    Said,
}

impl Change {
    fn new(what: impl Into<String>, from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { what: what.into(), how: How::Changed { from: from.into(), to: to.into() } }
    }

    fn said(what: impl Into<String>) -> Self {
        Self { what: what.into(), how: How::Said }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match &self.how {
            How::Changed { from, to } => write!(f, "{what} {from} → {to}"),
            How::Added(None) => write!(f, "{what} added"),
            How::Added(Some(value)) => write!(f, "{what} added ({value})"),
            How::Removed => write!(f, "{what} removed"),
            How::Said => write!(f, "{what}"),
        }
    }
}

/// What differs between two specs.
pub fn between(from: &WorkloadSpec, to: &WorkloadSpec) -> Vec<Change> {
    let mut found = template::between(&from.template, &to.template);
    found.extend(placements(from, to));
    match (from.paused == Some(true), to.paused == Some(true)) {
        (false, true) => found.push(Change::said("rollout paused")),
        (true, false) => found.push(Change::said("rollout resumed")),
        _ => {}
    }
    if found.is_empty() && !same(from, to) {
        found.push(Change::said("other settings changed"));
    }
    found
}

/// Whether two specs mean the same.
pub fn same(a: &WorkloadSpec, b: &WorkloadSpec) -> bool {
    let plain = |spec: &WorkloadSpec| WorkloadSpec {
        // Saying that it is not paused is saying nothing.
        paused: spec.paused.filter(|paused| *paused),
        ..spec.clone()
    };
    template_hash::same_content(&plain(a), &plain(b))
}

/// Whether two specs ask for the same but for a restart.
pub fn same_but_restart(a: &WorkloadSpec, b: &WorkloadSpec) -> bool {
    let plain = |spec: &WorkloadSpec| WorkloadSpec {
        template: without_restart(&spec.template),
        paused: None,
        ..spec.clone()
    };
    same(&plain(a), &plain(b))
}

fn without_restart(template: &InstanceTemplate) -> InstanceTemplate {
    let mut template = template.clone();
    if let Some(metadata) = &mut template.metadata {
        metadata.annotations.remove(compute_api::annotations::RESTARTED_AT);
    }
    template
}

/// Scale settings by placement and city, in the order of the spec.
fn by_city(spec: &WorkloadSpec) -> Vec<((&str, &str), &ScaleSettings)> {
    let placements = spec.placements.iter();
    placements
        .flat_map(|placement| {
            let cities = placement.city_codes.iter();
            cities.map(|city| ((placement.name.as_str(), city.as_str()), &placement.scale_settings))
        })
        .collect()
}

fn placements(from: &WorkloadSpec, to: &WorkloadSpec) -> Vec<Change> {
    let (before, after) = (by_city(from), by_city(to));
    let names = before.iter().chain(&after).map(|((placement, _), _)| *placement);
    let several = names.collect::<std::collections::BTreeSet<_>>().len() > 1;
    let label = |(placement, city): (&str, &str)| match several {
        true => format!("{placement}/{city}"),
        false => city.to_owned(),
    };
    let find = |list: &[((&str, &str), &ScaleSettings)], (placement, city): (&str, &str)| {
        let is_it =
            |((p, c), _): &&((&str, &str), &ScaleSettings)| *p == placement && c.eq_ignore_ascii_case(city);
        list.iter().find(is_it).map(|(_, settings)| (*settings).clone())
    };
    // The same change of several cities is said once.
    let mut order: Vec<(String, How)> = Vec::new();
    let mut cities: BTreeMap<(String, How), Vec<String>> = BTreeMap::new();
    let mut note = |city: String, aspect: &str, how: How| {
        let key = (aspect.to_owned(), how);
        if !order.contains(&key) {
            order.push(key.clone());
        }
        cities.entry(key).or_default().push(city);
    };
    for (key, settings) in &after {
        match find(&before, *key) {
            Some(old) => {
                for (aspect, how) in settings_changes(&old, settings) {
                    note(label(*key), &aspect, how);
                }
            }
            None => note(label(*key), "", How::Added(Some(format!("min {}", settings.min_replicas)))),
        }
    }
    for (key, _) in &before {
        if find(&after, *key).is_none() {
            note(label(*key), "", How::Removed);
        }
    }
    order
        .into_iter()
        .map(|key| {
            let subjects = cities.remove(&key).unwrap_or_default().join(", ");
            let (aspect, how) = key;
            let what = if aspect.is_empty() { subjects } else { format!("{subjects} {aspect}") };
            Change { what, how }
        })
        .collect()
}

fn settings_changes(from: &ScaleSettings, to: &ScaleSettings) -> Vec<(String, How)> {
    let mut found = Vec::new();
    let mut note = |aspect: &str, from: String, to: String| {
        if from != to {
            found.push((aspect.to_owned(), How::Changed { from, to }));
        }
    };
    note("min", from.min_replicas.to_string(), to.min_replicas.to_string());
    let most = |settings: &ScaleSettings| {
        settings.max_replicas.map_or_else(|| "none".to_owned(), |most| most.to_string())
    };
    note("max", most(from), most(to));
    let order = |settings: &ScaleSettings| match settings.instance_management_policy.as_str() {
        POLICY_PARALLEL => "all at once".to_owned(),
        _ => "one at a time".to_owned(),
    };
    note("start", order(from), order(to));
    if !template_hash::same_content(&from.metrics, &to.metrics) {
        found.push(("autoscaling changed".to_owned(), How::Said));
    }
    found
}

#[cfg(test)]
mod tests;
