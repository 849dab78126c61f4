//! Bytes that know which of them were written, and global memory as a set of allocations far apart.

use crate::error::{Error, Result};
use crate::shadow::{Cell, Conflict, Touch};

/// One bit per byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    /// Whether all are set, for a range within one aligned group of 64.
    #[inline(always)]
    pub(crate) fn all(&self, at: usize, len: usize) -> bool {
        let mask = (u64::MAX >> (64 - len)) << (at & 63);
        self.0[at >> 6] & mask == mask
    }

    /// Whether any is set, for such a range.
    pub(crate) fn any(&self, at: usize, len: usize) -> bool {
        self.0[at >> 6] & (u64::MAX >> (64 - len)) << (at & 63) != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, len: usize) {
        self.0[at >> 6] |= (u64::MAX >> (64 - len)) << (at & 63);
    }

    pub(crate) fn clear(&mut self, at: usize, len: usize) {
        self.0[at >> 6] &= !((u64::MAX >> (64 - len)) << (at & 63));
    }

    fn set_range(&mut self, at: usize, len: usize, value: bool) {
        let end = at + len;
        let mut i = at;
        while i < end {
            let word = &mut self.0[i >> 6];
            if i & 63 == 0 && end - i >= 64 {
                *word = if value { u64::MAX } else { 0 };
                i += 64;
                continue;
            }
            let bit = 1 << (i & 63);
            *word = if value { *word | bit } else { *word & !bit };
            i += 1;
        }
    }

    fn is_full(&self, len: usize) -> bool {
        let whole = len / 64;
        self.0[..whole].iter().all(|word| *word == u64::MAX)
            && (len.is_multiple_of(64) || self.0[whole] == u64::MAX >> (64 - len % 64))
    }

    pub(crate) fn clear_all(&mut self) {
        self.0.fill(0);
    }
}

/// What is wrong with an access whose address is fine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Problem {
    Uninitialised,
    Race(Conflict),
    /// An asynchronous copy into these bytes has not been waited for.
    Pending,
}

/// Which checks an access gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) races: bool,
    pub(crate) initialised: bool,
    pub(crate) same_value: bool,
}

/// Bytes, and what is known about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region {
    pub(crate) data: Vec<u8>,
    /// Bytes that were written; nothing if all were.
    written: Option<Bits>,
    /// Bytes that an asynchronous copy will write.
    pub(crate) pending: Option<Bits>,
    /// Made when the first access is tracked.
    shadow: Vec<Cell>,
}

impl Region {
    pub(crate) fn new(len: usize) -> Self {
        Self { data: vec![0; len], written: Some(Bits::new(len)), pending: None, shadow: Vec::new() }
    }

    pub(crate) fn forget_writes(&mut self) {
        match &mut self.written {
            Some(written) => written.clear_all(),
            None => self.written = Some(Bits::new(self.data.len())),
        }
        self.pending = None;
    }

    pub(crate) fn forget_races(&mut self) {
        self.shadow = Vec::new();
    }

    fn track(&mut self) {
        if self.shadow.is_empty() {
            self.shadow = vec![Cell::default(); self.data.len().div_ceil(4)];
        }
    }

    /// Checks and records a read of an aligned range.
    #[inline(always)]
    pub(crate) fn read(
        &mut self,
        at: usize,
        len: usize,
        lane: u32,
        touch: &Touch<'_>,
        watch: Watch,
    ) -> Result<(), Problem> {
        if let Some(pending) = &self.pending
            && pending.any(at, len)
        {
            return Err(Problem::Pending);
        }
        if watch.initialised
            && let Some(written) = &self.written
            && !written.all(at, len)
        {
            return Err(Problem::Uninitialised);
        }
        if watch.races {
            self.track();
            if len < 4 {
                let bytes = ((1 << len) - 1) << (at & 3);
                return self.shadow[at >> 2].read(touch, lane, bytes).map_err(Problem::Race);
            }
            for cell in &mut self.shadow[at >> 2..(at + len) >> 2] {
                cell.read(touch, lane, 0xf).map_err(Problem::Race)?;
            }
        }
        Ok(())
    }

    /// Checks and records a write of an aligned range. `same` says whether it would change nothing.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        at: usize,
        len: usize,
        lane: u32,
        touch: &Touch<'_>,
        watch: Watch,
        same: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Problem> {
        if let Some(pending) = &self.pending
            && pending.any(at, len)
        {
            return Err(Problem::Pending);
        }
        if watch.races {
            self.track();
            let bytes = if len < 4 { ((1 << len) - 1) << (at & 3) } else { 0xf };
            for i in at >> 2..(at + len).div_ceil(4) {
                let cell = self.shadow[i];
                if let Err(conflict) = cell.check_write(touch, lane, bytes) {
                    let harmless = !watch.same_value && conflict.was_write;
                    if !(harmless && same(&self.data[at..at + len])) {
                        return Err(Problem::Race(conflict));
                    }
                }
                self.shadow[i].remember_write(touch, lane, bytes);
            }
        }
        if let Some(written) = &mut self.written {
            written.set(at, len);
        }
        Ok(())
    }

