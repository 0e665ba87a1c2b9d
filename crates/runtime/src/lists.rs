//! How many lists are in flight: a list holds whole pages in memory and is the most that a watch ever asks of a server, and a
//! process that starts with thousands of planes has thousands to make.
//!
//! There are two lanes. A plane that has not failed goes through the wide one and is given little time to answer; one that has
//! failed goes through the narrow one and is given more. So planes that hang hold the wide lane for moments only, and only once.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Lists in flight at the same time, in the whole process, both lanes together.
const IN_FLIGHT: usize = 64;
const NARROW: usize = 16;

/// What a plane that has not failed may take to send something. A server that takes longer for a first page is overloaded, and
/// is then asked by fewer at a time.
const BRISK: Duration = Duration::from_secs(2);
/// What a plane that has failed may take to send something.
const PATIENT: Duration = Duration::from_secs(10);

/// The lanes.
pub(crate) struct Lists {
    wide: Semaphore,
    narrow: Semaphore,
}

/// Leave to make one list.
pub(crate) struct Permit<'a> {
    /// How long the server may take to send something.
    pub(crate) patience: Duration,
    _held: Option<SemaphorePermit<'a>>,
}

impl Lists {
    pub(crate) fn new() -> Self {
        Self { wide: Semaphore::new(IN_FLIGHT - NARROW), narrow: Semaphore::new(NARROW) }
    }

    /// Waits for its turn.
    pub(crate) async fn permit(&self, failed_before: bool) -> Permit<'_> {
        let (lane, patience) = match failed_before {
            false => (&self.wide, BRISK),
            true => (&self.narrow, PATIENT),
        };
        // The semaphores are never closed.
        Permit { patience, _held: lane.acquire().await.ok() }
    }
}
