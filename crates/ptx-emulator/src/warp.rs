//! The state of 32 threads that run together.

use crate::program::{Init, Program, Special};
use crate::shadow::Clock;
use crate::types::{Class, Reg, Row, Row64};

/// Bits of a mask, as lane numbers.
#[derive(Clone, Copy)]
pub(crate) struct Lanes(pub(crate) u32);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(lane as usize)
    }
}

/// A call that a lane has not returned from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The operation that called.
    pub(crate) call: u32,
    pub(crate) func: u16,
}

/// An asynchronous copy that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) lane: u8,
    pub(crate) len: u8,
    pub(crate) at: u32,
    pub(crate) pc: u32,
    /// The group that it was committed to.
    pub(crate) group: Option<u32>,
    pub(crate) bytes: [u8; 16],
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Warp {
    pub(crate) index: u32,
    pub(crate) narrow: Vec<Row>,
    pub(crate) narrow_set: Vec<u32>,
    pub(crate) wide: Vec<Row64>,
    pub(crate) wide_set: Vec<u32>,
    pub(crate) preds: Vec<u32>,
    pub(crate) preds_set: Vec<u32>,
    pub(crate) carry: u32,
    /// Lanes that exist, and that have not exited.
    pub(crate) born: u32,
    pub(crate) alive: u32,
    /// Lanes that wait at a barrier.
    pub(crate) parked: u32,
    /// The lanes that run now, and where; the others' places are in `pcs`.
    pub(crate) active: u32,
    pub(crate) pc: u32,
    /// The place where waiting lanes join.
    pub(crate) limit: u32,
    pub(crate) pcs: Row,
    pub(crate) depth: [u8; 32],
    pub(crate) frames: Vec<Vec<Frame>>,
    pub(crate) clock: Clock,
    /// What the warp had seen and done at its last fence.
    pub(crate) fenced: Option<Clock>,
    pub(crate) local: Vec<u8>,
    pub(crate) local_set: Vec<bool>,
    pub(crate) call: Vec<u8>,
    pub(crate) copies: Vec<Copy>,
    /// Committed groups, per lane.
    pub(crate) groups: Row,
}

/// What the rows of special registers hold in a launch.
pub(crate) struct Geometry {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic: u32,
    pub(crate) dynamic_base: u32,
    pub(crate) total_shared: u32,
    pub(crate) variables: Vec<u64>,
}

impl Warp {
    /// A warp with its constants in place.
    pub(crate) fn new(program: &Program, geometry: &Geometry, index: u32) -> Self {
        let mut warp = Self {
            index,
            narrow: vec![[0; 32]; program.narrow.len()],
            narrow_set: vec![0; program.narrow.len()],
            wide: vec![[0; 32]; program.wide.len()],
            wide_set: vec![0; program.wide.len()],
            preds: vec![0; program.preds.len()],
            preds_set: vec![0; program.preds.len()],
            local: vec![0; program.local_bytes as usize * 32],
            local_set: vec![false; program.local_bytes as usize * 32],
            call: vec![0; program.call_bytes as usize * 32],
            frames: if program.funcs.is_empty() { Vec::new() } else { vec![Vec::new(); 32] },
            ..Self::default()
        };
        let threads: u32 = geometry.block.iter().product();
        let count = threads.saturating_sub(index * 32).min(32);
        warp.born = if count == 32 { u32::MAX } else { (1 << count) - 1 };
        for (row, init) in program.narrow.iter().enumerate() {
            if let Some(value) = known(init, geometry, index) {
                warp.narrow[row] = std::array::from_fn(|lane| value(lane as u32) as u32);
                warp.narrow_set[row] = u32::MAX;
            }
        }
        for (row, init) in program.wide.iter().enumerate() {
            if let Some(value) = known(init, geometry, index) {
                warp.wide[row] = std::array::from_fn(|lane| value(lane as u32));
                warp.wide_set[row] = u32::MAX;
            }
        }
        for (row, init) in program.preds.iter().enumerate() {
            if matches!(init, Init::Const(_)) {
                warp.preds[row] = u32::MAX;
                warp.preds_set[row] = u32::MAX;
            }
        }
        warp
    }

