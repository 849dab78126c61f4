//! Atomic operations, lane after lane in the order of the lanes.

use super::access::Kind;
use super::step::Step;
use super::{Block, Machine};
use crate::program::{AtomOp, Atomic, Order};
use crate::types::{Space, Ty};
use crate::value::float::{bits32, bits64, flush, max, min};
use crate::value::half::{Half, HalfMode, HalfOp, apply};
use crate::warp::{Lanes, Warp};

impl Machine<'_> {
    pub(super) fn atomic(&mut self, block: &mut Block, warp: &mut Warp, atomic: &Atomic, mask: u32) -> Step {
        let addresses = self.addresses(warp, &atomic.address, mask)?;
        self.unset(warp, &atomic.src, mask)?;
        if let Some(compare) = atomic.compare {
            self.unset(warp, &[compare], mask)?;
        }
        let size = atomic.ty.bytes() as usize;
        let kind = Kind { write: true, atomic: true, bytes: size * atomic.src.len() };
        self.measure(atomic.space, &addresses, mask, kind.bytes);
        let release = matches!(atomic.order, Order::Release | Order::Both);
        self.synchronise(block, warp, atomic.space, &addresses, mask, true, release);
        if !release {
            self.synchronise(block, warp, atomic.space, &addresses, mask, false, false);
        }
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for lane in Lanes(mask) {
                let (space, address) = Self::resolve(atomic.space, addresses[lane]);
                let at = self.locate(warp, space, address, kind, lane)?;
                let old = self.fetch(block, warp, &clock, space, address, at, kind, lane)?;
                let mut new = old;
                for (i, src) in atomic.src.iter().enumerate() {
                    let part = i * size..(i + 1) * size;
                    let mut raw = [0; 8];
                    raw[..size].copy_from_slice(&old[part.clone()]);
                    let before = u64::from_le_bytes(raw);
                    let compare = atomic.compare.map_or(0, |reg| warp.value(reg, lane));
                    let flushes = space != Space::Shared;
                    let after = combine(atomic.op, atomic.ty, before, warp.value(*src, lane), compare, flushes);
                    new[part].copy_from_slice(&after.to_le_bytes()[..size]);
                    if let Some(Some(dst)) = atomic.dst.as_ref().map(|dst| dst[i]) {
                        warp.set_value(dst, lane, before);
                    }
                }
                self.put(block, warp, &clock, space, address, at, kind, lane, &new[..kind.bytes])?;
            }
            Ok(())
        })();
        warp.clock = clock;
        result
    }
}

/// What an atomic operation leaves in memory. On global memory additions of f32 flush subnormal numbers.
fn combine(op: AtomOp, ty: Ty, old: u64, new: u64, compare: u64, flushes: bool) -> u64 {
    let (a32, b32) = (old as u32, new as u32);
    let float = |bits: u32| if flushes { flush(f32::from_bits(bits)) } else { f32::from_bits(bits) };
    match (op, ty) {
        (AtomOp::And, _) => old & new,
        (AtomOp::Or, _) => old | new,
        (AtomOp::Xor, _) => old ^ new,
        (AtomOp::Exch, _) => new,
        (AtomOp::Cas, _) => {
            if old == compare {
                new
            } else {
                old
            }
        }
        (AtomOp::Inc, _) => u64::from(if a32 >= b32 { 0 } else { a32 + 1 }),
        (AtomOp::Dec, _) => u64::from(if a32 == 0 || a32 > b32 { b32 } else { a32 - 1 }),
        (AtomOp::Add, Ty::F32) => {
            let sum = float(a32) + float(b32);
            bits32(if flushes { flush(sum) } else { sum }).into()
        }
        (AtomOp::Min, Ty::F32) => bits32(min(f32::from_bits(a32), f32::from_bits(b32))).into(),
        (AtomOp::Max, Ty::F32) => bits32(max(f32::from_bits(a32), f32::from_bits(b32))).into(),
        (AtomOp::Add, Ty::F64) => bits64(f64::from_bits(old) + f64::from_bits(new)),
        (_, Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2) => halves(op, ty, a32, b32).into(),
        (AtomOp::Add, Ty::U32 | Ty::S32) => a32.wrapping_add(b32).into(),
        (AtomOp::Add, _) => old.wrapping_add(new),
        (AtomOp::Min, Ty::U32) => a32.min(b32).into(),
        (AtomOp::Max, Ty::U32) => a32.max(b32).into(),
        (AtomOp::Min, Ty::S32) => u64::from((a32 as i32).min(b32 as i32) as u32),
        (AtomOp::Max, Ty::S32) => u64::from((a32 as i32).max(b32 as i32) as u32),
        (AtomOp::Min, Ty::S64) => (old as i64).min(new as i64) as u64,
        (AtomOp::Max, Ty::S64) => (old as i64).max(new as i64) as u64,
        (AtomOp::Min, _) => old.min(new),
        (AtomOp::Max, _) => old.max(new),
    }
}

fn halves(op: AtomOp, ty: Ty, a: u32, b: u32) -> u32 {
    let half = if matches!(ty, Ty::F16 | Ty::F16x2) { Half::F16 } else { Half::Bf16 };
    let mode = HalfMode { half, ftz: false, sat: false, relu: false, nan: false, xorsign: false };
    let op = match op {
        AtomOp::Min => HalfOp::Min,
        AtomOp::Max => HalfOp::Max,
        _ => HalfOp::Add,
    };
    let low = apply(op, mode, a & 0xffff, b & 0xffff, 0);
    if matches!(ty, Ty::F16 | Ty::Bf16) { low } else { low | apply(op, mode, a >> 16, b >> 16, 0) << 16 }
}
