//! Counting and limiting, with times made up here.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn key(object: &str, message: &str) -> Arc<Key> {
    let object = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        namespace: Some("default".into()),
        name: Some(object.into()),
        uid: Some(format!("uid-{object}")),
        ..ObjectReference::default()
    };
    Key::new("plane".into(), object, Notice::normal("Started", message))
}

fn correlator(burst: u32, remembered: usize) -> Correlator {
    Correlator::new(&Limits { burst, remembered, refill: Duration::from_secs(10), ..Limits::default() })
}

#[test]
fn what_is_told_while_a_write_is_queued_goes_with_it() {
    let mut correlator = correlator(10, 10);
    let key = key("a", "up");
    assert_eq!(correlator.told(&key, at(0)), Decision::Queue);
    assert_eq!(correlator.told(&key, at(3)), Decision::Merged);
    let occurrence = correlator.begin(&key).unwrap();
    assert_eq!(occurrence, Occurrence { written: 0, pending: 2, first: at(0), last: at(3) });

    // Told again during the write, it is a write of its own, from the count that the server then has.
    assert_eq!(correlator.told(&key, at(5)), Decision::Queue);
    correlator.written(&key, 2);
    let occurrence = correlator.begin(&key).unwrap();
    assert_eq!(occurrence, Occurrence { written: 2, pending: 1, first: at(5), last: at(5) });
}

#[test]
fn a_failed_write_is_made_up_for_by_the_next() {
    let mut correlator = correlator(10, 10);
    let key = key("a", "up");
    correlator.told(&key, at(0));
    let lost = correlator.begin(&key).unwrap();
    correlator.failed(&key, lost);
    correlator.told(&key, at(4));
    let occurrence = correlator.begin(&key).unwrap();
    assert_eq!(occurrence, Occurrence { written: 0, pending: 2, first: at(0), last: at(4) });
}

#[test]
fn an_object_has_a_budget_that_fills_again() {
    let mut correlator = correlator(2, 10);
    let mut decide = |object: &str, message: &str, second| {
        let key = key(object, message);
        let decision = correlator.told(&key, at(second));
        if decision == Decision::Queue {
            correlator.begin(&key);
        }
        decision
    };
    assert_eq!(decide("a", "1", 0), Decision::Queue);
    assert_eq!(decide("a", "2", 0), Decision::Queue);
    assert_eq!(decide("a", "3", 0), Decision::Limited);
    assert_eq!(decide("b", "1", 0), Decision::Queue, "another object has its own");
    assert_eq!(decide("a", "3", 9), Decision::Limited);
    assert_eq!(decide("a", "3", 10), Decision::Queue);
    assert_eq!(decide("a", "3", 5), Decision::Limited, "a clock that goes back fills nothing");
    assert_eq!(decide("a", "3", 1_000), Decision::Queue);
    assert_eq!(decide("a", "4", 1_000), Decision::Queue);
    assert_eq!(decide("a", "5", 1_000), Decision::Limited, "a long rest fills no more than the burst");
}

#[test]
fn what_was_limited_is_counted_by_the_next_write() {
    let mut correlator = correlator(1, 10);
    let key = key("a", "up");
    assert_eq!(correlator.told(&key, at(0)), Decision::Queue);
    correlator.begin(&key).unwrap();
    correlator.written(&key, 1);
    assert_eq!(correlator.told(&key, at(1)), Decision::Limited);
    assert_eq!(correlator.told(&key, at(2)), Decision::Limited);
    assert_eq!(correlator.told(&key, at(20)), Decision::Queue);
    let occurrence = correlator.begin(&key).unwrap();
    assert_eq!(occurrence, Occurrence { written: 1, pending: 3, first: at(1), last: at(20) });
}

#[test]
fn the_least_used_is_forgotten() {
    let mut correlator = correlator(10, 2);
    let (a, b, c) = (key("a", "up"), key("b", "up"), key("c", "up"));
    correlator.told(&a, at(0));
    correlator.told(&b, at(0));
    correlator.told(&a, at(0));
    correlator.told(&c, at(0));
    assert!(correlator.begin(&b).is_none());
    assert_eq!(correlator.begin(&a).unwrap().pending, 2);
    assert!(correlator.begin(&c).is_some());
}

#[test]
fn names_are_stable_tell_apart_and_fit() {
    let name = key("web-0", "up").event_name();
    assert_eq!(name, key("web-0", "up").event_name());
    assert_ne!(name, key("web-0", "down").event_name());
    assert!(name.starts_with("web-0."), "{name}");
    let long = key(&"x".repeat(253), "up").event_name();
    assert_eq!(long.len(), MAX_NAME);
    let cut = key("a", &"é".repeat(1_000));
    assert_eq!(cut.notice.message.len(), MAX_MESSAGE);
}
