//! Cities are found in any spelling and in any order of input.

use compute_api::{
    conditions::{self, Status},
    labels::TOPOLOGY_CITY_CODE,
    milo::{ServiceEntitlement, ServiceEntitlementStatus},
    networking::{CONDITION_READY, LocationBindingSpec, LocationBindingStatus, LocationSpec, LocationStatus},
};
use proptest::prelude::*;

use super::*;
use crate::{
    fixtures::{condition, leaving, stored},
    subnets::blocks::{ADDRESSES, Blocks},
};

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

fn managed(name: &str, class: &str, ready: Option<Status>) -> Location {
    let mut made = location(name, "DFW");
    made.spec.location_class_name = class.to_owned();
    made.status = ready.map(|ready| LocationStatus {
        conditions: vec![condition(CONDITION_READY, ready, "Reason", "as it is")],
    });
    made
}

/// What a project has after the steps are taken.
fn applied(held: &[LocationBinding], steps: &[offer::Step]) -> Vec<LocationBinding> {
    let mut all: BTreeMap<String, LocationBinding> =
        held.iter().map(|binding| (meta::name(&binding.metadata).to_owned(), binding.clone())).collect();
    for step in steps {
        match step {
            offer::Step::Apply { name, spec } => {
                let binding = all.entry(name.clone()).or_default();
                binding.metadata = stored("", name, name);
                binding.metadata.labels = Some(meta::map([offer::MANAGED_BY]));
                binding.spec = spec.clone();
            }
            offer::Step::Say { name, update } => {
                let status = all.get_mut(name).unwrap().status.get_or_insert_default();
                conditions::set(&mut status.conditions, update.clone(), crate::fixtures::at(0));
            }
            offer::Step::Delete { name, uid } => {
                assert_eq!(all.remove(name).unwrap().metadata.uid.as_deref(), Some(uid.as_str()));
            }
        }
    }
    all.into_values().collect()
}

fn available(held: &[LocationBinding]) -> Vec<(String, String)> {
    let reason = |binding: &LocationBinding| {
        let status = binding.status.as_ref().unwrap();
        conditions::find(&status.conditions, CONDITION_AVAILABLE).unwrap().reason.clone()
    };
    held.iter().map(|binding| (meta::name(&binding.metadata).to_owned(), reason(binding))).collect()
}

#[test]
fn a_location_is_offered_by_three_rules() {
    let classes = [offer::DATUM_MANAGED.to_owned()];
    let decide = |entitled: bool, locations: &[Location], held: &[LocationBinding]| {
        let after = applied(held, &offer::decide(entitled, &classes, locations, held));
        assert_eq!(offer::decide(entitled, &classes, locations, &after), [], "asking again yields nothing");
        after
    };
    let pair = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
    let ready = managed("a", offer::DATUM_MANAGED, Some(Status::True));
    let closed = managed("b", offer::DATUM_MANAGED, Some(Status::False));
    let new = managed("c", offer::DATUM_MANAGED, None);
    let other = managed("d", "self-managed", Some(Status::True));
    let all = [ready.clone(), closed, new, other];
    assert_eq!(decide(false, &all, &[]), []);
    let held = decide(true, &all, &[]);
    assert_eq!(
        available(&held),
        [pair("a", "Available"), pair("b", "LocationNotReady"), pair("c", "LocationNotReady")]
    );
    assert_eq!(Offered::of(&held).find("DFW"), Ok("DFW"));
    assert_eq!(available(&decide(false, &all, &held))[0], pair("a", "NotEntitled"));
    // A class that the service does not support any more.
    let unsupported = applied(&held, &offer::decide(true, &[], &all, &held));
    assert_eq!(available(&unsupported)[0], pair("a", "LocationClassNotSupported"));
    assert_eq!(unsupported.len(), 3, "what was never offered leaves no trace");
    assert_eq!(available(&decide(true, &all, &unsupported))[0], pair("a", "Available"));
    let leaving_one = [leaving(ready.clone())];
    assert_eq!(available(&decide(true, &leaving_one, &held)), [pair("a", "LocationTerminating")]);
    assert_eq!(decide(true, &[], &held), []);
    assert_eq!(decide(false, &[], &held), []);
    // What somebody else made is theirs.
    let by_hand = binding("a", "DFW", Status::False, "no");
    assert_eq!(decide(true, &[ready], std::slice::from_ref(&by_hand)), std::slice::from_ref(&by_hand));
    assert_eq!(decide(true, &[], std::slice::from_ref(&by_hand)), [by_hand]);
}

