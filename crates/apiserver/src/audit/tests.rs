//! The file: rotation, modes, losses, and what an event looks like.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::event::ObjectRef;
use super::{Event, FileSink, Outcome, Rotation, Sink as _, Stage};
use crate::auth::Identity;

fn event(number: u64) -> Event {
    let mut event = Event::new(format!("id-{number}"), Timestamp::from_second(1_800_000_000).unwrap());
    event.uri = "/api/v1/namespaces/a/secrets/b?x=y".to_owned();
    event.verb = "get".to_owned();
    event
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_event_has_the_shape_that_tools_read() {
    let mut event = event(1);
    event.stage = Stage::ResponseStarted;
    event.user = Identity::user("ann").in_group("g");
    event.sources = vec!["127.0.0.1".to_owned()];
    event.user_agent = "kubectl/v1".to_owned();
    event.object_ref = Some(ObjectRef {
        resource: "secrets".to_owned(),
        namespace: "a".to_owned(),
        name: "b".to_owned(),
        api_version: "v1".to_owned(),
        ..ObjectRef::default()
    });
    event.response_status = Some(Outcome { code: 200, ..Outcome::default() });
    event.at = Timestamp::from_microsecond(1_800_000_000_001_500).unwrap();
    event.set_plane("p");
    assert_eq!(event.plane(), "p");
    assert_eq!(
        serde_json::to_value(&event).unwrap(),
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": "id-1", "stage": "ResponseStarted",
            "requestURI": "/api/v1/namespaces/a/secrets/b?x=y", "verb": "get",
            "user": { "username": "ann", "groups": ["g"] },
            "sourceIPs": ["127.0.0.1"], "userAgent": "kubectl/v1",
            "objectRef": { "resource": "secrets", "namespace": "a", "name": "b", "apiVersion": "v1" },
            "responseStatus": { "code": 200 },
            "requestReceivedTimestamp": "2027-01-15T08:00:00.000000Z",
            "stageTimestamp": "2027-01-15T08:00:00.001500Z",
            "annotations": { "control-plane/name": "p" },
        })
    );
}

#[test]
fn what_is_recorded_is_written_and_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    for round in 0..2 {
        let sink = FileSink::open(&path, Rotation::default()).unwrap();
        (0..100).for_each(|number| sink.record(event(round * 100 + number)));
        drop(sink);
    }
    let ids: Vec<_> = lines(&path).iter().map(|line| line["auditID"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..200).map(|number| format!("id-{number}")).collect::<Vec<_>>());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(FileSink::open(&dir.path().join("none/audit.log"), Rotation::default()).is_err());
}

#[test]
fn files_are_put_aside_before_they_are_too_large() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let aside = |number: u32| dir.path().join(format!("audit.log.{number}"));
    let line = serde_json::to_vec(&event(100)).unwrap().len() as u64 + 1;
    let rotation = Rotation { bytes: 3 * line, keep: 2 };
    let sink = FileSink::open(&path, rotation).unwrap();
    (100..120).for_each(|number| sink.record(event(number)));
    drop(sink);
    let found: Vec<usize> =
        [path.clone(), aside(1), aside(2), aside(3)].map(|path| lines(&path).len()).into();
    assert_eq!(found, [2, 3, 3, 0]);
    assert_eq!(lines(&path)[1]["auditID"], "id-119");
    assert_eq!(lines(&aside(2))[0]["auditID"], "id-112");
    for path in [path, aside(1), aside(2)] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn losses_are_counted_and_told() {
    const ALL: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    // With next to no buffer, the writer cannot keep up.
    let sink = FileSink::open_with(&path, Rotation::default(), 1).unwrap();
    (0..ALL).for_each(|number| sink.record(event(number)));
    drop(sink);
    let lines = lines(&path);
    let lost =
        |line: &Value| line["annotations"]["audit/lost-events"].as_str().map(|n| n.parse::<u64>().unwrap());
    let told: u64 = lines.iter().filter_map(lost).sum();
    let written = lines.iter().filter(|line| lost(line).is_none()).count() as u64;
    assert!(told > 0);
    assert_eq!(told + written, ALL);
}
