//! The command line on a control plane that somebody else runs: a real Kubernetes, for one.
//!
//! `COMPUTE_CLI_KUBECONFIG=FILE COMPUTE_CLI_CITY=DFW cargo test -p compute-cli --test plane`. The kubeconfig's context leads to a project's
//! plane where that city is offered; who it names may do everything with workloads and read the rest.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod story;

#[test]
fn the_story_on_a_given_plane() {
    let given = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    story::tell(given("COMPUTE_CLI_KUBECONFIG").as_ref(), &given("COMPUTE_CLI_CITY"));
}
