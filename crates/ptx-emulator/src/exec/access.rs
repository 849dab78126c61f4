//! Loads and stores, and the checks that every address goes through.

use super::fault::Fault;
use super::step::{Next, Step};
use super::{Block, Machine};
use crate::memory::{Problem, Region};
use crate::program::{Access, Address, LOCAL_START, SHARED_START};
use crate::report::Finding;
use crate::shadow::{Clock, Touch};
use crate::types::{Class, Reg, Row64, Space, Ty};
use crate::value::int::extend;
use crate::warp::{Lanes, Warp};

/// What an access is, for the checks and their reports.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) write: bool,
    pub(super) atomic: bool,
    pub(super) bytes: usize,
}

impl Machine<'_> {
    /// The address of every lane.
    pub(super) fn addresses(&self, warp: &Warp, address: &Address, mask: u32) -> Step<Row64> {
        self.unset(warp, &[address.base], mask)?;
        let row = usize::from(address.base.row);
        let offset = address.offset as u64;
        Ok(if address.base.class == Class::W {
            warp.wide[row].map(|base| base.wrapping_add(offset))
        } else {
            warp.narrow[row].map(|base| u64::from(base.wrapping_add(offset as u32)))
        })
    }

    pub(super) fn load_param(&self, warp: &mut Warp, d: &[Option<Reg>], ty: Ty, offset: u32, width: u32, mask: u32) {
        let size = ty.bytes() as usize;
        for (i, reg) in d.iter().enumerate() {
            let at = offset as usize + i * size;
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&self.args[at..at + size]);
            let value = widen(u64::from_le_bytes(bytes), ty, width);
            match reg {
                Some(Reg { class: Class::R, row }) => warp.set_narrow(*row, &[value as u32; 32], mask),
                Some(Reg { class: Class::W, row }) => warp.set_wide(*row, &[value; 32], mask),
                _ => {}
            }
        }
    }

    pub(super) fn load(&mut self, block: &mut Block, warp: &mut Warp, access: &Access, mask: u32) -> Step<Next> {
        if mask == 0 {
            return Ok(Next::Ahead);
        }
        let addresses = self.addresses(warp, &access.address, mask)?;
        let size = access.ty.bytes() as usize;
        let bytes = size * access.regs.len();
        self.measure(access.space, &addresses, mask, bytes);
        let kind = Kind { write: false, atomic: access.order.is_strong(), bytes };
        if kind.atomic {
            self.synchronise(block, warp, access.space, &addresses, mask, true, false);
        }
        let extends = access.ty.is_signed() && access.width > access.ty.bits();
        // Destinations may be among the registers of the address only in the same lane, which is done with then.
        let mut runs = Lanes(mask);
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for lane in runs.by_ref() {
                let (space, address) = Self::resolve(access.space, addresses[lane]);
                let at = self.locate(warp, space, address, kind, lane)?;
                let region = self.region(block, space);
                if let Some((region, floor)) = region {
                    let touch = self.touch_at(block.linear, warp, &clock, floor, kind.atomic);
                    let watch = self.watch();
                    let region = match region {
                        Where::Shared => &mut block.shared,
                        Where::Global(i) => &mut self.global.allocations[i].region,
                    };
                    if let Err(problem) = region.read(at, bytes, lane as u32, &touch, watch) {
                        return Err(problem_fault(problem, region, kind, space, address, at, lane));
                    }
                    if size == 4 {
                        for (i, reg) in access.regs.iter().enumerate() {
                            let at = at + 4 * i;
                            let raw: [u8; 4] = region.data[at..at + 4].try_into().expect("invariant: four bytes");
                            let value = u32::from_le_bytes(raw);
                            match reg {
                                Some(Reg { class: Class::R, row }) => warp.narrow[usize::from(*row)][lane] = value,
                                Some(reg) => {
                                    let value = if extends { value as i32 as i64 as u64 } else { value.into() };
                                    warp.wide[usize::from(reg.row)][lane] = value;
                                }
                                None => {}
                            }
                        }
                    } else {
                        for (i, reg) in access.regs.iter().enumerate() {
                            let value = region.get(at + i * size, size);
                            let value = if extends { widen(value, access.ty, access.width) } else { value };
                            match reg {
                                Some(Reg { class: Class::R, row }) => {
                                    warp.narrow[usize::from(*row)][lane] = value as u32
                                }
                                Some(reg) => warp.wide[usize::from(reg.row)][lane] = value,
                                None => {}
                            }
                        }
                    }
                    continue;
                }
                self.load_own(warp, access, space, address, at, lane)?;
            }
            Ok(())
        })();
        warp.clock = clock;
        result?;
        for reg in access.regs.iter().flatten() {
            match reg.class {
                Class::W => warp.wide_set[usize::from(reg.row)] |= mask,
                _ => warp.narrow_set[usize::from(reg.row)] |= mask,
            }
        }
        Ok(Next::Ahead)
    }

    /// A load from memory that only the thread has: local memory, parameters.
    fn load_own(&self, warp: &mut Warp, access: &Access, space: Space, address: u64, at: usize, lane: usize) -> Step {
        let size = access.ty.bytes() as usize;
        let bytes = size * access.regs.len();
        if space == Space::Local
            && self.options.checks.uninitialised_memory
            && !warp.local_set[at..at + bytes].iter().all(|set| *set)
        {
            let fault = Fault::new(
                Finding::UninitialisedMemory,
                format!("reads {bytes} bytes of local memory that nothing wrote"),
            );
            return Err(fault.at(space, address).lanes(1 << lane));
        }
        for (i, reg) in access.regs.iter().enumerate() {
            let from = at + i * size;
            let mut raw = [0; 8];
            raw[..size].copy_from_slice(match space {
                Space::Local => &warp.local[from..from + size],
                _ if access.space == Space::Param && address < self.call_end() => &warp.call[from..from + size],
                _ => &self.args[from..from + size],
            });
            if let Some(reg) = reg {
                let value = widen(u64::from_le_bytes(raw), access.ty, access.width);
                warp.set_value(*reg, lane, value);
            }
        }
        Ok(())
    }

    fn call_end(&self) -> u64 {
        self.program.call_bytes.into()
    }

    pub(super) fn store(&mut self, block: &mut Block, warp: &mut Warp, access: &Access, mask: u32) -> Step<Next> {
        if mask == 0 {
            return Ok(Next::Ahead);
        }
        let addresses = self.addresses(warp, &access.address, mask)?;
        for reg in access.regs.iter().flatten() {
            self.unset(warp, &[*reg], mask)?;
        }
        let size = access.ty.bytes() as usize;
        let bytes = size * access.regs.len();
        self.measure(access.space, &addresses, mask, bytes);
        let kind = Kind { write: true, atomic: access.order.is_strong(), bytes };
        if kind.atomic {
            let release_now = matches!(access.order, crate::program::Order::Release | crate::program::Order::Both);
            self.synchronise(block, warp, access.space, &addresses, mask, false, release_now);
        }
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for lane in Lanes(mask) {
                let (space, address) = Self::resolve(access.space, addresses[lane]);
                let at = self.locate(warp, space, address, kind, lane)?;
                let mut raw = [0; 32];
                for (i, reg) in access.regs.iter().enumerate() {
                    let value = reg.map_or(0, |reg| warp.value(reg, lane));
                    raw[i * size..(i + 1) * size].copy_from_slice(&value.to_le_bytes()[..size]);
                }
                self.put(block, warp, &clock, space, address, at, kind, lane, &raw[..bytes])?;
            }
            Ok(())
        })();
        warp.clock = clock;
        result?;
        Ok(Next::Ahead)
    }

    /// Reads bytes at a place that [`locate`](Self::locate) found.
    pub(super) fn fetch(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        clock: &Clock,
        space: Space,
        address: u64,
        at: usize,
        kind: Kind,
        lane: usize,
    ) -> Step<[u8; 32]> {
        let mut raw = [0; 32];
        let bytes = kind.bytes;
        let Some((place, floor)) = self.region(block, space) else {
            let from = if space == Space::Local { &warp.local } else { &warp.call };
            raw[..bytes].copy_from_slice(&from[at..at + bytes]);
            return Ok(raw);
        };
        let touch = self.touch_at(block.linear, warp, clock, floor, kind.atomic);
        let watch = self.watch();
        let region = match place {
            Where::Shared => &mut block.shared,
            Where::Global(i) => &mut self.global.allocations[i].region,
        };
        if let Err(problem) = region.read(at, bytes, lane as u32, &touch, watch) {
            return Err(problem_fault(problem, region, kind, space, address, at, lane));
        }
        raw[..bytes].copy_from_slice(&region.data[at..at + bytes]);
        Ok(raw)
    }

    /// Writes bytes at a place that [`locate`](Self::locate) found.
    pub(super) fn put(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        clock: &Clock,
        space: Space,
        address: u64,
        at: usize,
        kind: Kind,
        lane: usize,
        raw: &[u8],
    ) -> Step {
        match self.region(block, space) {
            Some((place, floor)) => {
                let touch = self.touch_at(block.linear, warp, clock, floor, kind.atomic);
                let watch = self.watch();
                let region = match place {
                    Where::Shared => &mut block.shared,
                    Where::Global(i) => &mut self.global.allocations[i].region,
                };
                if let Err(problem) = region.write(at, raw.len(), lane as u32, &touch, watch, |old| old == raw) {
                    return Err(problem_fault(problem, region, kind, space, address, at, lane));
                }
                region.data[at..at + raw.len()].copy_from_slice(raw);
            }
            None if space == Space::Local => {
                warp.local[at..at + raw.len()].copy_from_slice(raw);
                warp.local_set[at..at + raw.len()].fill(true);
            }
            None => warp.call[at..at + raw.len()].copy_from_slice(raw),
        }
        Ok(())
    }

    /// The region that a place found in that space lies in, and from when its accesses count.
    #[inline(always)]
    pub(super) fn region(&self, block: &Block, space: Space) -> Option<(Where, u32)> {
        match space {
            Space::Shared => Some((Where::Shared, block.floor)),
            Space::Local | Space::Param => None,
            Space::Global | Space::Const | Space::Generic => Some((Where::Global(self.recent), self.floor)),
        }
    }

    #[inline(always)]
    pub(super) fn touch_at<'c>(
        &self,
        block: u32,
        warp: &Warp,
        clock: &'c Clock,
        floor: u32,
        atomic: bool,
    ) -> Touch<'c> {
        let who = block.wrapping_mul(self.warps).wrapping_add(warp.index);
        Touch { now: self.time, who, floor, clock, pc: warp.pc, atomic }
    }

    /// The place of an address in its region, which is `recent` for global memory.
    #[inline(always)]
    pub(super) fn locate(&mut self, warp: &Warp, space: Space, address: u64, kind: Kind, lane: usize) -> Step<usize> {
        let bytes = kind.bytes as u64;
        if address & (bytes - 1) != 0 {
            let message = format!("{} of {bytes} bytes at an address that is no multiple of {bytes}", verb(kind));
            return Err(Fault::new(Finding::Misaligned, message).at(space, address).lanes(1 << lane));
        }
        match space {
            Space::Shared => {
                if address >= SHARED_START.into() && self.shared_holds(address, bytes) {
                    return Ok(address as usize);
                }
            }
            Space::Global | Space::Const | Space::Generic => {
                if let Some(a) = self.global.allocations.get(self.recent)
                    && !a.freed
                    && address >= a.base
                    && address - a.base + bytes <= a.len
                    && !(kind.write && a.read_only)
                {
                    return Ok((address - a.base) as usize);
                }
                return self.locate_global(space, address, kind, lane);
            }
            Space::Local => {
                let held = |v: &crate::program::Placed| {
                    address >= v.offset.into() && address + bytes <= u64::from(v.offset) + u64::from(v.bytes)
                };
                if address >= LOCAL_START.into() && self.program.local.iter().any(held) {
                    return Ok(lane * self.program.local_bytes as usize + address as usize);
                }
            }
            Space::Param => return self.locate_param(warp, address, kind, lane),
        }
        Err(self.out_of_bounds(space, address, kind, lane))
    }

    fn locate_global(&mut self, space: Space, address: u64, kind: Kind, lane: usize) -> Step<usize> {
        if let Some(i) = self.global.before(address) {
            let a = &self.global.allocations[i];
            let offset = address - a.base;
            if offset < a.len && a.freed {
                let message = format!("{} of {} bytes in memory that was freed", verb(kind), kind.bytes);
                return Err(Fault::new(Finding::UseAfterFree, message).at(Space::Global, address).lanes(1 << lane));
            }
            if offset.checked_add(kind.bytes as u64).is_some_and(|end| end <= a.len) {
                if kind.write && a.read_only {
                    let message = format!("{} of {} bytes in constant memory", verb(kind), kind.bytes);
                    return Err(Fault::new(Finding::ReadOnly, message).at(Space::Const, address).lanes(1 << lane));
                }
                self.recent = i;
                return Ok(offset as usize);
            }
        }
        Err(self.out_of_bounds(space, address, kind, lane))
    }

    /// Parameters of calls begin at 0, those of the kernel at their window.
    fn locate_param(&self, _warp: &Warp, address: u64, kind: Kind, lane: usize) -> Step<usize> {
        let window = crate::program::PARAM_WINDOW;
        let end = address.wrapping_add(kind.bytes as u64);
        if !kind.write && address >= window && end - window <= self.args.len() as u64 {
            return Ok((address - window) as usize);
        }
        if end <= self.call_end() && end >= address {
            return Ok(lane * self.program.call_bytes as usize + address as usize);
        }
        // A generic address has lost its window already.
        if !kind.write && end <= self.args.len() as u64 {
            return Ok(address as usize);
        }
        Err(self.out_of_bounds(Space::Param, address, kind, lane))
    }

    #[cold]
    fn out_of_bounds(&self, space: Space, address: u64, kind: Kind, lane: usize) -> Box<Fault> {
        let space = if space == Space::Generic { Space::Global } else { space };
        let message = format!("{} of {} bytes beside everything in {} memory", verb(kind), kind.bytes, space.name());
        Fault::new(Finding::OutOfBounds, message).at(space, address).lanes(1 << lane)
    }

    pub(super) fn measure(&mut self, space: Space, addresses: &Row64, mask: u32, bytes: usize) {
        if !self.options.stats || mask == 0 {
            return;
        }
        match Self::resolve(space, addresses[mask.trailing_zeros() as usize]).0 {
            Space::Shared => self.stats.shared_request(addresses, mask, bytes as u64),
            Space::Global => self.stats.global_request(addresses, mask, bytes as u64),
            _ => {}
        }
    }

    /// Strong accesses hand on what was fenced: a read takes what was released at its address, a write releases.
    pub(super) fn synchronise(
        &mut self,
        block: &mut Block,
        warp: &mut Warp,
        space: Space,
        addresses: &Row64,
        mask: u32,
        reads: bool,
        release_now: bool,
    ) {
        if release_now {
            let now = self.tick();
            let who = self.who(block, warp);
            let mut clock = warp.clock.clone();
            clock.see(who, now);
            warp.fenced = Some(clock);
        }
        for lane in Lanes(mask) {
            let (space, address) = Self::resolve(space, addresses[lane]);
            let places = if space == Space::Shared { &mut block.sync } else { &mut self.sync };
            if reads && let Some(released) = places.get(&address) {
                warp.clock.join(released);
            }
            if (!reads || release_now)
                && let Some(fenced) = &warp.fenced
            {
                places.entry(address).or_insert_with(|| fenced.clone()).join(fenced);
            }
        }
    }
}

