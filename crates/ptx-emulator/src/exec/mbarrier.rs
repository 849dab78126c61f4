//! Barriers that are objects in shared memory.

use super::access::Kind;
use super::fault::Fault;
use super::step::{Next, Step};
use super::{Block, Machine};
use crate::program::{Mbar, MbarOp};
use crate::report::Finding;
use crate::shadow::Clock;
use crate::types::Space;
use crate::warp::{Lanes, Warp};

const MAX_COUNT: u64 = (1 << 20) - 1;

#[derive(Clone, Debug)]
pub(super) struct MemoryBarrier {
    expected: u64,
    pending: u64,
    phase: u64,
    clock: Clock,
    /// What is known to whoever sees the last phase complete.
    completed: Clock,
}

impl Machine<'_> {
    pub(super) fn memory_barrier(&mut self, block: &mut Block, warp: &mut Warp, mbar: &Mbar, mask: u32) -> Step<Next> {
        if let Some(arg) = mbar.arg {
            self.unset(warp, &[arg], mask)?;
        }
        if mbar.op == MbarOp::PendingCount {
            for lane in Lanes(mask) {
                if let (Some(arg), Some(dst)) = (mbar.arg, mbar.dst) {
                    let state = warp.value(arg, lane);
                    warp.set_value(dst, lane, state & MAX_COUNT);
                }
            }
            return Ok(Next::Ahead);
        }
        let addresses = self.addresses(warp, &mbar.address, mask)?;
        let mut waits = false;
        if let MbarOp::CopyArrive { .. } = mbar.op {
            self.copy_wait(block, warp, None, mask)?;
        }
        let kind = Kind { write: true, atomic: true, bytes: 8 };
        for lane in Lanes(mask) {
            let (space, address) = Self::resolve(mbar.space, addresses[lane]);
            let at = self.locate(warp, space, address, kind, lane)?;
            if space != Space::Shared {
                let message = "a barrier in memory lies in shared memory";
                return Err(Fault::new(Finding::BadBarrier, message).at(space, address).lanes(1 << lane));
            }
            if mbar.op == MbarOp::Init {
                self.mbar_init(block, warp, mbar, address, at, lane)?;
                continue;
            }
            let now = self.time;
            let who = self.who(block, warp);
            let Some(barrier) = block.memory_barriers.get_mut(&(at as u32)) else {
                let message = "no barrier is initialised at this address";
                return Err(Fault::new(Finding::BadBarrier, message).at(space, address).lanes(1 << lane));
            };
            let arg = mbar.arg.map(|reg| warp.value(reg, lane));
            let state = |barrier: &MemoryBarrier| barrier.phase << 32 | barrier.pending;
            match mbar.op {
                MbarOp::Inval => {
                    block.memory_barriers.remove(&(at as u32));
                }
                MbarOp::Arrive | MbarOp::ArriveExpectTx | MbarOp::ArriveDrop | MbarOp::CopyArrive { noinc: true } => {
                    let count = if mbar.op == MbarOp::Arrive { arg.unwrap_or(1) } else { 1 };
                    if mbar.op == MbarOp::ArriveExpectTx && arg != Some(0) {
                        let message = "bytes are expected but bulk copies are not supported";
                        return Err(Fault::new(Finding::BadBarrier, message).at(space, address).lanes(1 << lane));
                    }
                    if count > barrier.pending || count == 0 {
                        let message =
                            format!("{count} arrivals at a barrier that {} are missing from", barrier.pending);
                        return Err(Fault::new(Finding::BadBarrier, message).at(space, address).lanes(1 << lane));
                    }
                    let old = state(barrier);
                    barrier.clock.join(&warp.clock);
                    barrier.clock.see(who, now);
                    barrier.pending -= count;
                    if mbar.op == MbarOp::ArriveDrop {
                        barrier.expected -= 1;
                    }
                    if barrier.pending == 0 {
                        barrier.phase += 1;
                        barrier.pending = barrier.expected;
                        barrier.completed = barrier.clock.clone();
                    }
                    if let Some(dst) = mbar.dst {
                        warp.set_value(dst, lane, old);
                    }
                }
                // An arrival that was added and taken back at once.
                MbarOp::CopyArrive { noinc: false } => {
                    barrier.clock.join(&warp.clock);
                    barrier.clock.see(who, now);
                }
                MbarOp::ExpectTx => {}
                MbarOp::TestWait { parity, .. } => {
                    let arg = arg.unwrap_or(0);
                    let done = if parity { barrier.phase & 1 != arg & 1 } else { barrier.phase != arg >> 32 };
                    if done {
                        warp.clock.join(&barrier.completed);
                    }
                    waits |= !done;
                    if let Some(dst) = mbar.dst {
                        warp.set_value(dst, lane, done.into());
                    }
                }
                MbarOp::Init | MbarOp::PendingCount => {}
            }
        }
        self.tick();
        Ok(if waits { Next::GiveWay } else { Next::Ahead })
    }

    fn mbar_init(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        mbar: &Mbar,
        address: u64,
        at: usize,
        lane: usize,
    ) -> Step {
        let count = mbar.arg.map_or(0, |reg| warp.value(reg, lane));
        if count == 0 || count > MAX_COUNT {
            let message = format!("a barrier for {count} arrivals: expected 1 to {MAX_COUNT}");
            return Err(Fault::new(Finding::BadBarrier, message).at(Space::Shared, address).lanes(1 << lane));
        }
        let kind = Kind { write: true, atomic: false, bytes: 8 };
        let clock = std::mem::take(&mut warp.clock);
        let result = self.put(block, warp, &clock, Space::Shared, address, at, kind, lane, &count.to_le_bytes());
        warp.clock = clock;
        result?;
        let clock = Clock::new(block.linear.wrapping_mul(self.warps), self.warps as usize);
        let barrier = MemoryBarrier { expected: count, pending: count, phase: 0, completed: clock.clone(), clock };
        block.memory_barriers.insert(at as u32, barrier);
        Ok(())
    }
}
