//! kube, as controllers use it, works against a plane as against a cluster: without a socket and over TLS.
//!
//! Every test body takes a [`common::Fixture`] and runs once per transport (`both_transports!`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

/// Makes two tests of each body: one without a socket, one over TLS.
macro_rules! both_transports {
    ($($name:ident),* $(,)?) => {
        mod in_process {
            use crate::common::{Fixture, Transport};
            $(#[tokio::test]
            async fn $name() {
                super::$name(Fixture::new(Transport::InProcess).await).await;
            })*
        }
        mod over_tls {
            use crate::common::{Fixture, Transport};
            $(#[tokio::test]
            async fn $name() {
                super::$name(Fixture::new(Transport::Tls).await).await;
            })*
        }
    };
}

mod apply;
mod controllers;
mod definitions;
mod deletion;
mod discovery;
mod lists;
mod objects;
mod patches;
mod runtime;
mod watching;
