//! The pool of a device: freed memory is kept by size and handed out again, so that a training loop stops asking the
//! system after its first step. (The system's allocator gives large blocks back to the kernel, and mapping them anew
//! costs more than most kernels do.)

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::allocation::try_zeroed_slice_box;
use tensor_core::{Error, MemoryStatus, Result};

use crate::storage::{Buffer, Elem, LINE_BYTES, Line};

/// What may be kept for reuse besides twice the most ever used.
const ALWAYS_KEPT_BYTES: usize = 256 << 20;
/// From this size on the system is asked what it has before it promises more than that.
const ASK_SYSTEM_BYTES: usize = 256 << 20;

/// Memory of one device, shared between threads.
pub struct Pool {
    label: String,
    state: Mutex<State>,
    /// Told every request before it is served; an error refuses it.
    gate: Option<Gate>,
}

/// Decides whether a request of so many bytes may be served.
pub(crate) type Gate = Box<dyn Fn(usize) -> Result<()> + Send + Sync>;

#[derive(Default)]
struct State {
    /// Blocks kept for reuse, per size class.
    free: Vec<Class>,
    used_bytes: usize,
    cached_bytes: usize,
    peak_bytes: usize,
    /// The most ever used; unlike the peak it is never reset.
    highest_bytes: usize,
    limit_bytes: Option<usize>,
    /// Counts requests; a class remembers when it last served one.
    clock: u64,
    n_system_allocations: u64,
}

#[derive(Default)]
struct Class {
    blocks: Vec<Box<[Line]>>,
    last_used: u64,
}

/// Why a request was not served.
struct Refused {
    free_bytes: usize,
    limit_bytes: Option<usize>,
}

/// The class of a size in lines, and the size that its blocks have: at most an eighth larger.
///
/// Up to 8 lines each size has its class; above, every octave has eight.
fn class_of(n_lines: usize) -> (usize, usize) {
    if n_lines <= 8 {
        return (n_lines, n_lines);
    }
    let shift = (n_lines - 1).ilog2() as usize - 3;
    let eighths = ((n_lines - 1) >> shift) + 1;
    (shift * 8 + eighths, eighths << shift)
}

