//! Conversions of values and of addresses.

use super::bits::resize;
use super::{Dec, Decoded};
use crate::error::Result;
use crate::lower::operand::Fit;
use crate::program::{Instr, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use crate::types::{Class, Reg, Ty};
use crate::value::convert::Conversion;
use crate::value::float::bits32;
use crate::value::half::{bf16_nearest, bf16_value, f16_nearest, f16_value};
use crate::value::kernel::{Kernel, cmp, n, w};
use crate::value::round::Round;

use Ty::*;

impl Dec<'_, '_, '_> {
    pub(super) fn convert(&mut self) -> Decoded {
        match self.stmt.opcode {
            "cvta" => self.convert_address(),
            "isspacep" => self.is_space(),
            _ => self.convert_value(),
        }
    }

    fn convert_value(&mut self) -> Decoded {
        let float_mode = self.one_of(&[
            ("rn", Round::Nearest),
            ("rz", Round::Zero),
            ("rm", Round::Down),
            ("rp", Round::Up),
            ("rna", Round::Away),
        ]);
        let int_mode =
            self.one_of(&[("rni", Round::Nearest), ("rzi", Round::Zero), ("rmi", Round::Down), ("rpi", Round::Up)]);
        let (ftz, sat) = (self.flag("ftz"), self.flag("sat"));
        let (relu, satfinite) = (self.flag("relu"), self.flag("satfinite"));
        if self.flag("pack") {
            return self.convert_pack(sat);
        }
        let to = self.ty()?;
        let from = self.ty()?;
        self.check_modes(to, from, float_mode, int_mode)?;
        let pair = matches!((from, to), (F32, F16x2 | Bf16x2 | E4m3x2 | E5m2x2));
        self.count(if pair { 3 } else { 2 })?;
        let to_reg = match to {
            Tf32 => B32,
            _ => to,
        };
        let wide = if to.is_int() { Fit::Wider } else { Fit::Exact };
        let operand = self.operand(0)?;
        let width = self.lower.type_of(&operand)?.map_or(to.bits(), Ty::bits).max(to.bits());
        let d = self.lower.dst(&operand, to_reg, wide)?;
        let operand = self.operand(1)?;
        let a = self.lower.src(&operand, from, if from.is_int() { Fit::Wider } else { Fit::Exact })?;
        let b = if pair { self.src(2, from)? } else { a };
        let plain = !ftz && !sat && !relu && !satfinite;
        if plain && let Some(kernel) = quick(from, to, float_mode, int_mode, width) {
            return self.map_regs(kernel, d, &[a, b]);
        }
        let integral = int_mode.is_some();
        let round = int_mode.or(float_mode).unwrap_or(Round::Nearest);
        let how = Conversion { from, to, round, integral, ftz, sat, satfinite, relu, width };
        Ok(vec![Instr::Convert { how, d, s: [a, b] }])
    }

    /// Where a rounding has to be given, and where none may.
    fn check_modes(&self, to: Ty, from: Ty, float_mode: Option<Round>, int_mode: Option<Round>) -> Result<()> {
        let small = |ty| matches!(ty, E4m3x2 | E5m2x2);
        let ok = match (from, to) {
            (Pred | B8 | B16 | B32 | B64 | B128 | Tf32 | E4m3 | E5m2 | U16x2 | S16x2, _)
            | (_, Pred | B8 | B16 | B32 | B64 | B128 | E4m3 | E5m2 | U16x2 | S16x2) => {
                return self.error(format!("cannot convert .{} to .{}", from.name(), to.name()));
            }
            (F32, Tf32 | F16x2 | Bf16x2) => float_mode.is_some(),
            (_, Tf32) => false,
            (F32 | F16x2, E4m3x2 | E5m2x2) => float_mode == Some(Round::Nearest),
            (E4m3x2 | E5m2x2, F16x2) => float_mode == Some(Round::Nearest),
            _ if small(from) || small(to) || matches!(from, F16x2 | Bf16x2) || matches!(to, F16x2 | Bf16x2) => false,
            _ if from.is_int() && to.is_int() => float_mode.is_none() && int_mode.is_none(),
            _ if from.is_int() => float_mode.is_some(),
            _ if to.is_int() => int_mode.is_some(),
            _ if from.bits() > to.bits() || (from, to) == (Bf16, F16) || (from, to) == (F16, Bf16) => {
                float_mode.is_some()
            }
            _ if from == to => float_mode.is_none(),
            _ => float_mode.is_none() && int_mode.is_none(),
        };
        if ok && (float_mode != Some(Round::Away) || to == Tf32) {
            return Ok(());
        }
        self.error(format!("rounding does not suit a conversion from .{} to .{}", from.name(), to.name()))
    }

    /// `cvt.pack.sat.s16.s32 d, a, b` and the forms with bytes and c.
    fn convert_pack(&mut self, sat: bool) -> Decoded {
        if !sat {
            return self.error("`.pack` comes with `.sat`");
        }
        let to = self.ty()?;
        self.ty_of(&[S32])?;
        let with_c = self.flag("b32");
        let kernel = match (to, with_c) {
            (S16, false) => n!(a, b => clamp(a, -32768, 32767, 16) << 16 | clamp(b, -32768, 32767, 16)),
            (U16, false) => n!(a, b => clamp(a, 0, 65535, 16) << 16 | clamp(b, 0, 65535, 16)),
            (S8, true) => n!(a, b, c => c << 16 | clamp(a, -128, 127, 8) << 8 | clamp(b, -128, 127, 8)),
            (U8, true) => n!(a, b, c => c << 16 | clamp(a, 0, 255, 8) << 8 | clamp(b, 0, 255, 8)),
            _ => return self.error(format!("cannot pack into .{}", to.name())),
        };
        if with_c { self.map(kernel, B32, &[S32, S32, B32]) } else { self.map(kernel, B32, &[S32, S32]) }
    }

    fn convert_address(&mut self) -> Decoded {
        let to = self.flag("to");
        let window = self.space_window()?;
        let ty = self.ty_of(&[U64, U32])?;
        if ty == U32 {
            return self.error("addresses have 64 bits");
        }
        let kernel = match (window, to) {
            (0, _) => w!(a => a),
            (SHARED_WINDOW, false) => w!(a => a.wrapping_add(SHARED_WINDOW)),
            (SHARED_WINDOW, true) => w!(a => a.wrapping_sub(SHARED_WINDOW)),
            (LOCAL_WINDOW, false) => w!(a => a.wrapping_add(LOCAL_WINDOW)),
            (LOCAL_WINDOW, true) => w!(a => a.wrapping_sub(LOCAL_WINDOW)),
            // The address of a parameter lies in its window already.
            _ => w!(a => a),
        };
        self.map(kernel, U64, &[U64])
    }

    fn is_space(&mut self) -> Decoded {
        let window = self.space_window()?;
        self.count(2)?;
        let s: Reg = self.src(1, U64)?;
        let zero = self.lower.constant(Class::W, 0)?;
        let f = match window {
            SHARED_WINDOW => cmp!(w a, _b => a.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES),
            LOCAL_WINDOW => cmp!(w a, _b => a.wrapping_sub(LOCAL_WINDOW) < WINDOW_BYTES),
            PARAM_WINDOW => cmp!(w a, _b => a.wrapping_sub(PARAM_WINDOW) < WINDOW_BYTES),
            _ => cmp!(w a, _b => a < PARAM_WINDOW),
        };
        Ok(vec![Instr::Setp { f, d: Some(self.dst(0, Pred)?.row), other: None, s: [s, zero], combine: None }])
    }

    fn space_window(&mut self) -> Result<u64> {
        self.required(&[
            ("global", 0),
            ("const", 0),
            ("shared", SHARED_WINDOW),
            ("shared::cta", SHARED_WINDOW),
            ("shared::cluster", SHARED_WINDOW),
            ("local", LOCAL_WINDOW),
            ("param", PARAM_WINDOW),
            ("param::entry", PARAM_WINDOW),
        ])
    }
}