/// Memory that others see too.
#[derive(Clone, Copy)]
pub(super) enum Where {
    Shared,
    Global(usize),
}

fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind { atomic: true, write: true, .. } => "atomic access",
        Kind { write: true, .. } => "write",
        _ => "read",
    }
}

/// Extended to the register, if it is signed and wider.
pub(super) fn widen(value: u64, ty: Ty, width: u32) -> u64 {
    if !ty.is_signed() || width <= ty.bits() {
        return value;
    }
    let value = extend(value, ty.bits()) as u64;
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

#[cold]
pub(super) fn problem_fault(
    problem: Problem,
    region: &Region,
    kind: Kind,
    space: Space,
    address: u64,
    at: usize,
    lane: usize,
) -> Box<Fault> {
    let bytes = kind.bytes;
    let what = verb(kind);
    let name = if space == Space::Shared { "shared" } else { "global" };
    let mut fault = match problem {
        Problem::Uninitialised => {
            let first = region.first_unwritten(at, bytes).map_or(0, |first| first - at);
            let message = format!("{what} of {bytes} bytes of {name} memory: byte {first} of them was never written");
            Fault::new(Finding::UninitialisedMemory, message)
        }
        Problem::Pending => {
            let message = format!("{what} of {bytes} bytes that an asynchronous copy has not been waited for");
            Fault::new(Finding::MissingCopyWait, message)
        }
        Problem::Race(conflict) => {
            let finding = if space == Space::Shared { Finding::SharedRace } else { Finding::GlobalRace };
            let other = if conflict.was_write { "write" } else { "read" };
            let message = format!("{what} of {bytes} bytes of {name} memory is in no order with a {other} of them");
            let mut fault = Fault::new(finding, message);
            fault.conflict = Some(conflict);
            fault
        }
    };
    fault.lanes = 1 << lane;
    fault.address = Some((space, address));
    fault
}