impl Pool {
    /// A pool without limit; `label` is what errors call its device.
    pub fn new(label: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { label: label.into(), state: Mutex::default(), gate: None })
    }

    pub(crate) fn with_gate(label: impl Into<String>, gate: Gate) -> Arc<Self> {
        Arc::new(Self { label: label.into(), state: Mutex::default(), gate: Some(gate) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `n` elements, their values unspecified.
    ///
    /// # Errors
    /// Out of memory, when neither what is kept nor the system nor the limit has room.
    pub fn take<T: Elem>(self: &Arc<Self>, n: usize) -> Result<Buffer> {
        self.take_bytes(n.saturating_mul(size_of::<T>()))
    }

    /// A buffer of so many bytes, their values unspecified.
    pub fn take_bytes(self: &Arc<Self>, len_bytes: usize) -> Result<Buffer> {
        if let Some(gate) = &self.gate {
            gate(len_bytes)?;
        }
        if len_bytes > isize::MAX as usize {
            return Err(self.out_of_memory(len_bytes, Refused { free_bytes: 0, limit_bytes: None }));
        }
        let (class, n_lines) = class_of(len_bytes.div_ceil(LINE_BYTES));
        let kept = self
            .state()
            .reserve(class, n_lines * LINE_BYTES)
            .map_err(|refused| self.out_of_memory(len_bytes, refused))?;
        let lines = match kept {
            Some(lines) => lines,
            None => self.allocate(n_lines, len_bytes)?,
        };
        Ok(Buffer::new(lines, len_bytes, self.clone()))
    }

    /// Asks the system; when it refuses, gives it back what is kept and asks again.
    fn allocate(&self, n_lines: usize, len_bytes: usize) -> Result<Box<[Line]>> {
        let bytes = n_lines * LINE_BYTES;
        for attempt in 0..2 {
            // A system that overcommits promises anything and kills later.
            let has_room = bytes < ASK_SYSTEM_BYTES || system_memory().1.is_none_or(|free| bytes <= free);
            if has_room && let Ok(lines) = try_zeroed_slice_box(n_lines) {
                self.state().note_peak();
                return Ok(lines);
            }
            if attempt == 0 {
                self.release_cached();
            }
        }
        self.state().used_bytes -= bytes;
        Err(self.out_of_memory(len_bytes, Refused { free_bytes: system_memory().1.unwrap_or(0), limit_bytes: None }))
    }

    #[cold]
    fn out_of_memory(&self, request: usize, refused: Refused) -> Error {
        let limit =
            refused.limit_bytes.map_or(String::new(), |limit| format!(", limit {}", MemoryStatus::in_units(limit)));
        Error::out_of_memory(
            self.label.clone(),
            format!(
                "out of memory: request {}, free {}{limit}; use a smaller batch, a smaller model or a lower precision",
                MemoryStatus::in_units(request),
                MemoryStatus::in_units(refused.free_bytes)
            ),
        )
    }

    /// Takes a dropped buffer's memory.
    pub(crate) fn give_back(&self, lines: Box<[Line]>) {
        if lines.is_empty() {
            return;
        }
        let (class, n_lines) = class_of(lines.len());
        debug_assert_eq!(n_lines, lines.len());
        let bytes = n_lines * LINE_BYTES;
        let mut state = self.state();
        state.used_bytes -= bytes;
        state.cached_bytes += bytes;
        state.free[class].blocks.push(lines);
        let kept = ALWAYS_KEPT_BYTES.max(2 * state.highest_bytes);
        let surplus = if state.used_bytes + state.cached_bytes > kept { state.evict(kept) } else { Vec::new() };
        drop(state);
        drop(surplus);
    }

    /// Gives everything kept for reuse back to the system.
    pub fn release_cached(&self) {
        let mut state = self.state();
        state.cached_bytes = 0;
        let kept: Vec<_> = state.free.iter_mut().map(|class| std::mem::take(&mut class.blocks)).collect();
        drop(state);
        drop(kept);
    }

    /// Memory used, reserved, at its peak, its limit, and what the system has.
    pub fn status(&self) -> MemoryStatus {
        let (total_bytes, free_bytes) = system_memory();
        let state = self.state();
        MemoryStatus {
            used_bytes: state.used_bytes,
            reserved_bytes: state.used_bytes + state.cached_bytes,
            peak_bytes: state.peak_bytes,
            limit_bytes: state.limit_bytes,
            total_bytes,
            free_bytes,
        }
    }

    /// Sets the most that may be reserved.
    pub fn set_limit(&self, bytes: Option<usize>) {
        self.state().limit_bytes = bytes;
    }

    /// Starts a new peak at what is used now.
    pub fn reset_peak(&self) {
        let mut state = self.state();
        state.peak_bytes = state.used_bytes;
    }

    /// How often the system was asked for memory: constant in a steady training loop.
    pub fn n_system_allocations(&self) -> u64 {
        self.state().n_system_allocations
    }
}

impl State {
    /// Counts a request and takes a kept block for it; `None` when the system is to be asked.
    fn reserve(&mut self, class: usize, bytes: usize) -> Result<Option<Box<[Line]>>, Refused> {
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Class::default);
        }
        self.clock += 1;
        self.free[class].last_used = self.clock;
        let kept = self.free[class].blocks.pop();
        if kept.is_some() {
            self.cached_bytes -= bytes;
            self.used_bytes += bytes;
            self.note_peak();
        } else if bytes > 0 {
            self.make_room(bytes)?;
            self.used_bytes += bytes;
            self.n_system_allocations += 1;
        }
        Ok(kept)
    }

    fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
        self.highest_bytes = self.highest_bytes.max(self.used_bytes);
    }

    /// Makes `bytes` more fit under the limit, giving kept blocks away.
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        let Some(limit) = self.limit_bytes else { return Ok(()) };
        let free_bytes = limit.saturating_sub(self.used_bytes);
        if bytes > free_bytes {
            return Err(Refused { free_bytes, limit_bytes: Some(limit) });
        }
        self.evict(limit - bytes);
        Ok(())
    }

    /// Takes kept blocks out, those of the classes longest unused first, until `reserved` bytes are left at most.
    fn evict(&mut self, reserved: usize) -> Vec<Box<[Line]>> {
        let mut evicted = Vec::new();
        while self.used_bytes + self.cached_bytes > reserved {
            let oldest = self.free.iter_mut().filter(|c| !c.blocks.is_empty()).min_by_key(|c| c.last_used);
            let Some(block) = oldest.and_then(|class| class.blocks.pop()) else { break };
            self.cached_bytes -= block.len() * LINE_BYTES;
            evicted.push(block);
        }
        evicted
    }
}

