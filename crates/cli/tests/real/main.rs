//! The real program against a real platform, which runs in the test's own process and is served over TLS.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod at_once;
mod connecting;
mod examples;
mod outputs;
mod screens;
mod story;
mod support;
mod terminal;
mod tour;
