//! From an index to addresses: the text that takes it apart into coordinates, and the parameters that it reads.

use std::fmt::Write;

use crate::args::{Args, Slots};
use tensor_core::plan::{Plan, divisor};

/// Advances the address registers of a plan's operands from the element 0 to the element `index`, a b32 register.
///
/// Reads, per axis but the outermost: size, multiplier and shift; then per operand the bytes from one to the next.
pub(crate) fn advance(slots: &mut Slots, rank: usize, index: &str, addresses: &[String]) -> String {
    let mut text = String::from(
        "    {\n        .reg .b32 %rest, %quotient, %size, %multiplier, %shift, %coordinate;\n        \
         .reg .b64 %wide, %stride;\n",
    );
    let _ = writeln!(text, "        mov.b32 %rest, {index};");
    for axis in (0..rank).rev() {
        if axis > 0 {
            let [size, multiplier, shift] = [slots.next(), slots.next(), slots.next()];
            let _ = write!(
                text,
                "        ld.param.u32 %size, {size};
        ld.param.u32 %multiplier, {multiplier};
        ld.param.u32 %shift, {shift};
        mul.hi.u32 %quotient, %rest, %multiplier;
        shr.u32 %quotient, %quotient, %shift;
        mul.lo.u32 %coordinate, %quotient, %size;
        sub.u32 %coordinate, %rest, %coordinate;
        mov.b32 %rest, %quotient;
        cvt.u64.u32 %wide, %coordinate;
"
            );
        } else {
            text.push_str("        cvt.u64.u32 %wide, %rest;\n");
        }
        for address in addresses {
            let stride = slots.next();
            let _ = write!(
                text,
                "        ld.param.u64 %stride, {stride};
        mad.lo.s64 {address}, %wide, %stride, {address};
"
            );
        }
    }
    text.push_str("    }\n");
    text
}

/// The parameters that [`advance`] reads, for operands whose elements have these sizes.
pub(crate) fn push(args: &mut Args, plan: &Plan, element_bytes: impl Fn(usize) -> usize) {
    for axis in (0..plan.rank()).rev() {
        if axis > 0 {
            let (multiplier, shift) = divisor(plan.dims[axis]);
            args.push(plan.dims[axis] as u64);
            args.push(multiplier.into());
            args.push(shift.into());
        }
        for (k, strides) in plan.strides.iter().enumerate() {
            args.push_signed(strides[axis] as i64 * element_bytes(k) as i64);
        }
    }
}

/// Takes `index`, a b32 register, apart into the coordinates of a shape, one b32 register per axis.
///
/// Reads, per axis but the outermost, from the innermost on: size, multiplier and shift.
pub(crate) fn coordinates(slots: &mut Slots, index: &str, coordinates: &[String]) -> String {
    let mut text = String::from(
        "    {\n        .reg .b32 %rest, %quotient, %size, %multiplier, %shift;\n        .reg .pred %is_one;\n",
    );
    let _ = writeln!(text, "        mov.b32 %rest, {index};");
    for (axis, c) in coordinates.iter().enumerate().rev() {
        if axis == 0 {
            let _ = writeln!(text, "        mov.b32 {c}, %rest;");
            continue;
        }
        let [size, multiplier, shift] = [slots.next(), slots.next(), slots.next()];
        let _ = write!(
            text,
            "        ld.param.u32 %size, {size};
        ld.param.u32 %multiplier, {multiplier};
        ld.param.u32 %shift, {shift};
        mul.hi.u32 %quotient, %rest, %multiplier;
        shr.u32 %quotient, %quotient, %shift;
        setp.eq.u32 %is_one, %size, 1;
        selp.b32 %quotient, %rest, %quotient, %is_one;
        mul.lo.u32 {c}, %quotient, %size;
        sub.u32 {c}, %rest, {c};
        mov.b32 %rest, %quotient;
"
        );
    }
    text.push_str("    }\n");
    text
}

/// The parameters that [`coordinates`] reads.
pub(crate) fn push_coordinates(args: &mut Args, shape: &[usize]) {
    for axis in (1..shape.len()).rev() {
        let (multiplier, shift) = divisor(shape[axis]);
        args.push(shape[axis] as u64);
        args.push(multiplier.into());
        args.push(shift.into());
    }
}
