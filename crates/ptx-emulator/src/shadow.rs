//! Who touched a word last, and whether that happened before.
//!
//! Time is one counter that moves on whenever a warp releases what it did: at a barrier, or at a fence and the atomic
//! behind it. A warp's [`Clock`] holds, for every other warp, the time up to which that one's accesses happened before.
//! Two accesses of one word, one of them a write, race unless one is known to happen before the other.

use std::collections::HashMap;

/// An access of a word: when, by which warp of the grid, and from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// 0 for none.
    time: u32,
    who: u32,
    /// The place (21 bits), lane (6), bytes of the word (4), and whether it was atomic.
    info: u32,
}

/// Several lanes touched the same bytes.
const MANY: u32 = 32;
/// Several lanes touched different bytes.
const APART: u32 = 33;

impl Mark {
    fn new(touch: &Touch<'_>, lane: u32, bytes: u32) -> Self {
        let info = touch.pc << 11 | lane << 5 | bytes << 1 | u32::from(touch.atomic);
        Self { time: touch.now, who: touch.who, info }
    }

    pub(crate) fn pc(self) -> u32 {
        self.info >> 11
    }

    /// The lane, if it was only one.
    pub(crate) fn lane(self) -> Option<u32> {
        Some(self.raw_lane()).filter(|lane| *lane < 32)
    }

    /// The warp's number in the grid.
    pub(crate) fn who(self) -> u32 {
        self.who
    }

    fn raw_lane(self) -> u32 {
        self.info >> 5 & 0x3f
    }

    fn bytes(self) -> u32 {
        self.info >> 1 & 0xf
    }

    fn is_atomic(self) -> bool {
        self.info & 1 == 1
    }

    /// Adds an access of the same warp at the same time.
    #[inline(always)]
    fn merge(&mut self, lane: u32, bytes: u32, atomic: bool) {
        let old = self.raw_lane();
        let lane = match old {
            // Which of the lanes touched which byte is not kept: each is taken to come back to its own.
            _ if old == lane || old == MANY || old == APART => old,
            _ if self.bytes() & bytes != 0 => MANY,
            _ => APART,
        };
        let atomic = self.info & u32::from(atomic);
        self.info = self.info & !0x7ff | lane << 5 | (self.bytes() | bytes) << 1 | atomic;
    }
}

/// What is known of one word of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    write: Mark,
    /// Reads by two different warps.
    reads: [Mark; 2],
}

/// Until when the accesses of other warps happened before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// The grid's number of the block's first warp.
    base: u32,
    /// For the warps of the block.
    own: Vec<u32>,
    /// For warps of other blocks.
    #[allow(clippy::box_collection)] // Rarely there: one word in every cell.
    foreign: Option<Box<HashMap<u32, u32>>>,
}

impl Clock {
    pub(crate) fn new(base: u32, warps: usize) -> Self {
        Self { base, own: vec![0; warps], foreign: None }
    }

    #[inline(always)]
    fn seen(&self, who: u32) -> u32 {
        match self.own.get(who.wrapping_sub(self.base) as usize) {
            Some(time) => *time,
            None => self.foreign.as_ref().and_then(|foreign| foreign.get(&who).copied()).unwrap_or(0),
        }
    }

    /// Everything that a warp did up to that time.
    pub(crate) fn see(&mut self, who: u32, time: u32) {
        let slot = match self.own.get_mut(who.wrapping_sub(self.base) as usize) {
            Some(slot) => slot,
            None => self.foreign.get_or_insert_default().entry(who).or_insert(0),
        };
        *slot = time.max(*slot);
    }

    pub(crate) fn join(&mut self, other: &Self) {
        if self.base == other.base && self.own.len() == other.own.len() {
            for (mine, theirs) in self.own.iter_mut().zip(&other.own) {
                *mine = (*mine).max(*theirs);
            }
        } else {
            for (i, time) in other.own.iter().enumerate().filter(|(_, time)| **time > 0) {
                self.see(other.base + i as u32, *time);
            }
        }
        for (who, time) in other.foreign.iter().flat_map(|foreign| foreign.iter()) {
            self.see(*who, *time);
        }
    }
}

/// One warp's access, as far as it is the same for all lanes.
pub(crate) struct Touch<'a> {
    pub(crate) now: u32,
    pub(crate) who: u32,
    /// Whatever happened up to then happened before: the start of the launch, or of the block.
    pub(crate) floor: u32,
    pub(crate) clock: &'a Clock,
    pub(crate) pc: u32,
    /// Atomic and volatile accesses do not race with each other.
    pub(crate) atomic: bool,
}

impl Touch<'_> {
    #[inline(always)]
    fn is_after(&self, mark: Mark, lane: u32) -> bool {
        mark.time <= self.floor
            || (mark.who == self.who && (mark.raw_lane() == lane || mark.raw_lane() == APART))
            || mark.time <= self.clock.seen(mark.who)
    }

    #[inline(always)]
    fn conflicts(&self, mark: Mark, lane: u32, bytes: u32) -> bool {
        mark.time > self.floor
            && mark.bytes() & bytes != 0
            && !(self.atomic && mark.is_atomic())
            && !self.is_after(mark, lane)
    }
}

/// The other access of a race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) mark: Mark,
    pub(crate) was_write: bool,
}

impl Cell {
    #[inline(always)]
    pub(crate) fn read(&mut self, touch: &Touch<'_>, lane: u32, bytes: u32) -> Result<(), Conflict> {
        if touch.conflicts(self.write, lane, bytes) {
            return Err(Conflict { mark: self.write, was_write: true });
        }
        for mark in &mut self.reads {
            if mark.time == touch.now && mark.who == touch.who {
                mark.merge(lane, bytes, touch.atomic);
                return Ok(());
            }
        }
        self.remember_read(touch, lane, bytes);
        Ok(())
    }

    fn remember_read(&mut self, touch: &Touch<'_>, lane: u32, bytes: u32) {
        let [first, second] = self.reads;
        let replaces = |mark: Mark| mark.time <= touch.floor || mark.who == touch.who || touch.is_after(mark, lane);
        let slot = if replaces(first) {
            0
        } else if replaces(second) {
            1
        } else {
            usize::from(second.time < first.time)
        };
        self.reads[slot] = Mark::new(touch, lane, bytes);
    }

    /// The access that a write would race with.
    #[inline(always)]
    pub(crate) fn check_write(&self, touch: &Touch<'_>, lane: u32, bytes: u32) -> Result<(), Conflict> {
        if touch.conflicts(self.write, lane, bytes) {
            return Err(Conflict { mark: self.write, was_write: true });
        }
        for mark in self.reads {
            if touch.conflicts(mark, lane, bytes) {
                return Err(Conflict { mark, was_write: false });
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn remember_write(&mut self, touch: &Touch<'_>, lane: u32, bytes: u32) {
        if self.write.time == touch.now && self.write.who == touch.who && self.write.bytes() & bytes == 0 {
            self.write.merge(lane, bytes, touch.atomic);
        } else {
            self.write = Mark::new(touch, lane, bytes);
        }
        if bytes == 0xf {
            self.reads = Default::default();
        }
    }
}
