//! Matrices spread over the lanes of a warp.

use super::access::Kind;
use super::fault::Fault;
use super::step::Step;
use super::{Block, Machine};
use crate::fma;
use crate::fragment::{Fragment, MatTy, Mma, linear};
use crate::options::MmaMode;
use crate::program::{MatrixMove, WmmaMove};
use crate::report::Finding;
use crate::types::{Class, Reg};
use crate::value::float::{bits32, bits64};
use crate::value::half::{bf16_value, f16_nearest, f16_value};
use crate::value::int::extend;
use crate::value::mma::hopper;
use crate::value::round::{E4M3, E5M2, f8_value};
use crate::warp::Warp;

impl Machine<'_> {
    /// All lanes, together, none exited.
    fn whole_warp(&self, warp: &Warp, mask: u32) -> Step {
        if mask == u32::MAX {
            return Ok(());
        }
        let message = format!("all 32 lanes must execute this together: lanes {:#010x} do not", !mask);
        let mut fault = Fault::new(Finding::WarpDivergence, message).lanes(mask);
        let elsewhere = warp.alive & !mask;
        if elsewhere != 0 {
            let lane = elsewhere.trailing_zeros() as usize;
            fault.elsewhere = Some((warp.index, if warp.active >> lane & 1 == 1 { warp.pc } else { warp.pcs[lane] }));
        }
        Err(fault)
    }

    fn narrow_set(&self, warp: &Warp, regs: &[u16]) -> Step {
        for row in regs {
            self.unset(warp, &[Reg { class: Class::R, row: *row }], u32::MAX)?;
        }
        Ok(())
    }

    pub(super) fn load_matrix(&mut self, block: &mut Block, warp: &mut Warp, matrix: &MatrixMove, mask: u32) -> Step {
        self.whole_warp(warp, mask)?;
        let addresses = self.addresses(warp, &matrix.address, self.address_lanes(matrix))?;
        self.measure(matrix.space, &addresses, self.address_lanes(matrix), 16);
        let kind = Kind { write: false, atomic: false, bytes: 16 };
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for (m, reg) in matrix.regs.iter().enumerate() {
                let mut rows = [[0_u8; 32]; 8];
                for (r, row) in rows.iter_mut().enumerate() {
                    let lane = 8 * m + r;
                    let (space, address) = Self::resolve(matrix.space, addresses[lane]);
                    let at = self.locate(warp, space, address, kind, lane)?;
                    *row = self.fetch(block, warp, &clock, space, address, at, kind, lane)?;
                }
                let element = |r: usize, c: usize| u32::from(u16::from_le_bytes([rows[r][2 * c], rows[r][2 * c + 1]]));
                let values = std::array::from_fn(|lane| {
                    let (r, c) = (lane / 4, 2 * (lane % 4));
                    if matrix.transposed {
                        element(c, r) | element(c + 1, r) << 16
                    } else {
                        element(r, c) | element(r, c + 1) << 16
                    }
                });
                warp.set_narrow(*reg, &values, u32::MAX);
            }
            Ok(())
        })();
        warp.clock = clock;
        result
    }

    /// Lanes whose address is looked at.
    fn address_lanes(&self, matrix: &MatrixMove) -> u32 {
        match matrix.regs.len() {
            4 => u32::MAX,
            n => (1 << (8 * n)) - 1,
        }
    }

    pub(super) fn store_matrix(&mut self, block: &mut Block, warp: &mut Warp, matrix: &MatrixMove, mask: u32) -> Step {
        self.whole_warp(warp, mask)?;
        self.narrow_set(warp, &matrix.regs)?;
        let addresses = self.addresses(warp, &matrix.address, self.address_lanes(matrix))?;
        self.measure(matrix.space, &addresses, self.address_lanes(matrix), 16);
        let kind = Kind { write: true, atomic: false, bytes: 16 };
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for (m, reg) in matrix.regs.iter().enumerate() {
                let held = warp.narrow[usize::from(*reg)];
                for r in 0..8 {
                    let mut raw = [0; 16];
                    for c in 0..8 {
                        let (i, j) = if matrix.transposed { (c, r) } else { (r, c) };
                        let half = (held[4 * i + j / 2] >> (16 * (j % 2))) as u16;
                        raw[2 * c..2 * c + 2].copy_from_slice(&half.to_le_bytes());
                    }
                    let lane = 8 * m + r;
                    let (space, address) = Self::resolve(matrix.space, addresses[lane]);
                    let at = self.locate(warp, space, address, kind, lane)?;
                    self.put(block, warp, &clock, space, address, at, kind, lane, &raw)?;
                }
            }
            Ok(())
        })();
        warp.clock = clock;
        result
    }

    pub(super) fn move_matrix(&self, warp: &mut Warp, d: u16, s: u16, mask: u32) -> Step {
        self.whole_warp(warp, mask)?;
        self.narrow_set(warp, &[s])?;
        let held = warp.narrow[usize::from(s)];
        let element = |r: usize, c: usize| held[4 * r + c / 2] >> (16 * (c % 2)) & 0xffff;
        let values = std::array::from_fn(|lane| {
            let (r, c) = (lane / 4, 2 * (lane % 4));
            element(c, r) | element(c + 1, r) << 16
        });
        warp.set_narrow(d, &values, u32::MAX);
        Ok(())
    }

    pub(super) fn mma(&mut self, warp: &mut Warp, mma: &Mma, mask: u32) -> Step {
        self.whole_warp(warp, mask)?;
        for fragment in [&mma.a, &mma.b, &mma.c] {
            self.unset(warp, &fragment.regs, u32::MAX)?;
        }
        if self.options.stats {
            self.stats.matrix_macs += (mma.m * mma.n * mma.k) as u64;
        }
        let (m, n, k) = (mma.m, mma.n, mma.k);
        match mma.a.ty {
            MatTy::F64 => {
                let values =
                    |fragment| gather_bits(warp, fragment).into_iter().map(f64::from_bits).collect::<Vec<f64>>();
                let (a, b, mut c) = (values(&mma.a), values(&mma.b), values(&mma.c));
                for (i, c) in c.iter_mut().enumerate() {
                    let (row, col) = (i / n, i % n);
                    *c = (0..k).fold(*c, |sum, l| a[row * k + l].mul_add(b[l * n + col], sum));
                }
                scatter(warp, &mma.d, |i| bits64(c[i]));
            }
            MatTy::S8 | MatTy::U8 | MatTy::S4 | MatTy::U4 => {
                let values =
                    |fragment| gather_bits(warp, fragment).into_iter().map(|bits| bits as i64).collect::<Vec<i64>>();
                let (a, b, mut c) = (values(&mma.a), values(&mma.b), values(&mma.c));
                for (i, c) in c.iter_mut().enumerate() {
                    let (row, col) = (i / n, i % n);
                    *c += (0..k).map(|l| a[row * k + l] * b[l * n + col]).sum::<i64>();
                    if mma.satfinite {
                        *c = (*c).clamp(i32::MIN.into(), i32::MAX.into());
                    }
                }
                scatter(warp, &mma.d, |i| u64::from(c[i] as u32));
            }
            _ => {
                let mut a = [0.0; 32 * 32];
                let mut b = [0.0; 32 * 32];
                let mut c = [0.0; 32 * 32];
                let (a, b, c) = (&mut a[..m * k], &mut b[..k * n], &mut c[..m * n]);
                gather(warp, &mma.a, a);
                gather(warp, &mma.b, b);
                gather(warp, &mma.c, c);
                match self.options.mma {
                    MmaMode::Ieee => fma::product(a, b, c, n, k),
                    MmaMode::Hopper => {
                        let group = if mma.a.ty == MatTy::Tf32 { 8 } else { 16 };
                        for (i, c) in c.iter_mut().enumerate() {
                            let (row, col) = (i / n, i % n);
                            *c = hopper(&a[row * k..(row + 1) * k], |l| b[l * n + col], *c, group);
                        }
                    }
                }
                match mma.d.ty {
                    MatTy::F16 => scatter(warp, &mma.d, |i| f16_nearest(c[i]).into()),
                    _ => scatter(warp, &mma.d, |i| bits32(c[i]).into()),
                }
            }
        }
        Ok(())
    }

    pub(super) fn wmma_load(&mut self, block: &mut Block, warp: &mut Warp, wmma: &WmmaMove, mask: u32) -> Step {
        self.whole_warp(warp, mask)?;
        let places = self.wmma_places(warp, wmma)?;
        let bytes = wmma.ty.bits() / 8;
        let kind = Kind { write: false, atomic: false, bytes };
        let clock = std::mem::take(&mut warp.clock);
        let mut values = vec![[0_u32; 32]; wmma.regs.len()];
        let result = (|| -> Step {
            for (i, address) in places.into_iter().enumerate() {
                let (lane, reg, shift) = linear(i, wmma.rows * wmma.cols, wmma.ty);
                let (space, address) = Self::resolve(wmma.space, address);
                let at = self.locate(warp, space, address, kind, lane)?;
                let raw = self.fetch(block, warp, &clock, space, address, at, kind, lane)?;
                values[reg][lane] |= u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]) << shift;
            }
            Ok(())
        })();
        warp.clock = clock;
        result?;
        for (row, values) in wmma.regs.iter().zip(&values) {
            warp.set_narrow(*row, values, u32::MAX);
        }
        Ok(())
    }

    pub(super) fn wmma_store(&mut self, block: &mut Block, warp: &mut Warp, wmma: &WmmaMove, mask: u32) -> Step {
        self.whole_warp(warp, mask)?;
        self.narrow_set(warp, &wmma.regs)?;
        let places = self.wmma_places(warp, wmma)?;
        let bytes = wmma.ty.bits() / 8;
        let kind = Kind { write: true, atomic: false, bytes };
        let clock = std::mem::take(&mut warp.clock);
        let result = (|| -> Step {
            for (i, address) in places.into_iter().enumerate() {
                let (lane, reg, shift) = linear(i, wmma.rows * wmma.cols, wmma.ty);
                let value = warp.narrow[usize::from(wmma.regs[reg])][lane] >> shift;
                let (space, address) = Self::resolve(wmma.space, address);
                let at = self.locate(warp, space, address, kind, lane)?;
                self.put(block, warp, &clock, space, address, at, kind, lane, &value.to_le_bytes()[..bytes])?;
            }
            Ok(())
        })();
        warp.clock = clock;
        result
    }

    /// The address of each element, row after row.
    fn wmma_places(&self, warp: &Warp, wmma: &WmmaMove) -> Step<Vec<u64>> {
        let base = self.addresses(warp, &wmma.address, u32::MAX)?[0];
        let leading = if wmma.column_major { wmma.rows } else { wmma.cols };
        let stride = match wmma.stride {
            Some(reg) => {
                self.unset(warp, &[reg], u32::MAX)?;
                self.uniform(warp, reg, u32::MAX, "stride")?
            }
            None => leading as u64,
        };
        let bytes = wmma.ty.bits() as u64 / 8;
        let place = |i: usize| {
            let (row, col) = ((i / wmma.cols) as u64, (i % wmma.cols) as u64);
            let element =
                if wmma.column_major { col.wrapping_mul(stride) + row } else { row.wrapping_mul(stride) + col };
            base.wrapping_add(element.wrapping_mul(bytes))
        };
        Ok((0..wmma.rows * wmma.cols).map(place).collect())
    }
}

