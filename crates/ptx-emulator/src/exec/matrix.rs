//! Matrices spread over the lanes of a warp.

use super::access::Kind;
use super::fault::Fault;
use super::step::Step;
use super::{Block, Machine};
use crate::fma;
use crate::options::MmaMode;
use crate::program::{MatTy, MatrixMove, Mma, WmmaMove};
use crate::report::Finding;
use crate::types::{Class, Reg};
use crate::value::float::{bits32, bits64};
use crate::value::half::{bf16_value, f16_nearest, f16_value};
use crate::value::int::extend;
use crate::value::mma::hopper;
use crate::value::round::{E4M3, E5M2, f8_value};
use crate::warp::Warp;

/// Which part of a product a fragment is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    A,
    B,
    C,
    D,
}

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
        for regs in [&mma.a, &mma.b, &mma.c] {
            self.unset(warp, regs, u32::MAX)?;
        }
        if self.options.stats {
            self.stats.matrix_macs += (mma.m * mma.n * mma.k) as u64;
        }
        let (m, n, k) = (mma.m, mma.n, mma.k);
        match mma.a_ty {
            MatTy::F64 => {
                let (a, b) = (gather64(warp, mma, Part::A), gather64(warp, mma, Part::B));
                let mut c = gather64(warp, mma, Part::C);
                for (i, c) in c.iter_mut().enumerate() {
                    let (row, col) = (i / n, i % n);
                    *c = (0..k).fold(*c, |sum, l| a[row * k + l].mul_add(b[l * n + col], sum));
                }
                scatter(warp, mma, |i| bits64(c[i]));
            }
            MatTy::S8 | MatTy::U8 | MatTy::S4 | MatTy::U4 => {
                let a = gather_int(warp, mma, Part::A);
                let b = gather_int(warp, mma, Part::B);
                let mut c = gather_int(warp, mma, Part::C);
                for (i, c) in c.iter_mut().enumerate() {
                    let (row, col) = (i / n, i % n);
                    *c += (0..k).map(|l| a[row * k + l] * b[l * n + col]).sum::<i64>();
                    if mma.satfinite {
                        *c = (*c).clamp(i32::MIN.into(), i32::MAX.into());
                    }
                }
                scatter(warp, mma, |i| u64::from(c[i] as u32));
            }
            _ => {
                let mut a = [0.0; 32 * 32];
                let mut b = [0.0; 32 * 32];
                let mut c = [0.0; 32 * 32];
                let (a, b, c) = (&mut a[..m * k], &mut b[..k * n], &mut c[..m * n]);
                gather(warp, mma, Part::A, a);
                gather(warp, mma, Part::B, b);
                gather(warp, mma, Part::C, c);
                match self.options.mma {
                    MmaMode::Ieee => fma::product(a, b, c, n, k),
                    MmaMode::Hopper => {
                        let group = if mma.a_ty == MatTy::Tf32 { 8 } else { 16 };
                        for (i, c) in c.iter_mut().enumerate() {
                            let (row, col) = (i / n, i % n);
                            *c = hopper(&a[row * k..(row + 1) * k], |l| b[l * n + col], *c, group);
                        }
                    }
                }
                match mma.d_ty {
                    MatTy::F16 => scatter(warp, mma, |i| f16_nearest(c[i]).into()),
                    _ => scatter(warp, mma, |i| bits32(c[i]).into()),
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

/// Where the emulator keeps element i of a `wmma` fragment: lane, register, and bits to shift by.
fn linear(i: usize, elements: usize, ty: MatTy) -> (usize, usize, usize) {
    let per_lane = elements / 32;
    let slot = i % per_lane;
    let per_reg = 32 / ty.bits();
    (i / per_lane, slot / per_reg, slot % per_reg * ty.bits())
}

/// Where element i, row after row, of a part of `mma` is.
fn place(mma: &Mma, part: Part, i: usize) -> (usize, usize, usize) {
    let (rows, cols, ty) = match part {
        Part::A => (mma.m, mma.k, mma.a_ty),
        Part::B => (mma.k, mma.n, mma.b_ty),
        Part::C => (mma.m, mma.n, mma.c_ty),
        Part::D => (mma.m, mma.n, mma.d_ty),
    };
    if mma.wmma {
        return linear(i, rows * cols, ty);
    }
    let (row, col) = (i / cols, i % cols);
    // Elements that share a register; f64 has a register of its own.
    let per_reg = (32 / ty.bits()).max(1);
    match part {
        Part::A => {
            let (group, high) = (row % 8, row / 8);
            let (thread, block) = (col / per_reg % 4, col / (4 * per_reg));
            (4 * group + thread, block * (mma.m / 8) + high, col % per_reg * ty.bits())
        }
        Part::B => {
            let (thread, block) = (row / per_reg % 4, row / (4 * per_reg));
            (4 * col + thread, block, row % per_reg * ty.bits())
        }
        Part::C | Part::D => {
            let element = 2 * (row / 8) + col % 2;
            let lane = 4 * (row % 8) + col / 2;
            (lane, element / per_reg, element % per_reg * ty.bits() % 32)
        }
    }
}

fn regs(mma: &Mma, part: Part) -> (&[Reg], MatTy) {
    match part {
        Part::A => (&mma.a, mma.a_ty),
        Part::B => (&mma.b, mma.b_ty),
        Part::C => (&mma.c, mma.c_ty),
        Part::D => (&mma.d, mma.d_ty),
    }
}

fn gather(warp: &Warp, mma: &Mma, part: Part, out: &mut [f32]) {
    let (regs, ty) = regs(mma, part);
    for (i, out) in out.iter_mut().enumerate() {
        let (lane, reg, shift) = place(mma, part, i);
        let bits = warp.narrow[usize::from(regs[reg].row)][lane] >> shift;
        *out = match ty {
            MatTy::F16 => f16_value(bits & 0xffff),
            MatTy::Bf16 => bf16_value(bits & 0xffff),
            // Only the upper 19 bits of a tf32 are looked at.
            MatTy::Tf32 => f32::from_bits(bits & 0xffff_e000),
            MatTy::E4m3 => f8_value(bits & 0xff, E4M3) as f32,
            MatTy::E5m2 => f8_value(bits & 0xff, E5M2) as f32,
            _ => f32::from_bits(bits),
        };
    }
}

fn gather64(warp: &Warp, mma: &Mma, part: Part) -> Vec<f64> {
    let (regs, _) = regs(mma, part);
    let count = match part {
        Part::A => mma.m * mma.k,
        Part::B => mma.k * mma.n,
        Part::C | Part::D => mma.m * mma.n,
    };
    let value = |i| {
        let (lane, reg, _) = place(mma, part, i);
        f64::from_bits(warp.wide[usize::from(regs[reg].row)][lane])
    };
    (0..count).map(value).collect()
}

fn gather_int(warp: &Warp, mma: &Mma, part: Part) -> Vec<i64> {
    let (regs, ty) = regs(mma, part);
    let count = match part {
        Part::A => mma.m * mma.k,
        Part::B => mma.k * mma.n,
        Part::C | Part::D => mma.m * mma.n,
    };
    let signed = matches!(ty, MatTy::S8 | MatTy::S4 | MatTy::S32);
    let value = |i| {
        let (lane, reg, shift) = place(mma, part, i);
        let bits = u64::from(warp.narrow[usize::from(regs[reg].row)][lane] >> shift);
        if signed { extend(bits, ty.bits() as u32) } else { (bits & ((1 << ty.bits()) - 1)) as i64 }
    };
    (0..count).map(value).collect()
}

/// Writes the result, element by element.
fn scatter(warp: &mut Warp, mma: &Mma, value: impl Fn(usize) -> u64) {
    let mut wide = [[0_u64; 32]; 8];
    for i in 0..mma.m * mma.n {
        let (lane, reg, shift) = place(mma, Part::D, i);
        wide[reg][lane] |= value(i) << shift;
    }
    for (reg, values) in mma.d.iter().zip(&wide) {
        warp.set_widened(*reg, values, u32::MAX);
    }
}
