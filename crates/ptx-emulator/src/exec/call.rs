//! Calls of functions. Every function has its registers once per warp, so none may call itself.

use super::Machine;
use super::fault::Fault;
use super::step::{Next, Step};
use crate::program::{Call, FUNCTION_WINDOW, Instr, Slot, Target};
use crate::report::Finding;
use crate::warp::{Frame, Lanes, Warp};

/// Deeper calls than this are refused.
const MAX_DEPTH: u8 = 200;

impl Machine<'_> {
    pub(super) fn call(&mut self, warp: &mut Warp, call: &Call, mask: u32) -> Step<Next> {
        let (func, mask) = match call.target {
            Target::Direct(func) => (func, mask),
            Target::Indirect(reg) => {
                self.unset(warp, &[reg], mask)?;
                let target = warp.value(reg, mask.trailing_zeros() as usize);
                let same =
                    Lanes(mask).filter(|lane| warp.value(reg, *lane) == target).fold(0, |set, lane| set | 1 << lane);
                let index = target.wrapping_sub(FUNCTION_WINDOW);
                if !index.is_multiple_of(16) || index / 16 >= self.program.funcs.len() as u64 {
                    let message = format!("call of {target:#x}, where no function is");
                    return Err(Fault::new(Finding::BadTarget, message).lanes(same));
                }
                // Lanes with another target stay and are next.
                ((index / 16) as u16, same)
            }
        };
        let program = self.program;
        let info = &program.funcs[usize::from(func)];
        if info.params.len() != call.args.len() {
            let message = format!("{} takes {} arguments, found {}", info.name, info.params.len(), call.args.len());
            return Err(Fault::new(Finding::BadTarget, message).lanes(mask));
        }
        // Lanes whose guard fails go on; they and lanes with another target are told apart by their place.
        let skipped = warp.active & !mask;
        let indirect = matches!(call.target, Target::Indirect(_));
        warp.store_pcs();
        if !indirect {
            for lane in Lanes(skipped) {
                warp.pcs[lane] = warp.pc + 1;
            }
        } else if let Some(guard) = program.ops[warp.pc as usize].guard {
            let holds = self.pred(warp, guard, warp.active)?;
            for lane in Lanes(skipped & !holds) {
                warp.pcs[lane] = warp.pc + 1;
            }
        }
        for lane in Lanes(mask) {
            let recursive = warp.frames[lane].iter().any(|frame| frame.func == func);
            if recursive || warp.depth[lane] >= MAX_DEPTH {
                let message = format!("{} calls itself, which is not supported", info.name);
                return Err(Fault::new(Finding::BadTarget, message).lanes(1 << lane));
            }
            for (from, to) in call.args.iter().zip(&info.params) {
                self.pass(warp, lane, *from, *to);
            }
            warp.frames[lane].push(Frame { call: warp.pc, func });
            warp.depth[lane] += 1;
            warp.pcs[lane] = info.entry;
        }
        Ok(Next::Select)
    }

    pub(super) fn ret(&mut self, warp: &mut Warp, mask: u32) -> Step<Next> {
        if warp.depth[mask.trailing_zeros() as usize] == 0 {
            self.exit(warp, mask);
            return Ok(Next::Select);
        }
        warp.pc += 1;
        warp.store_pcs();
        let program = self.program;
        for lane in Lanes(mask) {
            let Some(frame) = warp.frames[lane].pop() else { continue };
            warp.depth[lane] -= 1;
            warp.pcs[lane] = frame.call + 1;
            if let Instr::Call(call) = &program.ops[frame.call as usize].instr {
                let info = &program.funcs[usize::from(frame.func)];
                for (from, to) in info.rets.iter().zip(&call.rets) {
                    self.pass(warp, lane, *from, *to);
                }
            }
        }
        Ok(Next::Select)
    }

    /// Copies a value between registers and parameter space.
    fn pass(&self, warp: &mut Warp, lane: usize, from: Slot, to: Slot) {
        let base = lane * self.program.call_bytes as usize;
        match (from, to) {
            (Slot::Reg(from), Slot::Reg(to)) => {
                let value = warp.value(from, lane);
                let unset = warp.unset(from) & 1 << lane;
                warp.set_value(to, lane, value);
                warp.poison(to, unset);
            }
            (Slot::Bytes { offset: from, len }, Slot::Bytes { offset: to, len: room }) => {
                let len = len.min(room) as usize;
                let from = base + from as usize;
                warp.call.copy_within(from..from + len, base + to as usize);
            }
            (Slot::Reg(from), Slot::Bytes { offset, len }) => {
                let len = len.min(8) as usize;
                let value = warp.value(from, lane).to_le_bytes();
                let to = base + offset as usize;
                warp.call[to..to + len].copy_from_slice(&value[..len]);
            }
            (Slot::Bytes { offset, len }, Slot::Reg(to)) => {
                let len = len.min(8) as usize;
                let from = base + offset as usize;
                let mut raw = [0; 8];
                raw[..len].copy_from_slice(&warp.call[from..from + len]);
                warp.set_value(to, lane, u64::from_le_bytes(raw));
            }
            (Slot::Sink, _) | (_, Slot::Sink) => {}
        }
    }
}
