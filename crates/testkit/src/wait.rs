//! Waiting for a condition, with a deadline and the last reason why it did not hold.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// How often it is looked at.
const EVERY: Duration = Duration::from_millis(5);

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after [`DEADLINE`].
#[track_caller]
pub fn eventually<T, E: Display>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> impl Future<Output = T> {
    let asked_at = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + DEADLINE;
        loop {
            match ask().await {
                Ok(found) => return found,
                Err(reason) if Instant::now() > deadline => {
                    panic!("{asked_at}: {what}: not within {DEADLINE:?}: {reason}")
                }
                Err(_) => tokio::time::sleep(EVERY).await,
            }
        }
    }
}

/// Looks for a while whether something holds all the time. For what must NOT happen: it can only ever miss a fault, never invent one.
#[track_caller]
pub fn stays<E: Display>(
    what: &str,
    how_long: Duration,
    mut ask: impl AsyncFnMut() -> Result<(), E>,
) -> impl Future<Output = ()> {
    let asked_at = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + how_long;
        while Instant::now() < deadline {
            if let Err(reason) = ask().await {
                panic!("{asked_at}: {what}: {reason}");
            }
            tokio::time::sleep(EVERY).await;
        }
    }
}