/// Total and available memory of the machine (or of the group of processes that this one is confined to), where the
/// system can tell.
fn system_memory() -> (Option<usize>, Option<usize>) {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
    };
    let group =
        |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<usize>().ok();
    let (mut total, mut free) = (field("MemTotal:"), field("MemAvailable:"));
    if let (Some(max), Some(current)) = (group("memory.max"), group("memory.current")) {
        total = total.map(|t| t.min(max));
        free = free.map(|f| f.min(max.saturating_sub(current)));
    }
    (total, free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_an_eighth_at_most() {
        let mut last = (0, 0);
        for n_lines in (0..5000).chain((5000..1 << 40).step_by(7_777_777_777)) {
            let (class, size) = class_of(n_lines);
            assert!(size >= n_lines && size - n_lines <= n_lines / 8, "{n_lines} lines get {size}");
            assert_eq!(class_of(size), (class, size), "a block goes back to the class it came from");
            assert!((class, size) >= last && (class == last.0) == (size == last.1), "classes are in order of size");
            last = (class, size);
        }
    }

    #[test]
    fn a_steady_loop_stops_asking_the_system() {
        let pool = Pool::new("cpu");
        let step = || {
            let a = pool.take::<f32>(1000).expect("memory");
            let b = pool.take::<f64>(77).expect("memory");
            drop(a);
            let c = pool.take::<f32>(1001).expect("memory");
            (b, c)
        };
        step();
        let n = pool.n_system_allocations();
        (0..10).for_each(|_| drop(step()));
        assert_eq!((n, pool.n_system_allocations()), (2, 2));
    }

    #[test]
    fn memory_is_counted_and_given_back() {
        let pool = Pool::new("cpu");
        let a = pool.take::<f32>(1 << 20).expect("memory");
        let status = pool.status();
        assert_eq!((status.used_bytes, status.reserved_bytes, status.peak_bytes), (4 << 20, 4 << 20, 4 << 20));
        assert!(status.total_bytes >= status.free_bytes);
        drop(a);
        let status = pool.status();
        assert_eq!((status.used_bytes, status.reserved_bytes, status.peak_bytes), (0, 4 << 20, 4 << 20));
        pool.reset_peak();
        pool.release_cached();
        let status = pool.status();
        assert_eq!((status.reserved_bytes, status.peak_bytes), (0, 0));
        assert_eq!(pool.take::<u8>(0).expect("nothing is needed").bytes().len(), 0);
    }

    #[test]
    fn a_limit_is_kept_and_its_error_says_what_to_do() {
        let pool = Pool::new("cpu");
        pool.set_limit(Some(1 << 20));
        let a = pool.take::<u8>(512 << 10).expect("memory");
        let error = pool.take::<f32>(1 << 18).expect_err("too much");
        assert!(error.is_out_of_memory());
        assert_eq!(
            error.to_string(),
            "cpu: out of memory: request 1.0 MiB, free 512.0 KiB, limit 1.0 MiB; use a smaller batch, a smaller model or a lower precision"
        );
        // What is kept for reuse makes way.
        drop(a);
        drop(pool.take::<f32>(1 << 18).expect("the cache was given back"));
        assert_eq!(pool.status().reserved_bytes, 1 << 20);
        pool.set_limit(None);
        assert!(pool.take::<u8>(2 << 20).is_ok());
    }

    #[test]
    fn absurd_requests_are_errors() {
        let pool = Pool::new("cpu");
        for n in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8, 1 << 46] {
            assert!(pool.take::<f64>(n).expect_err("too much").is_out_of_memory());
        }
        assert_eq!((pool.status().used_bytes, pool.status().peak_bytes), (0, 0));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let pool = Pool::new("cpu");
        for i in 0..40 {
            drop(pool.take::<u8>((16 << 20) + (i << 21)).expect("memory"));
        }
        let status = pool.status();
        assert!(status.reserved_bytes <= ALWAYS_KEPT_BYTES.max(2 * status.peak_bytes), "{status}");
        // The latest are kept.
        let n = pool.n_system_allocations();
        drop(pool.take::<u8>((16 << 20) + (39 << 21)).expect("memory"));
        assert_eq!(pool.n_system_allocations(), n);
    }
}
