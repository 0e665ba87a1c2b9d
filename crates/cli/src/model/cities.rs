//! The cities of a project.

use compute_api::compute::Instance;
use compute_api::conditions as c;
use compute_api::labels;
use compute_api::networking::{CONDITION_AVAILABLE, LocationBinding};
use compute_core::{location, meta};
use serde::Serialize;

use crate::words;

/// A city.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferedCity {
    /// Its code.
    pub(crate) city: String,
    /// A name for people.
    pub(crate) name: String,
    /// Whether the project can use it.
    pub(crate) available: bool,
    /// How it is, in a few words.
    pub(crate) status: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Instances of this namespace there.
    pub(crate) instances: usize,
}

/// The cities that a project has, by code.
pub(crate) fn views(bindings: &[LocationBinding], instances: &[Instance]) -> Vec<OfferedCity> {
    let offered = location::Offered::of(bindings);
    let mut views: Vec<OfferedCity> = Vec::new();
    for binding in bindings {
        let Some(city) = binding.spec.city_code() else { continue };
        if views.iter().any(|known| location::same_city(&known.city, city)) {
            continue;
        }
        let conditions = binding.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let said = c::find(conditions, CONDITION_AVAILABLE);
        let available = offered.find(city).is_ok();
        let here = instances.iter().filter(|instance| {
            meta::label(&instance.metadata, labels::CITY_CODE)
                .is_some_and(|code| location::same_city(code, city))
        });
        views.push(OfferedCity {
            city: city.to_owned(),
            name: binding.spec.display_name.clone().unwrap_or_default(),
            available,
            status: match available {
                true => "Available".to_owned(),
                false => {
                    let short = said
                        .map_or_else(|| "not processed yet".to_owned(), |said| words::of(&said.reason).short);
                    format!("Unavailable ({short})")
                }
            },
            message: said
                .filter(|_| !available)
                .map(|said| said.message.clone())
                .filter(|text| !text.is_empty()),
            instances: here.count(),
        });
    }
    views.sort_by(|a, b| a.city.cmp(&b.city));
    views
}
