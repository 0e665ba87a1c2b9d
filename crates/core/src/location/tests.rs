//! Cities are found in any spelling and in any order of input.

use compute_api::{
    conditions::Status,
    labels::TOPOLOGY_CITY_CODE,
    networking::{LocationBindingSpec, LocationBindingStatus, LocationSpec},
};
use proptest::prelude::*;

use super::*;
use crate::fixtures::{condition, leaving, stored};

fn location(name: &str, city: &str) -> Location {
    let spec = LocationSpec { topology: meta::map([(TOPOLOGY_CITY_CODE, city)]), ..LocationSpec::default() };
    Location { metadata: stored("", name, name), spec, status: None }
}

fn binding(name: &str, city: &str, available: Status, message: &str) -> LocationBinding {
    let topology = meta::map([(TOPOLOGY_CITY_CODE, city)]);
    LocationBinding {
        metadata: stored("", name, name),
        spec: LocationBindingSpec { topology, ..LocationBindingSpec::default() },
        status: Some(LocationBindingStatus {
            conditions: vec![condition(CONDITION_AVAILABLE, available, "Reason", message)],
        }),
    }
}

#[test]
fn the_lowest_name_wins_and_the_others_are_told() {
    let all =
        [location("b", "DFW"), location("a", "dfw"), location("c", "IAD"), leaving(location("0", "DFW"))];
    let resolved = resolve("DFW", &all).unwrap();
    assert_eq!((resolved.location.name.as_str(), resolved.others), ("a", vec!["b".to_owned()]));
    assert_eq!(resolve("LHR", &all), None);
    assert_eq!(resolve("IAD", &all).unwrap().others, Vec::<String>::new());
}

#[test]
fn a_city_is_offered_by_one_available_binding() {
    let all = [
        binding("b", "DFW", Status::True, ""),
        binding("a", "dfw", Status::False, "no"),
        binding("c", "IAD", Status::Unknown, "wait"),
        leaving(binding("d", "LHR", Status::True, "fine")),
        LocationBinding::default(),
    ];
    let offered = Offered::of(&all);
    assert_eq!(offered.find("dfw"), Ok("DFW"));
    let message = |city| offered.find(city).unwrap_err().explain(city);
    assert_eq!(message("iad"), "city iad is not available to this project: wait");
    assert_eq!(message("LHR"), "city LHR is not available to this project");
    assert_eq!(message("AMS"), "city AMS is not offered to this project");
    assert_eq!(offered.cities().collect::<Vec<_>>(), ["DFW"]);
}

proptest! {
    #[test]
    fn order_does_not_matter(
        all in prop::collection::vec(("[a-c]", "(dfw|DFW|iad)", any::<bool>()), 0..6)
    ) {
        let mut bindings: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(i, (name, city, yes))| binding(&format!("{name}{i}"), city, Status::from(*yes), ""))
            .collect();
        let forward = Offered::of(&bindings);
        bindings.reverse();
        prop_assert_eq!(forward, Offered::of(&bindings));
    }
}