    /// Ready for the first instruction of a block.
    pub(crate) fn reset(&mut self, program: &Program, block: [u32; 3], clock: Clock) {
        for (row, init) in program.narrow.iter().enumerate() {
            match init {
                Init::Reg(_) => self.narrow_set[row] = 0,
                Init::Special(Special::Ctaid(axis)) => self.narrow[row] = [block[usize::from(*axis)]; 32],
                _ => {}
            }
        }
        for (row, init) in program.wide.iter().enumerate() {
            match init {
                Init::Reg(_) => self.wide_set[row] = 0,
                Init::Special(Special::Ctaid(axis)) => self.wide[row] = [block[usize::from(*axis)].into(); 32],
                _ => {}
            }
        }
        for (row, init) in program.preds.iter().enumerate() {
            if let Init::Reg(_) = init {
                self.preds_set[row] = 0;
            }
        }
        self.local_set.fill(false);
        self.frames.iter_mut().for_each(Vec::clear);
        self.copies.clear();
        self.groups = [0; 32];
        self.depth = [0; 32];
        self.pcs = [0; 32];
        (self.carry, self.parked, self.pc, self.limit) = (0, 0, 0, u32::MAX);
        (self.alive, self.active) = (self.born, self.born);
        self.clock = clock;
        self.fenced = None;
    }

    /// Lanes whose register no instruction wrote.
    pub(crate) fn unset(&self, reg: Reg) -> u32 {
        let row = usize::from(reg.row);
        !match reg.class {
            Class::R => self.narrow_set[row],
            Class::W => self.wide_set[row],
            Class::P => self.preds_set[row],
        }
    }

    /// Makes a register count as never written in some lanes.
    #[inline(always)]
    pub(crate) fn poison(&mut self, reg: Reg, lanes: u32) {
        let row = usize::from(reg.row);
        match reg.class {
            Class::R => self.narrow_set[row] &= !lanes,
            Class::W => self.wide_set[row] &= !lanes,
            Class::P => self.preds_set[row] &= !lanes,
        }
    }

    #[inline(always)]
    pub(crate) fn value(&self, reg: Reg, lane: usize) -> u64 {
        let row = usize::from(reg.row);
        match reg.class {
            Class::R => self.narrow[row][lane].into(),
            Class::W => self.wide[row][lane],
            Class::P => (self.preds[row] >> lane & 1).into(),
        }
    }

    #[inline(always)]
    pub(crate) fn set_value(&mut self, reg: Reg, lane: usize, value: u64) {
        let row = usize::from(reg.row);
        match reg.class {
            Class::R => {
                self.narrow[row][lane] = value as u32;
                self.narrow_set[row] |= 1 << lane;
            }
            Class::W => {
                self.wide[row][lane] = value;
                self.wide_set[row] |= 1 << lane;
            }
            Class::P => self.set_pred(reg.row, (value as u32 & 1) << lane, 1 << lane),
        }
    }

    #[inline(always)]
    pub(crate) fn set_narrow(&mut self, row: u16, values: &Row, mask: u32) {
        let row = usize::from(row);
        let old = &mut self.narrow[row];
        if mask == u32::MAX {
            *old = *values;
        } else {
            for lane in 0..32 {
                old[lane] = if mask >> lane & 1 == 1 { values[lane] } else { old[lane] };
            }
        }
        self.narrow_set[row] |= mask;
    }

    #[inline(always)]
    pub(crate) fn set_wide(&mut self, row: u16, values: &Row64, mask: u32) {
        let row = usize::from(row);
        let old = &mut self.wide[row];
        if mask == u32::MAX {
            *old = *values;
        } else {
            for lane in 0..32 {
                old[lane] = if mask >> lane & 1 == 1 { values[lane] } else { old[lane] };
            }
        }
        self.wide_set[row] |= mask;
    }

    #[inline(always)]
    pub(crate) fn set_pred(&mut self, row: u16, values: u32, mask: u32) {
        let row = usize::from(row);
        self.preds[row] = self.preds[row] & !mask | values & mask;
        self.preds_set[row] |= mask;
    }

