//! Times move with the status only, and every reason is listed.

use std::collections::BTreeSet;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn say(status: Status, reason: &str) -> Update {
    Update::new(AVAILABLE, status, reason, "message")
}

#[test]
fn the_time_moves_only_with_the_status() {
    let mut conditions = Vec::new();
    assert!(set(&mut conditions, say(Status::Unknown, PENDING), at(1)));
    assert!(set(&mut conditions, say(Status::Unknown, STARTING), at(2)));
    assert_eq!(conditions[0].last_transition_time, Time(at(1)));
    assert_eq!(conditions[0].reason, STARTING);
    assert!(set(&mut conditions, say(Status::True, INSTANCE_AVAILABLE), at(3)));
    assert_eq!(conditions[0].last_transition_time, Time(at(3)));
    assert!(set(&mut conditions, say(Status::True, INSTANCE_AVAILABLE).of_generation(Some(2)), at(4)));
    assert_eq!(conditions[0].last_transition_time, Time(at(3)));
    assert_eq!(conditions[0].observed_generation, Some(2));
}

#[test]
fn saying_the_same_again_changes_nothing() {
    let mut conditions = Vec::new();
    set(&mut conditions, say(Status::True, INSTANCE_AVAILABLE), at(1));
    let before = conditions.clone();
    assert!(!set(&mut conditions, say(Status::True, INSTANCE_AVAILABLE), at(9)));
    assert_eq!(conditions, before);
}

#[test]
fn a_condition_keeps_its_place() {
    let mut conditions = Vec::new();
    for type_ in [PROGRAMMED, AVAILABLE, READY] {
        set(&mut conditions, Update::new(type_, Status::Unknown, PENDING, ""), at(1));
    }
    set(&mut conditions, say(Status::True, INSTANCE_AVAILABLE), at(2));
    let types: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, [PROGRAMMED, AVAILABLE, READY]);
    assert!(
        is_true(&conditions, AVAILABLE)
            && !is_true(&conditions, READY)
            && !is_true(&conditions, QUOTA_GRANTED)
    );
    assert_eq!(status_of(&conditions, QUOTA_GRANTED), Status::Unknown);
    assert!(remove(&mut conditions, AVAILABLE) && !remove(&mut conditions, AVAILABLE));
    assert_eq!(find(&conditions, AVAILABLE), None);
    assert_eq!(conditions.len(), 2);
}

#[test]
fn every_odd_entry_of_a_type_is_removed() {
    let entry = next(None, Update::new(RUNNING_RETIRED, Status::True, PENDING, ""), at(1));
    let mut conditions = vec![entry.clone(), entry];
    assert!(remove(&mut conditions, RUNNING_RETIRED));
    assert!(conditions.is_empty());
}

#[test]
fn a_status_that_is_none_says_nothing() {
    let mut condition = next(None, say(Status::True, PENDING), at(1));
    condition.status = "true".to_owned();
    assert_eq!(Status::of(&condition), Status::Unknown);
}

#[test]
fn reasons_are_words_and_listed_once() {
    let unique: BTreeSet<_> = ALL_REASONS.into_iter().collect();
    assert_eq!(unique.len(), ALL_REASONS.len());
    for reason in ALL_REASONS {
        assert!(reason.starts_with(|c: char| c.is_ascii_uppercase()), "{reason}");
        assert!(reason.chars().all(|c| c.is_ascii_alphanumeric()), "{reason}");
    }
}

#[test]
fn the_list_has_every_constant() {
    let source = include_str!("reasons.rs");
    let constants =
        source.lines().filter(|line| line.starts_with("pub const ") && line.contains(": &str")).count();
    assert_eq!(constants, ALL_REASONS.len());
}
