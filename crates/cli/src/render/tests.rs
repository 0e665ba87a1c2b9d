//! Text, as people see it: every view, healthy and not, wide and narrow, with and without colour.
//!
//! The snapshots are linted, too: by default no internal kind, reason, API group or address is in them, and every error says
//! what, where, why and what next.

mod errors;
mod lint;
mod lists;
mod matrix;
mod rollouts;
mod status;

use super::Look;
use crate::invocation::Invocation;
use crate::model::fixtures::City;
use compute_api::conditions as c;

/// A file or a pipe.
const FILE: Look = Look { width: None, colour: false };
/// A terminal.
const TERMINAL: Look = Look { width: Some(100), colour: true };
/// A terminal with `NO_COLOR`.
const NO_COLOUR: Look = Look { width: Some(100), colour: false };
/// A narrow one.
const NARROW: Look = Look { width: Some(60), colour: false };

const LOOKS: [(&str, Look); 4] =
    [("file", FILE), ("terminal", TERMINAL), ("no_colour", NO_COLOUR), ("narrow", NARROW)];

const GOOD: &str = "ghcr.io/example/web:1.4.2";
const BAD: &str = "registry.invalid/web:2.0";
const NO_IMAGE: &str = "Image \"registry.invalid/web:2.0\" cannot be fetched: its registry cannot be reached";
const NO_QUOTA: &str =
    "The project's quota does not cover the instance: 1 instance asked, 0 instances of 3 instances left";

fn invocation() -> Invocation {
    Invocation::new(false, Vec::new())
}

/// Takes a snapshot of a text in every look. Escapes are made visible.
fn shots(name: &str, text: impl Fn(Look) -> String) {
    for (look_name, look) in LOOKS {
        let text = text(look).replace('\x1b', "␛");
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_snapshot_path("../../snapshots");
        settings.bind(|| insta::assert_snapshot!(format!("{name}.{look_name}"), text));
    }
}

fn healthy() -> Vec<City> {
    vec![City::well("DFW"), City::well("IAD")]
}

fn degraded() -> Vec<City> {
    vec![City::well("DFW"), City::half("IAD", c::IMAGE_UNAVAILABLE, NO_IMAGE)]
}

fn down() -> Vec<City> {
    vec![
        City::down("DFW", c::IMAGE_UNAVAILABLE, c::IMAGE_UNAVAILABLE, NO_IMAGE),
        City::down("IAD", c::IMAGE_UNAVAILABLE, c::IMAGE_UNAVAILABLE, NO_IMAGE),
    ]
}

fn starved() -> Vec<City> {
    vec![City::well("DFW"), City::half("IAD", c::QUOTA_EXCEEDED, NO_QUOTA)]
}
