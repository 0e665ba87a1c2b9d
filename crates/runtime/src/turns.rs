//! Who may begin a pass, in a process that serves planes too. There a pass waits for nothing but the processor, and as many passes at a
//! time as controllers have workers would only make each other late: what people wait for first would come last, with all the rest.
//!
//! # Guarantees
//!
//! - No more passes than there are turns compete for the processor. One that takes longer than [`PROMPT`] waits for something else: it gives its turn
//!   to another, and goes on.
//! - Urgent passes go first, in the order in which they came, until another has waited for [`PATIENCE`]: so none waits for ever.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long a pass that only needs the processor may take.
const PROMPT: Duration = Duration::from_millis(50);

/// How long others let the urgent go first.
const PATIENCE: Duration = Duration::from_millis(500);

/// The turns of a process; as many as anyone asks for, unless it counts them. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Turns(Option<Arc<Mutex<Line>>>);

/// Leave to begin a pass. To drop it is to pass it on.
#[must_use = "to drop a turn is to pass it on"]
pub(crate) struct Turn(Option<Arc<Mutex<Line>>>);

struct Line {
    free: usize,
    urgent: VecDeque<Waiting>,
    others: VecDeque<Waiting>,
}

struct Waiting {
    since: Instant,
    sender: oneshot::Sender<Turn>,
}

impl Turns {
    /// So many.
    pub(crate) fn of(free: usize) -> Self {
        let line = Line { free, urgent: VecDeque::new(), others: VecDeque::new() };
        Self(Some(Arc::new(Mutex::new(line))))
    }

    /// Waits for a turn. Who stops waiting loses nothing but the place in the line.
    pub(crate) async fn take(&self, urgent: bool) -> Turn {
        let Some(line) = &self.0 else { return Turn(None) };
        let coming = {
            let mut line_now = line.lock();
            if line_now.free > 0 {
                line_now.free -= 1;
                return Turn(Some(line.clone()));
            }
            let (sender, coming) = oneshot::channel();
            let waiting = if urgent { &mut line_now.urgent } else { &mut line_now.others };
            waiting.push_back(Waiting { since: Instant::now(), sender });
            coming
        };
        // A sender leaves the line only to send.
        coming.await.unwrap_or(Turn(None))
    }
}

impl Turn {
    /// Runs a pass, and gives the turn to another if the pass turns out to wait for something.
    pub(crate) async fn run<F: Future>(self, pass: F) -> F::Output {
        let mut pass = std::pin::pin!(pass);
        if self.0.is_some()
            && let Ok(ended) = tokio::time::timeout(PROMPT, &mut pass).await
        {
            return ended;
        }
        drop(self);
        pass.await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(line) = self.0.take() else { return };
        let mut line_now = line.lock();
        while let Some(next) = line_now.next() {
            match next.sender.send(Turn(Some(line.clone()))) {
                Ok(()) => return,
                // Nobody waits there any more: this one is not passed on by being dropped, but in the next round.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
        line_now.free += 1;
    }
}

impl Line {
    fn next(&mut self) -> Option<Waiting> {
        let patient = self.others.front().is_none_or(|other| other.since.elapsed() < PATIENCE);
        let (first, then) = match patient {
            true => (&mut self.urgent, &mut self.others),
            false => (&mut self.others, &mut self.urgent),
        };
        first.pop_front().or_else(|| then.pop_front())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn without_a_count_everyone_begins() {
        let turns = Turns::default();
        let all: Vec<Turn> = futures::future::join_all((0..100).map(|_| turns.take(false))).await;
        assert_eq!(all.len(), 100);
    }

    async fn order_of_turns(wait: Duration) -> Vec<(bool, usize)> {
        let turns = Turns::of(1);
        let first = turns.take(false).await;
        let (order, mut took) = tokio::sync::mpsc::unbounded_channel();
        let mut waiting = Vec::new();
        for (urgent, number) in [false, true].into_iter().flat_map(|urgent| (0..3).map(move |n| (urgent, n)))
        {
            let (turns, order) = (turns.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let turn = turns.take(urgent).await;
                order.send((urgent, number)).unwrap();
                drop(turn);
            }));
            tokio::task::yield_now().await;
        }
        tokio::time::advance(wait).await;
        drop(first);
        futures::future::try_join_all(waiting).await.unwrap();
        drop(order);
        let mut seen = Vec::new();
        while let Some(one) = took.recv().await {
            seen.push(one);
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn the_urgent_go_first_until_others_have_waited_long() {
        let (others, urgent) = ([(false, 0), (false, 1), (false, 2)], [(true, 0), (true, 1), (true, 2)]);
        assert_eq!(order_of_turns(PATIENCE / 2).await, [urgent, others].concat());
        assert_eq!(order_of_turns(PATIENCE).await, [others, urgent].concat());
    }

    #[tokio::test]
    async fn a_turn_that_nobody_waits_for_any_more_is_not_lost() {
        let turns = Turns::of(1);
        let first = turns.take(true).await;
        let mut given_up = Box::pin(turns.take(true));
        assert!(given_up.as_mut().now_or_never().is_none());
        let mut given_and_unread = Box::pin(turns.take(true));
        assert!(given_and_unread.as_mut().now_or_never().is_none());
        drop(given_up);
        drop(first);
        drop(given_and_unread);
        assert!(turns.take(false).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_waits_gives_its_turn_away_and_goes_on() {
        let turns = Turns::of(1);
        let (go, gone) = oneshot::channel::<()>();
        let turn = turns.take(true).await;
        let waits = tokio::spawn(turn.run(async { gone.await.unwrap() }));
        let next = tokio::time::timeout(Duration::from_secs(1), turns.take(false)).await.unwrap();
        assert!(!waits.is_finished());
        go.send(()).unwrap();
        waits.await.unwrap();
        drop(next);
    }
}
