//! Where instances run and how many.

use super::{containers::leak, *};

const LABEL: &str =
    "must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends";
const CITY: &str =
    "must be the code of a city: at most 63 letters, digits and '-', with a letter or digit at both ends";

#[test]
fn names() {
    each(
        &good(),
        &[
            (
                "/spec/placements",
                Value::Null,
                "spec.placements",
                "Required value: at least one placement is needed",
            ),
            (
                "/spec/placements",
                json!([]),
                "spec.placements",
                "Required value: at least one placement is needed",
            ),
            (
                "/spec/placements/1/name",
                json!(""),
                "spec.placements[1].name",
                "Required value: a placement needs a name",
            ),
            (
                "/spec/placements/1/name",
                json!("Europe"),
                "spec.placements[1].name",
                leak(format!("Invalid value: \"Europe\": {LABEL}")),
            ),
            (
                "/spec/placements/1/name",
                json!("a.b"),
                "spec.placements[1].name",
                leak(format!("Invalid value: \"a.b\": {LABEL}")),
            ),
            (
                "/spec/placements/1/name",
                json!("america"),
                "spec.placements[1].name",
                "Duplicate value: \"america\": each placement needs a name of its own",
            ),
        ],
    );
}

#[test]
fn cities() {
    let path = "spec.placements[0].cityCodes[1]";
    let pointer = "/spec/placements/0/cityCodes/1";
    each(
        &good(),
        &[
            (
                "/spec/placements/0/cityCodes",
                Value::Null,
                "spec.placements[0].cityCodes",
                "Required value: at least one city is needed",
            ),
            (
                "/spec/placements/0/cityCodes",
                json!([]),
                "spec.placements[0].cityCodes",
                "Required value: at least one city is needed",
            ),
            (pointer, json!(""), path, "Required value: name the city, such as DFW"),
            (pointer, json!("D F W"), path, leak(format!("Invalid value: \"D F W\": {CITY}"))),
            (pointer, json!("-DFW"), path, leak(format!("Invalid value: \"-DFW\": {CITY}"))),
            (pointer, json!("MÜN"), path, leak(format!("Invalid value: \"MÜN\": {CITY}"))),
            (
                pointer,
                json!("DFW"),
                path,
                "Duplicate value: \"DFW\": a placement names each city once; upper and lower case are the same",
            ),
            (
                pointer,
                json!("dfw"),
                path,
                "Duplicate value: \"dfw\": a placement names each city once; upper and lower case are the same",
            ),
            (
                pointer,
                json!("XYZ"),
                path,
                "Unsupported value: \"XYZ\": city XYZ is not offered to this project; offered are DFW, IAD, LHR",
            ),
        ],
    );
}

#[test]
fn cities_that_something_is_in_the_way_of() {
    let Opened::Case(case) = open(&good(), None, "default") else { panic!("not a case") };
    let mut facts = facts(&case.needs());
    facts.offered = Some(offered(&[]));
    let found: Vec<_> = case.judge(&facts).iter().map(FieldError::message).collect();
    assert_eq!(
        found[0],
        "Unsupported value: \"DFW\": city DFW is not offered to this project; no city is offered to it"
    );
    assert_eq!(found.len(), 3);
    let mut binding = LocationBinding::new("dfw", LocationBindingSpec::default());
    binding.spec.topology = [(TOPOLOGY_CITY_CODE.to_owned(), "DFW".to_owned())].into();
    binding.status = Some(
        serde_json::from_value(json!({ "conditions": [crate::fixtures::condition(
            "Available", compute_api::conditions::Status::False, "LocationNotReady", "Location dfw is not ready",
        )] }))
        .unwrap(),
    );
    facts.offered = Some(Offered::of(&[binding]));
    let found = case.judge(&facts);
    assert_eq!(
        found[0].message(),
        "Unsupported value: \"DFW\": city DFW is not available to this project: Location dfw is not ready; no city is offered to it"
    );
}

#[test]
fn numbers() {
    let of = |field: &str| leak(format!("spec.placements[0].scaleSettings.{field}"));
    let at = |field: &str| leak(format!("/spec/placements/0/scaleSettings/{field}"));
    each(
        &good(),
        &[
            (
                at("minReplicas"),
                json!(-1),
                of("minReplicas"),
                "Invalid value: -1: must be between 0 and 1000",
            ),
            (
                at("maxReplicas"),
                json!(0),
                of("maxReplicas"),
                "Invalid value: 0: must be at least minReplicas, which is 1",
            ),
            (
                at("maxReplicas"),
                json!(-5),
                of("maxReplicas"),
                "Invalid value: -5: must be at least minReplicas, which is 1",
            ),
            (at("maxReplicas"), json!(1001), of("maxReplicas"), "Invalid value: 1001: must be at most 1000"),
            (
                at("maxReplicas"),
                Value::Null,
                of("maxReplicas"),
                "Required value: with metrics, say how many instances there may be at most",
            ),
            (
                at("instanceManagementPolicy"),
                json!("orderedready"),
                of("instanceManagementPolicy"),
                "Unsupported value: \"orderedready\": supported values: \"OrderedReady\", \"Parallel\"",
            ),
            (
                at("instanceManagementPolicy"),
                json!(""),
                of("instanceManagementPolicy"),
                "Unsupported value: \"\": supported values: \"OrderedReady\", \"Parallel\"",
            ),
        ],
    );
    let bad = with(good(), "/spec/placements/1/scaleSettings/minReplicas", &json!(1001));
    let expected = [(
        "spec.placements[1].scaleSettings.minReplicas".to_owned(),
        "Invalid value: 1001: must be between 0 and 1000".to_owned(),
    )];
    assert_eq!(faults(&bad, None), expected);
    // Each is wrong by itself.
    let mut bad = good();
    set(&mut bad, at("minReplicas"), &json!(2000));
    let found = faults(&bad, None);
    assert_eq!(found[0].1, "Invalid value: 2000: must be between 0 and 1000");
    assert_eq!(found[1].1, "Invalid value: 5: must be at least minReplicas, which is 2000");
}

#[test]
fn metrics() {
    let of = |rest: &str| leak(format!("spec.placements[0].scaleSettings.metrics[0].resource{rest}"));
    let at = |rest: &str| leak(format!("/spec/placements/0/scaleSettings/metrics/0/resource{rest}"));
    let which = "Required value: say which resource is measured: cpu or memory";
    each(
        &good(),
        &[
            (at(""), Value::Null, of(""), which),
            (at("/name"), json!(""), of(".name"), which),
            (
                at("/name"),
                json!("disk"),
                of(".name"),
                "Unsupported value: \"disk\": supported values: \"cpu\", \"memory\"",
            ),
            (
                at("/target/value"),
                json!("1"),
                of(".target"),
                "Forbidden: only one of value, averageValue and averageUtilization may be set",
            ),
            (
                at("/target"),
                json!({ "value": 1, "averageValue": 1 }),
                of(".target"),
                "Forbidden: only one of value, averageValue and averageUtilization may be set",
            ),
            (
                at("/target"),
                json!({ "value": "much" }),
                of(".target.value"),
                "Invalid value: \"much\": \"much\" is not a quantity such as 2, 500m or 2Gi",
            ),
            (
                at("/target"),
                json!({ "averageValue": "-1" }),
                of(".target.averageValue"),
                "Invalid value: \"-1\": must not be negative",
            ),
            (
                at("/target/averageUtilization"),
                json!(0),
                of(".target.averageUtilization"),
                "Invalid value: 0: must be at least 1 (percent)",
            ),
        ],
    );
}
