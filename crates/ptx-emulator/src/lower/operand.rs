//! Operands to rows, checked against the type that the instruction asks for.

use super::Lower;
use super::scope::Sym;
use crate::error::{Error, Pos, Result};
use crate::program::{Address, FUNCTION_WINDOW, Init, LOCAL_WINDOW, PARAM_WINDOW, PredArg, SHARED_WINDOW, Special};
use crate::text::ast::{Const, Kind, Operand};
use crate::types::{Class, Reg, Space, Ty};
use half::{bf16, f16};

/// How strictly a register's type must fit the instruction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The same size and kind.
    Exact,
    /// At least the size: loads, stores and conversions.
    Wider,
}

/// What an address operand names.
pub(crate) enum Place {
    /// Base and offset at run time.
    Dynamic(Address),
    /// A known place in the parameters of the kernel.
    KernelParam {
        offset: u32,
        bytes: u32,
        at: i64,
    },
    CallParam(Address),
}

/// The bits of a constant of that type.
pub(crate) fn constant_bits(value: Const, ty: Ty, pos: Pos) -> Result<u64> {
    let bad = |what: &str| Err(Error::parse(pos, format!("expected {what} constant for .{}", ty.name())));
    let bits = match (value, ty) {
        (Const::Int(v), Ty::F32) => f64::from(v as i64 as f32).to_bits(),
        (Const::Int(v), Ty::F64) => return Ok((v as i64 as f64).to_bits()),
        (Const::Int(v), _) => return Ok(v & mask(ty)),
        (Const::F32(bits), Ty::B32) => return Ok(bits.into()),
        (Const::F64(bits), Ty::B64) => return Ok(bits),
        (Const::F32(bits), _) => f64::from(f32::from_bits(bits)).to_bits(),
        (Const::F64(bits), _) => bits,
    };
    let x = f64::from_bits(bits);
    match ty {
        Ty::F64 => Ok(bits),
        // An exact copy keeps the payload of what is no number.
        Ty::F32 => Ok(match value {
            Const::F32(bits) => bits.into(),
            _ => (x as f32).to_bits().into(),
        }),
        Ty::F16 => Ok(f16::from_f64(x).to_bits().into()),
        Ty::Bf16 => Ok(bf16::from_f64(x).to_bits().into()),
        Ty::Tf32 => Ok((x as f32).to_bits().into()),
        _ => bad("an integer"),
    }
}

fn mask(ty: Ty) -> u64 {
    if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 }
}

fn fits(reg: Ty, wanted: Ty, fit: Fit) -> bool {
    if (reg == Ty::Pred) != (wanted == Ty::Pred) {
        return false;
    }
    if fit == Fit::Wider {
        let kinds = wanted.is_bits() || reg.is_bits() || reg.is_float() == wanted.is_float();
        return reg.bits() >= wanted.bits() && kinds;
    }
    if reg.bits() != wanted.bits() {
        return false;
    }
    let packed = |ty| {
        matches!(ty, Ty::F16x2 | Ty::Bf16x2 | Ty::Tf32 | Ty::U16x2 | Ty::S16x2 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2)
    };
    reg.is_bits()
        || wanted.is_bits()
        || reg == wanted
        || (reg.is_int() && wanted.is_int())
        || packed(wanted)
        || packed(reg)
}

