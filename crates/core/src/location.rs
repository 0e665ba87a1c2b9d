//! Cities: which location of a cell a city is, and which cities a project is offered.
//!
//! How the platform offers locations to projects ([`offer`]) and gives them to cells ([`cell`]) is what its stand-in
//! decides by.
//!
//! City codes are equal ignoring case. Where one is written down, it is in the spelling of whoever offers it,
//! since hub and cells match the label exactly.

use std::collections::BTreeMap;

use compute_api::{
    compute::LocationReference,
    conditions,
    networking::{CONDITION_AVAILABLE, Location, LocationBinding},
};

use crate::meta;

pub mod cell;
pub mod offer;

/// Whether two city codes are the same city.
pub fn same_city(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// The location of a city, and the others that have its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The one with the lowest name.
    pub location: LocationReference,
    /// Names of the others; a warning if there are any.
    pub others: Vec<String>,
}

/// The location that a city resolves to: of several, the one with the lowest name. A location that is being
/// deleted does not count.
pub fn resolve<'a>(city: &str, locations: impl IntoIterator<Item = &'a Location>) -> Option<Resolved> {
    let mut names: Vec<_> = locations
        .into_iter()
        .filter(|location| !meta::is_being_deleted(&location.metadata))
        .filter(|location| location.spec.city_code().is_some_and(|code| same_city(code, city)))
        .map(|location| meta::name(&location.metadata).to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut names = names.into_iter();
    let location = LocationReference { name: names.next()?, namespace: None };
    Some(Resolved { location, others: names.collect() })
}

/// The cities that a project is offered, and those that it would be if something were not in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// By city in lower case.
    cities: BTreeMap<String, Offer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Offer {
    /// In this spelling.
    Available(String),
    Unavailable(Unavailable),
}

/// Why a city is not offered to a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Nothing offers it.
    NotOffered,
    /// It is offered by a binding that is not available.
    NotAvailable {
        /// The binding.
        binding: String,
        /// What the binding says about it; empty if nothing.
        message: String,
    },
}

impl Unavailable {
    /// What is wrong with the city, for people.
    pub fn explain(&self, city: &str) -> String {
        match self {
            Self::NotOffered => format!("city {city} is not offered to this project"),
            Self::NotAvailable { message, .. } if message.is_empty() => {
                format!("city {city} is not available to this project")
            }
            Self::NotAvailable { message, .. } => {
                format!("city {city} is not available to this project: {message}")
            }
        }
    }
}

impl Offered {
    /// What the bindings of a project offer: a city counts if one of them is available. Of several spellings
    /// that of the lowest name is taken.
    pub fn of<'a>(bindings: impl IntoIterator<Item = &'a LocationBinding>) -> Self {
        let mut sorted: Vec<_> = bindings.into_iter().collect();
        sorted.sort_by_key(|binding| meta::name(&binding.metadata));
        let mut cities: BTreeMap<String, Offer> = BTreeMap::new();
        for binding in sorted {
            let Some(city) = binding.spec.city_code().filter(|city| !city.is_empty()) else { continue };
            let offer = offer_of(binding, city);
            let held = cities.entry(city.to_ascii_lowercase()).or_insert_with(|| offer.clone());
            if matches!((&held, &offer), (Offer::Unavailable(_), Offer::Available(_))) {
                *held = offer;
            }
        }
        Self { cities }
    }

    /// The city in the spelling of whoever offers it, or why it is not offered.
    ///
    /// # Errors
    ///
    /// If the city is not offered.
    pub fn find(&self, city: &str) -> Result<&str, Unavailable> {
        match self.cities.get(&city.to_ascii_lowercase()) {
            Some(Offer::Available(spelling)) => Ok(spelling),
            Some(Offer::Unavailable(why)) => Err(why.clone()),
            None => Err(Unavailable::NotOffered),
        }
    }

    /// The cities that are offered.
    pub fn cities(&self) -> impl Iterator<Item = &str> {
        self.cities.values().filter_map(|offer| match offer {
            Offer::Available(spelling) => Some(spelling.as_str()),
            Offer::Unavailable(_) => None,
        })
    }
}

fn offer_of(binding: &LocationBinding, city: &str) -> Offer {
    let conditions = binding.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let leaving = meta::is_being_deleted(&binding.metadata);
    if !leaving && conditions::is_true(conditions, CONDITION_AVAILABLE) {
        return Offer::Available(city.to_owned());
    }
    let said = conditions::find(conditions, CONDITION_AVAILABLE).filter(|_| !leaving);
    Offer::Unavailable(Unavailable::NotAvailable {
        binding: meta::name(&binding.metadata).to_owned(),
        message: said.map(|condition| condition.message.clone()).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;
