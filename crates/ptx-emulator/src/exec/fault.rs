//! What went wrong, on its way to becoming a report.

use super::{Block, Machine};
use crate::program::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::report::{Finding, Neighbour, Other, Report};
use crate::shadow::Conflict;
use crate::types::Space;
use crate::warp::Warp;

/// A finding with what only the instruction knows.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) finding: Finding,
    pub(super) message: String,
    pub(super) lanes: u32,
    pub(super) address: Option<(Space, u64)>,
    pub(super) conflict: Option<Conflict>,
    /// Another warp's place: its number in the block and the operation.
    pub(super) elsewhere: Option<(u32, u32)>,
    /// The operation, if not the warp's current one.
    pub(super) pc: Option<u32>,
}

impl Fault {
    #[cold]
    pub(super) fn new(finding: Finding, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            finding,
            message: message.into(),
            lanes: 0,
            address: None,
            conflict: None,
            elsewhere: None,
            pc: None,
        })
    }

    pub(super) fn lanes(mut self: Box<Self>, lanes: u32) -> Box<Self> {
        self.lanes = lanes;
        self
    }

    pub(super) fn at(mut self: Box<Self>, space: Space, address: u64) -> Box<Self> {
        self.address = Some((space, address));
        self
    }
}

impl Machine<'_> {
    fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        let [x, y, _] = self.geometry.block;
        let thread = warp * 32 + lane;
        [thread % x, thread / x % y, thread / (x * y)]
    }

    fn place(&self, pc: u32) -> (u32, u32, String) {
        let pos = self.program.info.get(pc as usize).map_or(self.program.pos, |info| info.pos);
        let text = self.lines.get((pos.line as usize).wrapping_sub(1)).cloned().unwrap_or_default();
        (pos.line, pos.column, text)
    }

    #[allow(clippy::boxed_local)] // Faults travel boxed: results stay small.
    pub(super) fn report(&self, block: &Block, index: usize, fault: Box<Fault>) -> Box<Report> {
        let warp = &block.warps[index];
        let pc = fault.pc.unwrap_or(warp.pc);
        let (line, column, text) = self.place(pc);
        let lanes = if fault.lanes == 0 { warp.active } else { fault.lanes };
        let lane = lanes.trailing_zeros().min(31);
        let other = match (fault.conflict, fault.elsewhere) {
            (Some(conflict), _) => Some(self.other(conflict)),
            (None, Some((warp, pc))) => {
                let (line, _, text) = self.place(pc);
                Some(Other { what: "waits", line, text, block: block.id, warp, thread: None })
            }
            (None, None) => None,
        };
        let (space, address) = fault.address.map_or((None, None), |(space, address)| (Some(space), Some(address)));
        Box::new(Report {
            finding: fault.finding,
            message: fault.message,
            kernel: self.program.name.clone(),
            line,
            column,
            text,
            block: block.id,
            warp: warp.index,
            lanes,
            thread: self.thread(warp.index, lane),
            address,
            space,
            allocation: fault.address.and_then(|(space, address)| self.neighbour(space, address)),
            operands: self.operands(warp, pc, lane as usize),
            other,
            seed: self.options.order.seed(),
        })
    }

    fn other(&self, conflict: Conflict) -> Other {
        let mark = conflict.mark;
        let (line, _, text) = self.place(mark.pc());
        let [x, y, _] = self.geometry.grid;
        let (block, warp) = (mark.who() / self.warps, mark.who() % self.warps);
        Other {
            what: if conflict.was_write { "write" } else { "read" },
            line,
            text,
            block: [block % x, block / x % y, block / (x * y)],
            warp,
            thread: mark.lane().map(|lane| self.thread(warp, lane)),
        }
    }

    fn operands(&self, warp: &Warp, pc: u32, lane: usize) -> Vec<(String, Option<u64>)> {
        let Some(info) = self.program.info.get(pc as usize) else { return Vec::new() };
        let mut operands: Vec<(String, Option<u64>)> = Vec::new();
        for reg in &info.regs {
            let Some(name) = self.program.row_name(*reg) else { continue };
            if operands.iter().all(|(known, _)| known != name) {
                let is_set = warp.unset(*reg) >> lane & 1 == 0;
                operands.push((name.to_string(), is_set.then(|| warp.value(*reg, lane))));
            }
        }
        operands
    }

    /// What lies at an address or before it.
    fn neighbour(&self, space: Space, address: u64) -> Option<Neighbour> {
        match space {
            Space::Shared => {
                let dynamic = self.geometry.dynamic_base;
                if let Some((name, _)) = &self.program.dynamic
                    && address >= dynamic.into()
                {
                    let offset = address as i64 - i64::from(dynamic);
                    return Some(Neighbour { name: name.clone(), bytes: self.geometry.dynamic.into(), offset });
                }
                nearest(&self.program.shared, address)
            }
            Space::Local => nearest(&self.program.local, address),
            Space::Param => {
                let params = self.program.params.iter();
                let param = params.rev().find(|param| u64::from(param.offset) <= address)?;
                let offset = address as i64 - i64::from(param.offset);
                Some(Neighbour { name: param.name.clone(), bytes: param.bytes.into(), offset })
            }
            Space::Global | Space::Const | Space::Generic => {
                let allocation = &self.global.allocations[self.global.before(address)?];
                let offset = address.wrapping_sub(allocation.base) as i64;
                Some(Neighbour { name: allocation.name.clone(), bytes: allocation.len, offset })
            }
        }
    }

    /// A generic address as a space and the address there.
    #[inline(always)]
    pub(super) fn resolve(space: Space, address: u64) -> (Space, u64) {
        if space != Space::Generic {
            return (space, address);
        }
        if address < PARAM_WINDOW {
            (Space::Global, address)
        } else if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
            (Space::Shared, address - SHARED_WINDOW)
        } else if address.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES {
            (Space::Local, address - LOCAL_WINDOW)
        } else if address.wrapping_sub(PARAM_WINDOW) < WINDOW_BYTES {
            (Space::Param, address - PARAM_WINDOW)
        } else {
            (Space::Global, address)
        }
    }
}

fn nearest(placed: &[crate::program::Placed], address: u64) -> Option<Neighbour> {
    let before = placed.iter().filter(|v| u64::from(v.offset) <= address);
    let v = before.max_by_key(|v| v.offset).or(placed.first())?;
    let offset = address as i64 - i64::from(v.offset);
    Some(Neighbour { name: v.name.clone(), bytes: v.bytes.into(), offset })
}