    pub(crate) fn get(&self, at: usize, len: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&self.data[at..at + len]);
        u64::from_le_bytes(bytes)
    }

    /// Written by the host.
    pub(crate) fn fill_written(&mut self, at: usize, len: usize) {
        if let Some(written) = &mut self.written {
            written.set_range(at, len, true);
            if written.is_full(self.data.len()) {
                self.written = None;
            }
        }
    }

    pub(crate) fn mark_unwritten(&mut self, at: usize, len: usize) {
        let size = self.data.len();
        let written = self.written.get_or_insert_with(|| {
            let mut bits = Bits::new(size);
            bits.set_range(0, size, true);
            bits
        });
        written.set_range(at, len, false);
    }

    pub(crate) fn first_unwritten(&self, at: usize, len: usize) -> Option<usize> {
        let written = self.written.as_ref()?;
        (at..at + len).find(|i| !written.all(*i, 1))
    }
}

/// A piece of global memory.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) name: String,
    pub(crate) freed: bool,
    pub(crate) read_only: bool,
    pub(crate) region: Region,
}

/// Where the first allocation lies.
const FIRST: u64 = 0x10_0000_0000;
const ALIGN: u64 = 512;
/// At least so much of nothing lies between two allocations.
const RED_ZONE: u64 = 4096;
/// So many freed allocations are remembered, to tell use after free from any other bad address.
const REMEMBERED: usize = 1 << 14;

/// Global memory.
#[derive(Debug)]
pub(crate) struct Global {
    /// By base.
    pub(crate) allocations: Vec<Allocation>,
    next: u64,
    pub(crate) used: u64,
    pub(crate) limit: u64,
    freed: usize,
}

impl Global {
    pub(crate) fn new(limit: u64) -> Self {
        Self { allocations: Vec::new(), next: FIRST, used: 0, limit, freed: 0 }
    }

    pub(crate) fn alloc(&mut self, len: u64, name: String) -> Result<u64> {
        let free = self.limit.saturating_sub(self.used);
        if len > free {
            return Err(Error::out_of_memory(format!(
                "alloc: out of memory: asked for {len} bytes, {free} of {} are free",
                self.limit
            )));
        }
        let base = self.next;
        self.next = (base + len + RED_ZONE).next_multiple_of(ALIGN);
        self.used += len;
        let region = Region::new(len as usize);
        self.allocations.push(Allocation { base, len, name, freed: false, read_only: false, region });
        Ok(base)
    }

    pub(crate) fn free(&mut self, base: u64) -> Result<()> {
        let Some(at) = self.allocations.iter().position(|a| a.base == base) else {
            return Err(Error::usage(format!("free: no allocation begins at {base:#x}")));
        };
        let allocation = &mut self.allocations[at];
        if allocation.freed {
            return Err(Error::usage(format!("free: {} at {base:#x} is already freed", allocation.name)));
        }
        allocation.freed = true;
        allocation.region = Region::default();
        self.used -= allocation.len;
        self.freed += 1;
        if self.freed > REMEMBERED {
            let mut surplus = REMEMBERED / 2;
            self.allocations.retain(|a| {
                let forget = a.freed && surplus > 0;
                surplus -= usize::from(forget);
                !forget
            });
            self.freed -= REMEMBERED / 2;
        }
        Ok(())
    }

    /// The allocation that holds the address, or the last one before it.
    #[inline(always)]
    pub(crate) fn before(&self, address: u64) -> Option<usize> {
        self.allocations.partition_point(|a| a.base <= address).checked_sub(1)
    }

    /// The whole range in one live allocation, for the host.
    pub(crate) fn range(&mut self, address: u64, len: u64, what: &str) -> Result<(&mut Allocation, usize)> {
        let found = self.before(address);
        let Some(allocation) = found.map(|i| &mut self.allocations[i]) else {
            return Err(Error::usage(format!("{what}: address {address:#x} lies in no allocation")));
        };
        let offset = address - allocation.base;
        if allocation.freed {
            return Err(Error::usage(format!("{what}: {} at {:#x} is freed", allocation.name, allocation.base)));
        }
        if offset.checked_add(len).is_none_or(|end| end > allocation.len) {
            return Err(Error::usage(format!(
                "{what}: range leaves the allocation: {} has {} bytes, asked for {len} at {offset}",
                allocation.name, allocation.len
            )));
        }
        Ok((allocation, offset as usize))
    }
}
