//! Work spread over threads: small work stays on the calling thread, and what is computed never depends on how many
//! threads there are, because the pieces are fixed by the caller.
//!
//! Waking a thread that sleeps takes 20 to 100 µs, longer than most ops. So the threads that helped stay awake for a
//! moment and look for more: in a training loop, spreading work then costs one or two microseconds.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tensor_core::Result;

/// Work from which a second thread pays, in nanoseconds of one thread.
const WORTHWHILE_NS: usize = 15_000;

/// How long a thread that has nothing to do stays awake.
const LINGER: Duration = Duration::from_micros(400);

/// How much work was spread by threads outside the pool: tells those that linger that there is still some about.
static N_SPREAD: AtomicUsize = AtomicUsize::new(0);
static N_LINGERING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// How many threads work is spread over: `RAYON_NUM_THREADS`, or the number of processors.
pub fn n_threads() -> usize {
    rayon::current_num_threads()
}

/// Whether work that takes one thread `work_ns` nanoseconds, as estimated, is spread over threads.
///
/// Never for work that is itself a piece of spread work.
pub fn is_worthwhile(work_ns: usize) -> bool {
    work_ns >= WORTHWHILE_NS && !IS_BUSY.get() && n_threads() > 1
}

/// Calls `f` with every item, on as many threads as `work_ns` (an estimate of the whole, on one thread) pays for.
///
/// Threads take the next item whenever they are free: make several items per thread, of some 10 µs or more each.
/// Each item must write to a place of its own, so that the result does not depend on who does it.
///
/// ```
/// let mut squares = vec![0; 1000];
/// let pieces = squares.chunks_mut(100).enumerate();
/// backend_cpu::threads::for_each(1_000_000, pieces, |(i, piece)| {
///     piece.iter_mut().enumerate().for_each(|(j, square)| *square = (100 * i + j).pow(2));
/// });
/// assert_eq!(squares[999], 999 * 999);
/// ```
pub fn for_each<I: Send>(work_ns: usize, items: impl Iterator<Item = I> + Send, f: impl Fn(I) + Sync) {
    if !is_worthwhile(work_ns) {
        return items.for_each(f);
    }
    let items = Mutex::new(items);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    spread(work_ns, &|| {
        while let Some(item) = next() {
            f(item);
        }
    });
}

/// Calls `work` on this thread and some more. Not generic, so that this is compiled once.
fn spread(work_ns: usize, work: &(dyn Fn() + Sync)) {
    let n_helpers = (work_ns / (WORTHWHILE_NS / 2)).min(n_threads()) - 1;
    let work = || {
        let _busy = Busy::new();
        work();
    };
    let n_done = AtomicUsize::new(0);
    let is_outside = rayon::current_thread_index().is_none();
    N_SPREAD.fetch_add(1, Ordering::Relaxed);
    rayon::in_place_scope(|scope| {
        for _ in 0..n_helpers {
            scope.spawn(|_| {
                let _done = CountWhenDropped(&n_done);
                work();
            });
        }
        work();
        if is_outside {
            // The helpers end at about the same time; sleeping until then would take longer than it lasts.
            let start = Instant::now();
            while n_done.load(Ordering::Acquire) < n_helpers && start.elapsed() < LINGER {
                std::hint::spin_loop();
            }
        }
    });
    if is_outside {
        while N_LINGERING.load(Ordering::Relaxed) < n_helpers {
            N_LINGERING.fetch_add(1, Ordering::Relaxed);
            rayon::spawn(linger);
        }
    }
}

/// [`for_each`] for work that can fail: all items are worked, and one of the errors is returned.
pub fn try_for_each<I: Send>(
    work_ns: usize,
    items: impl Iterator<Item = I> + Send,
    f: impl Fn(I) -> Result<()> + Sync,
) -> Result<()> {
    let failure = Mutex::new(None);
    for_each(work_ns, items, |item| {
        if let Err(error) = f(item) {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// [`for_each`] over `0..n`, for work that needs no place of its own.
pub fn for_range(work_ns: usize, n: usize, f: impl Fn(usize) + Sync) {
    for_each(work_ns, 0..n, f);
}

/// Keeps a thread of the global pool awake, working, until nothing has been spread for a while.
fn linger() {
    let mut seen = N_SPREAD.load(Ordering::Relaxed);
    let mut since = Instant::now();
    while since.elapsed() < LINGER {
        let worked = matches!(rayon::yield_now(), Some(rayon::Yield::Executed));
        let now = N_SPREAD.load(Ordering::Relaxed);
        if worked || now != seen {
            seen = now;
            since = Instant::now();
        } else {
            (0..8).for_each(|_| std::hint::spin_loop());
        }
    }
    N_LINGERING.fetch_sub(1, Ordering::Relaxed);
}

/// Marks the thread as working on a piece while it lives.
struct Busy {
    before: bool,
}

impl Busy {
    fn new() -> Self {
        Self { before: IS_BUSY.replace(true) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        IS_BUSY.set(self.before);
    }
}

/// Counts up when dropped, be it by a panic.
struct CountWhenDropped<'a>(&'a AtomicUsize);

impl Drop for CountWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_once() {
        for n_threads in 1..4 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads start");
            for n_items in [0, 1, 2, 7, 1000] {
                let mut values = vec![0usize; n_items];
                pool.install(|| for_each(usize::MAX, values.iter_mut().enumerate(), |(i, v)| *v += i + 1));
                assert_eq!(values, (1..=n_items).collect::<Vec<_>>(), "{n_threads} threads");
                for_each(usize::MAX, values.iter_mut(), |v| *v = 0);
                assert!(values.iter().all(|&v| v == 0));
            }
        }
    }

    #[test]
    fn a_piece_of_spread_work_stays_on_its_thread() {
        for_range(usize::MAX, 8, |_| {
            let thread = std::thread::current().id();
            for_range(usize::MAX, 8, |_| assert_eq!(thread, std::thread::current().id()));
        });
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let outcome = std::panic::catch_unwind(|| for_range(usize::MAX, 64, |i| assert!(i != 13)));
        assert!(outcome.is_err());
        for_range(usize::MAX, 64, |_| ());
    }
}
