//! Waiting for a condition, with a deadline and the last reason why it did not hold.

use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

/// How long a condition may take to come true. Only failing tests wait this long.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// How tests wait.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long a condition may take to come true.
    pub deadline: Duration,
    /// How often it is looked at.
    pub every: Duration,
}

static PACE: OnceLock<Pace> = OnceLock::new();

/// Waits as a stack needs it that is slower than the embedded one, from now on and in the whole process. The first who sets it decides.
pub fn set_pace(pace: Pace) {
    let _ = PACE.set(pace);
}

fn pace() -> Pace {
    PACE.get().copied().unwrap_or(Pace { deadline: DEADLINE, every: Duration::from_millis(5) })
}

/// Asks again and again until `ask` gives `Ok`; fails with its last reason after the [`Pace`]'s deadline.
#[track_caller]
pub fn eventually<T, E: Display>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> impl Future<Output = T> {
    let asked_at = std::panic::Location::caller();
    async move {
        let pace = pace();
        let deadline = Instant::now() + pace.deadline;
        loop {
            match ask().await {
                Ok(found) => return found,
                Err(reason) if Instant::now() > deadline => {
                    panic!("{asked_at}: {what}: not within {:?}: {reason}", pace.deadline)
                }
                Err(_) => tokio::time::sleep(pace.every).await,
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
            tokio::time::sleep(pace().every).await;
        }
    }
}