#[test]
fn access_is_granted_once_and_in_time() {
    use std::time::Duration;

    use crate::fixtures::at;
    let mut request =
        ServiceEntitlement { metadata: stored("", "compute", "u"), ..ServiceEntitlement::default() };
    let wait = Duration::from_secs(10);
    let progress = |request: &ServiceEntitlement, offered, second| {
        let offer::Progress { say, again } = offer::progress(request, offered, wait, at(second));
        (say.map(|say| (say.status, say.reason)), again.map(|again| again.as_secs()))
    };
    let said = |status, reason: &str| Some((status, reason.to_owned()));
    assert_eq!(progress(&request, true, 4), (said(Status::Unknown, "Activating"), Some(6)));
    assert_eq!(progress(&request, true, 10), (said(Status::True, "Ready"), None));
    assert_eq!(progress(&request, false, 10), (said(Status::Unknown, "ServiceNotFound"), None));
    let now = offer::progress(&request, true, Duration::ZERO, at(0));
    assert_eq!(now.say.map(|say| say.status), Some(Status::True));
    // Said once.
    let mut told = request.clone();
    let update = offer::progress(&request, true, wait, at(4)).say.unwrap();
    conditions::set(&mut told.status.get_or_insert_default().conditions, update, at(4));
    assert_eq!(progress(&told, true, 5), (None, Some(5)));
    assert_eq!(progress(&told, true, 10), (said(Status::True, "Ready"), None));
    assert_eq!(progress(&leaving(request.clone()), true, 10), (None, None));
    assert!(!offer::is_entitled(Some(&request)) && !offer::is_entitled(None));
    for (status, entitled) in [(Status::True, true), (Status::False, false)] {
        request.status = Some(ServiceEntitlementStatus {
            conditions: vec![condition(CONDITION_READY, status, "Reason", "")],
        });
        assert_eq!(progress(&request, true, 99), (None, None), "somebody has decided");
        assert_eq!(offer::is_entitled(Some(&request)), entitled);
    }
    request.status.as_mut().unwrap().conditions[0].status = "True".to_owned();
    assert!(!offer::is_entitled(Some(&leaving(request))));
}

#[test]
fn a_cell_has_the_locations_of_its_city() {
    let here = managed("a", offer::DATUM_MANAGED, Some(Status::True));
    let block: Blocks = "10.128.0.0/16,fd64:6174:756d::/56".parse().unwrap();
    let decide = |city: &str, location: Option<&Location>, held: Option<&Location>| {
        cell::decide(city, location, held, Some(&block))
    };
    let steps = decide("dfw", Some(&here), None);
    let [cell::Step::Apply { labels, annotations, spec }, cell::Step::Say { conditions }] = &steps[..] else {
        panic!("{steps:?}")
    };
    let mut held = Location { metadata: stored("", "a", "cell-uid"), spec: spec.clone(), status: None };
    held.metadata.labels = Some(labels.clone());
    held.metadata.annotations = Some(annotations.clone());
    assert_eq!(annotations[ADDRESSES], block.to_string());
    held.status = Some(LocationStatus { conditions: conditions.clone() });
    assert_eq!(decide("dfw", Some(&here), Some(&held)), []);
    assert_eq!(cell::decide("dfw", Some(&here), Some(&held), None), [], "what it has is not taken away");
    let other = "10.129.0.0/16,fd64:6174:756d:100::/56".parse().unwrap();
    let moved = cell::decide("dfw", Some(&here), Some(&held), Some(&other));
    assert!(
        matches!(&moved[..], [cell::Step::Apply { annotations, .. }] if annotations[ADDRESSES] == other.to_string())
    );
    let delete = [cell::Step::Delete { uid: "cell-uid".to_owned() }];
    assert_eq!(decide("IAD", Some(&here), Some(&held)), delete);
    assert_eq!(decide("dfw", None, Some(&held)), delete);
    assert_eq!(decide("dfw", Some(&leaving(here.clone())), Some(&held)), delete);
    assert_eq!(decide("IAD", Some(&here), None), []);
    let own = managed("a", "other", None);
    assert_eq!(decide("dfw", Some(&here), Some(&own)), []);
    assert_eq!(decide("dfw", None, Some(&own)), []);
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
