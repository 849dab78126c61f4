//! What lanes exchange within a warp.

use super::Machine;
use super::fault::Fault;
use super::step::Step;
use crate::program::{PredArg, Shfl, ShflMode, VoteMode};
use crate::report::Finding;
use crate::types::{Class, Reg};
use crate::warp::{Lanes, Warp};

fn narrow(row: u16) -> Reg {
    Reg { class: Class::R, row }
}

impl Machine<'_> {
    pub(super) fn shfl(&self, warp: &mut Warp, shfl: &Shfl, mask: u32) -> Step {
        self.members(warp, narrow(shfl.mask), mask)?;
        self.unset(warp, &[narrow(shfl.lane), narrow(shfl.clamp)], mask)?;
        let unset = self.flow(warp, &[narrow(shfl.src)], mask)?;
        let source = warp.narrow[usize::from(shfl.src)];
        let (mut values, mut valid, mut unknown) = ([0; 32], 0, 0);
        for lane in Lanes(mask) {
            let b = warp.narrow[usize::from(shfl.lane)][lane] & 31;
            let c = warp.narrow[usize::from(shfl.clamp)][lane];
            let (clamp, segment) = (c & 31, c >> 8 & 31);
            let at = lane as u32;
            let max = (at & segment) | (clamp & !segment);
            let min = at & segment;
            let from = match shfl.mode {
                ShflMode::Up => at.wrapping_sub(b),
                ShflMode::Down => at + b,
                ShflMode::Bfly => at ^ b,
                ShflMode::Idx => min | (b & !segment),
            };
            let ok = if shfl.mode == ShflMode::Up { from as i32 >= max as i32 } else { from <= max };
            let from = if ok { from } else { at };
            if mask >> from & 1 == 0 {
                let message = format!("lane {lane} takes the value of lane {from}, which does not take part");
                return Err(Fault::new(Finding::InactiveSource, message).lanes(1 << lane));
            }
            values[lane] = source[from as usize];
            valid |= u32::from(ok) << lane;
            unknown |= (unset >> from & 1) << lane;
        }
        if let Some(dst) = shfl.dst {
            warp.set_narrow(dst, &values, mask);
            warp.poison(narrow(dst), unknown);
        }
        if let Some(pred) = shfl.pred {
            warp.set_pred(pred, valid, mask);
        }
        Ok(())
    }

    pub(super) fn vote(&self, warp: &mut Warp, mode: VoteMode, d: Reg, p: PredArg, members: u16, mask: u32) -> Step {
        self.members(warp, narrow(members), mask)?;
        let holds = self.pred(warp, p, mask)? & mask;
        let value = match mode {
            VoteMode::Ballot => {
                warp.set_narrow(d.row, &[holds; 32], mask);
                return Ok(());
            }
            VoteMode::All => holds == mask,
            VoteMode::Any => holds != 0,
            VoteMode::Uni => holds == 0 || holds == mask,
        };
        warp.set_pred(d.row, if value { u32::MAX } else { 0 }, mask);
        Ok(())
    }

    pub(super) fn matches(
        &self,
        warp: &mut Warp,
        all: bool,
        d: Reg,
        pred: Option<u16>,
        s: Reg,
        members: u16,
        mask: u32,
    ) -> Step {
        self.members(warp, narrow(members), mask)?;
        self.unset(warp, &[s], mask)?;
        let values = warp.widened(s);
        let same = |lane: usize| {
            Lanes(mask).filter(|other| values[*other] == values[lane]).fold(0, |set, other| set | 1 << other)
        };
        if all {
            let agree = same(mask.trailing_zeros() as usize) == mask;
            warp.set_narrow(d.row, &[if agree { mask } else { 0 }; 32], mask);
            if let Some(pred) = pred {
                warp.set_pred(pred, if agree { u32::MAX } else { 0 }, mask);
            }
            return Ok(());
        }
        let mut out = [0; 32];
        for lane in Lanes(mask) {
            out[lane] = same(lane);
        }
        warp.set_narrow(d.row, &out, mask);
        Ok(())
    }

    pub(super) fn redux(
        &self,
        warp: &mut Warp,
        f: fn(u32, u32) -> u32,
        d: u16,
        s: u16,
        members: u16,
        mask: u32,
    ) -> Step {
        self.members(warp, narrow(members), mask)?;
        self.unset(warp, &[narrow(s)], mask)?;
        let source = &warp.narrow[usize::from(s)];
        let result = Lanes(mask).map(|lane| source[lane]).reduce(f).unwrap_or(0);
        warp.set_narrow(d, &[result; 32], mask);
        Ok(())
    }

    /// One lane of the mask: the lowest.
    pub(super) fn elect(&self, warp: &mut Warp, d: Option<u16>, p: u16, members: u16, mask: u32) -> Step {
        self.members(warp, narrow(members), mask)?;
        let leader = mask.trailing_zeros();
        if let Some(d) = d {
            warp.set_narrow(d, &[leader; 32], mask);
        }
        warp.set_pred(p, 1 << leader, mask);
        Ok(())
    }
}
