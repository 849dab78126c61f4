//! Asynchronous copies: the bytes are read when the copy is issued and appear when it is waited for.

use super::access::Kind;
use super::step::Step;
use super::{Block, Machine};
use crate::memory::Bits;
use crate::program::CopyAsync;
use crate::types::{Row64, Space};
use crate::warp::{Copy, Lanes, Warp};

impl Machine<'_> {
    pub(super) fn copy_async(&mut self, block: &mut Block, warp: &mut Warp, copy: &CopyAsync, mask: u32) -> Step {
        let to: Row64 = self.addresses(warp, &copy.dst, mask)?;
        let from = self.addresses(warp, &copy.src, mask)?;
        if let Some(size) = copy.src_bytes {
            self.unset(warp, &[size], mask)?;
        }
        let ignored = match copy.ignore {
            Some(p) => self.pred(warp, p, mask)?,
            None => 0,
        };
        let len = copy.bytes as usize;
        self.measure(copy.src_space, &from, mask & !ignored, len);
        self.measure(Space::Shared, &to, mask, len);
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for lane in Lanes(mask) {
                let size = copy.src_bytes.map_or(len, |reg| (warp.value(reg, lane) as usize).min(len));
                let size = if ignored >> lane & 1 == 1 { 0 } else { size };
                let mut bytes = [0; 16];
                if size > 0 {
                    let (space, address) = Self::resolve(copy.src_space, from[lane]);
                    let aligned = Kind { write: false, atomic: false, bytes: len };
                    // All of a partial copy's source need not exist, but it begins at a multiple of the whole.
                    let kind = if size == len { aligned } else { Kind { bytes: 1, ..aligned } };
                    if address % len as u64 != 0 {
                        self.locate(warp, space, address, aligned, lane)?;
                    }
                    if size == len {
                        let at = self.locate(warp, space, address, kind, lane)?;
                        let raw = self.fetch(block, warp, &clock, space, address, at, kind, lane)?;
                        bytes.copy_from_slice(&raw[..16]);
                        bytes[len..].fill(0);
                    } else {
                        for (i, byte) in bytes.iter_mut().enumerate().take(size) {
                            let address = address + i as u64;
                            let at = self.locate(warp, space, address, kind, lane)?;
                            *byte = self.fetch(block, warp, &clock, space, address, at, kind, lane)?[0];
                        }
                    }
                }
                let (space, address) = Self::resolve(Space::Shared, to[lane]);
                let kind = Kind { write: true, atomic: false, bytes: len };
                let at = self.locate(warp, space, address, kind, lane)?;
                // The copy may write from now on, so it meets whatever else touches these bytes from now on.
                let old = block.shared.data[at..at + len].to_vec();
                self.put(block, warp, &clock, space, address, at, kind, lane, &old)?;
                let size = block.shared.data.len();
                block.shared.pending.get_or_insert_with(|| Bits::new(size)).set(at, len);
                let copy = Copy { lane: lane as u8, len: len as u8, at: at as u32, pc: warp.pc, group: None, bytes };
                warp.copies.push(copy);
            }
            Ok(())
        })();
        warp.clock = clock;
        result
    }

    pub(super) fn copy_commit(&self, warp: &mut Warp, mask: u32) {
        for copy in &mut warp.copies {
            if copy.group.is_none() && mask >> copy.lane & 1 == 1 {
                copy.group = Some(warp.groups[usize::from(copy.lane)]);
            }
        }
        for lane in Lanes(mask) {
            warp.groups[lane] += 1;
        }
    }

    /// Completes the copies of the lanes but for so many newest groups.
    pub(super) fn copy_wait(&mut self, block: &mut Block, warp: &mut Warp, groups: Option<u32>, mask: u32) -> Step {
        let copies = std::mem::take(&mut warp.copies);
        for copy in copies {
            let lane = usize::from(copy.lane);
            let is_due = match (groups, copy.group) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(keep), Some(group)) => group + keep < warp.groups[lane],
            };
            if mask >> lane & 1 == 0 || !is_due {
                warp.copies.push(copy);
                continue;
            }
            let (at, len) = (copy.at as usize, usize::from(copy.len));
            if let Some(pending) = &mut block.shared.pending {
                pending.clear(at, len);
            }
            // The write counts as the thread's own from here on: others need a barrier to see it.
            let kind = Kind { write: true, atomic: false, bytes: len };
            let clock = std::mem::take(&mut warp.clock);
            let wait = std::mem::replace(&mut warp.pc, copy.pc);
            let result = self.put(block, warp, &clock, Space::Shared, at as u64, at, kind, lane, &copy.bytes[..len]);
            warp.clock = clock;
            result?;
            warp.pc = wait;
        }
        Ok(())
    }
}
