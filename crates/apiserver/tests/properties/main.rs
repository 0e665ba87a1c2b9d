//! What holds whatever clients do: random operations by several writers at once, checked against a model or an
//! invariant.
//!
//! The cases are the same in every run; only the interleaving of concurrent writers differs. A failing case is shrunk
//! and printed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod apply;
mod concurrency;
mod containers;
mod garbage;
mod selectors;
mod watches;

use std::future::Future;

use kube::Client;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Runs `test` on a fresh plane for each of `cases` values; `PROPTEST_CASES` in the environment asks for another
/// number.
fn check<S, F>(cases: u32, strategy: S, test: impl Fn(Client, S::Value) -> F)
where
    S: Strategy,
    F: Future<Output = ()>,
{
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |asked| asked.parse().unwrap());
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 100,
        max_shrink_time: 20_000,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let outcome = runner.run(&strategy, |value| {
        runtime.block_on(async {
            let server = common::server();
            let plane = common::plane(&server, "test").await;
            test(common::client(&server, &plane), value).await;
        });
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// What a racing writer may be told: that another was faster. Anything else fails the test.
fn raced<T>(result: Result<T, kube::Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => None,
        Err(error) => panic!("{error}"),
    }
}