/// Element values of a fragment into the matrix, row after row.
fn gather(warp: &Warp, fragment: &Fragment, out: &mut [f32]) {
    let mut places = fragment.places.iter();
    for reg in &fragment.regs {
        let row = &warp.narrow[usize::from(reg.row)];
        let mut put = |values: &[f32; 32]| {
            for (value, place) in values.iter().zip(places.by_ref()) {
                if let Some(out) = out.get_mut(usize::from(*place)) {
                    *out = *value;
                }
            }
        };
        match fragment.ty {
            MatTy::F16 => {
                put(&row.map(|bits| f16_value(bits & 0xffff)));
                put(&row.map(|bits| f16_value(bits >> 16)));
            }
            MatTy::Bf16 => {
                put(&row.map(|bits| bf16_value(bits & 0xffff)));
                put(&row.map(|bits| bf16_value(bits >> 16)));
            }
            // Only the upper 19 bits of a tf32 are looked at.
            MatTy::Tf32 => put(&row.map(|bits| f32::from_bits(bits & 0xffff_e000))),
            MatTy::E4m3 => (0..4).for_each(|i| put(&row.map(|bits| f8_value(bits >> (8 * i) & 0xff, E4M3) as f32))),
            MatTy::E5m2 => (0..4).for_each(|i| put(&row.map(|bits| f8_value(bits >> (8 * i) & 0xff, E5M2) as f32))),
            _ => put(&row.map(f32::from_bits)),
        }
    }
}

