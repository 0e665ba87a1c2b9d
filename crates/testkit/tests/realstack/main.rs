//! All stories, on API servers elsewhere and with managers as processes of their own.
//!
//! `COMPUTE_REALSTACK` says where the API servers are described. Without it planes of an embedded server stand in for them. Arguments are
//! parts of the names of the stories to tell; `--list` names them all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use compute_testkit::real::{self, Foundation, RealStack};
use compute_testkit::{Pace, for_each_real_story, for_each_story, set_pace, stories};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::Instant;

type Tell = for<'a> fn(&'a RealStack) -> LocalBoxFuture<'a, ()>;

/// Every story by its name.
fn all() -> Vec<(&'static str, Tell)> {
    let mut found: Vec<(&'static str, Tell)> = Vec::new();
    macro_rules! tell {
        ($module:ident, $story:ident) => {
            found.push((concat!(stringify!($module), "::", stringify!($story)), |stack| {
                stories::$module::$story(stack).boxed_local()
            }));
        };
    }
    for_each_story!(tell);
    macro_rules! tell {
        ($module:ident, $story:ident) => {
            found.push((concat!("real::", stringify!($module), "::", stringify!($story)), |stack| {
                real::stories::$module::$story(stack).boxed_local()
            }));
        };
    }
    for_each_real_story!(tell);
    found
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (flags, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.starts_with('-'));
    if flags.iter().any(|flag| flag == "--list") {
        all().iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filter = tracing_subscriber::EnvFilter::try_from_env("COMPUTE_LOG").unwrap_or_else(|_| "off".into());
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let wanted = all()
        .into_iter()
        .filter(|(name, _)| words.is_empty() || words.iter().any(|word| name.contains(word.as_str())));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let failed = runtime.block_on(tell_all(wanted.collect()));
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nfailed: {}", failed.join(", "));
    ExitCode::FAILURE
}

/// Tells stories one after another; those that failed.
async fn tell_all(wanted: Vec<(&'static str, Tell)>) -> Vec<&'static str> {
    set_pace(Pace { deadline: Duration::from_secs(120), every: Duration::from_millis(25) });
    let scratch = tempfile::tempdir().unwrap().keep();
    println!("logs of managers are in {}", scratch.display());
    let began = Instant::now();
    let foundation = match std::env::var_os(compute_realstack::STATE_VARIABLE) {
        Some(dir) => Foundation::real(dir.as_ref()),
        None => Foundation::embedded(&["DFW", "ORD"]).await,
    };
    let stack = RealStack::start(foundation, &scratch).await;
    println!("the stack is up after {:.1} s; {} stories", began.elapsed().as_secs_f64(), wanted.len());
    let mut failed = Vec::new();
    for (name, tell) in wanted {
        let began = Instant::now();
        let told = AssertUnwindSafe(tell(&stack)).catch_unwind().await;
        let story = began.elapsed();
        let cleared = AssertUnwindSafe(stack.clear()).catch_unwind().await;
        let said = match (told.is_ok(), cleared.is_ok()) {
            (true, true) => "ok",
            (true, false) => "FAILED: it left something behind",
            (false, _) => "FAILED",
        };
        println!(
            "story {name} ... {said} ({:.1} s, {:.1} s to clear)",
            story.as_secs_f64(),
            (began.elapsed() - story).as_secs_f64()
        );
        if said != "ok" {
            failed.push(name);
        }
        if cleared.is_err() {
            println!("what is left would disturb the others; no more stories are told");
            break;
        }
    }
    stack.stop().await;
    failed
}
