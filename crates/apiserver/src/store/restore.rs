//! Work on everything that was found on disk: most of a start, and shared among the cores.

use std::num::NonZero;
use std::thread;

/// Fewer are not worth a thread: they take about as long as it takes to start one.
const PER_THREAD: usize = 256;

/// Applies `work` to every item, and keeps their order. The first error is returned.
pub(super) fn all<T: Send, U: Send, E: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    all_on(cores.min(items.len() / PER_THREAD), items, work)
}

fn all_on<T: Send, U: Send, E: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let share = items.len().div_ceil(threads);
    let mut done = Vec::with_capacity(items.len());
    let mut items = items.into_iter();
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let items: Vec<T> = items.by_ref().take(share).collect();
            let work = &work;
            workers.push(scope.spawn(move || items.into_iter().map(work).collect::<Result<Vec<U>, E>>()));
        }
        for worker in workers {
            match worker.join() {
                Ok(part) => done.extend(part?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(done)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_however_many_threads_there_are() {
        for count in [0, 1, 7, 1000] {
            let wanted: Vec<i32> = (0..count).map(|n| n * 2).collect();
            for threads in [0, 1, 2, 3, 16] {
                assert_eq!(all_on(threads, (0..count).collect(), |n| Ok::<_, ()>(n * 2)).unwrap(), wanted);
            }
            assert_eq!(all((0..count).collect(), |n| Ok::<_, ()>(n * 2)).unwrap(), wanted);
        }
    }

    #[test]
    fn the_first_error_is_returned() {
        let odd = |n: i32| if n % 2 == 0 { Ok(n) } else { Err(n) };
        assert_eq!(all_on(4, (0..100).collect(), odd), Err(1));
        assert_eq!(all_on(1, (0..100).collect(), odd), Err(1));
    }
}
