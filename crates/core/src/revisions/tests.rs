//! Numbers are given once, nothing that was found is lost, and old revisions make room.

use compute_api::k8s::ObjectMeta;
use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn spec(image: &str) -> Value {
    json!({
        "template": { "spec": { "runtime": { "sandbox": { "containers": [{ "name": "a", "image": image }] } } } },
        "placements": [],
    })
}

fn revision(number: i64, image: &str) -> Revision {
    Revision {
        number,
        at: at(number),
        by: Some("ann".to_owned()),
        action: Some("deploy".to_owned()),
        changes: vec!["image a → b".to_owned()],
        template_hash: "v1-x".to_owned(),
        spec: spec(image),
    }
}

fn workload(image: &str, current: Option<&str>) -> (Workload, Value) {
    let spec = spec(image);
    let annotations =
        current.map(|number| BTreeMap::from([(CURRENT_REVISION.to_owned(), number.to_owned())]));
    let metadata = ObjectMeta { annotations, ..ObjectMeta::default() };
    let typed = serde_json::from_value(spec.clone()).unwrap();
    (Workload { metadata, spec: typed, status: None }, spec)
}

fn history(revisions: impl IntoIterator<Item = Revision>) -> History {
    let mut history = History::default();
    history.add(revisions);
    history
}

#[test]
fn what_is_written_is_read_again() {
    let one = history([revision(1, "a"), revision(2, "b")]);
    let mut data = one.write();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["revision.1", "revision.2"]);
    data.insert("revision.3".to_owned(), "{".to_owned());
    data.insert("note".to_owned(), "{}".to_owned());
    assert_eq!(History::read(&data), one);
}

#[test]
fn twenty_are_kept() {
    let many = history((1..=30).map(|number| revision(number, "a")));
    let numbers: Vec<_> = many.revisions().map(|revision| revision.number).collect();
    assert_eq!(numbers, (11..=30).collect::<Vec<_>>());
}

#[test]
fn large_ones_make_room_and_the_newest_stays() {
    let large = "x".repeat(500 * 1024);
    let many = history((1..=3).map(|number| revision(number, &large)));
    assert_eq!(many.write().keys().collect::<Vec<_>>(), ["revision.3"]);
    let huge = "x".repeat(2 * MAX_BYTES);
    assert_eq!(history([revision(7, &huge)]).write().len(), 1);
}

#[test]
fn numbers_go_on() {
    let new = next(&History::default(), None, at(9));
    assert_eq!(new, Next { found: None, number: 1 });
    let (stored, json) = workload("b", Some("2"));
    let known = history([revision(1, "a"), revision(2, "b")]);
    assert_eq!(next(&known, Some((&stored, &json)), at(9)), Next { found: None, number: 3 });
}

#[test]
fn what_another_tool_wrote_is_found() {
    // Never written by us.
    let (stored, json) = workload("a", None);
    let first = next(&History::default(), Some((&stored, &json)), at(9));
    assert_eq!((first.found.as_ref().unwrap().number, first.number), (1, 2));
    // Edited after our second revision.
    let (stored, json) = workload("c", Some("2"));
    let known = history([revision(1, "a"), revision(2, "b")]);
    let edited = next(&known, Some((&stored, &json)), at(9));
    let found = edited.found.unwrap();
    assert_eq!((found.number, edited.number, found.by.clone()), (3, 4, None));
    assert_eq!(found.changes, ["image b → c"]);
}

#[test]
fn a_writer_that_died_before_writing_it_down_leaves_its_number() {
    let (stored, json) = workload("c", Some("3"));
    let known = history([revision(1, "a"), revision(2, "b")]);
    let after = next(&known, Some((&stored, &json)), at(9));
    assert_eq!((after.found.unwrap().number, after.number), (3, 4));
}

#[test]
fn one_goes_back_to_what_was_different() {
    let mut again = revision(3, "b");
    again.action = Some("restart".to_owned());
    let known = history([revision(1, "a"), revision(2, "b"), again]);
    let now = known.get(3).unwrap().workload_spec().unwrap();
    assert_eq!(known.last_other(&now).unwrap().number, 1);
    assert_eq!(known.before(3).unwrap().number, 2);
    assert_eq!(known.before(1), None);
    assert_eq!(history([revision(3, "b")]).last_other(&now), None);
}

#[test]
fn a_number_that_is_none_counts_for_nothing() {
    for odd in ["", "x", "-1", "0"] {
        assert_eq!(current(&workload("a", Some(odd)).0), None, "{odd}");
    }
}

#[test]
fn what_its_writer_wrote_down_is_not_replaced_by_what_another_found() {
    let found = Revision { by: None, action: None, ..revision(1, "a") };
    // Whoever comes first, the writer's own word stays.
    let mut late = history([found.clone(), revision(2, "b")]);
    late.add([revision(1, "a")]);
    let mut early = history([revision(1, "a")]);
    early.add([found.clone(), revision(2, "b")]);
    assert_eq!(late, early);
    assert_eq!(early.get(1), Some(&revision(1, "a")));
    assert_eq!(history([found.clone()]).get(1), Some(&found));
}