/// The same for any type, as bits extended to 64.
fn gather_bits(warp: &Warp, fragment: &Fragment) -> Vec<u64> {
    let ty = fragment.ty;
    let signed = matches!(ty, MatTy::S8 | MatTy::S4 | MatTy::S32);
    let mut out = vec![0; fragment.elements];
    let mut places = fragment.places.iter();
    for reg in &fragment.regs {
        for slot in 0..fragment.per_reg() {
            for lane in 0..32 {
                let bits = warp.value(*reg, lane) >> (slot * ty.bits() % 64);
                let value = match ty {
                    MatTy::F64 => bits,
                    _ if signed => extend(bits, ty.bits() as u32) as u64,
                    _ => bits & ((1 << ty.bits()) - 1),
                };
                if let Some(out) = places.next().and_then(|place| out.get_mut(usize::from(*place))) {
                    *out = value;
                }
            }
        }
    }
    out
}

/// Writes the elements of a matrix to a fragment.
fn scatter(warp: &mut Warp, fragment: &Fragment, value: impl Fn(usize) -> u64) {
    let mut places = fragment.places.iter();
    for reg in &fragment.regs {
        let mut values = [0_u64; 32];
        for slot in 0..fragment.per_reg() {
            for out in &mut values {
                let place = places.next().map_or(usize::MAX, |place| usize::from(*place));
                if place < fragment.elements {
                    *out |= value(place) << (slot * fragment.ty.bits() % 64);
                }
            }
        }
        warp.set_widened(*reg, &values, u32::MAX);
    }
}
