use compute_api::compute::LocationReference;

use super::*;
use crate::fixtures::{at, deployment, instance, leaving, ready};

fn started() -> Instance {
    let mut started = instance(&deployment(1), 0);
    started.spec.controller.as_mut().unwrap().scheduling_gates.clear();
    started
}

fn trouble(trouble: Trouble) -> Observation {
    Observation::of(State::Trouble(trouble))
}

fn said(report: &InstanceStatus) -> Vec<(&str, &str, &str)> {
    report.conditions.iter().map(|one| (&*one.type_, &*one.status, &*one.reason)).collect()
}

/// The instance after a report was applied.
fn with(mut instance: Instance, report: &InstanceStatus) -> Instance {
    let stored = instance.status.get_or_insert_default();
    for condition in &report.conditions {
        c::remove(&mut stored.conditions, &condition.type_);
        stored.conditions.push(condition.clone());
    }
    (stored.network_interfaces, stored.controller) =
        (report.network_interfaces.clone(), report.controller.clone());
    instance
}

fn every_state() -> Vec<State> {
    let image = |why| Trouble::ImageUnavailable { image: "app:1".to_owned(), why };
    vec![
        State::Preparing,
        State::Starting,
        State::Running,
        State::Stopping,
        State::Stopped,
        State::Trouble(image(ImageFault::NotFound)),
        State::Trouble(Trouble::Crashing { exit_code: Some(1) }),
        State::Trouble(Trouble::Configuration("no key".to_owned())),
        State::Trouble(Trouble::Provisioning("0xdead: overlayfs".to_owned())),
    ]
}

#[test]
fn a_state_has_its_reasons() {
    let reported = |state| report(&started(), &Observation::of(state), None, at(5));
    let expect = |state, programmed: (&str, &str), available: (&str, &str)| {
        let found = reported(state);
        assert_eq!(
            said(&found),
            [("Programmed", programmed.0, programmed.1), ("Available", available.0, available.1)]
        );
    };
    expect(State::Preparing, ("False", "ProgrammingInProgress"), ("False", "Starting"));
    expect(State::Starting, ("True", "Programmed"), ("False", "Starting"));
    expect(State::Running, ("True", "Programmed"), ("True", "Available"));
    expect(State::Stopping, ("False", "PendingProgramming"), ("False", "Stopping"));
    expect(State::Stopped, ("True", "Programmed"), ("False", "Stopped"));
    let crashing = Trouble::Crashing { exit_code: None };
    expect(State::Trouble(crashing), ("True", "Programmed"), ("False", "InstanceCrashing"));
    let unknown = Trouble::Provisioning("x".to_owned());
    expect(State::Trouble(unknown), ("False", "Provisioning"), ("False", "Provisioning"));
}

#[test]
fn the_words_of_a_runtime_stay_inside() {
    let found = report(&started(), &trouble(Trouble::Provisioning("0xdead".to_owned())), None, at(5));
    assert!(found.conditions.iter().all(|one| !one.message.contains("0xdead")));
    let image = Trouble::ImageUnavailable { image: "app:1".to_owned(), why: ImageFault::NotFound };
    let found = report(&started(), &trouble(image), None, at(5));
    assert!(found.conditions.iter().all(|one| one.message.contains("app:1")));
}

#[test]
fn reporting_again_changes_nothing_whatever_the_state() {
    for state in every_state() {
        let seen = Observation {
            state,
            addresses: vec![InterfaceAssignments {
                network_ip: Some("10.0.0.1".to_owned()),
                external_ip: None,
            }],
        };
        let first = report(&started(), &seen, Some("simulated"), at(5));
        assert!(differs(&started(), &first));
        let after = with(started(), &first);
        let again = report(&after, &seen, Some("simulated"), at(6));
        assert!(!differs(&after, &again), "{seen:?}");
        assert_eq!(again.observed_template_hash(), after.spec.template_hash());
        assert!(again.conditions.iter().all(|one| one.message.contains("(simulated)")), "{again:?}");
    }
}

#[test]
fn an_instance_that_stops_keeps_what_was_said_of_its_setup() {
    let running = ready(started());
    let stopping = report(&running, &Observation::of(State::Stopping), None, at(5));
    assert_eq!(said(&stopping), [("Programmed", "True", "Programmed"), ("Available", "False", "Stopping")]);
    assert_eq!(stopping.conditions[0], *c::find(&running.status.unwrap().conditions, c::PROGRAMMED).unwrap());
}

#[test]
fn people_are_warned_once_of_each_trouble() {
    let crashing = |code| trouble(Trouble::Crashing { exit_code: Some(code) });
    let first = report(&started(), &crashing(1), None, at(5));
    assert_eq!(warning(&started(), &first).unwrap().reason, c::INSTANCE_CRASHING);
    let after = with(started(), &first);
    assert_eq!(warning(&after, &report(&after, &crashing(1), None, at(6))), None);
    assert!(warning(&after, &report(&after, &crashing(2), None, at(6))).is_some());
    for state in [State::Running, State::Trouble(Trouble::Provisioning(String::new()))] {
        assert_eq!(warning(&after, &report(&after, &Observation::of(state), None, at(6))), None);
    }
}

#[test]
fn a_provider_runs_what_nothing_holds_and_what_is_its_own() {
    let here = Locations::Only(["dfw".to_owned()].into());
    assert!(may_run(&started(), &here), "without a location it is this cell's");
    assert!(!may_run(&instance(&deployment(1), 0), &Locations::All), "gates hold");
    assert!(!may_run(&leaving(started()), &Locations::All));
    let mut placed = started();
    placed.spec.location = Some(LocationReference { name: "iad".to_owned(), namespace: None });
    assert!(!may_run(&placed, &here));
    assert!(may_run(&placed, &Locations::All));
    assert!(is_running(&ready(started())));
    assert!(!is_running(&started()));
}