impl<'a> Lower<'_, 'a> {
    fn unknown<T>(&self, operand: &Operand<'a>, what: &str, name: &str) -> Result<T> {
        Err(Error::parse(operand.pos, format!("{what} `{name}`")))
    }

    fn check(&self, operand: &Operand<'a>, name: &str, reg: Ty, wanted: Ty, fit: Fit) -> Result<()> {
        if fits(reg, wanted, fit) {
            return Ok(());
        }
        let message = format!("operand `{name}` is .{}, which does not fit .{}", reg.name(), wanted.name());
        Err(Error::parse(operand.pos, message))
    }

    /// A register to write.
    pub(crate) fn dst(&mut self, operand: &Operand<'a>, ty: Ty, fit: Fit) -> Result<Reg> {
        match self.dst_or_sink(operand, ty, fit)? {
            Some(reg) => Ok(reg),
            None => self.unknown(operand, "expected a register, found", "_"),
        }
    }

    /// A register to write, or `_`.
    pub(crate) fn dst_or_sink(&mut self, operand: &Operand<'a>, ty: Ty, fit: Fit) -> Result<Option<Reg>> {
        let Kind::Name(name, None) = operand.kind else {
            return Err(Error::parse(operand.pos, "expected a register to write"));
        };
        if name == "_" {
            return Ok(None);
        }
        match self.find(name)? {
            Some(Sym::Reg { reg, ty: of }) => {
                self.check(operand, name, of, ty, fit)?;
                self.uses.push(reg);
                Ok(Some(reg))
            }
            Some(_) => self.unknown(operand, "expected a register, found", name),
            None => self.unknown(operand, "unknown register", name),
        }
    }

    /// The declared type of a register operand.
    pub(crate) fn type_of(&mut self, operand: &Operand<'a>) -> Result<Option<Ty>> {
        match operand.kind {
            Kind::Name(name, None) => match self.find(name)? {
                Some(Sym::Reg { ty, .. }) => Ok(Some(ty)),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// A value to read: register, constant, special register or address.
    pub(crate) fn src(&mut self, operand: &Operand<'a>, ty: Ty, fit: Fit) -> Result<Reg> {
        let class = if ty.bits() == 64 { Class::W } else { Class::R };
        match &operand.kind {
            Kind::Const(value) => {
                let bits = constant_bits(*value, ty, operand.pos)?;
                self.constant(class, bits)
            }
            Kind::Name(name, component) => {
                let sym = if component.is_none() { self.find(name)? } else { None };
                match sym {
                    Some(Sym::Reg { reg, ty: of }) => {
                        self.check(operand, name, of, ty, fit)?;
                        self.uses.push(reg);
                        Ok(reg)
                    }
                    Some(sym) => self.symbol_address(operand, name, sym, 0, class),
                    None => match special(name, *component) {
                        Some(special) => self.special(class, special),
                        None => self.unknown(operand, "unknown name", name),
                    },
                }
            }
            Kind::NameOffset(name, offset) => match self.find(name)? {
                Some(Sym::Reg { .. }) => self.unknown(operand, "expected a variable before the offset, found", name),
                Some(sym) => self.symbol_address(operand, name, sym, *offset, class),
                None => self.unknown(operand, "unknown name", name),
            },
            _ => Err(Error::parse(operand.pos, "expected a register or a constant")),
        }
    }

    fn symbol_address(
        &mut self,
        operand: &Operand<'a>,
        name: &'a str,
        sym: Sym<'a>,
        offset: i64,
        class: Class,
    ) -> Result<Reg> {
        let at = |base: u64| base.wrapping_add(offset as u64);
        let cut = |value: u64| if class == Class::W { value } else { value & 0xffff_ffff };
        match sym {
            Sym::Shared(base) => self.constant(class, cut(at(base.into()))),
            Sym::Local(base) => self.constant(class, cut(at(base.into()))),
            Sym::KernelParam { offset: base, .. } => self.constant(class, cut(at(PARAM_WINDOW + u64::from(base)))),
            Sym::DynamicShared => self.address_row(class, Init::Dynamic(offset)),
            Sym::Variable(index) => self.address_row(class, Init::Variable(index, offset)),
            Sym::Func => {
                let index = self.function_index(name, operand.pos)?;
                self.constant(class, FUNCTION_WINDOW + u64::from(index) * 16)
            }
            Sym::CallParam { .. } => self.unknown(operand, "cannot take the address of a call's parameter", name),
            _ => self.unknown(operand, "expected a value, found the label", name),
        }
    }

    /// A predicate to read, perhaps negated.
    pub(crate) fn pred(&mut self, operand: &Operand<'a>) -> Result<PredArg> {
        let (name, negated) = match &operand.kind {
            Kind::Name(name, None) => (*name, false),
            Kind::Not(name) => (*name, true),
            // Row 0 is true.
            Kind::Const(Const::Int(value)) => return Ok(PredArg { row: 0, negated: *value == 0 }),
            _ => return Err(Error::parse(operand.pos, "expected a predicate")),
        };
        match self.find(name)? {
            Some(Sym::Reg { reg: reg @ Reg { class: Class::P, row }, .. }) => {
                self.uses.push(reg);
                Ok(PredArg { row, negated })
            }
            Some(_) => self.unknown(operand, "expected a predicate, found", name),
            None => self.unknown(operand, "unknown predicate", name),
        }
    }

    /// `d` or `d|p`: a register or predicate, and a predicate behind the bar. `_` counts as absent.
    pub(crate) fn pair<'o>(&mut self, operand: &'o Operand<'a>) -> Result<(Operand<'a>, Option<u16>)> {
        let Kind::Pair(first, second) = operand.kind else { return Ok((operand.clone(), None)) };
        let second = Operand { kind: Kind::Name(second, None), pos: operand.pos };
        let second = self.dst_or_sink(&second, Ty::Pred, Fit::Exact)?.map(|reg| reg.row);
        Ok((Operand { kind: Kind::Name(first, None), pos: operand.pos }, second))
    }

    /// A memory operand.
    pub(crate) fn place(&mut self, operand: &Operand<'a>, space: Space) -> Result<Place> {
        let (name, offset) = match &operand.kind {
            Kind::Address(Some(name), offset) => (*name, *offset),
            Kind::Address(None, offset) => {
                let base = self.constant(Class::W, *offset as u64)?;
                return Ok(Place::Dynamic(Address { base, offset: 0 }));
            }
            Kind::Tensor => return Err(Error::parse(operand.pos, "tensor addresses are not supported")),
            _ => return Err(Error::parse(operand.pos, "expected an address such as [%rd1+16]")),
        };
        let fixed = |lower: &mut Self, base: u64| {
            let base = lower.constant(Class::W, base.wrapping_add(offset as u64))?;
            Ok(Place::Dynamic(Address { base, offset: 0 }))
        };
        let window = |window: u64| if space == Space::Generic { window } else { 0 };
        match self.find(name)? {
            Some(Sym::Reg { reg, ty }) if ty.bits() >= 32 => {
                self.uses.push(reg);
                Ok(Place::Dynamic(Address { base: reg, offset }))
            }
            Some(Sym::Reg { ty, .. }) => {
                let message = format!("address `{name}` is .{}: expected 32 or 64 bits", ty.name());
                Err(Error::parse(operand.pos, message))
            }
            Some(Sym::KernelParam { offset: base, bytes }) => {
                Ok(Place::KernelParam { offset: base, bytes, at: i64::from(base) + offset })
            }
            Some(Sym::CallParam { offset: base, bytes }) => {
                if offset < 0 || offset >= i64::from(bytes) {
                    return self.unknown(operand, "offset lies outside the parameter", name);
                }
                let base = self.constant(Class::W, u64::from(base))?;
                Ok(Place::CallParam(Address { base, offset }))
            }
            Some(Sym::Shared(base)) => fixed(self, window(SHARED_WINDOW) + u64::from(base)),
            Some(Sym::Local(base)) => fixed(self, window(LOCAL_WINDOW) + u64::from(base)),
            Some(Sym::DynamicShared) => {
                let base =
                    self.address_row(Class::W, Init::Dynamic(offset.wrapping_add(window(SHARED_WINDOW) as i64)))?;
                Ok(Place::Dynamic(Address { base, offset: 0 }))
            }
            Some(Sym::Variable(index)) => {
                let base = self.address_row(Class::W, Init::Variable(index, offset))?;
                Ok(Place::Dynamic(Address { base, offset: 0 }))
            }
            Some(_) => self.unknown(operand, "expected an address, found", name),
            None => self.unknown(operand, "unknown name in an address:", name),
        }
    }

    pub(crate) fn label(&mut self, operand: &Operand<'a>) -> Result<u32> {
        match operand.kind {
            Kind::Name(name, None) => self.label_named(name, operand.pos),
            _ => Err(Error::parse(operand.pos, "expected a label")),
        }
    }

    pub(crate) fn label_named(&mut self, name: &'a str, pos: Pos) -> Result<u32> {
        match self.find(name)? {
            Some(Sym::Label(label)) => Ok(label),
            _ => Err(Error::parse(pos, format!("unknown label `{name}`"))),
        }
    }
}

/// The special register of that name.
fn special(name: &str, component: Option<&str>) -> Option<Special> {
    let axis = || match component? {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if component.is_some() {
        return match name {
            "%tid" => axis().map(Special::Tid),
            "%ntid" => axis().map(Special::Ntid),
            "%ctaid" | "%clusterid" => axis().map(Special::Ctaid),
            "%nctaid" | "%nclusterid" => axis().map(Special::Nctaid),
            "%cluster_ctaid" => axis().map(|_| Special::Zero),
            "%cluster_nctaid" => axis().map(|_| Special::One),
            _ => None,
        };
    }
    Some(match name {
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::WarpCount,
        "%smid" | "%gridid" | "%cluster_ctarank" | "%is_explicit_cluster" | "%reserved_smem_offset_begin" => {
            Special::Zero
        }
        "%nsmid" | "%cluster_nctarank" => Special::One,
        "%lanemask_eq" => Special::MaskEq,
        "%lanemask_le" => Special::MaskLe,
        "%lanemask_lt" => Special::MaskLt,
        "%lanemask_ge" => Special::MaskGe,
        "%lanemask_gt" => Special::MaskGt,
        "%dynamic_smem_size" => Special::DynamicShared,
        "%total_smem_size" | "%aggr_smem_size" => Special::TotalShared,
        _ => return None,
    })
}