    /// A register of either width as 64-bit lanes.
    #[inline(always)]
    pub(crate) fn widened(&self, reg: Reg) -> Row64 {
        let row = usize::from(reg.row);
        match reg.class {
            Class::W => self.wide[row],
            Class::R => self.narrow[row].map(u64::from),
            Class::P => std::array::from_fn(|lane| (self.preds[row] >> lane & 1).into()),
        }
    }

    #[inline(always)]
    pub(crate) fn set_widened(&mut self, reg: Reg, values: &Row64, mask: u32) {
        match reg.class {
            Class::W => self.set_wide(reg.row, values, mask),
            Class::R => self.set_narrow(reg.row, &values.map(|value| value as u32), mask),
            Class::P => {
                let bits = (0..32).fold(0, |bits, lane| bits | (values[lane] as u32 & 1) << lane);
                self.set_pred(reg.row, bits, mask);
            }
        }
    }

    /// Writes where the running lanes are to their places.
    pub(crate) fn store_pcs(&mut self) {
        for lane in Lanes(self.active) {
            self.pcs[lane] = self.pc;
        }
    }

    /// Picks the lanes to run: the deepest calls first, then the lowest place. False if none can.
    pub(crate) fn select(&mut self) -> bool {
        let ready = self.alive & !self.parked;
        self.active = 0;
        if ready == 0 {
            return false;
        }
        let deepest = Lanes(ready).map(|lane| self.depth[lane]).max().unwrap_or(0);
        let mut pc = u32::MAX;
        for lane in Lanes(ready).filter(|lane| self.depth[*lane] == deepest) {
            pc = pc.min(self.pcs[lane]);
        }
        self.limit = u32::MAX;
        for lane in Lanes(ready).filter(|lane| self.depth[*lane] == deepest) {
            if self.pcs[lane] == pc {
                self.active |= 1 << lane;
            } else {
                self.limit = self.limit.min(self.pcs[lane]);
            }
        }
        self.pc = pc;
        true
    }
}

type LaneValue = Box<dyn Fn(u32) -> u64>;

/// What a row holds that is no register.
fn known(init: &Init, geometry: &Geometry, warp: u32) -> Option<LaneValue> {
    let same = |value: u64| -> Option<LaneValue> { Some(Box::new(move |_| value)) };
    match init {
        Init::Reg(_) => None,
        Init::Const(value) => same(*value),
        Init::Variable(index, offset) => same(geometry.variables[*index].wrapping_add(*offset as u64)),
        Init::Dynamic(offset) => same(u64::from(geometry.dynamic_base).wrapping_add(*offset as u64)),
        Init::Special(special) => {
            let [x, y, _] = geometry.block;
            match *special {
                Special::Tid(axis) => Some(Box::new(move |lane| {
                    let thread = warp * 32 + lane;
                    [thread % x, thread / x % y, thread / (x * y)][usize::from(axis)].into()
                })),
                Special::Ntid(axis) => same(geometry.block[usize::from(axis)].into()),
                Special::Ctaid(_) | Special::Zero => same(0),
                Special::Nctaid(axis) => same(geometry.grid[usize::from(axis)].into()),
                Special::LaneId => Some(Box::new(u64::from)),
                Special::WarpId => same(warp.into()),
                Special::WarpCount => same(geometry.block.iter().product::<u32>().div_ceil(32).into()),
                Special::One => same(1),
                Special::MaskEq => Some(Box::new(|lane| 1 << lane)),
                Special::MaskLe => Some(Box::new(|lane| (2 << lane) - 1)),
                Special::MaskLt => Some(Box::new(|lane| (1 << lane) - 1)),
                Special::MaskGe => Some(Box::new(|lane| u64::from(u32::MAX) & !((1 << lane) - 1))),
                Special::MaskGt => Some(Box::new(|lane| u64::from(u32::MAX) & !((2 << lane) - 1))),
                Special::DynamicShared => same(geometry.dynamic.into()),
                Special::TotalShared => same(geometry.total_shared.into()),
            }
        }
    }
}
