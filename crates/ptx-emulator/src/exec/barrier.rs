//! Barriers of the block and of the warp.

use super::fault::Fault;
use super::step::{Next, Step};
use super::{Block, Machine};
use crate::program::{BarKind, Barrier};
use crate::report::Finding;
use crate::shadow::Clock;
use crate::types::{Class, Reg};
use crate::warp::{Lanes, Warp};

/// The sixteen barriers of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Barriers([State; 16]);

/// Who has come to a barrier since it last opened.
#[derive(Clone, Debug, Default)]
struct State {
    /// Threads, in whole warps where the instruction is aligned.
    arrived: u32,
    /// How many open it; nothing for all of the block.
    expected: Option<u32>,
    waiting: Vec<Waiting>,
    /// What the warps that came have seen.
    clock: Option<Clock>,
    /// For reductions: how many predicates held.
    votes: u32,
    voters: u32,
    /// The first warp that came, and where.
    first: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    warp: u32,
    lanes: u32,
    /// Where a reduction goes.
    result: Option<(Reg, BarKind)>,
}

impl Machine<'_> {
    pub(super) fn barrier(&mut self, block: &mut Block, warp: &mut Warp, bar: &Barrier, mask: u32) -> Step<Next> {
        if bar.aligned && mask != warp.alive {
            let missing = warp.alive & !mask;
            let lane = missing.trailing_zeros() as usize;
            warp.store_pcs();
            let message = format!(
                "lanes {missing:#010x} of the warp are not at this barrier, which all {} must reach together",
                warp.alive.count_ones()
            );
            let mut fault = Fault::new(Finding::BarrierDivergence, message).lanes(mask);
            fault.elsewhere = Some((warp.index, warp.pcs[lane]));
            return Err(fault);
        }
        self.unset(warp, &[bar.id], mask)?;
        let id = self.uniform(warp, bar.id, mask, "barrier number")?;
        if id > 15 {
            let message = format!("barrier {id}: there are barriers 0 to 15");
            return Err(Fault::new(Finding::BarrierDivergence, message).lanes(mask));
        }
        let mut expected = None;
        if let Some(count) = bar.count {
            self.unset(warp, &[count], mask)?;
            let count = self.uniform(warp, count, mask, "number of threads")?;
            if count == 0 || count % 32 != 0 {
                let message = format!("barrier {id}: the number of threads is {count}, expected a multiple of 32");
                return Err(Fault::new(Finding::BarrierDivergence, message).lanes(mask));
            }
            expected = Some(count as u32);
        }
        let now = self.tick();
        let who = self.who(block, warp);
        let state = &mut block.barriers.0[id as usize];
        if let Some((first, place)) = state.first {
            let elsewhere = state.expected != expected || (expected.is_none() && place != warp.pc);
            if elsewhere && bar.aligned {
                let message = format!(
                    "barrier {id}: warps wait for it at different instructions, or for different numbers of threads"
                );
                let mut fault = Fault::new(Finding::BarrierDivergence, message).lanes(mask);
                fault.elsewhere = Some((first, place));
                return Err(fault);
            }
        }
        state.first.get_or_insert((warp.index, warp.pc));
        state.expected = expected;
        state.arrived += if bar.aligned { 32 } else { mask.count_ones() };
        let mut clock = warp.clock.clone();
        clock.see(who, now);
        match &mut state.clock {
            Some(all) => all.join(&clock),
            None => state.clock = Some(clock),
        }
        // What a warp did itself before a barrier is in order among its lanes.
        warp.clock.see(who, now);
        if let Some(p) = bar.pred {
            let holds = self.pred(warp, p, mask)? & mask;
            let state = &mut block.barriers.0[id as usize];
            state.votes += holds.count_ones();
            state.voters += mask.count_ones();
        }
        warp.pc += 1;
        warp.store_pcs();
        if bar.kind != BarKind::Arrive {
            warp.parked |= mask;
            let result = bar.dst.map(|dst| (dst, bar.kind));
            let waiting = Waiting { warp: warp.index, lanes: mask, result };
            block.barriers.0[id as usize].waiting.push(waiting);
        }
        warp.pc -= 1;
        if self.is_complete(block, warp, id as usize) {
            if self.options.checks.exited_at_barrier && expected.is_none() {
                self.check_exited(block, warp)?;
            }
            self.open(block, Some(warp), id as usize);
        }
        Ok(Next::Select)
    }

    /// The same number in all lanes of the mask.
    pub(super) fn uniform(&self, warp: &Warp, reg: Reg, mask: u32, what: &str) -> Step<u64> {
        let first = warp.value(reg, mask.trailing_zeros() as usize);
        match Lanes(mask).find(|lane| warp.value(reg, *lane) != first) {
            None => Ok(first),
            Some(lane) => {
                let message = format!("the {what} differs between lanes: {first} and {}", warp.value(reg, lane));
                Err(Fault::new(Finding::BarrierDivergence, message).lanes(1 << lane))
            }
        }
    }

    fn is_complete(&self, block: &Block, warp: &Warp, id: usize) -> bool {
        let state = &block.barriers.0[id];
        if let Some(expected) = state.expected {
            return state.arrived >= expected;
        }
        // All threads of the block that have not exited wait here.
        let waits = |index: u32| state.waiting.iter().filter(|w| w.warp == index).fold(0, |lanes, w| lanes | w.lanes);
        block.warps.iter().enumerate().all(|(i, other)| {
            let alive = if i as u32 == warp.index { warp.alive } else { other.alive };
            alive & !waits(i as u32) == 0
        })
    }

    fn check_exited(&self, block: &Block, warp: &Warp) -> Step {
        for (i, other) in block.warps.iter().enumerate() {
            let other = if i as u32 == warp.index { warp } else { other };
            let gone = other.born & !other.alive;
            if gone != 0 {
                let message =
                    format!("the barrier opens without threads that have exited: warp {i}, lanes {gone:#010x}");
                return Err(Fault::new(Finding::ExitedAtBarrier, message).lanes(warp.active));
            }
        }
        Ok(())
    }

    /// Lets all go that wait, each knowing what the others did.
    fn open(&mut self, block: &mut Block, mut current: Option<&mut Warp>, id: usize) {
        let state = std::mem::take(&mut block.barriers.0[id]);
        self.tick();
        for waiting in &state.waiting {
            let warp = match &mut current {
                Some(warp) if warp.index == waiting.warp => &mut **warp,
                _ => &mut block.warps[waiting.warp as usize],
            };
            warp.parked &= !waiting.lanes;
            if let Some(clock) = &state.clock {
                warp.clock.join(clock);
            }
            let Some((reg, kind)) = waiting.result else { continue };
            let value = match kind {
                BarKind::RedPopc => state.votes.into(),
                BarKind::RedAnd => u64::from(state.votes == state.voters),
                _ => u64::from(state.votes > 0),
            };
            for lane in Lanes(waiting.lanes) {
                warp.set_value(reg, lane, value);
            }
        }
    }

    /// No warp can run: opens a barrier whose missing threads have exited, or says who waits for whom.
    pub(super) fn unblock(&mut self, block: &mut Block) -> Result<(), (usize, Box<Fault>)> {
        let waiting: Vec<usize> = (0..16).filter(|id| !block.barriers.0[*id].waiting.is_empty()).collect();
        for id in &waiting {
            let state = &block.barriers.0[*id];
            if state.expected.is_some() {
                continue;
            }
            let waits =
                |index: u32| state.waiting.iter().filter(|w| w.warp == index).fold(0, |lanes, w| lanes | w.lanes);
            let mut others = block.warps.iter().filter(|warp| warp.alive & !waits(warp.index) != 0);
            if others.next().is_none() {
                let (warp, pc) = state.first.unwrap_or((0, 0));
                let lanes = waits(warp);
                let gone = block.warps.iter().map(|warp| (warp.born & !warp.alive).count_ones()).sum::<u32>();
                if self.options.checks.exited_at_barrier && gone > 0 {
                    let message = format!(
                        "threads wait at a barrier that {gone} threads of the block can no longer reach: they have exited"
                    );
                    let mut fault = Fault::new(Finding::ExitedAtBarrier, message).lanes(lanes);
                    fault.pc = Some(pc);
                    return Err((warp as usize, fault));
                }
                self.open(block, None, *id);
                return Ok(());
            }
        }
        let id = waiting.first().copied().unwrap_or(0);
        let state = &block.barriers.0[id];
        let (warp, pc) = state.first.unwrap_or((0, 0));
        let lanes = state.waiting.iter().filter(|w| w.warp == warp).fold(0, |lanes, w| lanes | w.lanes);
        let expected = state.expected.map_or("all threads of the block".to_string(), |n| format!("{n} threads"));
        let message = format!("barrier {id} waits for {expected}, {} have come, and no thread can run", state.arrived);
        let mut fault = Fault::new(Finding::BarrierDivergence, message).lanes(lanes);
        fault.pc = Some(pc);
        let elsewhere = waiting.iter().skip(1).find_map(|id| block.barriers.0[*id].first);
        fault.elsewhere = elsewhere;
        Err((warp as usize, fault))
    }

    /// `bar.warp.sync`: orders the memory accesses of the lanes.
    pub(super) fn warp_barrier(&mut self, block: &Block, warp: &mut Warp, members: u16, mask: u32) -> Step {
        let members = Reg { class: Class::R, row: members };
        self.members(warp, members, mask)?;
        let now = self.tick();
        let who = self.who(block, warp);
        warp.clock.see(who, now);
        Ok(())
    }

    /// Checks the lanes that an instruction names against those that execute it.
    pub(super) fn members(&self, warp: &Warp, members: Reg, mask: u32) -> Step<u32> {
        self.unset(warp, &[members], mask)?;
        for lane in Lanes(mask) {
            let named = warp.value(members, lane) as u32;
            if named >> lane & 1 == 0 {
                let message = format!("lane {lane} executes this but is not in the mask {named:#010x}");
                return Err(Fault::new(Finding::WarpDivergence, message).lanes(1 << lane));
            }
            let missing = named & !mask;
            let exited = missing & !warp.alive;
            if exited != 0 {
                let message =
                    format!("the mask {named:#010x} names lanes {exited:#010x}, which have exited or do not exist");
                return Err(Fault::new(Finding::WarpDivergence, message).lanes(mask));
            }
            if missing != 0 {
                let message = format!("the mask {named:#010x} names lanes {missing:#010x}, which are elsewhere");
                let mut fault = Fault::new(Finding::WarpDivergence, message).lanes(mask);
                let other = missing.trailing_zeros() as usize;
                fault.elsewhere =
                    Some((warp.index, if warp.active >> other & 1 == 1 { warp.pc } else { warp.pcs[other] }));
                return Err(fault);
            }
        }
        Ok(mask)
    }
}
