//! Errors: each says what, where, why, and what next.

use kube::core::Status;

use super::*;
use crate::commands::errors_for_tests;
use crate::failure::{Failure, Silence, from_kube};
use crate::fetch;
use crate::model::fixtures::web;
use crate::model::workload;
use crate::render;
use crate::session::not_requested;

fn shot(name: &str, failure: &Failure) {
    assert!(!failure.what.is_empty(), "{name} says nothing");
    shots(&format!("error.{name}"), |look| {
        let place = if name.starts_with("usage-") { "on the command line" } else { "project demo" };
        render::failure::render(failure, Some(place), &invocation(), look)
    });
}

#[test]
fn answers_of_a_server() {
    let status = |code: u16, message: &str| {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        from_kube("cannot read the workloads", &kube::Error::Api(Box::new(status)))
    };
    shot("signed-out", &status(401, "Unauthorized"));
    shot(
        "forbidden",
        &status(
            403,
            "workloads.compute.datumapis.com is forbidden: User \"bob\" cannot list resource \"workloads\"",
        ),
    );
    shot("conflict", &status(409, "conflict"));
    let unreadable = serde_json::from_str::<i32>("x").unwrap_err();
    shot("not-ours", &from_kube("cannot read the workloads", &kube::Error::SerdeError(unreadable)));
    shot("not-served", &status(404, "the server could not find the requested resource"));
    let credentials = kube::client::AuthError::AuthExec("token: secret".to_owned());
    shot("no-credentials", &from_kube("cannot reach the project", &kube::Error::Auth(credentials)));
    let (written, _, _) = web(&degraded(), BAD);
    let mut now = written.clone();
    now.metadata.generation = now.metadata.generation.map(|number| number + 1);
    shot("overtaken-later", &crate::commands::overtaken("web", &written, &now).unwrap());
    now.metadata.uid = Some("another".to_owned());
    shot("replaced", &crate::commands::overtaken("web", &written, &now).unwrap());
    shot("gone", &status(410, "the version that was asked for is too old"));
    let invalid: Status = serde_json::from_value(serde_json::json!({
        "code": 422, "message": "invalid", "reason": "Invalid",
        "details": { "causes": [{ "reason": "x", "field": "spec.placements[0].cityCodes[1]", "message": "Unsupported value: \"ATL\": city ATL is not offered" }] },
    }))
    .unwrap();
    shot("invalid", &from_kube("cannot deploy web", &kube::Error::Api(Box::new(invalid))));
    for (name, said) in [
        ("certificate", "invalid peer certificate: UnknownIssuer"),
        ("no-such-host", "dns error: failed to lookup address information"),
        ("too-slow", "deadline has elapsed"),
        ("unreachable", "network is unreachable"),
    ] {
        let error = kube::Error::Service(Box::new(std::io::Error::other(said)));
        shot(name, &from_kube("cannot read the workloads", &error));
    }
    shot("busy", &status(429, "too many requests"));
    shot("broken", &status(500, "see https://example.com/x?token=secret"));
    let silent = |is_write| {
        from_kube("cannot deploy web", &kube::Error::Service(Box::new(Silence { tenths: 45, is_write })))
    };
    shot("silent", &silent(false));
    shot("silent-write", &silent(true));
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    shot("refused", &from_kube("cannot read the workloads", &kube::Error::Service(Box::new(refused))));
}

#[test]
fn names_and_usage() {
    shot("not-found", &fetch::not_found("wbe", "cannot show the status of wbe", &["web".to_owned()]));
    shot("not-found-at-all", &fetch::not_found("shop", "cannot scale shop", &["x".to_owned()]));
    shot("unreadable", &fetch::unreadable("web"));
    shot("not-enabled", &not_requested());
    for (name, failure) in errors_for_tests() {
        shot(name, &failure);
    }
}

#[test]
fn rollouts_that_do_not_get_on() {
    let (stored, deployments, instances) = web(&degraded(), BAD);
    let view = workload::view(&stored, &deployments, &instances);
    let mut failure = crate::commands::not_getting_on(&view);
    failure.next = crate::model::advice::next_steps(&view, true);
    shot("stuck", &failure);
}
