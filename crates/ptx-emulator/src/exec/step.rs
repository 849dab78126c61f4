//! One instruction after the other, for the lanes that are at the same place.

use super::fault::Fault;
use super::{Block, Machine, Stop};
use crate::options::Approximation;
use crate::program::{Bool, Carry, Clock, Compare, Instr, PredArg};
use crate::report::Finding;
use crate::types::{Class, Reg, Row};
use crate::warp::{Lanes, Warp};

pub(super) type Step<T = ()> = Result<T, Box<Fault>>;

/// What follows an instruction.
pub(super) enum Next {
    /// The next one.
    Ahead,
    /// Lanes went different ways or stopped: look who can run.
    Select,
    /// The next one, but others first.
    GiveWay,
}

fn pred_bits(warp: &Warp, p: PredArg) -> u32 {
    let bits = warp.preds[usize::from(p.row)];
    if p.negated { !bits } else { bits }
}

impl Machine<'_> {
    /// Runs a warp until it stops or its turn is over.
    pub(super) fn step(&mut self, block: &mut Block, warp: &mut Warp, budget: u64) -> Step<Stop> {
        if !warp.select() {
            return Ok(Stop::Blocked);
        }
        let program = self.program;
        let mut left = budget;
        loop {
            if left == 0 {
                warp.store_pcs();
                return Ok(Stop::Slice);
            }
            left -= 1;
            if self.fuel == 0 {
                let message =
                    format!("more than {} instructions: the kernel hangs, or needs more fuel", self.options.fuel);
                return Err(Fault::new(Finding::Hang, message).lanes(warp.active));
            }
            self.fuel -= 1;
            let op = &program.ops[warp.pc as usize];
            let mut mask = warp.active;
            if let Some(guard) = op.guard {
                mask &= self.pred(warp, guard, mask)?;
            }
            if self.options.stats {
                self.counts[warp.pc as usize] += 1;
                self.stats.warp_instructions += 1;
                self.stats.lane_instructions += u64::from(mask.count_ones());
            }
            let next = match &op.instr {
                Instr::Map32 { f, d, s } => {
                    let rows = s.map(usize::from);
                    let set = rows.iter().fold(u32::MAX, |set, row| set & warp.narrow_set[*row]);
                    let unknown = mask & !set;
                    if unknown != 0 {
                        self.flow(warp, &s.map(|row| Reg { class: Class::R, row }), mask)?;
                    }
                    let mut out = [0; 32];
                    f(rows.map(|row| &warp.narrow[row]), &mut out);
                    warp.set_narrow(*d, &out, mask);
                    warp.narrow_set[usize::from(*d)] &= !unknown;
                    Next::Ahead
                }
                Instr::Map64 { f, d, s } => {
                    let unknown = self.flow(warp, s, mask)?;
                    let mut out = [0; 32];
                    if s.iter().all(|reg| reg.class == Class::W) {
                        f(s.map(|reg| &warp.wide[usize::from(reg.row)]), &mut out);
                    } else {
                        let rows = s.map(|reg| warp.widened(reg));
                        f([&rows[0], &rows[1], &rows[2], &rows[3]], &mut out);
                    }
                    warp.set_widened(*d, &out, mask);
                    warp.poison(*d, unknown);
                    Next::Ahead
                }
                Instr::Setp { f, d, other, s, combine } => {
                    let (yes, no, unknown) = self.compared(warp, *f, s, *combine, mask)?;
                    for (row, value) in [(d, yes), (other, no)] {
                        if let Some(row) = row {
                            warp.set_pred(*row, value, mask);
                            warp.poison(Reg { class: Class::P, row: *row }, unknown);
                        }
                    }
                    Next::Ahead
                }
                Instr::Bra { target } => {
                    if mask == warp.active {
                        warp.pc = *target;
                        if warp.pc >= warp.limit {
                            warp.store_pcs();
                            warp.select();
                        }
                        continue;
                    }
                    if mask != 0 {
                        warp.pc += 1;
                        warp.store_pcs();
                        for lane in Lanes(mask) {
                            warp.pcs[lane] = *target;
                        }
                        warp.select();
                        continue;
                    }
                    Next::Ahead
                }
                Instr::Load(access) => self.load(block, warp, access, mask)?,
                Instr::Store(access) => self.store(block, warp, access, mask)?,
                Instr::LoadParam { d, ty, offset, width } => {
                    self.load_param(warp, d, *ty, *offset, *width, mask);
                    Next::Ahead
                }
                _ if mask == 0 => Next::Ahead,
                other => self.rare(block, warp, other, mask)?,
            };
            match next {
                Next::Ahead => {
                    warp.pc += 1;
                    if warp.pc < warp.limit {
                        continue;
                    }
                    warp.store_pcs();
                    warp.select();
                }
                Next::Select => {
                    if !warp.select() {
                        return Ok(Stop::Blocked);
                    }
                }
                Next::GiveWay => {
                    warp.pc += 1;
                    warp.store_pcs();
                    return Ok(Stop::Waits);
                }
            }
        }
    }

    /// Instructions that are few in a kernel, or slow anyway.
    fn rare(&mut self, block: &mut Block, warp: &mut Warp, instr: &Instr, mask: u32) -> Step<Next> {
        match instr {
            Instr::Convert { how, d, s } => {
                let unknown = self.flow(warp, s, mask)?;
                for lane in Lanes(mask) {
                    let value = how.apply(warp.value(s[0], lane), warp.value(s[1], lane));
                    warp.set_value(*d, lane, value);
                }
                warp.poison(*d, unknown);
            }
            Instr::Approx { f, d, s } => {
                let unknown = self.flow(warp, s, mask)?;
                let seed = match self.options.approximation {
                    Approximation::Exact => None,
                    Approximation::Perturbed(seed) => Some(seed),
                };
                for lane in Lanes(mask) {
                    let value = f.apply(warp.value(s[0], lane), warp.value(s[1], lane), seed);
                    warp.set_value(*d, lane, value);
                }
                warp.poison(*d, unknown);
            }
            Instr::Carry(carry) => self.carry(warp, carry, mask)?,
            Instr::CheckDivisor { s } => {
                self.unset(warp, &[*s], mask)?;
                let zeros = Lanes(mask).filter(|lane| warp.value(*s, *lane) == 0).fold(0, |set, lane| set | 1 << lane);
                if zeros != 0 && self.options.checks.division_by_zero {
                    return Err(Fault::new(
                        Finding::DivisionByZero,
                        "integer division by zero: the result is undefined",
                    )
                    .lanes(zeros));
                }
            }
            Instr::Set { f, d, one, s, combine } => {
                let (yes, _, unknown) = self.compared(warp, *f, s, *combine, mask)?;
                for lane in Lanes(mask) {
                    warp.set_value(*d, lane, if yes >> lane & 1 == 1 { (*one).into() } else { 0 });
                }
                warp.poison(*d, unknown);
            }
            Instr::SetpHalves { f, d, other, s, combine } => {
                let (low, _, unknown) = self.compared(warp, f[0], s, *combine, mask)?;
                let (high, ..) = self.compared(warp, f[1], s, *combine, mask)?;
                let low = if other.is_some() { low } else { low & high };
                for (row, value) in [(d, low), (other, high)] {
                    if let Some(row) = row {
                        warp.set_pred(*row, value, mask);
                        warp.poison(Reg { class: Class::P, row: *row }, unknown);
                    }
                }
            }
            Instr::Select { d, a, b, p } => {
                let condition = Reg { class: Class::P, row: p.row };
                let unknown = self.flow(warp, &[condition], mask)?;
                let p = pred_bits(warp, *p);
                let unknown = unknown | self.flow(warp, &[*a], mask & p)? | self.flow(warp, &[*b], mask & !p)?;
                if a.class == Class::R && b.class == Class::R {
                    let (a, b) = (&warp.narrow[usize::from(a.row)], &warp.narrow[usize::from(b.row)]);
                    let out: Row = std::array::from_fn(|lane| if p >> lane & 1 == 1 { a[lane] } else { b[lane] });
                    warp.set_narrow(d.row, &out, mask);
                } else {
                    for lane in Lanes(mask) {
                        let value = warp.value(if p >> lane & 1 == 1 { *a } else { *b }, lane);
                        warp.set_value(*d, lane, value);
                    }
                }
                warp.poison(*d, unknown);
            }
            Instr::PredLogic { op, d, a, b } => {
                let value = op.apply(pred_bits(warp, *a), pred_bits(warp, *b));
                let regs = [*a, *b].map(|p| Reg { class: Class::P, row: p.row });
                let unknown = self.flow(warp, &regs, mask)?;
                warp.set_pred(*d, value, mask);
                warp.poison(Reg { class: Class::P, row: *d }, unknown);
            }
            Instr::PredMove { d, a } => {
                let value = pred_bits(warp, *a);
                let unknown = self.flow(warp, &[Reg { class: Class::P, row: a.row }], mask)?;
                warp.set_pred(*d, value, mask);
                warp.poison(Reg { class: Class::P, row: *d }, unknown);
            }
            Instr::Pack { d, s, bits } => {
                let unknown = self.flow(warp, s, mask)?;
                let part = if *bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                for lane in Lanes(mask) {
                    let parts = s.iter().enumerate();
                    let value =
                        parts.fold(0, |all, (i, reg)| all | (warp.value(*reg, lane) & part) << (*bits as usize * i));
                    warp.set_value(*d, lane, value);
                }
                warp.poison(*d, unknown);
            }
            Instr::Unpack { d, s, bits } => {
                let unknown = self.flow(warp, &[*s], mask)?;
                let part = (1 << bits) - 1;
                for lane in Lanes(mask) {
                    let value = warp.value(*s, lane);
                    for (i, reg) in d.iter().enumerate() {
                        if let Some(reg) = reg {
                            warp.set_value(*reg, lane, value >> (*bits as usize * i) & part);
                        }
                    }
                }
                for reg in d.iter().flatten() {
                    warp.poison(*reg, unknown);
                }
            }
            Instr::Atomic(atomic) => self.atomic(block, warp, atomic, mask)?,
            Instr::Brx { index, targets } => {
                self.unset(warp, &[*index], mask)?;
                warp.pc += 1;
                warp.store_pcs();
                warp.pc -= 1;
                for lane in Lanes(mask) {
                    let index = warp.value(*index, lane);
                    let Some(target) = targets.get(index as usize) else {
                        let message = format!("branch index {index} is beyond the {} targets", targets.len());
                        return Err(Fault::new(Finding::BadTarget, message).lanes(1 << lane));
                    };
                    warp.pcs[lane] = *target;
                }
                return Ok(Next::Select);
            }
            Instr::Call(call) => return self.call(warp, call, mask),
            Instr::Ret => return self.ret(warp, mask),
            Instr::Exit => {
                self.exit(warp, mask);
                return Ok(Next::Select);
            }
            Instr::Trap => return Err(Fault::new(Finding::Trap, "the kernel trapped").lanes(mask)),
            Instr::Nop => {}
            Instr::Yield => return Ok(Next::GiveWay),
            Instr::Bar(barrier) => return self.barrier(block, warp, barrier, mask),
            Instr::BarWarp { mask: members } => self.warp_barrier(block, warp, *members, mask)?,
            Instr::Fence => {
                let now = self.tick();
                let who = self.who(block, warp);
                let mut clock = warp.clock.clone();
                clock.see(who, now);
                warp.fenced = Some(clock);
            }
            Instr::Shfl(shfl) => self.shfl(warp, shfl, mask)?,
            Instr::Vote { mode, d, p, mask: members } => self.vote(warp, *mode, *d, *p, *members, mask)?,
            Instr::Match { all, d, pred, s, mask: members } => {
                self.matches(warp, *all, *d, *pred, *s, *members, mask)?
            }
            Instr::Redux { f, d, s, mask: members } => self.redux(warp, *f, *d, *s, *members, mask)?,
            Instr::ActiveMask { d } => warp.set_narrow(*d, &[mask; 32], mask),
            Instr::Elect { d, p, mask: members } => self.elect(warp, *d, *p, *members, mask)?,
            Instr::Clock { kind, d } => {
                let now = self.options.fuel - self.fuel;
                let value = match kind {
                    Clock::Clock32 | Clock::Clock64 => now,
                    Clock::Nanoseconds => now / 2,
                };
                for lane in Lanes(mask) {
                    warp.set_value(*d, lane, value);
                }
            }
            Instr::CopyAsync(copy) => self.copy_async(block, warp, copy, mask)?,
            Instr::CopyCommit => self.copy_commit(warp, mask),
            Instr::CopyWait { groups } => self.copy_wait(block, warp, *groups, mask)?,
            Instr::Mbar(mbar) => return self.memory_barrier(block, warp, mbar, mask),
            Instr::LoadMatrix(matrix) => self.load_matrix(block, warp, matrix, mask)?,
            Instr::StoreMatrix(matrix) => self.store_matrix(block, warp, matrix, mask)?,
            Instr::MoveMatrix { d, s } => self.move_matrix(warp, *d, *s, mask)?,
            Instr::Mma(mma) => self.mma(warp, mma, mask)?,
            Instr::WmmaLoad(wmma) => self.wmma_load(block, warp, wmma, mask)?,
            Instr::WmmaStore(wmma) => self.wmma_store(block, warp, wmma, mask)?,
            // Handled where they are fast.
            Instr::Map32 { .. }
            | Instr::Map64 { .. }
            | Instr::Setp { .. }
            | Instr::Bra { .. }
            | Instr::Load(_)
            | Instr::Store(_)
            | Instr::LoadParam { .. } => {}
        }
        Ok(Next::Ahead)
    }

    /// Fails if a lane of the mask reads a register that nothing wrote.
    #[inline(always)]
    pub(super) fn unset(&self, warp: &Warp, regs: &[Reg], mask: u32) -> Step {
        for reg in regs {
            let unset = mask & warp.unset(*reg);
            if unset != 0 && self.options.checks.uninitialised_registers {
                return Err(self.unset_fault(*reg, unset));
            }
        }
        Ok(())
    }

    /// Lanes in which a value depends on a register that nothing wrote. That is no fault until it matters.
    #[inline(always)]
    pub(super) fn flow(&self, warp: &Warp, regs: &[Reg], mask: u32) -> Step<u32> {
        let unknown = mask & regs.iter().fold(0, |unset, reg| unset | warp.unset(*reg));
        if unknown != 0 && self.options.checks.unwritten_reads {
            self.unset(warp, regs, mask)?;
        }
        Ok(unknown)
    }

    #[cold]
    fn unset_fault(&self, reg: Reg, lanes: u32) -> Box<Fault> {
        let name = self.program.row_name(reg).unwrap_or("a register");
        Fault::new(
            Finding::UninitialisedRegister,
            format!("{name} was never written, or depends on a register that was not"),
        )
        .lanes(lanes)
    }

    /// The lanes in which a predicate holds.
    #[inline(always)]
    pub(super) fn pred(&self, warp: &Warp, p: PredArg, mask: u32) -> Step<u32> {
        let row = usize::from(p.row);
        let unset = mask & !warp.preds_set[row];
        if unset != 0 && self.options.checks.uninitialised_registers {
            return Err(self.unset_fault(Reg { class: Class::P, row: p.row }, unset));
        }
        Ok(if p.negated { !warp.preds[row] } else { warp.preds[row] })
    }

    /// Where a comparison holds, where its contrary does, and where that is unknown.
    fn compared(
        &self,
        warp: &Warp,
        f: Compare,
        s: &[Reg; 2],
        combine: Option<(Bool, PredArg)>,
        mask: u32,
    ) -> Step<(u32, u32, u32)> {
        let unknown = self.flow(warp, s, mask)?;
        let holds = match f {
            Compare::N(f) => f(&warp.narrow[usize::from(s[0].row)], &warp.narrow[usize::from(s[1].row)]),
            Compare::W(f) => f(&warp.wide[usize::from(s[0].row)], &warp.wide[usize::from(s[1].row)]),
        };
        Ok(match combine {
            None => (holds, !holds, unknown),
            Some((op, p)) => {
                let unknown = unknown | self.flow(warp, &[Reg { class: Class::P, row: p.row }], mask)?;
                let p = pred_bits(warp, p);
                (op.apply(holds, p), op.apply(!holds, p), unknown)
            }
        })
    }

    fn carry(&self, warp: &mut Warp, carry: &Carry, mask: u32) -> Step {
        let unknown = self.flow(warp, &carry.s, mask)?;
        let bits = if carry.wide { 64 } else { 32 };
        let limit = (1_u128 << bits) - 1;
        for lane in Lanes(mask) {
            let [a, b, c] = carry.s.map(|reg| u128::from(warp.value(reg, lane)));
            let carried = u128::from(carry.carry_in && warp.carry >> lane & 1 == 1);
            let signed = |x: u128| if carry.wide { i128::from(x as u64 as i64) } else { i128::from(x as u32 as i32) };
            let (x, y) = match carry.product {
                None => (a, b),
                Some((high, true)) => ((signed(a) * signed(b) >> if high { bits } else { 0 }) as u128 & limit, c),
                Some((high, false)) => ((a * b >> if high { bits } else { 0 }) & limit, c),
            };
            let (result, out) = if carry.subtract {
                let result = x.wrapping_sub(y).wrapping_sub(carried);
                (result, x < y + carried)
            } else {
                let result = (x & limit) + y + carried;
                (result, result > limit)
            };
            warp.set_value(carry.d, lane, (result & limit) as u64);
            if carry.carry_out {
                warp.carry = warp.carry & !(1 << lane) | u32::from(out) << lane;
            }
        }
        warp.poison(carry.d, unknown);
        Ok(())
    }

    /// Lanes leave the kernel.
    pub(super) fn exit(&mut self, warp: &mut Warp, mask: u32) {
        warp.pc += 1;
        warp.store_pcs();
        warp.alive &= !mask;
    }
}