fn clamp(x: u32, low: i32, high: i32, bits: u32) -> u32 {
    (x as i32).clamp(low, high) as u32 & ((1 << bits) - 1)
}

/// Row functions for the conversions that kernels are full of.
fn quick(from: Ty, to: Ty, float: Option<Round>, int: Option<Round>, width: u32) -> Option<Kernel> {
    if let Some(kernel) = resize(from, to, width) {
        return Some(kernel);
    }
    Some(match (from, to, float, int, width) {
        (F16, F32, ..) => n!(a => bits32(f16_value(a & 0xffff))),
        (Bf16, F32, ..) => n!(a => bits32(bf16_value(a & 0xffff))),
        (F32, F16, Some(Round::Nearest), ..) => n!(a => f16_nearest(f32::from_bits(a))),
        (F32, Bf16, Some(Round::Nearest), ..) => n!(a => bf16_nearest(f32::from_bits(a))),
        (F32, F16x2, Some(Round::Nearest), ..) => {
            n!(a, b => f16_nearest(f32::from_bits(a)) << 16 | f16_nearest(f32::from_bits(b)))
        }
        (F32, Bf16x2, Some(Round::Nearest), ..) => {
            n!(a, b => bf16_nearest(f32::from_bits(a)) << 16 | bf16_nearest(f32::from_bits(b)))
        }
        (S32, F32, Some(Round::Nearest), ..) => n!(a => (a as i32 as f32).to_bits()),
        (U32, F32, Some(Round::Nearest), ..) => n!(a => (a as f32).to_bits()),
        (F32, S32, _, Some(Round::Zero), 32) => n!(a => f32::from_bits(a) as i32 as u32),
        (F32, U32, _, Some(Round::Zero), 32) => n!(a => f32::from_bits(a) as u32),
        (F32, S32, _, Some(Round::Nearest), 32) => n!(a => f32::from_bits(a).round_ties_even() as i32 as u32),
        (F32, S32, _, Some(Round::Down), 32) => n!(a => f32::from_bits(a).floor() as i32 as u32),
        (F32, F32, None, Some(Round::Down), _) => n!(a => bits32(f32::from_bits(a).floor())),
        (F32, F32, None, None, _) => n!(a => bits32(f32::from_bits(a))),
        (F32, F64, ..) => w!(a => crate::value::float::bits64(f32::from_bits(a as u32).into())),
        (F64, F32, Some(Round::Nearest), ..) => w!(a => bits32(f64::from_bits(a) as f32).into()),
        (S32, F64, Some(_), ..) => w!(a => f64::from(a as u32 as i32).to_bits()),
        _ => return None,
    })
}
